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

const padding = [56, 56, 56, 56];

export interface Picked {
  device(index: number): void;
  fence(id: string): void;
  nothing(): void;
}

export class LiveMap {
  readonly overlay = new Overlay();
  readonly fences = new FenceLayer();
  readonly ol: OLMap;
  /** While something is being drawn, clicks choose nothing. */
  busy = () => false;
  private followed = -1;

  constructor(private readonly target: HTMLElement, tileURL: string, private readonly picked: Picked) {
    this.ol = new OLMap({
      target,
      controls: [new ScaleLine({ minWidth: 70 })],
      layers: [...worldLayers(tileURL), this.fences.layer, this.overlay.layer],
      view: new View({ center: [mercatorX(5), mercatorY(40)], zoom: 2.4, minZoom: 1.5, maxZoom: 20, enableRotation: false }),
    });
    this.ol.on("singleclick", (e) => this.click(e));
    this.ol.on("pointermove", (e) => this.hover(e));
    this.ol.on("pointerdrag", () => (this.followed = -1));
    // Graticule and labels keep the colours that they were made with.
    onThemeChange(() => {
      const layers = this.ol.getLayers();
      for (const old of layers.getArray().slice(0, 2)) layers.remove(old);
      worldLayers(tileURL).forEach((layer, i) => layers.insertAt(i, layer));
      this.fences.layer.changed();
    });
  }

  zoom(by: number): void {
    const view = this.ol.getView();
    view.animate({ zoom: (view.getZoom() ?? 2) + by, duration: reducedMotion() ? 0 : 200 });
  }

  /** fit shows all fences; without any, all devices. false: there is nothing to show. */
  fit(): boolean {
    const extent = this.fences.size > 0 ? this.fences.source.getExtent() : this.fleetExtent();
    if (!extent || isEmpty(extent)) return false;
    this.show(extent);
    return true;
  }

  showFence(id: string): void {
    const geometry = this.fences.feature(id)?.getGeometry();
    if (geometry) this.show(geometry.getExtent());
  }

  showDevice(index: number): void {
    const now = performance.now();
    const view = this.ol.getView();
    const center = [this.overlay.fleet.x(index, now), this.overlay.fleet.y(index, now)];
    view.animate({ center, zoom: Math.max(15, view.getZoom() ?? 0), duration: reducedMotion() ? 0 : 500 });
  }

  /** follow keeps a device in the middle; -1 stops. */
  follow(index: number): void {
    this.followed = index;
    this.keepUp();
  }

  get following(): number {
    return this.followed;
  }

  /** keepUp moves the view after the followed device. */
  keepUp(): void {
    if (this.followed < 0) return;
    const { fleet } = this.overlay;
    const center = [mercatorX(fleet.lon[this.followed]!), mercatorY(fleet.lat[this.followed]!)];
    this.ol.getView().animate({ center, duration: reducedMotion() ? 0 : 400 });
  }

  private show(extent: Extent): void {
    const view = this.ol.getView();
    view.cancelAnimations();
    view.fit(extent, { padding, maxZoom: 17, duration: reducedMotion() ? 0 : 500 });
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
    if (device >= 0) return this.picked.device(device);
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
    const on = device >= 0 || this.fenceAt(e, 2) !== "";
    this.target.classList.toggle("on-something", on);
  }
}
