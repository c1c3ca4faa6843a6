// Runs tests of the page in Chromium: node test/browser/run.mjs [part of a file's name]
//
//   CHROMIUM        the browser; without it, /usr/bin/chromium
//   CONFIDANT_BIN   the program, as for the other tests
//   PAGE_FOLDER     a folder with the page (web/dist), in place of the page inside of the program
//   SCREENSHOTS     a folder for pictures; without it, web/screenshots
//   PAGE_FOLDER     a folder with the page, in place of the one in the program
//   TIMEOUT         milliseconds that a step may take, 90000 without it
//   SIZE            desktop or phone: flows that run at both sizes run at this one only
//
// The page is built first. Without a browser these tests fail and say so.
import { build } from "esbuild";
import { languages } from "../../languages.mjs";
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, readdir, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const web = join(here, "../..");
const chromium = process.env.CHROMIUM ?? "/usr/bin/chromium";
if (!existsSync(chromium)) {
  console.error(`test: there is no browser at ${chromium}; install chromium, or set CHROMIUM`);
  process.exit(2);
}
const wanted = process.argv[2] ?? "";
const names = (await readdir(here)).filter((name) => name.endsWith(".browser.ts") && name.includes(wanted));
const built = spawnSync(process.execPath, ["build.mjs"], { cwd: web, stdio: "inherit" });
if (built.status !== 0 || names.length === 0) process.exit(built.status || 2);

// Inside the folder, so that packages are found.
const out = join(web, "node_modules/.browser-tests");
await rm(out, { recursive: true, force: true });
await mkdir(out, { recursive: true });
await build({
  absWorkingDir: here, entryPoints: names, outdir: out, outExtension: { ".js": ".mjs" }, bundle: true, platform: "node", format: "esm", target: "node20", jsx: "automatic", jsxImportSource: "preact",
  external: ["playwright-core", "axe-core", "*/serve.mjs", "esbuild"], sourcemap: "inline", logLevel: "warning", plugins: [languages()],
});
const shots = process.env.SCREENSHOTS ?? join(web, "screenshots");
await mkdir(shots, { recursive: true });
const env = { ...process.env, WEB_DIR: web, CHROMIUM: chromium, SCREENSHOTS: shots };
const files = names.map((name) => join(out, name.replace(/\.ts$/, ".mjs")));
const { status } = spawnSync(process.execPath, ["--enable-source-maps", "--experimental-websocket", "--test", "--test-concurrency=1", ...files], { stdio: "inherit", env });
await rm(out, { recursive: true, force: true });
process.exit(status ?? 1);
