// The layer of devices and flashes: one canvas that redraws itself while
// something moves, without asking the map to redraw what lies under it.

import Layer from "ol/layer/Layer.js";
import type { FrameState } from "ol/Map.js";
import Source from "ol/source/Source.js";
import { h } from "../dom.ts";
import { colours, onThemeChange, reducedMotion, transitionColour } from "../theme.ts";
import { Fleet, nearest } from "./fleet.ts";
import { Sprites } from "./sprites.ts";

const flashTime = 1400;
const maxFlashes = 250;
/** From so many flashes at once on they are drawn smaller and fainter, or they cover the map. */
const manyFlashes = 30;
/** With less than so many square pixels for each device in view they are drawn smaller; with less than so many, as plain points. */
const many = 1200;
const crowd = 350;

interface Flash {
  at: number;
  colour: string;
  x: number;
  y: number;
  /** Rings of a fence that flashes along, in Mercator metres. */
  rings: number[][][];
}

export class Overlay {
  readonly layer: Layer;
  readonly fleet = new Fleet();
  /** The device that is marked, and the one under the pointer; "" for none. */
  chosen = "";
  hovered = "";

  private readonly canvas = h("canvas", { class: "overlay", "aria-hidden": "true" });
  /** The map would draw the layers above into a bare canvas, from where each frame of ours wiped them. */
  private readonly element = h("div", { class: "overlay-layer" }, this.canvas);
  private readonly sprites = new Sprites();
  private flashes: Flash[] = [];
  private frame: FrameState | null = null;
  private requested = 0;
  private inView = 0;

  constructor() {
    this.layer = new Layer({ source: new Source({}), zIndex: 10, render: (frame) => this.render(frame) });
    onThemeChange(() => {
      this.sprites.forget();
      this.redraw();
    });
    // A device that goes still doesn't move: it has to be looked at.
    setInterval(() => this.redraw(), 10_000);
  }

  redraw(): void {
    this.requested ||= requestAnimationFrame(() => {
      this.requested = 0;
      this.draw();
    });
  }

  /** flash marks a trigger at its device, and the outline of its fence. */
  flash(device: string, transition: string, rings: number[][][]): void {
    const now = performance.now();
    const colour = transitionColour(transition);
    const i = this.fleet.find(device);
    const at = i < 0 ? null : [this.fleet.x(i, now), this.fleet.y(i, now)];
    if (!at && rings.length === 0) return;
    this.flashes.push({ at: now, colour, x: at?.[0] ?? NaN, y: at?.[1] ?? NaN, rings });
    if (this.flashes.length > maxFlashes) this.flashes.shift();
    this.redraw();
  }

  /** hit is the device within a few pixels of a point, or "". */
  hit(px: number, py: number, reach: number): string {
    let best = -1;
    let least = reach * reach;
    const now = performance.now();
    for (let i = 0; i < this.fleet.size; i++) {
      const p = this.pixel(this.fleet.x(i, now), this.fleet.y(i, now));
      const far = (p[0] - px) ** 2 + (p[1] - py) ** 2;
      if (far < least) [best, least] = [i, far];
    }
    return this.fleet.ids[best] ?? "";
  }

  private render(frame: FrameState): HTMLElement {
    this.frame = frame;
    this.draw();
    return this.element;
  }

  private pixel(x: number, y: number): [number, number] {
    const f = this.frame;
    if (!f) return [NaN, NaN];
    const m = f.coordinateToPixelTransform;
    const near = nearest(x, f.viewState.center[0]!);
    return [m[0]! * near + m[2]! * y + m[4]!, m[1]! * near + m[3]! * y + m[5]!];
  }

