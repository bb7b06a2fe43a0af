import assert from "node:assert/strict";
import { test } from "node:test";
import { backlogWords, changeWords, describe, progress } from "../src/consumers/words.ts";
import type { Consumer } from "../src/wire.ts";

const now = Date.parse("2026-11-29T12:00:00Z");

function consumer(more: Partial<Consumer> = {}): Consumer {
  return {
    name: "dispatch", sink: "webhook", target: "https://example/…", state: "closed", reason: "", since: "2026-11-29T11:00:00Z",
    alive_but_slow: false, p50_ms: 50, p99_ms: 200, p99_limit_ms: 500, samples: 100, slow_ratio: 0, error_ratio: 0, rung: 0, generation: 1,
    open_until: null, probes_in_flight: 0, probes: 2, successes: 0, successes_needed: 5, ramp_window: 0, concurrency: 16, in_flight: 1,
    lane_depth: 0, lane_cap: 1024,
    backlog: { items: 0, bytes: 0, max_bytes: 0, oldest_s: 0, replay_per_s: 0, eta_s: null },
    delivered_total: 1, delivered_per_s: 1, diverted_total: 0, dead_total: 0, disabled: false, paused: false, blocked: false, last_errors: [],
    ...more,
  };
}

test("an open consumer says why, what becomes of its triggers, and when it is tested", () => {
  const w = describe(consumer({ state: "open", reason: "5 bad calls in a row", open_until: "2026-11-29T12:00:07Z", rung: 2 }), now);
  assert.equal(w.label, "Open");
  assert.equal(w.sentence, "5 bad calls in a row. Its triggers are kept in the fallback queue. First probe in 7 s (open window 3 of its ladder).");
});

test("while half-open it recovers and is tested; nothing is called invalid or lost", () => {
  for (let successes = 0; successes <= 5; successes++) {
    for (const more of [{}, { alive_but_slow: true }, { paused: true }, { blocked: true }, { reason: "the open window of 1s has ended" }]) {
      const w = describe(consumer({ state: "half_open", successes, ...more }), now);
      const all = `${w.label} ${w.sentence} ${w.advice}`;
      assert.match(all, /Recovering and being tested/);
      assert.doesNotMatch(all, /invalid|lost|drop|fail/i);
    }
  }
  assert.equal(changeWords("dispatch", "half_open", "the open window of 1s has ended"), "dispatch is recovering and being tested.");
});

test("alive but slow names the key to raise, and says so once", () => {
  const twice = describe(consumer({ state: "open", alive_but_slow: true, reason: "a probe took over 500 ms; alive but slow: P50 620 ms" }), now);
  assert.match(twice.sentence, /^A probe took over 500 ms\. Its/);
  assert.match(describe(consumer({ state: "open", reason: "an operator opened it for 30s" }), now).sentence, /^An operator opened it for 30 s\./);
  const w = describe(consumer({ state: "open", alive_but_slow: true, p50_ms: 620 }), now);
  assert.match(w.advice, /ordinarily takes 620 ms where 500 ms is the limit\. Raise breaker\.p99/);
});

test("a disabled, a paused and a blocked consumer say so", () => {
  assert.equal(describe(consumer({ disabled: true }), now).label, "Disabled");
  assert.match(describe(consumer({ paused: true }), now).sentence, /paused by an operator/);
  assert.match(describe(consumer({ blocked: true }), now).advice, /max_bytes/);
});

test("a recovery is told for a while", () => {
  const reason = "5 healthy probes in a row within 500 ms";
  assert.equal(describe(consumer({ reason, since: "2026-11-29T11:58:00Z" }), now).sentence, `Recovered 2 min ago: ${reason}.`);
  assert.equal(describe(consumer({ reason }), now).sentence, "Delivering normally.");
  assert.match(describe(consumer({ reason, ramp_window: 3 }), now).sentence, /catching up: at most 3 of 16 calls at once/);
});

test("the backlog says how long it will take, or what it waits for", () => {
  const backlog = { items: 1284, bytes: 1, max_bytes: 2, oldest_s: 95, replay_per_s: 31, eta_s: 41 };
  assert.equal(backlogWords(consumer({ backlog })), "1,284 parked · oldest 1 min 35 s · drains in about 41 s at 31/s");
  assert.match(backlogWords(consumer({ backlog, paused: true })), /replay paused/);
  assert.match(backlogWords(consumer({ state: "open", backlog: { ...backlog, eta_s: null } })), /once it has recovered/);
});

test("the open window runs out, the proof grows", () => {
  assert.equal(progress(consumer({ state: "open", since: "2026-11-29T11:59:50Z", open_until: "2026-11-29T12:00:10Z" }), now), 0.5);
  assert.equal(progress(consumer({ state: "half_open", successes: 2 }), now), 0.4);
  assert.equal(progress(consumer(), now), null);
});
