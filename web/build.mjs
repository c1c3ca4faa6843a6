// Builds the page into web/dist: readable, with stable names and no source maps, the same bytes each time.
//
//   node build.mjs               once
//   node build.mjs --watch       again after each change; serve it with `web.page_folder = "web/dist"`
//   node build.mjs --out DIR     into another folder
//   node build.mjs --plain       without packed copies: quicker, for a folder, which is served unpacked
//
// The page is one bundle with parts that are loaded when they are shown; so is the worker; the service worker (sw.js) knows the hashes of
// all of them. Easy to get wrong: names. esbuild names parts by their hash, so that two never collide; here they get names that stay
// (`settings.js`, `shared-2.js`), since the program that serves them compares contents, not names. So that parts of two builds are never
// mixed, every file asks for its parts by the build: `settings.js?b=…`.
//
// It fails if a cold start needs more than FIRST_LOAD: see load.mjs.
import { build, context } from "esbuild";
import { createHash } from "node:crypto";
import { mkdir, mkdtemp, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { languages } from "./languages.mjs";
import { FIRST_LOAD, firstLoad, worst } from "./load.mjs";
import { brotliCompressSync, constants } from "node:zlib";

const here = dirname(fileURLToPath(import.meta.url));
const out = process.argv.indexOf("--out");
const place = out === -1 ? join(here, "dist") : (process.argv[out + 1] ?? join(here, "dist"));
const isWatching = process.argv.includes("--watch");
// Built beside it, so that files which are the same stay as they are: cargo builds the program anew when they change.
const dist = isWatching ? place : await mkdtemp(join(tmpdir(), "confidant-page-"));

/** The build's name: of all sources, and of what builds them. Files are asked for by it, so it is known before they are made. */
async function stamp() {
  const all = createHash("sha256");
  const sources = (await readdir(join(here, "src"), { recursive: true, withFileTypes: true })).filter((one) => one.isFile()).map((one) => join(one.parentPath ?? one.path, one.name));
  for (const path of [...sources.sort(), join(here, "build.mjs"), join(here, "languages.mjs"), join(here, "package-lock.json")]) {
    all.update(relative(here, path).replaceAll("\\", "/")).update("\0").update(await readFile(path)).update("\0");
  }
  return all.digest("hex").slice(0, 12);
}
const stamped = isWatching ? "watch" : await stamp();

const options = {
  absWorkingDir: here,
  bundle: true,
  splitting: true,
  format: "esm",
  target: "es2023",
  jsx: "automatic",
  jsxImportSource: "preact",
  charset: "utf8",
  legalComments: "inline",
  define: { BUILD: JSON.stringify(stamped) },
  outdir: dist,
  write: false,
  metafile: true,
  logLevel: "warning",
  plugins: [languages()],
};
const page = { ...options, entryPoints: { app: "src/ui/main.tsx" }, chunkNames: "[name]-[hash]" };
const workers = { ...options, entryPoints: { "client.worker": "src/client/worker.ts", "kdf.worker": "src/client/kdf.worker.ts" }, chunkNames: "client-[name]-[hash]" };
const offline = (files) => ({ ...options, splitting: false, entryPoints: { sw: "src/offline/sw.ts" }, define: { ...options.define, FILES: JSON.stringify(files) } });
// The administrator's page: its own files, and nothing of the chats but their colours.
const admin = { ...options, splitting: false, entryPoints: { console: "src/console/main.tsx" } };

/** Names of parts without their hashes: old name to new name. Shared parts are numbered in the order of what is in them. */
function stableNames({ outputs }) {
  const parts = Object.entries(outputs).map(([path, { inputs }]) => ({ old: basename(path), first: Object.keys(inputs).sort()[0] ?? "" }));
  const hashed = parts.filter(({ old }) => /-[A-Z0-9]{8}\.js$/.test(old)).sort((one, two) => (one.first < two.first ? -1 : 1));
  let shared = 0;
  return new Map(hashed.map(({ old }) => [old, old.replace(/^(client-)?chunk-[A-Z0-9]{8}/, (_, kind = "") => `${kind}shared-${(shared += 1)}`).replace(/-[A-Z0-9]{8}\.js$/, ".js")]));
}

/** Writes what esbuild made, under its own names; each file asks for others by the build. */
async function writeParts(result) {
  const names = stableNames(result.metafile);
  const renamed = (text) => [...names].reduce((so, [old, now]) => so.replaceAll(old, `${now}?b=${stamped}`), text);
  for (const file of result.outputFiles) {
    const name = basename(file.path);
    await writeFile(join(dist, names.get(name) ?? name), renamed(file.text));
  }
}

async function writePage(result) {
  await writeParts(result);
  const preload = (await firstLoad(dist)).page.filter((name) => name !== "app.js" && name.endsWith(".js")).map((name) => `<link rel="modulepreload" href="/${name}?b=${stamped}">\n`).sort().join("");
  const html = await readFile(join(here, "src/index.html"), "utf8");
  const asked = html.replace(/"\/(app\.\w+)"/g, (_, name) => `"/${name}?b=${stamped}"`).replace('name="build" content=""', `name="build" content="${stamped}"`);
  await writeFile(join(dist, "index.html"), asked.replace('<script type="module"', () => `${preload}<script type="module"`));
}

const hashOf = async (name) => createHash("sha256").update(await readFile(join(dist, name))).digest();
const built = async () => (await readdir(dist)).filter((name) => !name.startsWith(".") && !name.endsWith(".br")).sort();

/** The service worker, which has the hash of every file but itself and the page, which has the name of the release. */
async function writeOffline() {
  const files = {};
  for (const name of await built()) if (name !== "index.html") files[name] = (await hashOf(name)).toString("hex");
  await writeParts(await build(offline(files)));
}

async function writeConsole(result) {
  await writeParts(result);
  await writeFile(join(dist, "console.html"), await readFile(join(here, "src/console.html")));
}

/** Names all files of the chats together, as the program does that hands them out, and packs each for browsers that take it packed. */
async function finish() {
  const names = await built();
  const all = createHash("sha256");
  for (const name of names) if (name !== "index.html" && !name.startsWith("console.")) all.update(name).update("\0").update(await hashOf(name));
  const index = join(dist, "index.html");
  const release = all.digest("hex").slice(0, 32);
  await writeFile(index, (await readFile(index, "utf8")).replace('name="release" content=""', `name="release" content="${release}"`));
  for (const name of process.argv.includes("--plain") ? [] : names) {
    await writeFile(join(dist, `${name}.br`), brotliCompressSync(await readFile(join(dist, name)), { params: { [constants.BROTLI_PARAM_QUALITY]: 11 } }));
  }
}

/** A cold start stays small. */
async function weigh() {
  const { language, bytes } = worst(await firstLoad(dist));
  if (bytes <= FIRST_LOAD) return;
  console.error(`build: a cold start needs ${bytes} bytes (brotli, language ${language}); at most ${FIRST_LOAD} are allowed. Load a part later, or raise FIRST_LOAD in load.mjs.`);
  process.exitCode = 1;
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
  await (await context({ ...page, plugins: [languages(), write(writePage)] })).watch();
  await (await context({ ...workers, plugins: [languages(), write(writeParts)] })).watch();
  await (await context({ ...admin, plugins: [languages(), write(writeConsole)] })).watch();
} else {
  await writePage(await build(page));
  await writeParts(await build(workers));
  await writeOffline();
  await writeConsole(await build(admin));
  await finish();
  await weigh();
  await deliver();
}
