// Bundles measure.ts with the tests' own world (a program, a model, a browser) and runs it: JSON on standard output, Markdown in results/.
import { spawnSync } from "node:child_process";
import { mkdir, rm } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const web = join(here, "../../web");
const { build } = createRequire(join(web, "package.json"))("esbuild");
// Inside the folder, so that packages are found.
const out = join(web, "node_modules/.bench-page");
await mkdir(out, { recursive: true });
const options = { absWorkingDir: web, bundle: true, format: "esm", target: "es2023", logLevel: "warning" };
await build({ ...options, entryPoints: [join(here, "measure.ts")], outfile: join(out, "measure.mjs"), platform: "node", external: ["playwright-core", "*/serve.mjs", "*/load.mjs"], nodePaths: [join(web, "node_modules")] });
await build({ ...options, entryPoints: ["src/client/kdf.worker.ts"], outfile: join(out, "kdf.js") });
const env = { WEB_DIR: web, CHROMIUM: process.env.CHROMIUM ?? "/usr/bin/chromium", KDF: join(out, "kdf.js"), OUT: join(here, "../results/PAGE.md"), ...process.env };
const { status } = spawnSync(process.execPath, [join(out, "measure.mjs")], { stdio: "inherit", env });
await rm(out, { recursive: true, force: true });
process.exit(status ?? 1);
