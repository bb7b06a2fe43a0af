// The background: coastlines and borders of Natural Earth, a graticule, and
// tiles if a tile URL is configured.

import type { Feature as GeoFeature, Geometry } from "geojson";
import { feature } from "topojson-client";
import type { GeometryCollection, Topology } from "topojson-specification";
import GeoJSON from "ol/format/GeoJSON.js";
import Graticule from "ol/layer/Graticule.js";
import type BaseLayer from "ol/layer/Base.js";
import TileLayer from "ol/layer/Tile.js";
import VectorLayer from "ol/layer/Vector.js";
import VectorSource from "ol/source/Vector.js";
import XYZ from "ol/source/XYZ.js";
import { Fill, Stroke, Style, Text } from "ol/style.js";
import { colours } from "../theme.ts";

const font = "500 12px system-ui, sans-serif";

/** worldLayers draws land without tiles, and the graticule. */
export function worldLayers(tileURL: string): BaseLayer[] {
  const layers: BaseLayer[] = tileURL ? [tiles(tileURL)] : [countries()];
  layers.push(graticule());
  return layers;
}

function tiles(url: string): BaseLayer {
  return new TileLayer({ className: "tiles", source: new XYZ({ url, crossOrigin: "anonymous" }) });
}

function countries(): BaseLayer {
  const source = new VectorSource({ wrapX: true });
  void load(source);
  return new VectorLayer({
    source,
    declutter: true,
    style: (f, resolution) => {
      const c = colours();
      const style = new Style({
        fill: new Fill({ color: c.land }),
        stroke: new Stroke({ color: c.border, width: 1 }),
      });
      if (resolution < 20_000) {
        style.setText(new Text({ text: f.get("name") as string, font, overflow: false, fill: new Fill({ color: c.label }) }));
      }
      return style;
    },
  });
}

async function load(source: VectorSource): Promise<void> {
  const response = await fetch("/page/world.json");
  if (!response.ok) return; // the map works without a coast
  const topology = (await response.json()) as Topology<{ countries: GeometryCollection }>;
  const collection = feature(topology, topology.objects.countries);
  const features = collection.features.map((f) => withoutPoles(f as GeoFeature<Geometry>));
  source.addFeatures(
    new GeoJSON().readFeatures({ type: "FeatureCollection", features }, { featureProjection: "EPSG:3857" }),
  );
}

/** withoutPoles keeps latitudes within what Mercator can show. */
function withoutPoles(f: GeoFeature<Geometry>): GeoFeature<Geometry> {
  const clamp = (c: unknown): unknown =>
    Array.isArray(c) && typeof c[0] === "number" ? [c[0], Math.max(-85, Math.min(85, c[1] as number))] : (c as unknown[]).map(clamp);
  if (f.geometry.type !== "GeometryCollection") {
    (f.geometry as { coordinates: unknown }).coordinates = clamp(f.geometry.coordinates);
  }
  return f;
}

function graticule(): BaseLayer {
  const label = () => new Text({ font: "11px system-ui, sans-serif", fill: new Fill({ color: colours().label }) });
  const layer = new Graticule({
    strokeStyle: new Stroke({ color: colours().graticule, width: 1 }),
    showLabels: true,
    wrapX: true,
    targetSize: 140,
    intervals: [30, 20, 10, 5, 2, 1, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001],
    latLabelPosition: 1,
    lonLabelPosition: 0,
    lonLabelStyle: label(),
    latLabelStyle: label(),
    lonLabelFormatter: (lon) => degrees(lon, "E", "W"),
    latLabelFormatter: (lat) => degrees(lat, "N", "S"),
  });
  return layer;
}

function degrees(value: number, positive: string, negative: string): string {
  const text = Math.abs(value).toFixed(3).replace(/\.?0+$/, "");
  return `${text}°${value > 0 ? positive : value < 0 ? negative : ""}`;
}
