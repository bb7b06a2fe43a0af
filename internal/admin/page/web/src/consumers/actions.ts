// What an operator can do to a consumer. Each action says beforehand what it
// will do, and asks.

import { consumerPath, send } from "../api.ts";
import { confirm, tellError, toast } from "../dialogs.ts";
import { h, setText } from "../dom.ts";
import { plural } from "../format.ts";
import { wireMenu } from "../menu.ts";
import type { Consumer } from "../wire.ts";

interface Action {
  path: string;
  label(c: Consumer): string;
  enabled(c: Consumer): boolean;
  title(c: Consumer): string;
  effect(c: Consumer): string;
  done(c: Consumer): string;
}

const actions: Action[] = [
  {
    path: "open",
    label: () => "Force open…",
    enabled: (c) => c.state !== "open" && !c.disabled,
    title: (c) => `Force ${c.name} open?`,
    effect: () => "Calls to it stop at once. Its triggers are kept in the fallback queue. After the open window it is tested and, once healthy, takes them up again in order.",
    done: (c) => `${c.name} was forced open`,
  },
  {
    path: "probe",
    label: () => "Probe now…",
    enabled: (c) => c.state === "open" && !c.disabled,
    title: (c) => `Probe ${c.name} now?`,
    effect: () => "Its open window ends early and it is tested with real triggers, a few at a time. If a probe is slow or fails, it stays open for longer.",
    done: (c) => `${c.name} is being probed`,
  },
  {
    path: "pause",
    label: () => "Pause replay…",
    enabled: (c) => !c.paused,
    title: (c) => `Pause the replay to ${c.name}?`,
    effect: () => "What is parked stays parked until you resume. Order holds: newer triggers of the same devices wait behind it.",
    done: (c) => `The replay to ${c.name} is paused`,
  },
  {
    path: "resume",
    label: () => "Resume replay…",
    enabled: (c) => c.paused,
    title: (c) => `Resume the replay to ${c.name}?`,
    effect: (c) => `${plural(c.backlog.items, "parked trigger")} will be delivered in order, paced by what it can take.`,
    done: (c) => `The replay to ${c.name} goes on`,
  },
  {
    path: "redrive",
    label: (c) => (c.dead_total > 0 ? `Redrive ${plural(c.dead_total, "dead letter")}…` : "Redrive dead letters…"),
    enabled: (c) => c.dead_total > 0,
    title: (c) => `Redrive the dead letters of ${c.name}?`,
    effect: (c) => `${plural(c.dead_total, "dead letter")} will be sent again, with the same ids and marked as redriven, after what waits already.`,
    done: (c) => `The dead letters of ${c.name} are being sent again`,
  },
];

export interface ActionsMenu {
  element: HTMLElement;
  update(c: Consumer): void;
}

export function actionsMenu(consumer: () => Consumer): ActionsMenu {
  const summary = h("summary", {}, "Actions");
  summary.setAttribute("aria-label", `Actions for ${consumer().name}`);
  const buttons = actions.map((action) =>
    h("button", { type: "button", "data-action": action.path, onclick: () => void run(action, consumer()).finally(() => summary.focus()) }),
  );
  const element = h("details", { class: "menu" }, summary, h("div", { class: "menu-items" }, ...buttons));
  wireMenu(element);

  async function run(action: Action, c: Consumer): Promise<void> {
    element.open = false;
    if (!(await confirm({ title: action.title(c), text: action.effect(c), yes: action.label(c).replace("…", "") }))) return;
    try {
      await send("POST", consumerPath(c.name, action.path));
      toast(action.done(c));
    } catch (error) {
      tellError(action.label(c).replace("…", ""), error);
    }
  }

  return {
    element,
    update(c) {
      buttons.forEach((button, i) => {
        const action = actions[i]!;
        setText(button, action.label(c));
        if (button.disabled === action.enabled(c)) button.disabled = !action.enabled(c);
      });
    },
  };
}
