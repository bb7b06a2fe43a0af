// Devices are drawn from a sheet of prepared pictures: an arrow for each of
// 32 headings and a dot, moving and still. Copying a picture is many times
// cheaper than drawing a path, for thousands in every frame.

import { colours } from "../theme.ts";

const headings = 32;
/** The side of a picture in CSS pixels, at full size. */
const cell = 22;

export class Sprites {
  private sheet: HTMLCanvasElement | null = null;
  private ratio = 1;
  private scale = 1;

  /** forget makes the sheet anew at the next use: the theme has changed. */
  forget(): void {
    this.sheet = null;
  }

  /** draw places device picture at a point in CSS pixels. */
  draw(g: CanvasRenderingContext2D, x: number, y: number, heading: number, still: boolean): void {
    const column = Number.isNaN(heading) ? headings : Math.round((((heading % 360) + 360) % 360) / (360 / headings)) % headings;
    const side = Math.ceil(cell * this.scale);
    const size = side * this.ratio;
    g.drawImage(this.sheet!, column * size, (still ? 1 : 0) * size, size, size, x - side / 2, y - side / 2, side, side);
  }

  /** prepare makes the sheet for a screen's pixel ratio and a scale of the pictures, 0..1. */
  prepare(ratio: number, scale: number): void {
    if (this.sheet && ratio === this.ratio && scale === this.scale) return;
    this.ratio = ratio;
    this.scale = scale;
    const side = Math.ceil(cell * scale);
    this.sheet = document.createElement("canvas");
    this.sheet.width = (headings + 1) * side * ratio;
    this.sheet.height = 2 * side * ratio;
    const g = this.sheet.getContext("2d")!;
    const c = colours();
    [c.device, c["device-still"]].forEach((fill, row) => {
      for (let i = 0; i <= headings; i++) {
        g.setTransform(ratio * scale, 0, 0, ratio * scale, (i + 0.5) * side * ratio, (row + 0.5) * side * ratio);
        g.fillStyle = fill;
        g.strokeStyle = c.halo;
        g.lineWidth = 1.5;
        g.beginPath();
        if (i === headings) g.arc(0, 0, 4.2, 0, 2 * Math.PI);
        else arrow(g, (i / headings) * 2 * Math.PI);
        g.stroke();
        g.fill();
      }
    });
  }
}

function arrow(g: CanvasRenderingContext2D, angle: number): void {
  g.rotate(angle);
  g.moveTo(0, -7.5);
  g.lineTo(5.2, 5.6);
  g.lineTo(0, 2.8);
  g.lineTo(-5.2, 5.6);
  g.closePath();
}
