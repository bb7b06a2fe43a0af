// The fences on the map.

import Feature from "ol/Feature.js";
import LineString from "ol/geom/LineString.js";
import VectorLayer from "ol/layer/Vector.js";
import VectorSource from "ol/source/Vector.js";
import { Fill, Stroke, Style, Text } from "ol/style.js";
import { buffer } from "ol/extent.js";
import { colours } from "../theme.ts";
import { worldWidth } from "./fleet.ts";
import { fenceGeometry, rings, type FenceFeature } from "./geometry.ts";

interface Entry {
  fence: FenceFeature;
  feature: Feature;
  /** Extent area, to pick the smallest of several under the pointer. */
  size: number;
  /** Of the extent, in Mercator metres. */
  width: number;
  /** Half the width of a corridor, in Mercator metres; 0 for others. */
  band: number;
  rings: number[][][];
}

export class FenceLayer {
  readonly source = new VectorSource({ wrapX: true });
  readonly layer = new VectorLayer({
    source: this.source,
    zIndex: 5,
    updateWhileAnimating: true,
    updateWhileInteracting: true,
    style: (f, resolution) => this.style(f as Feature, resolution),
  });
  /** The names have a layer of their own, above the devices: they can be read in any traffic. */
  readonly names = new VectorLayer({
    source: this.source,
    zIndex: 12,
    declutter: "names", // by themselves: the countries' names keep none of them away
    style: (f, resolution) => this.name(String(f.getId()), resolution),
  });
  private readonly entries = new Map<string, Entry>();
  /** The largest band. */
  private widest = 0;
  chosen = "";

  get size(): number {
    return this.entries.size;
  }

  get(id: string): FenceFeature | undefined {
    return this.entries.get(id)?.fence;
  }

  all(): FenceFeature[] {
    return [...this.entries.values()].map((e) => e.fence);
  }

  feature(id: string): Feature | undefined {
    return this.entries.get(id)?.feature;
  }

  /** rings of a fence, for a flash; none for one too detailed to flash cheaply. */
  rings(id: string): number[][][] {
    return this.entries.get(id)?.rings ?? [];
  }

  /** set replaces all fences. */
  set(list: FenceFeature[]): void {
    this.entries.clear();
    for (const fence of list) {
      const geometry = fenceGeometry(fence);
      if (!geometry) continue;
      const id = String(fence.id);
      const feature = new Feature(geometry);
      feature.setId(id);
      const [west, south, east, north] = geometry.getExtent() as [number, number, number, number];
      const outline = rings(geometry);
      const corners = outline.reduce((n, r) => n + r.length, 0);
      this.entries.set(id, {
        fence, feature,
        size: (east - west) * (north - south),
        width: east - west,
        band: bandOf(fence),
        rings: corners <= 1000 ? outline : [],
      });
    }
    this.widest = Math.max(0, ...[...this.entries.values()].map((e) => e.band));
    this.source.clear(true);
    // The largest first, so that a small fence within a large one lies on top.
    const byArea = [...this.entries.values()].sort((a, b) => b.size - a.size);
    this.source.addFeatures(byArea.map((e) => e.feature));
  }

  choose(id: string): void {
    this.chosen = id;
    this.changed();
  }

  /** changed draws all anew: the theme, or what is chosen, is another. */
  changed(): void {
    this.layer.changed();
    this.names.changed();
  }

  /** at finds the smallest fence under a point, or within some Mercator metres of one; "" for none. */
  at([x, y]: [number, number], reach: number): string {
    let best: Entry | null = null;
    for (const world of [0, worldWidth, -worldWidth]) {
      const point = [x + world, y];
      const around = buffer([point[0]!, y, point[0]!, y], reach + this.widest);
      this.source.forEachFeatureInExtent(around, (feature) => {
        const entry = this.entries.get(String(feature.getId()));
        if (!entry || (best && entry.size >= best.size)) return;
        const g = feature.getGeometry()!;
        const near = g.getClosestPoint(point);
        const far = Math.hypot(near[0]! - point[0]!, near[1]! - y);
        if (far <= reach + entry.band || g.intersectsCoordinate(point)) best = entry;
      });
    }
    return best === null ? "" : String((best as Entry).fence.id);
  }

  /** name is drawn where the fence is wide enough to hold it. */
  private name(id: string, resolution: number): Style | undefined {
    const entry = this.entries.get(id);
    const name = entry?.fence.properties.name || id;
    if (!entry || entry.width / resolution < name.length * 7 + 10) return undefined;
    const c = colours();
    return new Style({
      text: new Text({
        text: name, font: "600 12px system-ui, sans-serif", overflow: true,
        fill: new Fill({ color: c["fence-label"] }), stroke: new Stroke({ color: c.halo, width: 3.5 }),
      }),
    });
  }

  private style(f: Feature, resolution: number): Style | Style[] {
    const c = colours();
    const chosen = f.getId() === this.chosen;
    const colour = chosen ? c["fence-chosen"] : c.fence;
    if (f.getGeometry() instanceof LineString) {
      const width = (2 * (this.entries.get(String(f.getId()))?.band ?? 0)) / resolution;
      const round = { lineCap: "round", lineJoin: "round" } as const;
      return [
        new Style({ stroke: new Stroke({ color: c["fence-band"], width: Math.max(6, width), ...round }) }),
        new Style({ stroke: new Stroke({ color: colour, width: chosen ? 3 : 1.5, ...round }), zIndex: chosen ? 1 : 0 }),
      ];
    }
    return new Style({
      fill: new Fill({ color: c["fence-fill"] }),
      stroke: new Stroke({ color: colour, width: chosen ? 3 : 1.5 }),
      zIndex: chosen ? 1 : 0,
    });
  }
}

/** bandOf is a corridor's radius in Mercator metres, which are longer the farther from the equator. */
function bandOf(fence: FenceFeature): number {
  if (fence.geometry.type !== "LineString") return 0;
  const lat = fence.geometry.coordinates[0]?.[1] ?? 0;
  return (fence.properties.radius_m ?? 0) / Math.cos((lat * Math.PI) / 180);
}
