// Drawing a fence: by clicks, or by keys under a crosshair in the middle of
// the map. Both may be mixed.

import type { Geometry as GeoGeometry, Position } from "geojson";
import type OLMap from "ol/Map.js";
import Feature from "ol/Feature.js";
import type Geometry from "ol/geom/Geometry.js";
import LineString from "ol/geom/LineString.js";
import MultiPoint from "ol/geom/MultiPoint.js";
import Polygon from "ol/geom/Polygon.js";
import VectorLayer from "ol/layer/Vector.js";
import type MapBrowserEvent from "ol/MapBrowserEvent.js";
import { toLonLat } from "ol/proj.js";
import VectorSource from "ol/source/Vector.js";
import { getDistance } from "ol/sphere.js";
import { Circle as Dot, Fill, Stroke, Style } from "ol/style.js";
import { announce, byId, setText, show } from "../dom.ts";
import { metres, place } from "../format.ts";
import { colours } from "../theme.ts";
import { circleGeometry, earthRadius } from "./geometry.ts";
import { Sketch, type Point, type Shape } from "./sketch.ts";

export interface Drawn {
  geometry: GeoGeometry;
  radius?: number;
}

/** A click so near to a corner, in pixels, means that corner. The crosshair has to be on it. */
const nearClick = 10;
const nearKey = 1;
/** How far an arrow key moves the map, in pixels; with Shift, the smaller. */
const stride = 40;
const step = 4;
/** Where the crosshair is, is read out once it rests for so long. */
const rests = 600;

const arrows: Record<string, [number, number]> = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };

export class DrawTool {
  private readonly source = new VectorSource();
  private readonly target: HTMLElement;
  private readonly bar = byId("draw-bar");
  private readonly hint = byId("draw-hint");
  private readonly back = byId<HTMLButtonElement>("draw-back");
  private readonly finish = byId<HTMLButtonElement>("draw-finish");
  private readonly crosshair = byId("crosshair");
  private sketch: Sketch | null = null;
  /** The last thing that pointed was the keyboard. */
  private byKeys = false;
  /** Where the pointer is. */
  private pointer: Point | null = null;
  private stopped = -Infinity;
  private resting = 0;

  constructor(private readonly map: OLMap, private readonly drawn: (d: Drawn) => void) {
    this.target = map.getTargetElement()!;
    map.addLayer(new VectorLayer({ source: this.source, zIndex: 20, updateWhileAnimating: true, updateWhileInteracting: true, style: () => this.style() }));
    // A listener that answers false keeps the click from the map, which would zoom for a double one.
    map.on("click", (e) => this.click(e));
    map.on("dblclick", () => this.sketch === null);
    map.on("pointermove", (e) => this.move(e));
    map.getView().on("change:center", () => this.draw());
    map.getView().on("change:resolution", () => this.draw());
    this.target.addEventListener("keydown", (e) => this.key(e), { capture: true });
    document.addEventListener("keydown", (e) => {
      if (e.key !== "Escape" || !this.sketch) return;
      this.stop();
      announce("Drawing stopped.");
    });
    byId("draw-cancel").addEventListener("click", () => this.stop());
    this.back.addEventListener("click", () => this.takeBack());
    this.finish.addEventListener("click", () => this.done());
  }

  /** active: a click belongs to the drawing. The map tells of a click only when it can't become a double click, so the last one comes late. */
  get active(): boolean {
    return this.sketch !== null || performance.now() - this.stopped < 600;
  }

  start(shape: Shape, byKeys: boolean): void {
    this.stop();
    this.sketch = new Sketch(shape);
    this.byKeys = byKeys;
    this.pointer = null;
    show(this.bar, true);
    this.target.classList.add("drawing");
    this.target.focus();
    this.draw();
    const end = shape === "circle" ? "Enter sets the centre, and then a point on the edge." : "Enter sets a corner; Enter at the last one again finishes.";
    announce(`Drawing a ${shape}. Arrow keys move the map under the crosshair, with Shift in small steps. ${end} Backspace takes back, Escape stops. Or click on the map.`);
  }

  /** preview shows a shape while its form is open. */
  preview(d: Drawn | null): void {
    this.source.clear();
    if (!d) return;
    if (d.geometry.type === "Point") this.put(circleGeometry(d.geometry.coordinates, d.radius ?? 0));
    else if (d.geometry.type === "Polygon") this.put(new Polygon(d.geometry.coordinates).transform("EPSG:4326", "EPSG:3857"));
  }

  stop(): void {
    if (!this.sketch) return;
    this.sketch = null;
    this.stopped = performance.now();
    clearTimeout(this.resting);
    this.source.clear();
    show(this.bar, false);
    show(this.crosshair, false);
    this.target.classList.remove("drawing");
  }

  private click(e: MapBrowserEvent): void {
    if (!this.sketch) return;
    this.byKeys = false;
    this.pointer = e.coordinate as Point;
    this.add(this.pointer, nearClick);
  }

  private move(e: MapBrowserEvent): void {
    if (!this.sketch || e.dragging) return;
    this.byKeys = false;
    this.pointer = e.coordinate as Point;
    this.draw();
  }

  private key(e: KeyboardEvent): void {
    if (!this.sketch || e.ctrlKey || e.metaKey || e.altKey) return;
    const arrow = arrows[e.key];
    if (arrow) this.pan(arrow, e.shiftKey ? step : stride);
    else if (e.key === "Enter") this.add(this.centre(), nearKey);
    else if (e.key === "Backspace") this.takeBack();
    else return;
    if (e.key !== "Backspace") this.byKeys = true;
    this.draw();
    e.preventDefault();
    e.stopImmediatePropagation(); // the map has its own idea of arrows
  }

