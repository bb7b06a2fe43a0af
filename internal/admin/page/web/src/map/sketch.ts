// A shape while it is being drawn: which corners it has, and when it is done.
// Pure, whatever points: a pointer or the crosshair.

/** In Mercator metres. */
export type Point = [number, number];
export type Shape = "circle" | "polygon";

/** What became of a point: a corner, the end of the shape, or nothing. */
export type Added = "corner" | "done" | "nothing";

export class Sketch {
  /** A polygon's corners; a circle's centre, and then a point on its edge. */
  readonly points: Point[] = [];

  constructor(readonly shape: Shape) {}

  /** done can be said of a polygon with three corners. */
  get closable(): boolean {
    return this.shape === "polygon" && this.points.length >= 3;
  }

  /** add takes a point. What is nearer than near to the first or the last corner is that corner: it ends a polygon. */
  add(p: Point, near: number): Added {
    const same = (q: Point | undefined) => q !== undefined && Math.hypot(p[0] - q[0], p[1] - q[1]) <= near;
    if (this.closable && same(this.points[0])) return "done";
    if (same(this.points.at(-1))) return this.closable ? "done" : "nothing";
    this.points.push(p);
    return this.shape === "circle" && this.points.length === 2 ? "done" : "corner";
  }

  /** takeBack removes the last corner; false if there is none. */
  takeBack(): boolean {
    return this.points.pop() !== undefined;
  }
}
