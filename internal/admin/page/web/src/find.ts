// Finding a fence or a device by name. It is also how the map is used without
// a pointer.

import { byId, h, setText, show } from "./dom.ts";
import type { LiveMap } from "./map/map.ts";

const listed = 12;

export function wireFind(map: LiveMap, open: { fence(id: string): void; device(id: string): void }): void {
  const input = byId<HTMLInputElement>("find");
  const results = byId("find-results");
  const status = byId("find-status");

  const close = () => {
    show(results, false);
    input.setAttribute("aria-expanded", "false");
  };
  const draw = () => {
    const found = search(map, input.value.trim().toLowerCase());
    const rows = found.slice(0, listed).map((f) =>
      h("li", {}, h("button", { type: "button", onclick: () => {
        input.value = "";
        close();
        if (f.kind === "fence") {
          open.fence(f.id);
          map.showFence(f.id);
        } else {
          open.device(f.id);
          map.showDevice(f.id);
        }
      } }, h("b", {}, f.label), h("span", {}, f.kind))),
    );
    const rest = found.length - rows.length;
    results.replaceChildren(h("ul", {}, ...rows), h("p", { class: "muted" }, found.length === 0 ? "Nothing of that name" : rest > 0 ? `and ${rest} more` : ""));
    setText(status, `${found.length} found`);
    show(results, true);
    input.setAttribute("aria-expanded", "true");
  };
  input.addEventListener("input", draw);
  input.addEventListener("focus", draw);
  document.addEventListener("pointerdown", (e) => {
    if (!(e.target as Element).closest(".find")) close();
  });
  byId("find-box").addEventListener("keydown", (e) => {
    const buttons = [...results.querySelectorAll("button")];
    const at = buttons.indexOf(document.activeElement as HTMLButtonElement);
    if (e.key === "Escape") {
      close();
      input.focus();
      close();
    } else if (e.key === "ArrowDown" && !results.hidden) {
      e.preventDefault();
      buttons[Math.min(at + 1, buttons.length - 1)]?.focus();
    } else if (e.key === "ArrowUp" && at >= 0) {
      e.preventDefault();
      if (at === 0) input.focus();
      else buttons[at - 1]?.focus();
    } else if (e.key === "Enter" && document.activeElement === input) {
      buttons[0]?.click();
    }
  });
  byId("find-box").addEventListener("focusout", (e) => {
    if (e.relatedTarget && !byId("find-box").contains(e.relatedTarget as Node)) close();
  });
}

interface Found {
  kind: "fence" | "device";
  id: string;
  label: string;
}

function search(map: LiveMap, text: string): Found[] {
  const fences: Found[] = map.fences.all()
    .filter((f) => String(f.id).toLowerCase().includes(text) || (f.properties.name ?? "").toLowerCase().includes(text))
    .map((f) => ({ kind: "fence", id: String(f.id), label: f.properties.name || String(f.id) }));
  const devices: Found[] = map.overlay.fleet.ids
    .filter((id) => id.toLowerCase().includes(text))
    .map((id) => ({ kind: "device", id, label: id }));
  return [...fences, ...devices];
}
