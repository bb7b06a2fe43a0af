// The live page. This file only connects the parts.

import { onTokenNeeded } from "./api.ts";
import { setServerTime } from "./clock.ts";
import { ConsumerList } from "./consumers/list.ts";
import { askForToken } from "./dialogs.ts";
import { byId, setText, show } from "./dom.ts";
import { Details } from "./fences/details.ts";
import { fenceForm, pasteForm, type FormOptions } from "./fences/form.ts";
import { wireFind } from "./find.ts";
import { count, duration } from "./format.ts";
import { DrawTool } from "./map/draw.ts";
import type { FenceFeature } from "./map/geometry.ts";
import { LiveMap } from "./map/map.ts";
import { wireMenu } from "./menu.ts";
import { Snapshot } from "./snapshot.ts";
import { follow } from "./stream.ts";
import { reducedMotion } from "./theme.ts";
import { TriggerList } from "./triggers.ts";
import type { BreakerChange, Consumer, DeviceRow, Hello, Past, Probe, Trigger } from "./wire.ts";
import { toLonLat } from "ol/proj.js";

onTokenNeeded(askForToken);

const consumers = new ConsumerList();
const map = new LiveMap(byId("map"), document.documentElement.dataset["tiles"] ?? "", {
  device: (id) => details.showDevice(id),
  fence: (id) => details.showFence(id),
  nothing: () => details.close(),
});
const triggers = new TriggerList((t) => {
  if (t.fence) {
    details.showFence(t.fence);
    map.showFence(t.fence);
  } else if (map.overlay.fleet.find(t.device) >= 0) {
    details.showDevice(t.device);
    map.showDevice(t.device);
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

const fences = new Snapshot<{ features: FenceFeature[] | null }>("The fences could not be loaded", "/api/v1/fences", (collection) => {
  map.fences.set(collection.features ?? []);
  setText(byId("count-fences"), count(map.fences.size));
  map.fitFirst();
  details.fencesChanged();
  showEmpty();
});

const addMenu = byId<HTMLDetailsElement>("add-fence");
function onAdd(action: string, act: (byKeys: boolean) => void): void {
  byId(`add-${action}`).addEventListener("click", (e) => {
    addMenu.open = false;
    act(e.detail === 0); // a click that no pointer made
  });
}
onAdd("circle", (byKeys) => draw.start("circle", byKeys));
onAdd("polygon", (byKeys) => draw.start("polygon", byKeys));
onAdd("numbers", () => {
  const [lon, lat] = toLonLat(map.ol.getView().getCenter() ?? [0, 0]) as [number, number];
  fenceForm({ geometry: { type: "Point", coordinates: [Number(lon.toFixed(6)), Number(lat.toFixed(6))] }, radius: 100 }, formOptions);
});
onAdd("paste", () => pasteForm(formOptions));
wireMenu(addMenu);

byId("zoom-in").addEventListener("click", () => map.zoom(1));
byId("zoom-out").addEventListener("click", () => map.zoom(-1));
byId("zoom-fit").addEventListener("click", () => map.fit());
wireFind(map, { fence: (id) => details.showFence(id), device: (id) => details.showDevice(id) });

// The stream.

interface ConsumersBody {
  consumers: Consumer[] | null;
}

function showConsumers({ consumers: list }: ConsumersBody): void {
  consumers.update(list ?? []);
  triggers.setConsumers(consumers.names());
}

const consumerStates = new Snapshot<ConsumersBody>("The consumers could not be loaded", "/api/v1/consumers", showConsumers);

function showDevices(rows: DeviceRow[]): void {
  map.overlay.fleet.update(rows, performance.now(), !reducedMotion() && !document.hidden);
  map.keepUp();
  map.fitFirst();
  fleetChanged();
}

/** fleetChanged: devices have come, moved or gone. */
function fleetChanged(): void {
  map.overlay.redraw();
  setText(byId("count-devices"), count(map.overlay.fleet.size));
  showEmpty();
}

let goneAfter = Infinity;
setInterval(() => {
  if (map.overlay.fleet.expire(performance.now(), goneAfter)) fleetChanged();
}, 5000);

/** What is there takes a moment to come; only then is the map empty. */
const settles = 1500;
let settled = false;

/** showEmpty says what an empty map waits for. */
function showEmpty(): void {
  if (!settled) return;
  const missing = [
    map.fences.size === 0 && "There is no fence yet. Add one at the top left.",
    map.overlay.fleet.size === 0 && `No device was heard of in the last ${duration(goneAfter / 1000)}. Each shows with its next location.`,
  ];
  const text = missing.filter(Boolean).join("\n");
  setText(byId("map-empty"), text);
  show(byId("map-empty"), text !== "");
}

function showTrigger(t: Trigger): void {
  triggers.add(t);
  details.trigger(t);
  if (!document.hidden) map.overlay.flash(t.device, t.transition, t.fence ? map.fences.rings(t.fence) : []);
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
  goneAfter = hello.gone_after_s * 1000;
  void consumerStates.load();
  void fences.load().then(() => setTimeout(() => {
    settled = true;
    showEmpty();
  }, settles));
}

const handlers: Record<string, (body: never) => void> = {
  hello: showHello,
  history: (past: Past) => consumers.recall(past),
  devices: ({ d }: { d: DeviceRow[] }) => showDevices(d),
  forgotten: ({ device }: { device: string }) => {
    map.overlay.fleet.remove(device);
    fleetChanged();
  },
  trigger: showTrigger,
  consumers: showConsumers,
  breaker: (b: BreakerChange) => consumers.change(b),
  probe: (p: Probe) => consumers.probe(p),
  fences: () => void fences.load(),
  dropped: (d: { triggers: number }) => triggers.dropped(d.triggers),
};

function showConnection(state: "up" | "down", text: string): void {
  const pill = byId("connection");
  pill.dataset["state"] = state;
  setText(pill, text);
  document.body.classList.toggle("stale", state === "down");
  consumers.connected(state === "up");
}

void follow("/api/v1/live", {
  event: (name, body) => handlers[name]?.(body as never),
  up: () => showConnection("up", "Live"),
  down: (why) => showConnection("down", why === "no connection" ? "No connection; trying again" : `Trying again: ${why}`),
});
