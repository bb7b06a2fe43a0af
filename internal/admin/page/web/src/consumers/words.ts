// A consumer's state in words. Pure, so that the wording is in one place.

import { parseTime } from "../clock.ts";
import { count, duration, millis, plural, rate } from "../format.ts";
import type { Consumer, State } from "../wire.ts";

export type Tone = "ok" | "testing" | "bad" | "off";

export interface Words {
  tone: Tone;
  /** One or two words for the chip. */
  label: string;
  /** What is going on, and why. */
  sentence: string;
  /** What the operator can do, or "". */
  advice: string;
}

export const stateLabels: Record<State, string> = { closed: "Closed", open: "Open", half_open: "Half-open" };

export function describe(c: Consumer, now: number): Words {
  const words = byState(c, now);
  const notes: string[] = [];
  if (c.paused) notes.push("Replay is paused by an operator.");
  if (c.blocked) {
    notes.push("Its fallback queue is full, so the partitions wait for room.");
    words.advice ||= "Raise fallback.max_bytes, or choose another fallback.on_full.";
  }
  words.sentence = [words.sentence, ...notes].join(" ");
  return words;
}

function byState(c: Consumer, now: number): Words {
  if (c.disabled) {
    return {
      tone: "off",
      label: "Disabled",
      sentence: "It answered 410 Gone, so nothing is sent to it. Its triggers are parked.",
      advice: "When it wants triggers again, reload the configuration.",
    };
  }
  switch (c.state) {
    case "open":
      return { tone: "bad", label: "Open", sentence: `${open(c)} ${countdown(c, now)}`, advice: slowAdvice(c) };
    case "half_open":
      return { tone: "testing", label: "Half-open", sentence: testing(c), advice: slowAdvice(c) };
    default:
      return { tone: "ok", label: "Closed", sentence: closed(c, now), advice: "" };
  }
}

function open(c: Consumer): string {
  // That it is alive but slow is told in the advice, with what to do.
  const reason = c.alive_but_slow ? c.reason.replace(/; alive but slow.*$/, "") : c.reason;
  const why = asSentence(reason || "The breaker tripped");
  return `${why} Its triggers are kept in the fallback queue.`;
}

function countdown(c: Consumer, now: number): string {
  const until = parseTime(c.open_until);
  if (until === null) return "";
  const left = (until - now) / 1000;
  if (left < 0.5) return "The first probe is due.";
  const rung = c.rung > 0 ? ` (open window ${c.rung + 1} of its ladder)` : "";
  return `First probe in ${duration(left)}${rung}.`;
}

function testing(c: Consumer): string {
  const proof =
    c.successes === 0
      ? `it needs ${c.successes_needed} healthy probes in a row`
      : `${c.successes} of ${c.successes_needed} probes in a row were healthy`;
  return `Recovering and being tested: ${proof}. Its triggers wait in the fallback queue meanwhile.`;
}

/** A recovery is worth telling for so long. */
const recent = 10 * 60_000;

function closed(c: Consumer, now: number): string {
  if (c.ramp_window > 0) {
    return `Recovered and catching up: at most ${c.ramp_window} of ${plural(c.concurrency, "call")} at once.`;
  }
  if (c.backlog.items > 0) return "Delivering; the backlog is being replayed in order.";
  const since = parseTime(c.since);
  if (c.reason && since !== null && now - since < recent) {
    return `Recovered ${duration((now - since) / 1000)} ago: ${c.reason}.`;
  }
  if (c.samples === 0) return "Ready; nothing was delivered in the last seconds.";
  return "Delivering normally.";
}

function slowAdvice(c: Consumer): string {
  if (!c.alive_but_slow) return "";
  return (
    `Alive but slow: it answers every probe, but ordinarily takes ${millis(c.p50_ms)} where ` +
    `${millis(c.p99_limit_ms)} is the limit. Raise breaker.p99 to at least twice its ordinary P99.`
  );
}

/** backlogWords: what is parked and how long it will take. */
export function backlogWords(c: Consumer): string {
  const b = c.backlog;
  if (b.items === 0) return "Nothing parked";
  const parts = [`${count(b.items)} parked`, `oldest ${duration(b.oldest_s)}`];
  if (c.paused) parts.push("replay paused");
  else if (b.eta_s !== null && b.replay_per_s > 0) parts.push(`drains in about ${duration(b.eta_s)} at ${rate(b.replay_per_s)}/s`);
  else if (c.state !== "closed") parts.push("replay starts once it has recovered");
  else parts.push("replay starting");
  return parts.join(" · ");
}

/** progress of what the state is waiting for, 0 to 1: the open window runs out, the proof grows. null: it waits for nothing. */
export function progress(c: Consumer, now: number): number | null {
  if (c.disabled) return null;
  if (c.state === "half_open") return c.successes / Math.max(1, c.successes_needed);
  const since = parseTime(c.since);
  const until = parseTime(c.open_until);
  if (c.state !== "open" || since === null || until === null || until <= since) return null;
  return Math.max(0, Math.min(1, (until - now) / (until - since)));
}

/** changeWords is what a screen reader hears of a breaker change. */
export function changeWords(name: string, to: State, text: string): string {
  switch (to) {
    case "open": return `${name} is open. ${asSentence(text)}`;
    case "half_open": return `${name} is recovering and being tested.`;
    default: return `${name} has recovered; its breaker is closed.`;
  }
}

function asSentence(text: string): string {
  const t = text.trim().replace(/\b(\d+)s\b/g, "$1 s"); // as the page writes it
  if (t === "") return "";
  const capital = t[0]!.toUpperCase() + t.slice(1);
  return /[.!?]$/.test(capital) ? capital : `${capital}.`;
}
