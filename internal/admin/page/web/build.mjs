// Builds the live page into ../dist, or into the folder given as argument.
// The same source and lock file always give the same bytes: a Go test holds
// the committed result against a fresh build.
import { build } from "esbuild";
import { copyFile, mkdir, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const out = resolve(process.argv[2] ?? join(here, "../dist"));

await rm(out, { recursive: true, force: true });
await mkdir(out, { recursive: true });

const result = await build({
  absWorkingDir: here,
  entryPoints: { app: "src/main.ts", style: "src/style/main.css" },
  outdir: out,
  bundle: true,
  minify: true,
  format: "esm",
  target: ["chrome115", "firefox115", "safari16.4"],
  legalComments: "none", // licenses.txt has them, whole
  charset: "utf8",
  metafile: true,
  logLevel: "warning",
});

for (const name of ["index.html", "icon.svg"]) {
  await copyFile(join(here, "src", name), join(out, name));
}
await writeFile(join(out, "world.json"), await world());
await writeFile(join(out, "licenses.txt"), await licenses(result.metafile));

// world keeps of the Natural Earth countries only what the map draws.
async function world() {
  const file = join(here, "node_modules/world-atlas/countries-50m.json");
  const topology = JSON.parse(await readFile(file, "utf8"));
  delete topology.objects.land;
  for (const g of topology.objects.countries.geometries) {
    g.properties = { name: g.properties.name };
  }
  return JSON.stringify(topology);
}

// licenses gathers the licence of every package that is in the bundle.
async function licenses(metafile) {
  const packages = new Set(["world-atlas"]);
  for (const input of Object.keys(metafile.inputs)) {
    const match = input.match(/node_modules\/((?:@[^/]+\/)?[^/]+)\//);
    if (match) packages.add(match[1]);
  }
  const parts = [];
  for (const name of [...packages].sort()) {
    const dir = join(here, "node_modules", name);
    const meta = JSON.parse(await readFile(join(dir, "package.json"), "utf8"));
    const file = (await readdir(dir)).find((f) => /^licen[cs]e/i.test(f));
    const text = file ? (await readFile(join(dir, file), "utf8")).trim() : `License: ${meta.license}`;
    parts.push(`${name} ${meta.version}\n\n${text}\n`);
  }
  const data = "The coastlines and borders are Natural Earth's (naturalearthdata.com), public domain.\n";
  return [`The live page contains the following packages.\n${data}`, ...parts].join(`\n${"-".repeat(72)}\n\n`);
}
