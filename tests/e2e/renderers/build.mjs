// Bundles the pages, offline, from the packages of ../package.json: OUTDIR gets a .js and a .html of each.
//
//   node build.mjs OUTDIR
//
// A page for each renderer: both versions of @a2ui/lit define <a2ui-surface>.
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
const ask = `<button id="ask">Ask</button>
  <main></main>`;
const chat = `<h1 id="heading">Chat</h1>
  <ol id="log"></ol>
  <main></main>
  <form id="say"><input id="text" aria-label="Say"> <button>Send</button></form>
  <h2>Runs</h2><ol id="runs"></ol>
  <h2>Actions</h2><ol id="states"></ol>`;
const pages = { v08: ask, v09: ask, "chat-custom": chat, "chat-activity": chat };

await build({
  entryPoints: Object.keys(pages).map((page) => join(here, `${page}.mjs`)),
  outdir,
  bundle: true,
  format: "esm",
  platform: "browser",
  logLevel: "warning",
});
for (const [page, body] of Object.entries(pages)) {
  writeFileSync(
    join(outdir, `${page}.html`),
    `<!doctype html>
<html lang="en">
  <meta charset="utf-8">
  <link rel="icon" href="data:,">
  <title>A2UI ${page}</title>
  <style>body { font: 16px sans-serif; max-width: 30rem; margin: 1rem auto }</style>
  ${body}
  <script type="module" src="${page}.js"></script>
</html>
`,
  );
}
