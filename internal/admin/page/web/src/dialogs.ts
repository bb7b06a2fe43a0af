// Questions and short notes to the operator.

import { ApiError } from "./api.ts";
import { announce, byId, h } from "./dom.ts";

export interface Question {
  title: string;
  text: string;
  /** What the button that does it says. */
  yes: string;
  /** It can't be taken back. */
  danger?: boolean;
}

/** confirm asks; only the button itself means yes. */
export function confirm(q: Question): Promise<boolean> {
  return new Promise((resolve) => {
    const yes = h("button", { type: "button", class: q.danger ? "danger" : "primary" }, q.yes);
    const no = h("button", { type: "button" }, "Cancel");
    const dialog = openDialog(q.title, h("p", {}, q.text), h("div", { class: "buttons" }, no, yes));
    let answer = false;
    yes.addEventListener("click", () => {
      answer = true;
      dialog.close();
    });
    no.addEventListener("click", () => dialog.close());
    dialog.addEventListener("close", () => resolve(answer));
    no.focus();
  });
}

/** openDialog shows a modal dialog with a title; it removes itself when closed. */
export function openDialog(title: string, ...content: Node[]): HTMLDialogElement {
  const id = `dialog-${crypto.randomUUID?.() ?? Math.random().toString(36).slice(2)}`;
  const dialog = h("dialog", { "aria-labelledby": id }, h("h2", { id }, title), ...content);
  document.body.append(dialog);
  dialog.addEventListener("close", () => dialog.remove());
  dialog.showModal();
  return dialog;
}

/** askForToken asks for the admin token. Closed without one, it answers "", which the server refuses again. */
export function askForToken(wrong: boolean): Promise<string> {
  return new Promise((resolve) => {
    const input = h("input", { type: "password", id: "token", autocomplete: "off", required: true });
    const form = h(
      "form", {},
      wrong && h("p", { class: "error", role: "alert" }, "That token was not accepted."),
      h("p", {}, "This Tripline asks for its admin.token. It is kept until you close this tab."),
      h("label", { for: "token" }, "Token"),
      input,
      h("div", { class: "buttons" }, h("button", { class: "primary" }, "Continue")),
    );
    const dialog = openDialog("Token needed", form);
    form.addEventListener("submit", (e) => {
      e.preventDefault();
      dialog.close();
    });
    dialog.addEventListener("close", () => resolve(input.value.trim()));
    input.focus();
  });
}

/** toast shows a note for a few seconds, and has it read out. */
export function toast(text: string, tone: "ok" | "bad" = "ok"): void {
  announce(text);
  const note = h("p", { class: "toast", "data-tone": tone }, text);
  const toasts = byId("toasts");
  toasts.append(note);
  while (toasts.childElementCount > 2) toasts.firstElementChild?.remove();
  setTimeout(() => note.remove(), tone === "ok" ? 5000 : 10_000);
}

export function tellError(what: string, error: unknown): void {
  toast(`${what}: ${errorWords(error)}`, "bad");
}

export function errorWords(error: unknown): string {
  if (error instanceof ApiError) return error.message;
  if (error instanceof DOMException && error.name === "TimeoutError") return "the server did not answer in time";
  return error instanceof TypeError ? "the server can't be reached" : String(error);
}
