import assert from "node:assert/strict";
import { test } from "node:test";
import { History } from "../src/consumers/history.ts";
import { bytes, duration, metres, millis } from "../src/format.ts";
import { splitLine, splitPolygon, unwrap } from "../src/map/antimeridian.ts";
import { Fleet, mercatorX, nearest, stillAfter, worldWidth } from "../src/map/fleet.ts";
import { parser } from "../src/stream.ts";
import type { BreakerChange, Consumer, DeviceRow, Past, State } from "../src/wire.ts";

test("events are read whatever pieces the stream comes in", () => {
  const text = 'event: hello\ndata: {"a":1}\n\n: still here\n\nevent: trigger\ndata: {"b":"x\\n"}\n\n';
  for (let size = 1; size <= text.length; size++) {
    const got: [string, string][] = [];
    const parse = parser((name, data) => got.push([name, data]));
    for (let i = 0; i < text.length; i += size) parse(text.slice(i, i + size));
    assert.deepEqual(got, [["hello", '{"a":1}'], ["trigger", '{"b":"x\\n"}']]);
  }
});

test("a snapshot that is older than a change does not undo it", () => {
  const history = new History();
  const at = (s: number) => new Date(Date.now() - 60_000 + s * 1000).toISOString();
  const state = (to: State, s: number) => history.snapshot({ state: to, since: at(s), samples: 0 } as Consumer);
  const change = (from: State, to: State, s: number) => history.change({ from, to, at: at(s) } as BreakerChange);
  state("closed", 0);
  change("closed", "open", 10);
  state("closed", 0); // was on its way
  state("open", 10);
  change("open", "half_open", 12);
  state("half_open", 12);
  assert.deepEqual(history.bands.map((b) => b.state), ["closed", "open", "half_open"]);
  assert.deepEqual(history.totals("open", Date.now()).times, 1);
});

test("what the server remembers is filled in before what the page saw, and once", () => {
  const history = new History();
  const now = Date.now();
  const at = (s: number) => new Date(now - 60_000 + s * 1000).toISOString();
  const probe = (s: number) => ({ consumer: "dispatch", at: at(s), verdict: "healthy", latency_ms: s });
  const past: Past = {
    consumer: "dispatch", from: at(0),
    changes: [
      { consumer: "dispatch", at: at(20), from: "closed", to: "open", reason: "p99", text: "", rung: 0, until: null },
      { consumer: "dispatch", at: at(30), from: "open", to: "half_open", reason: "", text: "", rung: 0, until: null },
    ],
    probes: [probe(31), probe(32)],
    p99: [{ at: at(5), ms: 120 }, { at: at(10), ms: null }],
  };
  history.recall(past);
  history.snapshot({ state: "half_open", since: at(30), samples: 0 } as Consumer);
  assert.deepEqual(history.bands.map((b) => [b.state, Math.round((b.from - now) / 1000)]), [["closed", -60], ["open", -40], ["half_open", -30]]);
  assert.deepEqual(history.p99.map((p) => p.ms), [120, null, null]);
  // The stream broke and came back: the server tells all of it again.
  history.recall({ ...past, probes: [...past.probes, probe(50)], changes: [...past.changes, { ...past.changes[0]!, at: at(55), from: "half_open", to: "closed" }] });
  assert.deepEqual(history.bands.map((b) => b.state), ["closed", "open", "half_open", "closed"]);
  assert.deepEqual(history.probes.map((p) => p.latency), [31, 32, 50]);
  // Another process remembers less: what this page saw before stays.
  history.recall({ consumer: "dispatch", from: at(58), changes: [], probes: [], p99: [] });
  assert.equal(history.bands.length, 4);
  assert.equal(history.probes.length, 3);
});

test("figures read well", () => {
  assert.deepEqual([0, 59.6, 125, 3600, 93_600].map(duration), ["0 s", "1 min", "2 min 5 s", "1 h", "1 d 2 h"]);
  assert.deepEqual([0, 4.21, 212, 1234, 15_000].map(millis), ["0 ms", "4.2 ms", "212 ms", "1.23 s", "15.0 s"]);
  assert.deepEqual([12, 2048, 64 << 20].map(bytes), ["12 B", "2.0 KiB", "64.0 MiB"]);
  assert.deepEqual([4, 60, 1234].map(metres), ["4.0 m", "60 m", "1.23 km"]);
});

