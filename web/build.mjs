// Builds the page into web/dist: readable, with stable names and no source maps, the same bytes each time.
//
//   node build.mjs               once
//   node build.mjs --watch       again after each change; serve it with `web.page_folder = "web/dist"`
//   node build.mjs --out DIR     into another folder
//
// The page is one bundle with parts that are loaded when they are shown; workers are bundles of their own. Easy to get wrong: names. esbuild
// names parts by their hash, so that two never collide; here they get names that stay (`settings.js`, `shared-2.js`), since the program
// that serves them compares contents, not names.
import { build, context } from "esbuild";
import { createHash } from "node:crypto";
import { mkdir, mkdtemp, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { brotliCompressSync, constants } from "node:zlib";

const here = dirname(fileURLToPath(import.meta.url));
const out = process.argv.indexOf("--out");
const place = out === -1 ? join(here, "dist") : (process.argv[out + 1] ?? join(here, "dist"));
const isWatching = process.argv.includes("--watch");
// Built beside it, so that files which are the same stay as they are: cargo builds the program anew when they change.
const dist = isWatching ? place : await mkdtemp(join(tmpdir(), "confidant-page-"));

const options = {
  absWorkingDir: here,
  bundle: true,
  format: "esm",
  target: "es2023",
  jsx: "automatic",
  jsxImportSource: "preact",
  charset: "utf8",
  legalComments: "inline",
  outdir: dist,
  write: false,
  metafile: true,
  logLevel: "warning",
};
const page = { ...options, entryPoints: { app: "src/ui/main.tsx" }, splitting: true, chunkNames: "[name]-[hash]" };
const workers = { ...options, entryPoints: { "client.worker": "src/client/worker.ts", "kdf.worker": "src/client/kdf.worker.ts" } };

/** Names of parts without their hashes: old name to new name. Shared parts are numbered in the order of what is in them. */
function stableNames({ outputs }) {
  const parts = Object.entries(outputs).map(([path, { inputs }]) => ({ old: basename(path), first: Object.keys(inputs).sort()[0] ?? "" }));
  const hashed = parts.filter(({ old }) => /-[A-Z0-9]{8}\.js$/.test(old)).sort((one, two) => (one.first < two.first ? -1 : 1));
  let shared = 0;
  return new Map(hashed.map(({ old }) => [old, old.startsWith("chunk-") ? `shared-${(shared += 1)}.js` : old.replace(/-[A-Z0-9]{8}\.js$/, ".js")]));
}

/** What the page needs before it can begin, besides app.js. */
function needed({ outputs }) {
  const byName = new Map(Object.entries(outputs).map(([path, output]) => [basename(path), output]));
  const seen = new Set();
  const walk = (name) => {
    for (const { path, kind } of byName.get(name)?.imports ?? []) {
      const next = basename(path);
      if (kind !== "import-statement" || seen.has(next)) continue;
      seen.add(next);
      walk(next);
    }
  };
  walk("app.js");
  return [...seen];
}

async function writePage(result) {
  const names = stableNames(result.metafile);
  const renamed = (text) => [...names].reduce((so, [old, now]) => so.replaceAll(old, now), text);
  for (const file of result.outputFiles) await writeFile(join(dist, renamed(relative(dist, file.path))), renamed(file.text));
  const preload = needed(result.metafile).map((name) => `<link rel="modulepreload" href="/${names.get(name) ?? name}">\n`).sort().join("");
  const html = await readFile(join(here, "src/index.html"), "utf8");
  await writeFile(join(dist, "index.html"), html.replace('<script type="module"', () => `${preload}<script type="module"`));
}

async function writeWorkers(result) {
  for (const file of result.outputFiles) await writeFile(file.path, file.contents);
}

/** Names all files together, as the program does that hands them out, and packs each for browsers that take it packed. */
async function finish() {
  const names = (await readdir(dist)).filter((name) => !name.startsWith(".") && !name.endsWith(".br")).sort();
  const all = createHash("sha256");
  for (const name of names) {
    if (name !== "index.html") all.update(name).update("\0").update(createHash("sha256").update(await readFile(join(dist, name))).digest());
  }
  const index = join(dist, "index.html");
  const release = all.digest("hex").slice(0, 32);
  await writeFile(index, (await readFile(index, "utf8")).replace('name="release" content=""', `name="release" content="${release}"`));
  for (const name of names) {
    await writeFile(join(dist, `${name}.br`), brotliCompressSync(await readFile(join(dist, name)), { params: { [constants.BROTLI_PARAM_QUALITY]: 11 } }));
  }
}

/** Puts what was built into its place. */
async function deliver() {
  const names = await readdir(dist);
  for (const name of await readdir(place)) {
    if (name !== ".gitkeep" && !names.includes(name)) await rm(join(place, name), { recursive: true });
  }
  for (const name of names) {
    const [now, before] = [await readFile(join(dist, name)), await readFile(join(place, name)).catch(() => null)];
    if (before === null || !now.equals(before)) await writeFile(join(place, name), now);
  }
  await rm(dist, { recursive: true });
}

await mkdir(place, { recursive: true });
if (isWatching) {
  const write = (work) => ({ name: "write", setup: (one) => one.onEnd((result) => (result.errors.length === 0 ? work(result) : undefined)) });
  await (await context({ ...page, plugins: [write(writePage)] })).watch();
  await (await context({ ...workers, plugins: [write(writeWorkers)] })).watch();
} else {
  await writePage(await build(page));
  await writeWorkers(await build(workers));
  await finish();
  await deliver();
}
