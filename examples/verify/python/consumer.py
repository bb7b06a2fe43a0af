"""Takes Tripline's webhooks with nothing but the standard library: verifies
each signature and acts once on each trigger.

    WEBHOOK_SECRET=whsec_... python3 examples/verify/python/consumer.py
"""

import base64
import hashlib
import hmac
import json
import os
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

TOLERANCE = 5 * 60  # seconds; an older attempt may be somebody's replay


def parse_secret(secret):
    """After whsec_ it is base64, else it is taken as it is."""
    if secret.startswith("whsec_"):
        return base64.b64decode(secret[len("whsec_"):], validate=True)
    if not secret:
        sys.exit("set WEBHOOK_SECRET")
    return secret.encode()


def verified(key, headers, body, now):
    """Holds an attempt against its signatures. The body must be the bytes as
    they came, before any JSON is read."""
    message_id = headers.get("webhook-id", "")
    timestamp = headers.get("webhook-timestamp", "")
    if not timestamp.isdigit() or abs(now - int(timestamp)) > TOLERANCE:
        return False
    signed = f"{message_id}.{timestamp}.".encode() + body
    want = "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    # While a secret is changed there are several, with spaces between.
    return any(hmac.compare_digest(one.encode(), want.encode())
               for one in headers.get("webhook-signature", "").split())


class Inbox:
    """Acts on each trigger once. What it remembers belongs into the same
    database transaction as what act does; here it is in memory."""

    def __init__(self, act):
        self.act = act
        self.lock = threading.Lock()
        self.newest = {}  # the highest sequence acted on, by device
        self.redriven = set()  # ids of those that an operator sent again

    def take(self, trigger, redriven):
        device, sequence = trigger["data"]["device"], trigger["sequence"]
        with self.lock:
            # A device's triggers come in order, and sequence rises: one value
            # per device tells a repeat. A redriven one comes after its time,
            # so its id tells.
            if redriven:
                seen = trigger["id"] in self.redriven
            else:
                seen = sequence <= self.newest.get(device, "")
            if seen:
                print("duplicate", trigger["id"], flush=True)
                return
            self.act(trigger)
            if redriven:
                self.redriven.add(trigger["id"])
            else:
                self.newest[device] = sequence


def act(trigger):
    """Your own part."""
    data = trigger["data"]
    print("new", trigger["id"], data["device"], data["transition"],
          data.get("fence", {}).get("id", ""), flush=True)


class Consumer(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"  # keeps connections
    key = b""
    inbox = Inbox(act)

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        if not verified(self.key, self.headers, body, time.time()):
            return self.answer(401)
        try:
            trigger = json.loads(body)
        except ValueError:
            return self.answer(422)
        try:
            self.inbox.take(trigger, self.headers.get("tripline-redriven") == "true")
        except Exception as error:  # anything but 2xx, and it comes again
            print("failed:", error, file=sys.stderr)
            return self.answer(503)
        self.answer(204)

    def answer(self, status):
        self.send_response(status)
        if status != 204:
            self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *args):
        pass


if __name__ == "__main__":
    Consumer.key = parse_secret(os.environ.get("WEBHOOK_SECRET", ""))
    server = ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", "9000"))), Consumer)
    print(f"listening on http://127.0.0.1:{server.server_port}/", flush=True)
    server.serve_forever()
