// From a fence's GeoJSON to what is drawn.

import type { Feature as GeoFeature, Geometry as GeoGeometry, Position } from "geojson";
import Geometry from "ol/geom/Geometry.js";
import LineString from "ol/geom/LineString.js";
import MultiPolygon from "ol/geom/MultiPolygon.js";
import Polygon, { circular } from "ol/geom/Polygon.js";
import { getArea, getDistance } from "ol/sphere.js";
import { area, metres } from "../format.ts";
import { unwrap, unwrapRings } from "./antimeridian.ts";

/** The sphere that circles and corridors are measured on. */
export const earthRadius = 6_371_008.8;

export interface FenceProperties {
  name?: string;
  tags?: string[];
  radius_m?: number;
  source?: string;
  [key: string]: unknown;
}

export type FenceFeature = GeoFeature<GeoGeometry, FenceProperties>;

/** fenceGeometry is the fence's outline in Mercator metres, or null for what can't be drawn. */
export function fenceGeometry(f: FenceFeature): Geometry | null {
  const g = f.geometry;
  switch (g?.type) {
    case "Point":
      return circleGeometry(g.coordinates, f.properties.radius_m ?? 0);
    case "LineString":
      return new LineString(unwrap(g.coordinates)).transform("EPSG:4326", "EPSG:3857");
    case "Polygon":
      return new Polygon(unwrapRings(g.coordinates)).transform("EPSG:4326", "EPSG:3857");
    case "MultiPolygon":
      return new MultiPolygon(g.coordinates.map(unwrapRings)).transform("EPSG:4326", "EPSG:3857");
    default:
      return null;
  }
}

export function circleGeometry(centre: Position, radius: number): Polygon {
  return circular(centre, radius, 96, earthRadius).transform("EPSG:4326", "EPSG:3857") as Polygon;
}

/** rings lists the outlines of a drawn geometry. */
export function rings(g: Geometry | null): number[][][] {
  if (g instanceof Polygon) return g.getCoordinates();
  if (g instanceof MultiPolygon) return g.getCoordinates().flat();
  if (g instanceof LineString) return [g.getCoordinates()];
  return [];
}

export function shapeWords(f: FenceFeature): string {
  const g = f.geometry;
  switch (g.type) {
    case "Point":
      return `Circle, radius ${metres(f.properties.radius_m ?? 0)}`;
    case "LineString": {
      const length = g.coordinates.reduce((sum, p, i) => (i === 0 ? 0 : sum + getDistance(g.coordinates[i - 1]!, p, earthRadius)), 0);
      return `Corridor, ${metres(length)} long, ${metres(f.properties.radius_m ?? 0)} to each side`;
    }
    default: {
      const drawn = fenceGeometry(f);
      const corners = rings(drawn).reduce((n, r) => n + r.length - 1, 0);
      return `${g.type === "MultiPolygon" ? "Multipolygon" : "Polygon"}, ${drawn ? area(getArea(drawn)) : ""}, ${corners} corners`;
    }
  }
}
