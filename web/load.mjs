// What a cold start loads, read from the built files: everything until a person has typed something. build.mjs fails if it grows.
//
//   index.html ─▶ app.css, app.js ─ import ─▶ its parts        /client.worker.js ─ import ─▶ its parts        a language, if it is not English
//
// Only what files import by themselves counts; what they ask for later (`import(…)`) does not. A test in the browser holds this
// against what is really fetched (test/browser/load.browser.ts).
import { readFile, readdir } from "node:fs/promises";
import { join } from "node:path";
import { brotliCompressSync, constants } from "node:zlib";

/** Bytes that a cold start may need, packed with brotli. */
export const FIRST_LOAD = 60_000;

/** The files of a cold start, in the order in which they are asked for; `languages` are those of which one comes with it. */
export async function firstLoad(dist) {
  const text = (name) => readFile(join(dist, name), "utf8").catch(() => "");
  const closure = async (entry) => {
    const seen = new Set([entry]);
    for (const name of seen) for (const next of imports(await text(name))) seen.add(next);
    return [...seen];
  };
  const page = await closure("app.js");
  const worker = await closure("client.worker.js");
  const languages = (await readdir(dist)).filter((name) => /^[a-z]{2}\.js$/.test(name) && name !== "sw.js");
  const sizes = {};
  for (const name of ["index.html", "app.css", ...page, ...worker, ...languages]) {
    const bytes = await readFile(join(dist, name)).catch(() => null);
    if (bytes !== null) sizes[name] = brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 11 } }).length;
  }
  return { page: ["index.html", "app.css", ...page], worker, languages, sizes };
}

/** The most that a cold start needs, and in which language. */
export function worst({ page, worker, languages, sizes }) {
  const sum = (names) => names.reduce((so, name) => so + (sizes[name] ?? 0), 0);
  const base = sum(page) + sum(worker);
  const all = [{ language: "en", bytes: base }, ...languages.map((name) => ({ language: name.slice(0, 2), bytes: base + (sizes[name] ?? 0) }))];
  return all.reduce((most, one) => (one.bytes > most.bytes ? one : most));
}

/** What a file imports by itself: `import … from "./x.js?b=…"` and `import "./x.js"`, at the beginning of a line, as esbuild writes them. */
function imports(code) {
  return [...code.matchAll(/^(?:import|export)\s?(?:[^"';]*?\sfrom\s)?"\.\/([^"?]+)(?:\?[^"]*)?";/gm)].map((found) => found[1]);
}
