// The devices' positions and how they move: pure numbers in flat arrays, so
// that ten thousand of them move smoothly.

import type { DeviceRow } from "../wire.ts";

export const worldWidth = 2 * Math.PI * 6_378_137;
const half = worldWidth / 2;
const maxLat = 85.05112878;

/** A glide lasts as long as the last two fixes were apart, within bounds. */
const shortest = 250;
const longest = 2500;
/** A jump farther than this (Mercator metres) is not a drive. */
const jump = 50_000;
/** A device that hasn't sent for this long is drawn as still. */
export const stillAfter = 120_000;

export const mercatorX = (lon: number) => (lon / 180) * half;
export const mercatorY = (lat: number) =>
  (Math.log(Math.tan(Math.PI / 4 + (Math.max(-maxLat, Math.min(maxLat, lat)) * Math.PI) / 360)) / Math.PI) * half;

const fields = 8;
/** START is when it was heard of, and when its glide began. */
const FROM_X = 0, FROM_Y = 1, TO_X = 2, TO_Y = 3, START = 4, GLIDE = 5, HEADING = 6, TS = 7;

export class Fleet {
  readonly ids: string[] = [];
  readonly lat: number[] = [];
  readonly lon: number[] = [];
  private readonly index = new Map<string, number>();
  private data = new Float64Array(fields * 1024);
  /** Until when something moves, on the clock of performance.now(). */
  movingUntil = 0;

  get size(): number {
    return this.ids.length;
  }

  /** clear forgets all devices. */
  clear(): void {
    this.ids.length = this.lat.length = this.lon.length = 0;
    this.index.clear();
  }

  /** remove forgets a device; the last one takes its number. */
  remove(id: string): void {
    const i = this.find(id);
    if (i < 0) return;
    const last = this.size - 1;
    if (i < last) {
      this.data.copyWithin(i * fields, last * fields, (last + 1) * fields);
      this.ids[i] = this.ids[last]!;
      this.lat[i] = this.lat[last]!;
      this.lon[i] = this.lon[last]!;
      this.index.set(this.ids[i]!, i);
    }
    this.ids.length = this.lat.length = this.lon.length = last;
    this.index.delete(id);
  }

  /** expire removes the devices that have not been heard of for so long (ms), and says whether there were any. */
  expire(now: number, after: number): boolean {
    const before = this.size;
    for (let i = this.size - 1; i >= 0; i--) {
      if (now - this.data[i * fields + START]! > after) this.remove(this.ids[i]!);
    }
    return this.size < before;
  }

  /** find is a device's number until the next removal, or -1. */
  find(id: string): number {
    return this.index.get(id) ?? -1;
  }

  /** update takes fixes; now is on the clock of performance.now(). */
  update(rows: DeviceRow[], now: number, glide: boolean): void {
    for (const row of rows) this.place(row, now, glide);
  }

  private place([id, lat, lon, ts, heading, age = 0]: DeviceRow, now: number, glide: boolean): void {
    let i = this.find(id);
    // What was known when the page was opened may come after what has moved since.
    if (i >= 0 && ts <= this.ts(i)) return;
    const x = mercatorX(lon);
    const y = mercatorY(lat);
    const fresh = i < 0;
    if (fresh) i = this.grow(id);
    const d = this.data;
    const o = i * fields;
    const fromX = fresh ? x : nearest(this.x(i, now), x);
    const fromY = fresh ? y : this.y(i, now);
    const far = Math.hypot(x - fromX, y - fromY);
    const time = Math.min(longest, Math.max(shortest, now - d[o + START]! + 120));
    const moves = glide && !fresh && age === 0 && far > 0 && far < jump;
    if (heading !== null) d[o + HEADING] = heading;
    else if (!fresh && far > 1) d[o + HEADING] = (Math.atan2(x - fromX, y - fromY) * 180) / Math.PI;
    else if (fresh) d[o + HEADING] = NaN;
    d[o + FROM_X] = moves ? fromX : x;
    d[o + FROM_Y] = moves ? fromY : y;
    d[o + TO_X] = x;
    d[o + TO_Y] = y;
    d[o + START] = now - age * 1000;
    d[o + GLIDE] = moves ? time : 0;
    d[o + TS] = ts;
    this.lat[i] = lat;
    this.lon[i] = lon;
    this.movingUntil = Math.max(this.movingUntil, moves ? now + time : now + 1);
  }

  private grow(id: string): number {
    const i = this.ids.push(id) - 1;
    this.index.set(id, i);
    if ((i + 1) * fields > this.data.length) {
      const larger = new Float64Array(this.data.length * 2);
      larger.set(this.data);
      this.data = larger;
    }
    return i;
  }

  private part(o: number, now: number): number {
    const glide = this.data[o + GLIDE]!;
    return glide === 0 ? 1 : Math.min(1, (now - this.data[o + START]!) / glide);
  }

  /** x and y: where device i is drawn now, in Mercator metres. */
  x(i: number, now: number): number {
    const o = i * fields;
    return this.data[o + FROM_X]! + (this.data[o + TO_X]! - this.data[o + FROM_X]!) * this.part(o, now);
  }

  y(i: number, now: number): number {
    const o = i * fields;
    return this.data[o + FROM_Y]! + (this.data[o + TO_Y]! - this.data[o + FROM_Y]!) * this.part(o, now);
  }

  /** heading in degrees, NaN if it is not known. */
  heading(i: number): number {
    return this.data[i * fields + HEADING]!;
  }

  ts(i: number): number {
    return this.data[i * fields + TS]!;
  }

  /** still: nothing has come from it for a while. */
  still(i: number, now: number): boolean {
    return now - this.data[i * fields + START]! > stillAfter;
  }
}

/** nearest shifts x by whole worlds to lie as near to the target as it can. */
export function nearest(x: number, target: number): number {
  return x + Math.round((target - x) / worldWidth) * worldWidth;
}
