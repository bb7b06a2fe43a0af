// The fences on the map.

import Feature from "ol/Feature.js";
import LineString from "ol/geom/LineString.js";
import VectorLayer from "ol/layer/Vector.js";
import VectorSource from "ol/source/Vector.js";
import { Fill, Stroke, Style, Text } from "ol/style.js";
import { colours } from "../theme.ts";
import { fenceGeometry, rings, type FenceFeature } from "./geometry.ts";

interface Entry {
  fence: FenceFeature;
  feature: Feature;
  /** Extent area, to pick the smallest of several under the pointer. */
  size: number;
  /** Of the extent, in Mercator metres. */
  width: number;
  rings: number[][][];
}

export class FenceLayer {
  readonly source = new VectorSource({ wrapX: true });
  readonly layer = new VectorLayer({
    source: this.source,
    zIndex: 5,
    declutter: true,
    updateWhileAnimating: true,
    updateWhileInteracting: true,
    style: (f, resolution) => this.style(f as Feature, resolution),
  });
  private readonly entries = new Map<string, Entry>();
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
        rings: corners <= 1000 ? outline : [],
      });
    }
    this.source.clear(true);
    // The largest first, so that a small fence within a large one lies on top.
    const byArea = [...this.entries.values()].sort((a, b) => b.size - a.size);
    this.source.addFeatures(byArea.map((e) => e.feature));
  }

  choose(id: string): void {
    this.chosen = id;
    this.layer.changed();
  }

  /** smallest of the features that lie under a point. */
  smallest(features: Feature[]): string {
    const ids = features.map((f) => String(f.getId())).filter((id) => this.entries.has(id));
    ids.sort((a, b) => this.entries.get(a)!.size - this.entries.get(b)!.size);
    return ids[0] ?? "";
  }

  /** label is the fence's name, where it is drawn wide enough to hold it. */
  private label(id: string, resolution: number): Text | undefined {
    const entry = this.entries.get(id);
    const name = entry?.fence.properties.name || id;
    if (!entry || entry.width / resolution < name.length * 7 + 10) return undefined;
    const c = colours();
    return new Text({
      text: name, font: "600 12px system-ui, sans-serif", overflow: true,
      fill: new Fill({ color: c["fence-label"] }), stroke: new Stroke({ color: c.halo, width: 3 }),
    });
  }

  private style(f: Feature, resolution: number): Style | Style[] {
    const c = colours();
    const chosen = f.getId() === this.chosen;
    const colour = chosen ? c["fence-chosen"] : c.fence;
    if (f.getGeometry() instanceof LineString) {
      const fence = this.get(String(f.getId()));
      const line = fence?.geometry.type === "LineString" ? fence.geometry.coordinates : [];
      const lat = line[0]?.[1] ?? 0;
      const width = (2 * (fence?.properties.radius_m ?? 0)) / (resolution * Math.cos((lat * Math.PI) / 180));
      const round = { lineCap: "round", lineJoin: "round" } as const;
      return [
        new Style({ stroke: new Stroke({ color: c["fence-band"], width: Math.max(6, width), ...round }) }),
        new Style({ stroke: new Stroke({ color: colour, width: chosen ? 3 : 1.5, ...round }), zIndex: chosen ? 1 : 0 }),
      ];
    }
    return new Style({
      fill: new Fill({ color: c["fence-fill"] }),
      stroke: new Stroke({ color: colour, width: chosen ? 3 : 1.5 }),
      text: this.label(String(f.getId()), resolution),
      zIndex: chosen ? 1 : 0,
    });
  }
}
