// What one consumer went through in the last five minutes: what the server
// remembers of the time before the page was opened, and what came since.

import { parseTime, serverNow } from "../clock.ts";
import type { BreakerChange, Consumer, Past, Probe, State } from "../wire.ts";

export const span = 5 * 60_000;

export interface Band {
  state: State;
  from: number;
}

export interface ProbeDot {
  at: number;
  verdict: string;
  latency: number;
}

export class History {
  /** In order; each band lasts until the next begins. */
  readonly bands: Band[] = [];
  readonly probes: ProbeDot[] = [];
  /** P99 over time, milliseconds; null where there were no samples. */
  readonly p99: { at: number; ms: number | null }[] = [];

  /** When the state was last told. Nothing is known of what came after. */
  seen = 0;

  /** recall takes what the server remembers. What this page saw before that stays. */
  recall(past: Past): void {
    const from = parseTime(past.from) ?? serverNow();
    cut(this.probes, (p) => p.at < from);
    cut(this.p99, (s) => s.at < from);
    cut(this.bands, (b) => b.from < from);
    const first = past.changes[0];
    if (first) this.begin(first.from, from);
    for (const b of past.changes) this.change(b);
    for (const p of past.probes) this.probe(p);
    for (const s of past.p99) this.p99.push({ at: parseTime(s.at) ?? from, ms: s.ms });
  }

  /** snapshot takes the state as the server tells it twice a second. */
  snapshot(c: Consumer): void {
    const now = serverNow();
    this.seen = now;
    this.begin(c.state, parseTime(c.since) ?? now);
    this.p99.push({ at: now, ms: c.samples > 0 ? c.p99_ms : null });
    this.trim(now);
  }

  change(b: BreakerChange): void {
    this.begin(b.to, parseTime(b.at) ?? serverNow());
  }

  probe(p: Probe): void {
    this.probes.push({ at: parseTime(p.at) ?? serverNow(), verdict: p.verdict, latency: p.latency_ms });
  }

  /** begin adds a band, unless it is known or older news than what is known. */
  private begin(state: State, from: number): void {
    const last = this.bands.at(-1);
    if (!last || (state !== last.state && from >= last.from)) this.bands.push({ state, from });
  }

  private trim(now: number): void {
    const start = now - span;
    while (this.bands.length > 1 && this.bands[1]!.from < start) this.bands.shift();
    while (this.probes.length > 0 && this.probes[0]!.at < start) this.probes.shift();
    while (this.p99.length > 0 && this.p99[0]!.at < start) this.p99.shift();
  }

  /** totals: how often and how long (ms) a state was seen in the span. */
  totals(state: State, now: number): { times: number; ms: number } {
    let times = 0;
    let ms = 0;
    this.bands.forEach((band, i) => {
      if (band.state !== state) return;
      const to = this.bands[i + 1]?.from ?? Math.min(now, this.seen);
      times++;
      ms += to - Math.max(band.from, now - span);
    });
    return { times, ms };
  }
}

/** cut keeps the beginning of a list that is in order. */
function cut<T>(list: T[], keep: (x: T) => boolean): void {
  while (list.length > 0 && !keep(list.at(-1)!)) list.pop();
}
