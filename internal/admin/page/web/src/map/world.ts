// The background: coastlines and borders of Natural Earth, a graticule, and
// tiles if a tile URL is configured.

import type { Position } from "geojson";
import { feature, mesh } from "topojson-client";
import type { GeometryCollection, Topology } from "topojson-specification";
import Feature from "ol/Feature.js";
import MultiLineString from "ol/geom/MultiLineString.js";
import MultiPolygon from "ol/geom/MultiPolygon.js";
import Graticule from "ol/layer/Graticule.js";
import type BaseLayer from "ol/layer/Base.js";
import TileLayer from "ol/layer/Tile.js";
import VectorImageLayer from "ol/layer/VectorImage.js";
import VectorSource from "ol/source/Vector.js";
import XYZ from "ol/source/XYZ.js";
import { Fill, Stroke, Style, Text } from "ol/style.js";
import { colours } from "../theme.ts";
import { splitLine, splitPolygon } from "./antimeridian.ts";

type World = Topology<{ countries: GeometryCollection<{ name: string }> }>;

const font = "500 12px system-ui, sans-serif";
/** Mercator has no poles. */
const maxLat = 85;

/** worldLayers draws the land, tiles if there are any, and the graticule. Where no tile comes, the land shows. */
export function worldLayers(tileURL: string): BaseLayer[] {
  return [countries(), ...(tileURL ? [tiles(tileURL)] : []), graticule()];
}

function tiles(url: string): BaseLayer {
  return new TileLayer({ className: "tiles", source: new XYZ({ url }) });
}

const source = new VectorSource({ wrapX: true });
let loading: Promise<void> | null = null;

/** countries is an image that is drawn anew only when the view rests: a hundred thousand points need not be drawn in every frame. */
function countries(): BaseLayer {
  loading ??= load();
  const c = colours();
  const land = new Fill({ color: c.land });
  const label = new Fill({ color: c.label });
  const lines = new Style({ stroke: new Stroke({ color: c.border, width: 1 }), zIndex: 1 });
  return new VectorImageLayer({
    source,
    declutter: "countries",
    imageRatio: 1.5,
    style: (f, resolution) => {
      const name = f.get("name") as string | undefined;
      if (name === undefined) return lines;
      const text = resolution < 20_000 ? new Text({ text: name, font, fill: label }) : undefined;
      return new Style({ fill: land, text });
    },
  });
}

async function load(): Promise<void> {
  const response = await fetch("/page/world.json");
  if (!response.ok) return; // the map works without a coast
  const world = (await response.json()) as World;
  for (const { geometry, properties } of feature(world, world.objects.countries).features) {
    const polygons = geometry.type === "Polygon" ? [geometry.coordinates] : geometry.type === "MultiPolygon" ? geometry.coordinates : [];
    const shape = new MultiPolygon(polygons.flatMap(splitPolygon).map((p) => p.map(withoutPoles)));
    source.addFeature(new Feature({ geometry: shape.transform("EPSG:4326", "EPSG:3857"), name: properties.name }));
  }
  const lines = mesh(world, world.objects.countries).coordinates.flatMap(splitLine).map(withoutPoles);
  source.addFeature(new Feature(new MultiLineString(lines).transform("EPSG:4326", "EPSG:3857")));
}

function withoutPoles(line: Position[]): Position[] {
  return line.map((p) => [p[0]!, Math.max(-maxLat, Math.min(maxLat, p[1]!))]);
}

function graticule(): BaseLayer {
  const font = "11px system-ui, sans-serif";
  const fill = new Fill({ color: colours().label });
  return new Graticule({
    strokeStyle: new Stroke({ color: colours().graticule, width: 1 }),
    showLabels: innerWidth >= 600, // or they lie under all the rest
    wrapX: true,
    targetSize: 140,
    intervals: [90, 45, 30, 20, 10, 5, 2, 1, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001],
    // Along the left and the lower edge, clear of the scale and the credit.
    latLabelPosition: 0,
    lonLabelPosition: 0,
    latLabelStyle: new Text({ font, fill, textAlign: "start", textBaseline: "bottom", offsetX: 8, offsetY: -2 }),
    lonLabelStyle: new Text({ font, fill, textAlign: "start", textBaseline: "bottom", offsetX: 4, offsetY: -30 }),
    lonLabelFormatter: (lon) => degrees(lon, "E", "W"),
    latLabelFormatter: (lat) => degrees(lat, "N", "S"),
  });
}

function degrees(value: number, positive: string, negative: string): string {
  const text = Math.abs(value).toFixed(3).replace(/\.?0+$/, "");
  return `${text}°${value > 0 ? positive : value < 0 ? negative : ""}`;
}
