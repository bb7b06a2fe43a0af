// The map: background, fences, devices; what is clicked; where it looks.

import OLMap from "ol/Map.js";
import View from "ol/View.js";
import ScaleLine from "ol/control/ScaleLine.js";
import { createEmpty, extend, isEmpty, type Extent } from "ol/extent.js";
import type MapBrowserEvent from "ol/MapBrowserEvent.js";
import { onThemeChange, reducedMotion } from "../theme.ts";
import { FenceLayer } from "./fences.ts";
import { mercatorX, mercatorY } from "./fleet.ts";
import { Overlay } from "./overlay.ts";
import { worldLayers } from "./world.ts";

/** Clear of the tools above and the scale below. */
const padding = [72, 56, 52, 56];
/** A panel of details at the left covers this much of a map that is wide enough for both. */
const panel = 350;
const wide = 760;

export interface Picked {
  device(id: string): void;
  fence(id: string): void;
  nothing(): void;
}

export class LiveMap {
  readonly overlay = new Overlay();
  readonly fences = new FenceLayer();
  readonly ol: OLMap;
  /** While something is being drawn, clicks choose nothing. */
  busy = () => false;
  /** Whether what is beside the map's left edge is covered. */
  covered = () => false;
  private followed = "";
  /** The operator has moved the map: where it looks is theirs to say. */
  private moved = false;
  private fitted: "nothing" | "devices" | "fences" = "nothing";

  constructor(private readonly target: HTMLElement, tileURL: string, private readonly picked: Picked) {
    this.ol = new OLMap({
      target,
      controls: [new ScaleLine({ minWidth: 70 })],
      layers: [...worldLayers(tileURL), this.fences.layer, this.overlay.layer, this.fences.names],
      view: new View({ center: [mercatorX(5), mercatorY(40)], zoom: 2.4, minZoom: 1.5, maxZoom: 20, enableRotation: false }),
    });
    this.ol.on("singleclick", (e) => this.click(e));
    this.ol.on("pointermove", (e) => this.hover(e));
    this.ol.on("pointerdrag", () => {
      this.followed = "";
      this.moved = true;
    });
    for (const kind of ["wheel", "dblclick", "keydown"]) {
      target.addEventListener(kind, (e) => (this.moved ||= !(e instanceof KeyboardEvent) || /^(Arrow|[+=_-]$)/.test(e.key)));
    }
    // Graticule and labels keep the colours that they were made with.
    onThemeChange(() => {
      const layers = this.ol.getLayers();
      const world = worldLayers(tileURL);
      for (const old of layers.getArray().slice(0, world.length)) layers.remove(old);
      world.forEach((layer, i) => layers.insertAt(i, layer));
      this.fences.changed();
    });
  }

  zoom(by: number): void {
    this.moved = true;
    const view = this.ol.getView();
    view.animate({ zoom: (view.getZoom() ?? 2) + by, duration: reducedMotion() ? 0 : 200 });
  }

  /** fit shows all fences; without any, all devices. */
  fit(): void {
    const extent = this.fences.size > 0 ? this.fences.source.getExtent() : this.fleetExtent();
    if (extent && !isEmpty(extent)) this.show(extent);
  }

  /**
   * fitFirst shows what there is when it first comes: the devices, and the fences once they are there, whichever
   * comes first; nothing after the operator has moved the map.
   */
  fitFirst(): void {
    if (this.moved || this.fitted === "fences") return;
    const now = this.fences.size > 0 ? "fences" : this.overlay.fleet.size > 0 ? "devices" : "nothing";
    if (now === this.fitted) return;
    this.fitted = now;
    this.fit();
  }

  showFence(id: string): void {
    this.moved = true;
    const geometry = this.fences.feature(id)?.getGeometry();
    if (geometry) this.show(geometry.getExtent());
  }

  showDevice(id: string): void {
    const { fleet } = this.overlay;
    const i = fleet.find(id);
    if (i >= 0) this.showPlace(fleet.lat[i]!, fleet.lon[i]!);
  }

  showPlace(lat: number, lon: number): void {
    this.moved = true;
    const view = this.ol.getView();
    const center = [mercatorX(lon), mercatorY(lat)];
    view.animate({ center, zoom: Math.max(15, view.getZoom() ?? 0), duration: reducedMotion() ? 0 : 500 });
  }

  /** follow keeps a device in the middle; "" stops. */
  follow(id: string): void {
    this.moved ||= id !== "";
    this.followed = id;
    this.keepUp();
  }

  get following(): string {
    return this.followed;
  }

  /** keepUp moves the view after the followed device. */
  keepUp(): void {
    const { fleet } = this.overlay;
    const i = fleet.find(this.followed);
    if (i < 0) return;
    const center = [mercatorX(fleet.lon[i]!), mercatorY(fleet.lat[i]!)];
    this.ol.getView().animate({ center, duration: reducedMotion() ? 0 : 400 });
  }

  private show(extent: Extent): void {
    const view = this.ol.getView();
    view.cancelAnimations();
    const [top, right, bottom, left] = padding as [number, number, number, number];
    const free = this.covered() && this.target.clientWidth > wide ? panel : left;
    view.fit(extent, { padding: [top, right, bottom, free], maxZoom: 17, duration: reducedMotion() ? 0 : 500 });
  }

  private fleetExtent(): Extent {
    const { fleet } = this.overlay;
    const extent = createEmpty();
    for (let i = 0; i < fleet.size; i++) {
      const x = mercatorX(fleet.lon[i]!);
      const y = mercatorY(fleet.lat[i]!);
      extend(extent, [x, y, x, y]);
    }
    return extent;
  }

  /** fenceAt is the fence at a place on the map. Reading the drawn pixels back would tell as well, but slowly. */
  private fenceAt(e: MapBrowserEvent, reach: number): string {
    const resolution = this.ol.getView().getResolution() ?? 1;
    return this.fences.at(e.coordinate as [number, number], reach * resolution);
  }

  private click(e: MapBrowserEvent): void {
    if (this.busy()) return;
    const [x, y] = e.pixel as [number, number];
    const touch = (e.originalEvent as PointerEvent).pointerType === "touch";
    const device = this.overlay.hit(x, y, touch ? 18 : 11);
    if (device) return this.picked.device(device);
    const fence = this.fenceAt(e, touch ? 12 : 5);
    if (fence) this.picked.fence(fence);
    else this.picked.nothing();
  }

  private hover(e: MapBrowserEvent): void {
    if (e.dragging || this.busy()) return;
    const [x, y] = e.pixel as [number, number];
    const device = this.overlay.hit(x, y, 11);
    if (device !== this.overlay.hovered) {
      this.overlay.hovered = device;
      this.overlay.redraw();
    }
    const on = device !== "" || this.fenceAt(e, 2) !== "";
    this.target.classList.toggle("on-something", on);
  }
}
