// Drawing a fence with the pointer. Who can't use a pointer gives numbers or
// pastes GeoJSON instead.

import type { Geometry as GeoGeometry, Position } from "geojson";
import type OLMap from "ol/Map.js";
import Feature from "ol/Feature.js";
import Polygon from "ol/geom/Polygon.js";
import Draw from "ol/interaction/Draw.js";
import VectorLayer from "ol/layer/Vector.js";
import { toLonLat } from "ol/proj.js";
import VectorSource from "ol/source/Vector.js";
import { getDistance } from "ol/sphere.js";
import { Circle as Dot, Fill, Stroke, Style } from "ol/style.js";
import { announce, byId, setText, show } from "../dom.ts";
import { metres } from "../format.ts";
import { colours } from "../theme.ts";
import { circleGeometry, earthRadius } from "./geometry.ts";

export interface Drawn {
  geometry: GeoGeometry;
  radius?: number;
}

export class DrawTool {
  private readonly source = new VectorSource();
  private interaction: Draw | null = null;
  private stopped = -Infinity;
  private readonly bar = byId("draw-bar");
  private readonly hint = byId("draw-hint");

  constructor(private readonly map: OLMap, private readonly drawn: (d: Drawn) => void) {
    map.addLayer(new VectorLayer({ source: this.source, zIndex: 20, style: () => this.style() }));
    byId("draw-cancel").addEventListener("click", () => this.stop());
    document.addEventListener("keydown", (e) => {
      if (e.key === "Escape" && this.interaction) this.stop();
    });
  }

  /** active: a click belongs to the drawing. The map tells of a click only when it can't become a double click, so the last one comes late. */
  get active(): boolean {
    return this.interaction !== null || performance.now() - this.stopped < 600;
  }

  start(shape: "circle" | "polygon"): void {
    this.stop();
    const draw = shape === "circle" ? this.circle() : this.polygon();
    this.interaction = draw;
    this.map.addInteraction(draw);
    const hint = shape === "circle" ? "Click the centre, then a point on the edge." : "Click each corner; double-click the last.";
    setText(this.hint, hint);
    show(this.bar, true);
    announce(`${hint} Escape stops.`);
    this.map.getTargetElement()?.classList.add("drawing");
  }

  /** preview shows a shape while its form is open. */
  preview(d: Drawn | null): void {
    this.source.clear();
    if (!d) return;
    if (d.geometry.type === "Point") this.source.addFeature(new Feature(circleGeometry(d.geometry.coordinates, d.radius ?? 0)));
    else if (d.geometry.type === "Polygon") {
      this.source.addFeature(new Feature(new Polygon(d.geometry.coordinates).transform("EPSG:4326", "EPSG:3857")));
    }
  }

  stop(): void {
    if (this.interaction) {
      this.map.removeInteraction(this.interaction);
      this.stopped = performance.now();
    }
    this.interaction = null;
    this.source.clear();
    show(this.bar, false);
    this.map.getTargetElement()?.classList.remove("drawing");
  }

  private finish(d: Drawn): void {
    // After the interaction's own work on this very click.
    setTimeout(() => {
      this.stop();
      this.drawn(d);
    });
  }

  private circle(): Draw {
    let centre: Position = [0, 0];
    let radius = 0;
    const draw = new Draw({
      type: "Circle",
      style: () => this.style(),
      geometryFunction: (coordinates, geometry) => {
        const [from, to] = coordinates as number[][];
        centre = toLonLat(from!);
        radius = getDistance(centre, toLonLat(to!), earthRadius);
        const shape = circleGeometry(centre, Math.max(radius, 0.1));
        setText(this.hint, `Click a point on the edge. Radius ${metres(radius)}.`);
        if (!geometry) return shape;
        (geometry as Polygon).setCoordinates(shape.getCoordinates());
        return geometry;
      },
    });
    draw.on("drawend", () => this.finish({ geometry: { type: "Point", coordinates: rounded(centre) }, radius: Math.max(1, Math.round(radius)) }));
    return draw;
  }

  private polygon(): Draw {
    const draw = new Draw({ type: "Polygon", style: () => this.style() });
    draw.on("drawend", (e) => {
      const shape = (e.feature.getGeometry() as Polygon).clone().transform("EPSG:3857", "EPSG:4326") as Polygon;
      this.finish({ geometry: { type: "Polygon", coordinates: shape.getCoordinates().map((ring) => ring.map(rounded)) } });
    });
    return draw;
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

/** rounded to a tenth of a metre; longitudes back into -180..180. */
function rounded(p: Position): Position {
  const lon = ((((p[0]! + 180) % 360) + 360) % 360) - 180;
  return [Number(lon.toFixed(6)), Number(p[1]!.toFixed(6))];
}

