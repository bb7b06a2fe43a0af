// The dialogs that put a fence: drawn, given in numbers, or pasted.

import { fencePath, send } from "../api.ts";
import { errorWords, openDialog, toast } from "../dialogs.ts";
import { h, setText, show } from "../dom.ts";
import { plural } from "../format.ts";
import type { FenceFeature } from "../map/geometry.ts";
import type { Drawn } from "../map/draw.ts";

export interface FormOptions {
  existing(id: string): FenceFeature | undefined;
  /** The shape changed in the form. */
  preview(d: Drawn): void;
  closed(): void;
}

/** fenceForm asks for what a drawn shape lacks, and puts the fence. */
export function fenceForm(drawn: Drawn, options: FormOptions): void {
  const id = field("Id", "fence-id", { required: true, pattern: "[A-Za-z0-9][A-Za-z0-9._\\-]*", placeholder: "depot-north", maxlength: "128" });
  const name = field("Name", "fence-name", { placeholder: "Depot north" });
  const tags = field("Tags", "fence-tags", { placeholder: "depot, north" }, "Separated by commas.");
  const point = drawn.geometry.type === "Point" ? drawn.geometry : null;
  const number = { type: "number", step: "any", required: true };
  const lat = field("Latitude", "fence-lat", { ...number, min: "-90", max: "90", value: String(point?.coordinates[1] ?? "") });
  const lon = field("Longitude", "fence-lon", { ...number, min: "-180", max: "180", value: String(point?.coordinates[0] ?? "") });
  const radius = field("Radius in metres", "fence-radius", { ...number, min: "1", max: "1000000", value: String(drawn.radius ?? 100) });

  const shape = (): Drawn =>
    point
      ? { geometry: { type: "Point", coordinates: [Number(lon.input.value), Number(lat.input.value)] }, radius: Number(radius.input.value) }
      : drawn;
  const feature = (): FenceFeature => {
    const { geometry, radius: r } = shape();
    const properties: FenceFeature["properties"] = {};
    if (name.input.value.trim()) properties.name = name.input.value.trim();
    const list = tags.input.value.split(",").map((t) => t.trim()).filter(Boolean);
    if (list.length > 0) properties.tags = list;
    if (r !== undefined) properties.radius_m = r;
    return { type: "Feature", id: id.input.value.trim(), properties, geometry };
  };

  const note = h("p", { class: "notice warn", hidden: true });
  const submit = h("button", { class: "primary" }, "Add fence");
  const { form, fail, dialog } = dialogForm(
    "New fence",
    [id.element, name.element, tags.element, point && h("div", { class: "row" }, lat.element, lon.element), point && radius.element, note],
    submit, options.closed,
  );
  id.input.addEventListener("input", () => {
    const replaced = options.existing(id.input.value.trim());
    setText(submit, replaced ? "Replace fence" : "Add fence");
    setText(note, `“${id.input.value.trim()}” exists. It will be replaced; devices inside are judged again at once.`);
    show(note, replaced !== undefined);
  });
  for (const f of [lat, lon, radius]) {
    f.input.addEventListener("input", () => {
      if (form.checkValidity() || f.input.checkValidity()) options.preview(shape());
    });
  }
  onSubmit(form, submit, fail, async () => {
    const f = feature();
    await send("PUT", fencePath(String(f.id)), f);
    dialog.close();
    toast(`Fence ${f.id} is in force`);
  });
  options.preview(shape());
  id.input.focus();
}

