import assert from "node:assert/strict";
import { test } from "node:test";
import { Sketch } from "../src/map/sketch.ts";

test("a polygon ends at its last corner or its first, once it has three", () => {
  const s = new Sketch("polygon");
  assert.equal(s.add([0, 0], 1), "corner");
  assert.equal(s.add([0.5, 0], 1), "nothing"); // the same place
  assert.equal(s.add([10, 0], 1), "corner");
  assert.equal(s.add([10, 0.9], 1), "nothing"); // two corners are no polygon
  assert.equal(s.closable, false);
  assert.equal(s.add([10, 10], 1), "corner");
  assert.equal(s.closable, true);
  assert.equal(s.add([10, 10], 1), "done");
  assert.equal(s.add([0, 1], 1), "done");
  assert.deepEqual(s.points, [[0, 0], [10, 0], [10, 10]]);
});

test("a circle ends with a point on its edge, which is not its centre", () => {
  const s = new Sketch("circle");
  assert.equal(s.add([5, 5], 1), "corner");
  assert.equal(s.add([5, 5.5], 1), "nothing");
  assert.equal(s.add([9, 5], 1), "done");
  assert.equal(s.closable, false);
});

test("corners are taken back one by one", () => {
  const s = new Sketch("polygon");
  s.add([0, 0], 1);
  s.add([10, 0], 1);
  assert.equal(s.takeBack(), true);
  assert.deepEqual(s.points, [[0, 0]]);
  assert.equal(s.takeBack(), true);
  assert.equal(s.takeBack(), false);
  assert.equal(s.add([0, 0], 1), "corner");
});
