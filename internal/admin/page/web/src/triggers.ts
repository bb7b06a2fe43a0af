// The stream of recent triggers, with its filters.

import { byId, h, setText, show } from "./dom.ts";
import { count, plural, timeOfDay } from "./format.ts";
import type { Trigger } from "./wire.ts";

/** How many are kept, to filter among; and how many are shown. */
const kept = 1000;
const shown = 80;
/** A list that changes faster than this can't be read anyway. */
const redrawEvery = 250;

export class TriggerList {
  private readonly all: Trigger[] = [];
  private readonly list = byId("trigger-list");
  private readonly empty = byId("triggers-empty");
  private readonly perSecond = byId("trigger-rate");
  private readonly text = byId<HTMLInputElement>("filter-text");
  private readonly transition = byId<HTMLSelectElement>("filter-transition");
  private readonly consumer = byId<HTMLSelectElement>("filter-consumer");
  private readonly hold = byId<HTMLButtonElement>("hold");
  private held = false;
  private waiting = 0;
  private missed = 0;
  private recent: number[] = [];
  private timer = 0;
  private readonly rows = new Map<Trigger, HTMLElement>();

  constructor(private readonly pick: (t: Trigger) => void) {
    for (const filter of [this.text, this.transition, this.consumer]) {
      filter.addEventListener("input", () => this.draw());
    }
    this.hold.addEventListener("click", () => this.setHeld(!this.held));
    setInterval(() => this.showRate(), 1000);
  }

  add(t: Trigger): void {
    this.all.push(t);
    if (this.all.length > kept) this.all.splice(0, this.all.length - kept);
    this.recent.push(Date.now());
    if (this.held) this.waiting++;
    this.redrawSoon();
  }

  /** dropped: the server could not send this many in time. */
  dropped(n: number): void {
    this.missed += n;
    const now = Date.now();
    for (let i = 0; i < n; i++) this.recent.push(now);
    this.redrawSoon();
  }

  setConsumers(names: string[]): void {
    const have = [...this.consumer.options].slice(1).map((o) => o.value);
    if (have.join() === names.join()) return;
    const chosen = this.consumer.value;
    this.consumer.replaceChildren(this.consumer.options[0]!, ...names.map((n) => h("option", { value: n }, n)));
    this.consumer.value = names.includes(chosen) ? chosen : "";
  }

  /** filterBy shows the triggers of one device or fence. */
  filterBy(text: string): void {
    this.text.value = text;
    this.draw();
    this.text.focus();
  }

  private setHeld(held: boolean): void {
    this.held = held;
    this.waiting = 0;
    this.hold.setAttribute("aria-pressed", String(held));
    this.draw();
  }

  private redrawSoon(): void {
    this.timer ||= window.setTimeout(() => {
      this.timer = 0;
      if (this.held) this.note();
      else this.draw();
    }, redrawEvery);
  }

  private matches(): (t: Trigger) => boolean {
    const words = this.text.value.trim().toLowerCase().split(/\s+/).filter(Boolean);
    const transition = this.transition.value;
    const consumer = this.consumer.value;
    return (t) =>
      (transition === "" || t.transition === transition) &&
      (consumer === "" || (t.consumers ?? []).includes(consumer)) &&
      words.every((w) => t.device.toLowerCase().includes(w) || t.fence.toLowerCase().includes(w));
  }

  private draw(): void {
    const match = this.matches();
    const rows: HTMLElement[] = [];
    for (let i = this.all.length - 1; i >= 0 && rows.length < shown; i--) {
      const t = this.all[i]!;
      if (match(t)) rows.push(this.row(t));
    }
    this.place(rows);
    for (const [t, element] of this.rows) if (!element.isConnected) this.rows.delete(t);
    show(this.empty, rows.length === 0);
    setText(this.empty, this.all.length === 0 ? "No triggers yet. They show here as devices enter and leave fences." : "No trigger matches the filters.");
    this.note();
  }

  /** place makes rows the list's content, moving as little as possible: a focused row keeps its focus. */
  private place(rows: HTMLElement[]): void {
    const wanted = new Set<Element>(rows);
    for (const child of [...this.list.children]) if (!wanted.has(child)) child.remove();
    rows.forEach((row, i) => {
      if (this.list.children[i] !== row) this.list.insertBefore(row, this.list.children[i] ?? null);
    });
  }

  private note(): void {
    const parts: string[] = [];
    if (this.waiting > 0) parts.push(`${plural(this.waiting, "new one", "new ones")} while held`);
    if (this.missed > 0) parts.push(`${count(this.missed)} not shown: too many at once`);
    setText(byId("trigger-note"), parts.join(" · "));
  }

  private row(t: Trigger): HTMLElement {
    const known = this.rows.get(t);
    if (known) return known;
    const to = t.consumers ?? [];
    const button = h(
      "button", { type: "button", title: t.id, onclick: () => this.pick(t) },
      h("time", { datetime: t.at }, timeOfDay(t.at)),
      h("span", { class: "transition", "data-transition": t.transition }, t.transition),
      h("span", { class: "what" }, h("b", {}, t.device), t.fence && h("span", { class: "fence" }, t.fence)),
      h("span", { class: "to" }, [to.join(", ") || "no consumer", t.initial && "first fix", t.reason?.replaceAll("_", " ")].filter(Boolean).join(" · ")),
    );
    const row = h("li", {}, button);
    this.rows.set(t, row);
    return row;
  }

  private showRate(): void {
    const since = Date.now() - 5000;
    const first = this.recent.findIndex((at) => at >= since);
    this.recent = first < 0 ? [] : this.recent.slice(first);
    const perSecond = this.recent.length / 5;
    setText(this.perSecond, perSecond >= 10 ? perSecond.toFixed(0) : perSecond.toFixed(1));
  }
}
