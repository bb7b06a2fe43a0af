// The cards of all consumers, and the one line that sums them up.

import { serverNow } from "../clock.ts";
import { announce, byId, h, setText, show } from "../dom.ts";
import { plural, timeOfDay } from "../format.ts";
import type { BreakerChange, Consumer, Past, Probe } from "../wire.ts";
import { Card } from "./card.ts";
import { History } from "./history.ts";
import { changeWords } from "./words.ts";

export class ConsumerList {
  private readonly cards = new Map<string, Card>();
  private readonly histories = new Map<string, History>();
  private seen = 0;
  private cutOff = false;
  private readonly holder = byId("cards");
  private readonly empty = byId("cards-empty");
  private readonly summary = byId("summary");

  constructor() {
    setInterval(() => this.cards.forEach((card) => card.tick()), 500);
  }

  names(): string[] {
    return [...this.cards.keys()];
  }

  update(list: Consumer[]): void {
    const present = new Set(list.map((c) => c.name));
    for (const [name, card] of this.cards) {
      if (present.has(name)) continue;
      card.element.remove();
      this.cards.delete(name);
      this.histories.delete(name);
    }
    for (const c of list) {
      const card = this.cards.get(c.name);
      if (card) {
        card.update(c);
        continue;
      }
      const made = new Card(c, this.history(c.name));
      this.cards.set(c.name, made);
      this.holder.append(made.element);
    }
    show(this.empty, list.length === 0);
    this.seen = serverNow();
    this.summarise(list);
  }

  /** connected: false, and what is shown is how it was. */
  connected(up: boolean): void {
    if (this.cutOff === !up) return;
    this.cutOff = !up;
    this.summarise([...this.cards.values()].map((card) => card.consumer));
  }

  /** recall takes what the server remembers of a consumer, which may have no card yet. */
  recall(past: Past): void {
    this.history(past.consumer).recall(past);
  }

  private history(name: string): History {
    let found = this.histories.get(name);
    if (!found) this.histories.set(name, (found = new History()));
    return found;
  }

  change(b: BreakerChange): void {
    this.cards.get(b.consumer)?.history.change(b);
    announce(changeWords(b.consumer, b.to, b.text));
  }

  probe(p: Probe): void {
    this.cards.get(p.consumer)?.history.probe(p);
  }

  /** summarise names who is not well; each name leads to its card. */
  private summarise(list: Consumer[]): void {
    if (this.cutOff) {
      this.summary.dataset.key = "";
      this.summary.dataset.tone = "off";
      document.title = "No connection – Tripline";
      setText(this.summary, this.seen > 0 ? `As it was at ${timeOfDay(this.seen)}` : "");
      return;
    }
    const sick = list.filter((c) => c.state !== "closed" || c.disabled);
    const key = sick.map((c) => `${c.name} ${c.state}`).join() + list.length;
    if (this.summary.dataset.key === key) return;
    this.summary.dataset.key = key;
    this.summary.dataset.tone = sick.length === 0 ? "ok" : sick.some((c) => c.state === "open" || c.disabled) ? "bad" : "testing";
    document.title = sick.length === 0 ? "Tripline" : `(${sick.length}) ${sick[0]!.name} ${sick[0]!.state === "half_open" ? "recovering" : "open"} – Tripline`;
    if (sick.length === 0) {
      setText(this.summary, list.length === 0 ? "" : list.length === 1 ? "The consumer is healthy" : `All ${plural(list.length, "consumer")} healthy`);
      return;
    }
    this.summary.replaceChildren(
      ...sick.map((c) =>
        h("button", { type: "button", onclick: () => this.reveal(c.name) }, `${c.name} ${c.disabled ? "disabled" : c.state === "open" ? "open" : "recovering"}`),
      ),
    );
  }

  private reveal(name: string): void {
    const element = this.cards.get(name)?.element;
    if (!element) return;
    element.tabIndex = -1;
    element.scrollIntoView({ block: "nearest" });
    element.focus();
  }
}