/** pasteForm takes a GeoJSON Feature or FeatureCollection. */
export function pasteForm(options: FormOptions): void {
  const text = h("textarea", {
    id: "fence-geojson", rows: "10", required: true, spellcheck: "false",
    placeholder: '{"type": "Feature", "id": "depot", "properties": {"radius_m": 80}, "geometry": {"type": "Point", "coordinates": [8.54, 47.37]}}',
  });
  const note = h("p", { class: "notice", role: "status" });
  const submit = h("button", { class: "primary" }, "Add fences");
  const { form, fail, dialog } = dialogForm(
    "Paste GeoJSON",
    [
      h("div", { class: "field" }, h("label", { for: "fence-geojson" }, "Feature or FeatureCollection"), text,
        h("p", { class: "hint" }, "Each feature needs an id. A Point or LineString with radius_m is a circle or a corridor. Longitude comes first.")),
      note,
    ],
    submit, options.closed,
  );
  text.addEventListener("input", () => {
    try {
      const list = readFeatures(text.value);
      const replaced = list.filter((f) => options.existing(String(f.id))).length;
      note.classList.toggle("warn", replaced > 0);
      setText(note, `${plural(list.length, "fence")}${replaced > 0 ? `, of which ${replaced} will replace an existing one` : ""}.`);
      setText(submit, list.length === 1 ? "Add fence" : `Add ${plural(list.length, "fence")}`);
    } catch (error) {
      setText(note, text.value.trim() === "" ? "" : (error as Error).message);
    }
  });
  onSubmit(form, submit, fail, async () => {
    const list = readFeatures(text.value);
    for (const [i, f] of list.entries()) {
      try {
        await send("PUT", fencePath(String(f.id)), f);
      } catch (error) {
        throw new Error(`${f.id}: ${errorWords(error)}${i > 0 ? ` (the ${plural(i, "fence")} before it are in force)` : ""}`);
      }
    }
    dialog.close();
    toast(`${plural(list.length, "fence")} ${list.length === 1 ? "is" : "are"} in force`);
  });
  text.focus();
}

/** readFeatures throws an Error with words for the operator. */
function readFeatures(text: string): FenceFeature[] {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    throw new Error("This is not valid JSON yet.");
  }
  const object = parsed as { type?: string; features?: FenceFeature[] };
  const list = object?.type === "FeatureCollection" ? (object.features ?? []) : [parsed as FenceFeature];
  if (list.length === 0) throw new Error("The collection holds no feature.");
  return list.map((f, i) => {
    if (f?.type !== "Feature") throw new Error(`Number ${i + 1} is not a GeoJSON Feature.`);
    const id = f.id ?? f.properties?.["id"];
    if (typeof id !== "string" && typeof id !== "number") throw new Error(`Number ${i + 1} has no id.`);
    return { ...f, id: String(id) };
  });
}

function dialogForm(title: string, content: (Node | null)[], submit: HTMLButtonElement, closed: () => void) {
  const error = h("p", { class: "error", role: "alert", hidden: true });
  const cancel = h("button", { type: "button" }, "Cancel");
  const form = h("form", { class: "stacked" }, ...content, error, h("div", { class: "buttons" }, cancel, submit));
  const dialog = openDialog(title, form);
  cancel.addEventListener("click", () => dialog.close());
  dialog.addEventListener("close", closed);
  const fail = (text: string) => {
    setText(error, text);
    show(error, text !== "");
  };
  form.addEventListener("input", () => fail("")); // it was about what stood there before
  return { form, dialog, fail };
}

function onSubmit(form: HTMLFormElement, button: HTMLButtonElement, fail: (text: string) => void, act: () => Promise<void>): void {
  form.addEventListener("submit", (e) => {
    e.preventDefault();
    fail("");
    button.disabled = true;
    act()
      .catch((error: unknown) => fail(error instanceof Error ? error.message : errorWords(error)))
      .finally(() => (button.disabled = false));
  });
}

function field(label: string, id: string, attributes: Record<string, string | boolean>, hint = "") {
  const input = h("input", { id, autocomplete: "off", ...attributes });
  const element = h("div", { class: "field" }, h("label", { for: id }, label), input, hint !== "" && h("p", { class: "hint", id: `${id}-hint` }, hint));
  if (hint) input.setAttribute("aria-describedby", `${id}-hint`);
  return { element, input };
}
