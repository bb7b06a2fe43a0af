// The live page. This file only connects the parts.

import { getJSON, onTokenNeeded } from "./api.ts";
import { serverNow, setServerTime } from "./clock.ts";
import { ConsumerList } from "./consumers/list.ts";
import { askForToken, tellError } from "./dialogs.ts";
import { byId, setText, show } from "./dom.ts";
import { Details } from "./fences/details.ts";
import { fenceForm, pasteForm, type FormOptions } from "./fences/form.ts";
import { wireFind } from "./find.ts";
import { count } from "./format.ts";
import { DrawTool } from "./map/draw.ts";
import type { FenceFeature } from "./map/geometry.ts";
import { LiveMap } from "./map/map.ts";
import { wireMenu } from "./menu.ts";
import { follow } from "./stream.ts";
import { reducedMotion } from "./theme.ts";
import { TriggerList } from "./triggers.ts";
import type { BreakerChange, Consumer, DeviceRow, Hello, Probe, Trigger } from "./wire.ts";
import { toLonLat } from "ol/proj.js";

onTokenNeeded(askForToken);

const consumers = new ConsumerList();
const map = new LiveMap(byId("map"), document.documentElement.dataset["tiles"] ?? "", {
  device: (index) => details.showDevice(index),
  fence: (id) => details.showFence(id),
  nothing: () => details.close(),
});
const triggers = new TriggerList((t) => {
  const index = map.overlay.fleet.find(t.device);
  if (t.fence) {
    details.showFence(t.fence);
    map.showFence(t.fence);
  } else if (index >= 0) {
    details.showDevice(index);
    map.showDevice(index);
  }
});
const details: Details = new Details(map, (text) => triggers.filterBy(text));

// Fences: loading, drawing, putting.

const formOptions: FormOptions = {
  existing: (id) => map.fences.get(id),
  preview: (d) => draw.preview(d),
  closed: () => draw.preview(null),
};
const draw = new DrawTool(map.ol, (drawn) => fenceForm(drawn, formOptions));
map.busy = () => draw.active;

let fitted = false;
async function loadFences(): Promise<void> {
  const collection = await getJSON<{ features: FenceFeature[] | null }>("/api/v1/fences");
  map.fences.set(collection.features ?? []);
  setText(byId("count-fences"), count(map.fences.size));
  fitted ||= map.fit();
  details.fencesChanged();
}

const addMenu = byId<HTMLDetailsElement>("add-fence");
function onAdd(action: string, act: () => void): void {
  byId(`add-${action}`).addEventListener("click", () => {
    addMenu.open = false;
    act();
  });
}
onAdd("circle", () => draw.start("circle"));
onAdd("polygon", () => draw.start("polygon"));
onAdd("numbers", () => {
  const [lon, lat] = toLonLat(map.ol.getView().getCenter() ?? [0, 0]) as [number, number];
  fenceForm({ geometry: { type: "Point", coordinates: [Number(lon.toFixed(6)), Number(lat.toFixed(6))] }, radius: 100 }, formOptions);
});
onAdd("paste", () => pasteForm(formOptions));
wireMenu(addMenu);

byId("zoom-in").addEventListener("click", () => map.zoom(1));
byId("zoom-out").addEventListener("click", () => map.zoom(-1));
byId("zoom-fit").addEventListener("click", () => map.fit());
wireFind(map, { fence: (id) => details.showFence(id), device: (index) => details.showDevice(index) });

// The stream.

function showConsumers(list: Consumer[] | null): void {
  consumers.update(list ?? []);
  triggers.setConsumers(consumers.names());
}

function showDevices(rows: DeviceRow[]): void {
  map.overlay.fleet.update(rows, performance.now(), serverNow(), !reducedMotion() && !document.hidden);
  map.overlay.redraw();
  map.keepUp();
  setText(byId("count-devices"), count(map.overlay.fleet.size));
  show(byId("map-empty"), false);
  if (!fitted && map.overlay.fleet.size > 0) fitted = map.fit();
}

function showTrigger(t: Trigger): void {
  triggers.add(t);
  details.trigger(t);
  if (!document.hidden) map.overlay.flash(map.overlay.fleet.find(t.device), t.transition, t.fence ? map.fences.rings(t.fence) : []);
}

let started = "";
function showHello(hello: Hello): void {
  setServerTime(hello.now);
  setText(byId("namespace"), hello.namespace);
  setText(byId("version"), hello.version);
  if (started !== "" && started !== hello.started) {
    // Another process, which may know other devices.
    details.close();
    map.overlay.fleet.clear();
  }
  started = hello.started;
  show(byId("map-empty"), map.overlay.fleet.size === 0);
  loadSnapshots();
}

const handlers: Record<string, (body: never) => void> = {
  hello: showHello,
  devices: ({ d }: { d: DeviceRow[] }) => showDevices(d),
  trigger: showTrigger,
  consumers: (body: { consumers: Consumer[] | null }) => showConsumers(body.consumers),
  breaker: (b: BreakerChange) => consumers.change(b),
  probe: (p: Probe) => consumers.probe(p),
  fences: () => void loadFences().catch((error: unknown) => tellError("Loading the fences", error)),
  dropped: (d: { triggers: number }) => triggers.dropped(d.triggers),
};

function loadSnapshots(): void {
  loadFences().catch((error: unknown) => tellError("Loading the fences", error));
  getJSON<{ consumers: Consumer[] | null }>("/api/v1/consumers")
    .then((body) => showConsumers(body.consumers))
    .catch((error: unknown) => tellError("Loading the consumers", error));
}

function showConnection(state: "up" | "down", text: string): void {
  const pill = byId("connection");
  pill.dataset["state"] = state;
  setText(pill, text);
  document.body.classList.toggle("stale", state === "down");
}

void follow("/api/v1/live", {
  event: (name, body) => handlers[name]?.(body as never),
  up: () => showConnection("up", "Live"),
  down: (why) => showConnection("down", `Reconnecting: ${why}`),
});
