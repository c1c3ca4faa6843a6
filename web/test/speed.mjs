// Bundles speed.ts and runs it: node test/speed.mjs
import { build } from "esbuild";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const out = await mkdtemp(join(tmpdir(), "confidant-page-"));
try {
  const outfile = join(out, "speed.mjs");
  await build({ absWorkingDir: here, entryPoints: ["speed.ts"], outfile, bundle: true, platform: "node", format: "esm", target: "node20" });
  const { sealAndOpen, sync } = await import(pathToFileURL(outfile).href);
  await sealAndOpen(console.log);
  await sync(console.log);
} finally {
  await rm(out, { recursive: true, force: true });
}
