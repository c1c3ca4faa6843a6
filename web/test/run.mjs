// Runs tests that need no browser: node test/run.mjs [part of a file's name]. Each file is bundled, since Node reads no TypeScript.
import { build } from "esbuild";
import { languages } from "../languages.mjs";
import { spawnSync } from "node:child_process";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const wanted = process.argv[2] ?? "";
const names = (await readdir(here, { recursive: true })).filter((name) => name.endsWith(".test.ts") && name.includes(wanted));
if (names.length === 0) {
  console.error(`test: no file has "${wanted}" in its name`);
  process.exit(2);
}
const out = await mkdtemp(join(tmpdir(), "confidant-page-"));
let status = 1;
try {
  await build({
    absWorkingDir: here,
    entryPoints: names,
    outdir: out,
    outExtension: { ".js": ".mjs" },
    bundle: true,
    platform: "node",
    format: "esm",
    target: "node20",
    jsx: "automatic",
    jsxImportSource: "preact",
    external: ["playwright-core", "axe-core"],
    sourcemap: "inline",
    logLevel: "warning",
    plugins: [languages()],
  });
  const files = names.map((name) => join(out, name.replace(/\.ts$/, ".mjs")));
  const env = { ...process.env, WEB_DIR: dirname(here), NODE_PATH: join(dirname(here), "node_modules") };
  status = spawnSync(process.execPath, ["--enable-source-maps", "--experimental-websocket", "--test", ...files], { stdio: "inherit", env }).status ?? 1;
} finally {
  await rm(out, { recursive: true, force: true });
}
process.exit(status);
