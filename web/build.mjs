// Builds the page into web/dist: readable, with stable names and no source maps, the same bytes each time.
//
//   node build.mjs            once
//   node build.mjs --watch    again after each change; serve it with `confidant serve --web-dir web/dist`
import { context } from "esbuild";
import { cp, mkdir, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const dist = join(here, "dist");

await rm(dist, { recursive: true, force: true });
await mkdir(dist, { recursive: true });
await cp(join(here, "src/index.html"), join(dist, "index.html"));
const bundles = await context({
  absWorkingDir: here,
  entryPoints: { app: "src/ui/main.tsx", "client.worker": "src/client/worker.ts" },
  bundle: true,
  splitting: true,
  format: "esm",
  target: "es2023",
  jsx: "automatic",
  jsxImportSource: "preact",
  charset: "utf8",
  legalComments: "inline",
  chunkNames: "[name]",
  outdir: dist,
  logLevel: "warning",
});
await bundles.rebuild();
if (process.argv.includes("--watch")) await bundles.watch();
else await bundles.dispose();
