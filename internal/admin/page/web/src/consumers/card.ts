// One consumer's card.

import { serverNow } from "../clock.ts";
import { h, setAttr, setText, show } from "../dom.ts";
import { bytes, count, millis, plural, rate, timeOfDay } from "../format.ts";
import type { Consumer } from "../wire.ts";
import { actionsMenu, type ActionsMenu } from "./actions.ts";
import type { History } from "./history.ts";
import { Timeline } from "./timeline.ts";
import { backlogWords, describe, progress } from "./words.ts";

const sinkNames: Record<string, string> = {
  webhook: "Webhook", nats: "NATS publish", request: "NATS request", jetstream: "JetStream publish",
};

export class Card {
  readonly element: HTMLElement;
  consumer: Consumer;

  private readonly chip = h("span", { class: "chip" });
  private readonly progress = h("div", { class: "progress", "aria-hidden": "true" });
  private readonly sentence = h("p", { class: "sentence" });
  private readonly advice = h("p", { class: "advice" });
  private readonly target = h("p", { class: "target" });
  private readonly timeline: Timeline;
  private readonly latency = meter("P99 latency against its limit");
  private readonly latencyText = h("span", { class: "figure" });
  private readonly backlog = meter("Fallback queue in use");
  private readonly backlogText = h("p", { class: "backlog-words" });
  private readonly room = h("span", { class: "aside" });
  private readonly parked: HTMLElement;
  private readonly stats = {
    rate: stat("Delivered/s", "per second, over the last seconds"),
    parked: stat("Backlog", "triggers in the fallback queue"),
    flight: stat("In flight", "calls"),
    lane: stat("Lane", "triggers waiting in memory"),
    dead: stat("Dead", "dead letters"),
  };
  private readonly errorList = h("ul");
  private readonly errors = h("details", { class: "errors" }, h("summary"), this.errorList);
  private readonly menu: ActionsMenu;

  constructor(c: Consumer, readonly history: History) {
    this.consumer = c;
    this.timeline = new Timeline(history);
    this.menu = actionsMenu(() => this.consumer);
    this.parked = h("div", { class: "parked" },
      h("div", { class: "measure" }, h("span", { class: "name" }, "Backlog"), this.backlog.element, this.room),
      this.backlogText);
    const id = `consumer-${c.name}`;
    this.element = h(
      "article", { class: "card", "aria-labelledby": id },
      h("header", {}, h("h3", { id }, c.name), this.chip, this.menu.element, this.target),
      this.progress, this.sentence, this.advice,
      this.timeline.element,
      h("div", { class: "measure" }, h("span", { class: "name" }, "P99"), this.latency.element, this.latencyText),
      this.parked,
      h("dl", { class: "stats" }, ...Object.values(this.stats).map((s) => s.element)),
      this.errors,
    );
    this.update(c);
  }

  update(c: Consumer): void {
    this.consumer = c;
    this.history.snapshot(c);
    setText(this.target, `${sinkNames[c.sink] ?? c.sink} · ${c.target}`);
    this.updateLatency(c);
    this.updateBacklog(c);
    setText(this.stats.rate.value, rate(c.delivered_per_s));
    setText(this.stats.flight.value, `${c.in_flight}/${c.ramp_window || c.concurrency}`);
    setText(this.stats.lane.value, count(c.lane_depth));
    setText(this.stats.dead.value, count(c.dead_total));
    this.stats.dead.element.classList.toggle("warn", c.dead_total > 0);
    this.updateErrors(c);
    this.menu.update(c);
    this.tick();
  }

  /** tick redraws what time alone changes. */
  tick(): void {
    const now = serverNow();
    const words = describe(this.consumer, now);
    const part = progress(this.consumer, now);
    show(this.progress, part !== null);
    this.progress.style.setProperty("--part", String(part ?? 0));
    this.element.dataset.tone = words.tone;
    setText(this.chip, words.label);
    setText(this.sentence, words.sentence);
    setText(this.advice, words.advice);
    show(this.advice, words.advice !== "");
    this.timeline.draw(this.consumer.p99_limit_ms || 1);
  }

  private updateLatency(c: Consumer): void {
    const part = c.samples === 0 ? 0 : c.p99_ms / (c.p99_limit_ms || 1);
    // The limit is drawn at two thirds, so that what is over it shows too.
    this.latency.set(Math.min(1, (part * 2) / 3), part > 1 ? "bad" : part > 0.8 ? "testing" : "ok");
    const limit = millis(c.p99_limit_ms);
    const text = c.samples === 0 ? `– of ${limit}` : `${millis(c.p99_ms)} of ${limit}`;
    setText(this.latencyText, text);
    this.latency.describe(part, c.samples === 0 ? `no samples, limit ${limit}` : `${text}, from ${plural(c.samples, "sample")}`);
    this.latency.element.classList.add("limit");
  }

  private updateBacklog(c: Consumer): void {
    const b = c.backlog;
    const part = b.max_bytes > 0 ? b.bytes / b.max_bytes : 0;
    // The least sliver is visible, or a backlog of few bytes looks like none.
    this.backlog.set(b.items === 0 ? 0 : Math.max(0.01, part), part > 0.8 ? "bad" : "testing");
    const text = b.max_bytes > 0 ? `${bytes(b.bytes)} of ${bytes(b.max_bytes)}` : bytes(b.bytes);
    setText(this.room, text);
    this.backlog.describe(part, text);
    setText(this.backlogText, backlogWords(c));
    setText(this.stats.parked.value, count(b.items));
    show(this.parked, b.items > 0);
  }

  private updateErrors(c: Consumer): void {
    const list = c.last_errors ?? [];
    show(this.errors, list.length > 0);
    if (list.length === 0) return;
    setText(this.errors.firstElementChild!, `Last errors (${list.length})`);
    const key = list.map((e) => e.at).join();
    if (this.errorList.dataset.key === key) return;
    this.errorList.dataset.key = key;
    this.errorList.replaceChildren(
      ...list.map((e) => h("li", {}, h("time", { datetime: e.at }, timeOfDay(e.at)), h("span", {}, e.text))),
    );
  }
}

function stat(name: string, hint: string) {
  const value = h("dd");
  return { value, element: h("div", { title: hint }, h("dt", {}, name), value) };
}

function meter(label: string) {
  const fill = h("span", { class: "fill" });
  const element = h("div", { class: "meter", role: "meter", "aria-label": label, "aria-valuemin": "0", "aria-valuemax": "100" }, fill);
  return {
    element,
    set(part: number, tone: string) {
      fill.style.setProperty("--part", part.toFixed(3));
      if (fill.dataset.tone !== tone) fill.dataset.tone = tone;
    },
    describe(part: number, text: string) {
      setAttr(element, "aria-valuenow", String(Math.round(Math.min(1, part) * 100)));
      setAttr(element, "aria-valuetext", text);
    },
  };
}
