// Lines and rings that cross 180 degrees of longitude.

import type { Position } from "geojson";

/** unwrap follows a line across the antimeridian: a jump of more than 180 degrees is the short way round. */
export function unwrap(line: Position[]): Position[] {
  let shift = 0;
  return line.map((p, i) => {
    const before = line[i - 1];
    if (before && p[0]! - before[0]! > 180) shift -= 360;
    else if (before && p[0]! - before[0]! < -180) shift += 360;
    return [p[0]! + shift, p[1]!];
  });
}

/** unwrapRings keeps holes on the shell's side of the world. */
export function unwrapRings(rings: Position[][]): Position[][] {
  const [shell, ...holes] = rings.map(unwrap);
  if (!shell) return [];
  const middle = (shell[0]![0]! + shell[Math.floor(shell.length / 2)]![0]!) / 2;
  return [shell, ...holes.map((h) => h.map((p) => [p[0]! + Math.round((middle - h[0]![0]!) / 360) * 360, p[1]!]))];
}

/** splitPolygon cuts a polygon at the antimeridian, each part within -180..180. One that surrounds a pole is closed over it. */
export function splitPolygon(rings: Position[][]): Position[][][] {
  const unwrapped = unwrapRings(rings);
  const shell = unwrapped[0] ?? [];
  const first = shell[0];
  const last = shell.at(-1);
  if (first && last && Math.abs(last[0]! - first[0]!) > 180) {
    const pole = first[1]! < 0 ? -90 : 90;
    shell.push([last[0]!, pole], [first[0]!, pole], first);
  }
  const parts: Position[][][] = [];
  for (const world of [-1, 0, 1]) {
    const part = unwrapped.map((r) => clip(r, world * 360 - 180, world * 360 + 180, world * 360)).filter((r) => r.length > 3);
    if (part.length > 0) parts.push(part);
  }
  return parts;
}

/** clip keeps what of a ring lies between two longitudes, and shifts it. */
function clip(ring: Position[], west: number, east: number, shift: number): Position[] {
  if (ring.every((p) => p[0]! >= west && p[0]! <= east)) return shift === 0 ? ring : ring.map((p) => [p[0]! - shift, p[1]!]);
  const cut = cutAt(cutAt(ring, west, 1), east, -1);
  return cut.map((p) => [p[0]! - shift, p[1]!]);
}

/** cutAt keeps the side of a meridian that side (1: east, -1: west) names. */
function cutAt(ring: Position[], lon: number, side: 1 | -1): Position[] {
  const kept: Position[] = [];
  ring.forEach((p, i) => {
    const before = ring[(i + ring.length - 1) % ring.length]!;
    const inside = (p[0]! - lon) * side >= 0;
    const wasInside = (before[0]! - lon) * side >= 0;
    if (inside !== wasInside) {
      const part = (lon - before[0]!) / (p[0]! - before[0]!);
      kept.push([lon, before[1]! + part * (p[1]! - before[1]!)]);
    }
    if (inside) kept.push(p);
  });
  if (kept.length > 0) kept.push(kept[0]!);
  return kept;
}

/** splitLine breaks a line where it jumps across the antimeridian. */
export function splitLine(line: Position[]): Position[][] {
  const parts: Position[][] = [];
  let part: Position[] = [];
  line.forEach((p, i) => {
    const before = line[i - 1];
    if (before && Math.abs(p[0]! - before[0]!) > 180) {
      parts.push(part);
      part = [];
    }
    part.push(p);
  });
  parts.push(part);
  return parts.filter((l) => l.length > 1);
}