  private draw(): void {
    const frame = this.frame;
    if (!frame) return;
    const [width, height] = frame.size as [number, number];
    const ratio = frame.pixelRatio;
    const w = Math.round(width * ratio);
    const hgt = Math.round(height * ratio);
    if (this.canvas.width !== w || this.canvas.height !== hgt) {
      this.canvas.width = w;
      this.canvas.height = hgt;
      this.canvas.style.width = `${width}px`;
      this.canvas.style.height = `${height}px`;
    }
    const g = this.canvas.getContext("2d")!;
    g.setTransform(ratio, 0, 0, ratio, 0, 0);
    g.clearRect(0, 0, width, height);
    const now = performance.now();
    const each = (width * height) / Math.max(1, this.inView);
    this.sprites.prepare(ratio, each < many ? 0.65 : 1);
    this.drawFlashes(g, now);
    this.drawDevices(g, now, width, height, each < crowd);
    this.drawLabels(g, now);
    if (now < this.fleet.movingUntil || this.flashes.length > 0) this.redraw();
  }

  private drawDevices(g: CanvasRenderingContext2D, now: number, width: number, height: number, crowded: boolean): void {
    const { fleet, sprites } = this;
    const m = this.frame!.coordinateToPixelTransform as [number, number, number, number, number, number];
    const middle = this.frame!.viewState.center[0]!;
    if (crowded) g.fillStyle = colours().device;
    let inView = 0;
    // The view is never rotated, so each coordinate has a scale and a shift.
    for (let i = 0; i < fleet.size; i++) {
      const x = m[0] * nearest(fleet.x(i, now), middle) + m[4];
      const y = m[3] * fleet.y(i, now) + m[5];
      if (x < -12 || y < -12 || x > width + 12 || y > height + 12) continue;
      inView++;
      if (crowded) g.fillRect(x - 1.5, y - 1.5, 3, 3);
      else sprites.draw(g, x, y, fleet.heading(i), fleet.still(i, now));
    }
    this.inView = inView;
  }

  private drawFlashes(g: CanvasRenderingContext2D, now: number): void {
    this.flashes = this.flashes.filter((f) => now - f.at < flashTime);
    const crowded = this.flashes.length > manyFlashes;
    const reach = crowded ? 8 : 26;
    for (const f of this.flashes) {
      const part = (now - f.at) / flashTime;
      g.strokeStyle = f.colour;
      g.globalAlpha = (crowded ? 0.75 : 1) * (1 - part) ** 1.5;
      g.lineWidth = crowded ? 2 : 3;
      g.beginPath();
      for (const ring of f.rings) {
        ring.forEach(([x, y], i) => {
          const p = this.pixel(x!, y!);
          if (i === 0) g.moveTo(p[0], p[1]);
          else g.lineTo(p[0], p[1]);
        });
      }
      g.stroke();
      if (Number.isNaN(f.x)) continue;
      const [x, y] = this.pixel(f.x, f.y);
      g.lineWidth = 2;
      g.beginPath();
      g.arc(x, y, reducedMotion() ? 14 : 6 + reach * (1 - (1 - part) ** 3), 0, 2 * Math.PI);
      g.stroke();
    }
    g.globalAlpha = 1;
  }

  private drawLabels(g: CanvasRenderingContext2D, now: number): void {
    const c = colours();
    for (const id of new Set([this.hovered, this.chosen])) {
      const i = this.fleet.find(id);
      if (i < 0) continue;
      const [x, y] = this.pixel(this.fleet.x(i, now), this.fleet.y(i, now));
      if (id === this.chosen) {
        g.strokeStyle = c["fence-chosen"];
        g.lineWidth = 2;
        g.beginPath();
        g.arc(x, y, 12, 0, 2 * Math.PI);
        g.stroke();
      }
      g.font = "600 12px system-ui, sans-serif";
      g.textBaseline = "middle";
      g.lineWidth = 4;
      g.lineJoin = "round";
      g.strokeStyle = c.halo;
      g.strokeText(id, x + 16, y);
      g.fillStyle = c.ink;
      g.fillText(id, x + 16, y);
    }
  }
}
