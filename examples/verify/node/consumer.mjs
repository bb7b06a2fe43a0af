// Takes Tripline's webhooks with nothing but Node: verifies each signature and
// acts once on each trigger.
//
//   WEBHOOK_SECRET=whsec_... node examples/verify/node/consumer.mjs
import { createHmac, timingSafeEqual } from "node:crypto";
import { createServer } from "node:http";

const tolerance = 5 * 60; // seconds; an older attempt may be somebody's replay

// After whsec_ it is base64, else it is taken as it is.
function parseSecret(secret) {
  if (!secret) throw new Error("set WEBHOOK_SECRET");
  return secret.startsWith("whsec_") ? Buffer.from(secret.slice("whsec_".length), "base64") : Buffer.from(secret);
}

// Holds an attempt against its signatures. The body must be the bytes as they
// came, before any JSON is read.
function verified(key, headers, body, now) {
  const id = headers["webhook-id"] ?? "";
  const timestamp = headers["webhook-timestamp"] ?? "";
  if (!/^\d+$/.test(timestamp) || Math.abs(now - Number(timestamp)) > tolerance) return false;
  const want = Buffer.from("v1," + createHmac("sha256", key).update(`${id}.${timestamp}.`).update(body).digest("base64"));
  // While a secret is changed there are several, with spaces between.
  return (headers["webhook-signature"] ?? "").split(" ").some((one) => {
    const got = Buffer.from(one);
    return got.length === want.length && timingSafeEqual(got, want);
  });
}

// What these remember belongs into the same database transaction as what act
// does; here it is in memory. If act becomes asynchronous, take one trigger of
// a device at a time.
const newest = new Map(); // the highest sequence acted on, by device
const redriven = new Set(); // ids of those that an operator sent again

function take(trigger, isRedriven) {
  const { device } = trigger.data;
  // A device's triggers come in order, and sequence rises: one value per device
  // tells a repeat. A redriven one comes after its time, so its id tells.
  const seen = isRedriven ? redriven.has(trigger.id) : trigger.sequence <= (newest.get(device) ?? "");
  if (seen) {
    console.log("duplicate", trigger.id);
    return;
  }
  act(trigger);
  if (isRedriven) redriven.add(trigger.id);
  else newest.set(device, trigger.sequence);
}

// Your own part.
function act({ id, data }) {
  console.log("new", id, data.device, data.transition, data.fence?.id ?? "");
}

const key = parseSecret(process.env.WEBHOOK_SECRET);

const server = createServer((request, response) => {
  const chunks = [];
  request.on("data", (chunk) => chunks.push(chunk));
  request.on("end", () => {
    const answer = (status) => response.writeHead(status).end();
    const body = Buffer.concat(chunks);
    if (!verified(key, request.headers, body, Date.now() / 1000)) return answer(401);
    let trigger;
    try {
      trigger = JSON.parse(body);
    } catch {
      return answer(422);
    }
    try {
      take(trigger, request.headers["tripline-redriven"] === "true");
    } catch (error) {
      console.error("failed:", error); // anything but 2xx, and it comes again
      return answer(503);
    }
    answer(204);
  });
});
server.listen(Number(process.env.PORT ?? 9000), "127.0.0.1", () => {
  console.log(`listening on http://127.0.0.1:${server.address().port}/`);
});
