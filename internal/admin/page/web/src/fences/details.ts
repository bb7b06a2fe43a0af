// The panel that tells about the fence or the device that was chosen.

import { fencePath, getJSON, send } from "../api.ts";
import { confirm, tellError, toast } from "../dialogs.ts";
import { byId, h, setText } from "../dom.ts";
import { duration, latLon, plural, timeOfDay } from "../format.ts";
import { serverNow } from "../clock.ts";
import type { LiveMap } from "../map/map.ts";
import { shapeWords, type FenceFeature } from "../map/geometry.ts";
import type { Stay, Trigger } from "../wire.ts";

const refreshEvery = 5000;
const listed = 200;

export class Details {
  private readonly panel = byId("details");
  private readonly heading = byId("details-title");
  private readonly body = byId("details-body");
  private fence = "";
  private device = "";
  private inside: HTMLElement = h("div");
  private timer = 0;
  private opener: Element | null = null;

  constructor(private readonly map: LiveMap, private readonly filterTriggers: (text: string) => void) {
    byId("details-close").addEventListener("click", () => this.close());
    this.panel.addEventListener("keydown", (e) => {
      if (e.key === "Escape") this.close();
    });
    setInterval(() => this.tick(), 1000);
    map.covered = () => !this.panel.hidden;
  }

  close(): void {
    if (this.panel.hidden) return;
    this.panel.hidden = true;
    clearTimeout(this.timer);
    this.choose("", "");
    if (this.opener instanceof HTMLElement && this.opener.isConnected) this.opener.focus();
  }

  showFence(id: string): void {
    const fence = this.map.fences.get(id);
    if (!fence) return;
    this.open();
    this.choose(id, "");
    setText(this.heading, fence.properties.name || id);
    this.inside = h("div", { class: "inside" }, h("p", { class: "muted" }, "…"));
    this.body.replaceChildren(this.facts(fence), this.inside, this.fenceButtons(fence));
    this.heading.focus();
    void this.refresh();
  }

  showDevice(id: string): void {
    this.open();
    this.choose("", id);
    setText(this.heading, id);
    const facts = h("dl", { class: "facts" });
    const follow = h("button", { type: "button", "aria-pressed": "false" }, "Follow");
    follow.addEventListener("click", () => {
      const on = this.map.following !== id;
      this.map.follow(on ? id : "");
      follow.setAttribute("aria-pressed", String(on));
    });
    const triggers = h("button", { type: "button", onclick: () => this.filterTriggers(id) }, "Its triggers");
    this.body.replaceChildren(facts, h("div", { class: "buttons" }, triggers, follow));
    this.tick();
    this.heading.focus();
  }

  /** trigger: something happened at a fence; if it is shown, its list is stale. */
  trigger(t: Trigger): void {
    if (t.fence === "" || t.fence !== this.fence) return;
    clearTimeout(this.timer);
    this.timer = window.setTimeout(() => void this.refresh(), 300);
  }

  /** fencesChanged: the fence that is shown may be another or gone. */
  fencesChanged(): void {
    if (this.fence === "") return;
    const fence = this.map.fences.get(this.fence);
    if (!fence) return this.close();
    setText(this.heading, fence.properties.name || this.fence);
    this.body.replaceChildren(this.facts(fence), this.inside, this.fenceButtons(fence));
  }

  private open(): void {
    if (this.panel.hidden) this.opener = document.activeElement;
    this.panel.hidden = false;
  }

  /** choose marks a fence or a device; "" for none. */
  private choose(fence: string, device: string): void {
    this.fence = fence;
    this.device = device;
    this.map.fences.choose(fence);
    this.map.overlay.chosen = device;
    this.map.overlay.redraw();
    this.map.follow("");
  }

  private facts(f: FenceFeature): HTMLElement {
    const list = h("dl", { class: "facts" });
    fact(list, "Id", String(f.id));
    fact(list, "Shape", shapeWords(f));
    const tags = f.properties.tags ?? [];
    if (tags.length > 0) list.append(h("dt", {}, "Tags"), h("dd", { class: "tags" }, ...tags.map((t) => h("span", { class: "tag" }, t))));
    fact(list, "From", f.properties.source === "file" ? "A file (read-only here)" : "The API");
    for (const [key, value] of Object.entries(f.properties)) {
      if (["name", "tags", "radius_m", "source", "id"].includes(key)) continue;
      fact(list, key, valueWords(value));
    }
    return list;
  }