  private pan([east, north]: [number, number], pixels: number): void {
    const view = this.map.getView();
    const metresPerPixel = view.getResolution() ?? 1;
    const [x, y] = this.centre();
    this.byKeys = true;
    view.setCenter([x + east * pixels * metresPerPixel, y + north * pixels * metresPerPixel]);
    clearTimeout(this.resting);
    this.resting = window.setTimeout(() => announce(this.whereWords()), rests);
  }

  private centre(): Point {
    return this.map.getView().getCenter() as Point;
  }

  private add(p: Point, near: number): void {
    const resolution = this.map.getView().getResolution() ?? 1;
    clearTimeout(this.resting);
    switch (this.sketch!.add(p, near * resolution)) {
      case "done":
        return this.done();
      case "corner":
        announce(this.cornerWords());
        break;
      default:
        announce("There is a corner already.");
    }
    this.draw();
  }

  private takeBack(): void {
    if (!this.sketch?.takeBack()) return;
    const n = this.sketch.points.length;
    announce(this.sketch.shape === "circle" ? "Centre taken back." : `Corner ${n + 1} taken back.`);
    this.draw();
    if (document.activeElement === document.body) this.target.focus(); // the button is disabled now
  }

  private done(): void {
    const { shape, points } = this.sketch!;
    this.stop();
    const positions = points.map((p) => toLonLat(p));
    if (shape === "circle") {
      const radius = getDistance(positions[0]!, positions[1]!, earthRadius);
      this.drawn({ geometry: { type: "Point", coordinates: rounded(positions[0]!) }, radius: Math.max(1, Math.round(radius)) });
      return;
    }
    this.drawn({ geometry: { type: "Polygon", coordinates: [[...positions, positions[0]!].map(rounded)] } });
  }

  /** draw shows the shape as it would be with a corner at the pointer or the crosshair. */
  private draw(): void {
    if (!this.sketch) return;
    const { shape, points } = this.sketch;
    show(this.crosshair, this.byKeys);
    this.source.clear();
    const next = this.byKeys ? this.centre() : this.pointer;
    const all = next ? [...points, next] : points;
    if (shape === "circle" && all.length === 2) this.put(circleGeometry(toLonLat(all[0]!), Math.max(0.1, this.length())));
    else if (all.length > 2) this.put(new Polygon([[...all, all[0]!]]));
    else if (all.length === 2) this.put(new LineString(all));
    if (points.length > 0) this.put(new MultiPoint(points));
    setText(this.hint, this.hintWords());
    this.back.disabled = points.length === 0;
    show(this.finish, shape === "polygon");
    this.finish.disabled = !this.sketch.closable;
  }

  private put(g: Geometry): void {
    this.source.addFeature(new Feature(g));
  }

  /** length of what the next corner would add: metres from the last one. */
  private length(): number {
    const last = this.sketch?.points.at(-1);
    const next = this.byKeys ? this.centre() : this.pointer;
    return last && next ? getDistance(toLonLat(last), toLonLat(next), earthRadius) : 0;
  }

  private hintWords(): string {
    const { shape, points, closable } = this.sketch!;
    const far = metres(this.length());
    if (shape === "circle") {
      if (points.length === 0) return this.byKeys ? "Arrows move, Enter sets the centre." : "Click the centre.";
      return `${this.byKeys ? "Move to the edge, then Enter." : "Click a point on the edge."} Radius ${far}.`;
    }
    if (points.length === 0) return this.byKeys ? "Arrows move, Enter sets the first corner." : "Click the first corner.";
    const next = `corner ${points.length + 1}, ${far} on`;
    const last = closable ? (this.byKeys ? " Enter twice finishes." : " Click the last again to finish.") : "";
    return (this.byKeys ? `Enter sets ${next}.` : `Click ${next}.`) + last;
  }

  private cornerWords(): string {
    const { shape, points, closable } = this.sketch!;
    const where = place(...lonLat(points.at(-1)!));
    if (shape === "circle") return `Centre at ${where}. Move to the edge and press Enter.`;
    return `Corner ${points.length} at ${where}.${closable ? " Enter here again finishes." : ""}`;
  }

  private whereWords(): string {
    const far = this.sketch && this.sketch.points.length > 0 ? `, ${metres(this.length())} from the ${this.sketch.shape === "circle" ? "centre" : "last corner"}` : "";
    return `${place(...lonLat(this.centre()))}${far}.`;
  }

  private style(): Style {
    const c = colours();
    return new Style({
      fill: new Fill({ color: c["fence-fill"] }),
      stroke: new Stroke({ color: c["fence-chosen"], width: 2.5, lineDash: [6, 5] }),
      image: new Dot({ radius: 5, fill: new Fill({ color: c["fence-chosen"] }), stroke: new Stroke({ color: c.halo, width: 2 }) }),
    });
  }
}

function lonLat(p: Point): [number, number] {
  const [lon, lat] = rounded(toLonLat(p));
  return [lon!, lat!];
}

/** rounded to a tenth of a metre; longitudes back into -180..180. */
function rounded(p: Position): Position {
  const lon = ((((p[0]! + 180) % 360) + 360) % 360) - 180;
  return [Number(lon.toFixed(6)), Number(p[1]!.toFixed(6))];
}
