// Bundles the two pages, offline, from the packages of ../package.json: OUTDIR gets {v08,v09}.{js,html}.
//
//   node build.mjs OUTDIR
//
// A page each: both versions of the renderer define <a2ui-surface>.
import { writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const outdir = process.argv[2];
if (outdir === undefined) {
  console.error("usage: node build.mjs OUTDIR");
  process.exit(2);
}
const here = dirname(fileURLToPath(import.meta.url));
const pages = ["v08", "v09"];

await build({
  entryPoints: pages.map((page) => join(here, `${page}.mjs`)),
  outdir,
  bundle: true,
  format: "esm",
  platform: "browser",
  logLevel: "warning",
});
for (const page of pages) {
  writeFileSync(
    join(outdir, `${page}.html`),
    `<!doctype html>
<html lang="en">
  <meta charset="utf-8">
  <link rel="icon" href="data:,">
  <title>A2UI ${page}, official renderer</title>
  <style>body { font: 16px sans-serif; max-width: 30rem; margin: 1rem auto }</style>
  <button id="ask">Ask</button>
  <main></main>
  <script type="module" src="${page}.js"></script>
</html>
`,
  );
}