  private fenceButtons(f: FenceFeature): HTMLElement {
    const id = String(f.id);
    const show = h("button", { type: "button", onclick: () => this.map.showFence(id) }, "Show");
    const triggers = h("button", { type: "button", onclick: () => this.filterTriggers(id) }, "Its triggers");
    const remove = h("button", { type: "button", class: "danger", "data-action": "remove", onclick: () => void this.remove(id) }, "Remove…");
    return h("div", { class: "buttons" }, show, triggers, f.properties.source !== "file" && remove);
  }

  private async remove(id: string): Promise<void> {
    const yes = await confirm({
      title: `Remove fence ${id}?`,
      text: "Devices inside leave it at once: each gives an exit with the reason “fence deleted”. This can't be undone.",
      yes: "Remove fence",
      danger: true,
    });
    if (!yes) return;
    try {
      await send("DELETE", fencePath(id));
      toast(`Fence ${id} was removed`);
      this.close();
    } catch (error) {
      tellError("Remove fence", error);
    }
  }

  private async refresh(): Promise<void> {
    const id = this.fence;
    clearTimeout(this.timer);
    if (id === "" || this.panel.hidden) return;
    try {
      const { devices } = await getJSON<{ devices: Stay[] | null }>(`${fencePath(id)}/devices`);
      if (id === this.fence) this.drawInside(devices ?? []);
    } catch {
      // The next refresh, or the stream's own notice, says it.
    }
    if (id === this.fence) this.timer = window.setTimeout(() => void this.refresh(), refreshEvery);
  }

  private drawInside(list: Stay[]): void {
    const title = h("h3", {}, list.length === 0 ? "No device is inside" : `${plural(list.length, "device")} inside`);
    const now = serverNow();
    const focused = (document.activeElement as HTMLElement | null)?.dataset["stay"];
    const rows = list.slice(0, listed).map((s) =>
      h("li", {},
        h("button", { type: "button", "data-stay": s.device, onclick: () => this.pick(s) },
          h("b", {}, s.device), h("span", {}, `for ${duration((now - Date.parse(s.entered_at)) / 1000)}`))),
    );
    const more = list.length > listed ? h("p", { class: "muted" }, `and ${list.length - listed} more`) : null;
    this.inside.replaceChildren(title, h("ul", {}, ...rows), ...(more ? [more] : []));
    if (focused) this.inside.querySelector<HTMLElement>(`[data-stay="${CSS.escape(focused)}"]`)?.focus();
  }

  /** pick shows a device that is inside; one that has not been heard of for long is on no map. */
  private pick(s: Stay): void {
    if (this.map.overlay.fleet.find(s.device) >= 0) this.showDevice(s.device);
    this.map.showPlace(s.lat, s.lon);
  }

  /** tick keeps the facts about a device current. It may have gone. */
  private tick(): void {
    if (this.device === "" || this.panel.hidden) return;
    const { fleet } = this.map.overlay;
    const i = fleet.find(this.device);
    const list = this.body.querySelector("dl");
    if (!list) return;
    if (i < 0) {
      toast(`${this.device} has left the map: it was forgotten, or not heard of for long`);
      return this.close();
    }
    const ts = fleet.ts(i);
    const heading = fleet.heading(i);
    const age = Math.max(0, (serverNow() - ts) / 1000);
    const next = h("dl", { class: "facts" });
    fact(next, "Position", latLon(fleet.lat[i]!, fleet.lon[i]!));
    fact(next, "Heading", Number.isNaN(heading) ? "not known" : `${Math.round((heading + 360) % 360)}°`);
    fact(next, "Last fix", `${timeOfDay(ts)}, ${duration(age)} ago`);
    list.replaceWith(next);
  }
}

/** valueWords: a list of plain values reads as one, what is deeper as JSON. */
function valueWords(value: unknown): string {
  if (Array.isArray(value) && value.every((v) => typeof v !== "object")) return value.join(", ");
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

function fact(list: HTMLElement, name: string, value: string): void {
  list.append(h("dt", {}, name), h("dd", {}, value));
}