test("lines and polygons take the short way across 180 degrees", () => {
  assert.deepEqual(unwrap([[179, 0], [-179, 1], [178, 2]]), [[179, 0], [181, 1], [178, 2]]);
  assert.deepEqual(splitLine([[170, 0], [179, 0], [-179, 0], [-170, 0]]).length, 2);
  const parts = splitPolygon([[[170, 0], [-170, 0], [-170, 10], [170, 10], [170, 0]]]);
  assert.equal(parts.length, 2);
  for (const [ring] of parts) for (const [lon] of ring!) assert.ok(lon! >= -180 && lon! <= 180, `longitude ${lon}`);
  const plain = [[[0, 0], [1, 0], [1, 1], [0, 0]]];
  assert.deepEqual(splitPolygon(plain), [plain]);
});

test("a ring around a pole is closed over it", () => {
  const ring = Array.from({ length: 37 }, (_, i) => [i === 36 ? -180 : -180 + i * 10, -70]);
  const lats = splitPolygon([ring]).flat(2).map((p) => p[1]);
  assert.ok(lats.includes(-90));
});

test("a device glides to its new place and stays there", () => {
  const fleet = new Fleet();
  fleet.update([["van", 0, 10, 1000, null]], 0, true);
  fleet.update([["van", 0, 10.01, 2000, null]], 1000, true);
  const [from, to] = [mercatorX(10), mercatorX(10.01)];
  assert.equal(fleet.x(0, 1000), from);
  assert.ok(fleet.x(0, 1500) > from && fleet.x(0, 1500) < to);
  assert.equal(fleet.x(0, 9000), to);
  assert.equal(Math.round(fleet.heading(0)), 90);
  assert.equal(fleet.size, 1);
});

test("a device crosses 180 degrees the short way", () => {
  const fleet = new Fleet();
  fleet.update([["ship", 0, 179.99, 1000, null]], 0, true);
  fleet.update([["ship", 0, -179.99, 2000, null]], 1000, true);
  assert.ok(Math.abs(fleet.x(0, 1100) - nearest(mercatorX(180), fleet.x(0, 1100))) < 3000);
  assert.ok(Math.abs(nearest(-worldWidth / 2, worldWidth / 2) - worldWidth / 2) < 1e-6);
});

test("what was heard long ago is still at once, whatever its own clock says; what goes on sending is not", () => {
  const fleet = new Fleet();
  const old = stillAfter / 1000 + 1;
  fleet.update([["old", 0, 0, 5000, null, old], ["new", 0, 0, 5, null]], 500_000, true);
  assert.deepEqual([fleet.still(0, 500_000), fleet.still(1, 500_000)], [true, false]);
  fleet.update([["old", 0, 0.001, 5001, null]], 501_000, true);
  assert.equal(fleet.still(0, 501_000), false);
});

test("what was known when the page was opened does not undo what has moved since", () => {
  const fleet = new Fleet();
  fleet.update([["van", 1, 1, 2000, null]], 0, true);
  fleet.update([["van", 0, 0, 1000, null, 1]], 10, true);
  assert.deepEqual([fleet.lat[0], fleet.ts(0)], [1, 2000]);
});

test("devices that are forgotten or not heard of for long go; the others keep what is theirs", () => {
  const fleet = new Fleet();
  const rows = Array.from({ length: 100 }, (_, i): DeviceRow => [`d${i}`, i / 10, i, i, null, i]);
  fleet.update(rows, 0, true);
  fleet.remove("d0");
  fleet.remove("d50");
  fleet.remove("never");
  assert.equal(fleet.expire(0, 79_500), true); // d80 to d99
  assert.equal(fleet.expire(0, 79_500), false);
  assert.equal(fleet.size, 78);
  for (let i = 0; i < 100; i++) {
    const at = fleet.find(`d${i}`);
    assert.equal(at >= 0, i !== 0 && i !== 50 && i < 80, `d${i}`);
    if (at >= 0) assert.deepEqual([fleet.ids[at], fleet.lat[at], fleet.lon[at], fleet.ts(at)], [`d${i}`, i / 10, i, i]);
  }
  fleet.update([["d99", 1, 1, 1, null]], 1, true);
  assert.equal(fleet.find("d99"), 78);
});

test("ten thousand devices fit", () => {
  const fleet = new Fleet();
  fleet.update(Array.from({ length: 10_000 }, (_, i) => [`d${i}`, 1, i / 100, i, 90]), 0, true);
  assert.equal(fleet.size, 10_000);
  assert.equal(fleet.x(fleet.find("d9999"), 0), mercatorX(99.99));
});
