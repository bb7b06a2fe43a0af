// The timeline of a card: bands of state, P99 as a line against its limit,
// probes as dots at their latency. What it shows is also said in words, in
// its label. Shape tells as much as colour: a higher band is a worse state,
// a failed probe is a cross.

import { serverNow } from "../clock.ts";
import { h, setAttr } from "../dom.ts";
import { duration, plural } from "../format.ts";
import { colours } from "../theme.ts";
import type { State } from "../wire.ts";
import { span, type History } from "./history.ts";

const height = 50;
const stripHeight: Record<State, number> = { closed: 3, half_open: 8, open: 13 };
const top = 6;
/** Between figures farther apart than this (ms) nothing was known. The server remembers one in 5 s. */
const gap = 12_000;
/** Where the limit lies, as a part of the height above the strip. */
const limitAt = 0.5;

export class Timeline {
  readonly element: HTMLCanvasElement = h("canvas", { class: "timeline", role: "img" });
  private width = 0;
  private dirty = true;

  constructor(private readonly history: History) {
    new ResizeObserver(([entry]) => {
      this.width = Math.floor(entry?.contentRect.width ?? 0);
      this.dirty = true;
    }).observe(this.element);
  }

  draw(limit: number): void {
    const now = serverNow();
    setAttr(this.element, "aria-label", this.words(now));
    if (this.width === 0) return;
    const ratio = devicePixelRatio || 1;
    if (this.dirty) {
      this.element.width = Math.round(this.width * ratio);
      this.element.height = Math.round(height * ratio);
      this.dirty = false;
    }
    const g = this.element.getContext("2d");
    if (!g) return;
    g.setTransform(ratio, 0, 0, ratio, 0, 0);
    g.clearRect(0, 0, this.width, height);
    const x = (at: number) => this.width - ((now - at) / span) * this.width;
    this.grid(g, x, now);
    this.bands(g, x);
    this.line(g, x, limit);
    this.dots(g, x, limit);
  }

  private grid(g: CanvasRenderingContext2D, x: (at: number) => number, now: number): void {
    const c = colours();
    g.strokeStyle = c.line;
    g.lineWidth = 1;
    for (let minute = 1; minute < 5; minute++) {
      const px = Math.round(x(now - minute * 60_000)) + 0.5;
      g.beginPath();
      g.moveTo(px, 0);
      g.lineTo(px, height);
      g.stroke();
    }
    const y = Math.round(latencyY(1)) + 0.5;
    g.strokeStyle = c.muted;
    g.setLineDash([3, 4]);
    g.beginPath();
    g.moveTo(0, y);
    g.lineTo(this.width, y);
    g.stroke();
    g.setLineDash([]);
  }

  private bands(g: CanvasRenderingContext2D, x: (at: number) => number): void {
    const c = colours();
    const solid: Record<State, string> = { closed: c.ok, half_open: c.testing, open: c.bad };
    const soft: Record<State, string> = { closed: c["ok-soft"], half_open: c["testing-soft"], open: c["bad-soft"] };
    this.history.bands.forEach((band, i) => {
      const from = Math.max(0, x(band.from));
      const next = this.history.bands[i + 1];
      const to = x(next ? next.from : this.history.seen);
      if (to <= 0) return;
      const wide = Math.max(1, to - from);
      if (band.state !== "closed") {
        g.fillStyle = soft[band.state];
        g.fillRect(from, 0, wide, height);
      }
      g.fillStyle = solid[band.state];
      const strip = stripHeight[band.state];
      g.fillRect(from, height - strip, wide, strip);
    });
  }

  private line(g: CanvasRenderingContext2D, x: (at: number) => number, limit: number): void {
    g.strokeStyle = colours().ink;
    g.lineWidth = 1.5;
    g.lineJoin = "round";
    g.beginPath();
    let drawing = false;
    let before = 0;
    for (const { at, ms } of this.history.p99) {
      if (at - before > gap) drawing = false;
      before = at;
      if (ms === null) {
        drawing = false;
        continue;
      }
      const px = x(at);
      const py = latencyY(ms / limit);
      if (drawing) g.lineTo(px, py);
      else g.moveTo(px, py);
      drawing = true;
    }
    g.stroke();
  }

  private dots(g: CanvasRenderingContext2D, x: (at: number) => number, limit: number): void {
    const c = colours();
    for (const probe of this.history.probes) {
      const px = x(probe.at);
      const py = latencyY(probe.latency / limit);
      g.lineWidth = 2;
      g.beginPath();
      if (probe.verdict === "healthy") {
        g.arc(px, py, 3.2, 0, 2 * Math.PI);
        g.fillStyle = c.ok;
        g.fill();
      } else if (probe.verdict === "slow") {
        g.arc(px, py, 3, 0, 2 * Math.PI);
        g.strokeStyle = c.testing;
        g.stroke();
      } else {
        g.moveTo(px - 3, py - 3);
        g.lineTo(px + 3, py + 3);
        g.moveTo(px + 3, py - 3);
        g.lineTo(px - 3, py + 3);
        g.strokeStyle = c.bad;
        g.stroke();
      }
    }
  }

  private words(now: number): string {
    const open = this.history.totals("open", now);
    const testing = this.history.totals("half_open", now);
    const probes = this.history.probes;
    const healthy = probes.filter((p) => p.verdict === "healthy").length;
    const parts = ["Last 5 minutes:"];
    parts.push(open.times === 0 ? "never open;" : `open ${plural(open.times, "time")}, ${duration(open.ms / 1000)} in all;`);
    if (testing.times > 0) parts.push(`tested ${plural(testing.times, "time")};`);
    parts.push(probes.length === 0 ? "no probes." : `${plural(probes.length, "probe")}, ${healthy} healthy.`);
    return parts.join(" ");
  }
}

/** latencyY places a latency, as a multiple of the limit: linear up to the limit, then ever slower to the top. */
function latencyY(multiple: number): number {
  const bottom = height - stripHeight.open - 3;
  const usable = bottom - top;
  const m = Math.max(0, multiple);
  const part = m <= 1 ? m * limitAt : limitAt + (1 - limitAt) * (1 - 1 / m);
  return bottom - part * usable;
}
