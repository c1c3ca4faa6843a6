// The languages of the page: each file of src/ui/lang/ is one, and nothing else has to name it. English is the first, and says which keys
// there are.
//
//   import { LANGUAGES } from "languages:page"      [{ code, name, dir, load }]       words are loaded when the language is chosen
//   import { LANGUAGES } from "languages:console"   [{ code, name, dir, words }]      all of them: they are few
//
// Easy to get wrong: what a cold start loads. The words of the administrator's page are in the same files, and leave the other page's bundle
// since nothing there names them; a language's name and direction are read here, so that the file is not loaded for them.
import { build } from "esbuild";
import { readdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));

/** For esbuild: the modules `languages:…`. `more` are files of other languages, as tests have them. */
export function languages(folder = join(here, "src/ui/lang"), more = []) {
  return {
    name: "languages",
    setup(one) {
      one.onResolve({ filter: /^languages:(page|console)$/ }, ({ path }) => ({ path, namespace: "languages" }));
      one.onResolve({ filter: /^language:/ }, ({ path }) => ({ path: path.slice("language:".length), namespace: "language" }));
      one.onLoad({ filter: /.*/, namespace: "languages" }, async ({ path }) => {
        const all = await listed(folder, more);
        return { contents: path === "languages:page" ? pageList(all) : consoleList(all), resolveDir: here, watchDirs: [folder], watchFiles: all.map(({ file }) => file) };
      });
      // Only its words of the page: the rest of the file stays out of what is loaded.
      one.onLoad({ filter: /.*/, namespace: "language" }, async ({ path }) => {
        const { file } = (await listed(folder, more)).find(({ code }) => code === path) ?? {};
        return { contents: `export { words } from ${JSON.stringify(file)};`, resolveDir: here };
      });
    },
  };
}

/** The languages there are, English first: code, file, and what the file says of itself. */
async function listed(folder, more) {
  const names = (await readdir(folder)).filter((name) => /^[a-z]{2}\.ts$/.test(name));
  const files = [...names.map((name) => join(folder, name)), ...more].map((file) => ({ file, code: file.slice(-5, -3) }));
  files.sort((one, two) => Number(two.code === "en") - Number(one.code === "en") || (one.code < two.code ? -1 : 1));
  return Promise.all(files.map(async (one) => ({ ...one, about: await aboutOf(one.file) })));
}

/** What a language says of itself. */
async function aboutOf(file) {
  const { outputFiles } = await build({ stdin: { contents: `export { about } from ${JSON.stringify(file)};`, resolveDir: here }, bundle: true, format: "esm", write: false, logLevel: "silent" });
  const { about } = await import(`data:text/javascript;base64,${Buffer.from(outputFiles[0].contents).toString("base64")}`);
  if (typeof about?.name !== "string" || !["ltr", "rtl"].includes(about.dir)) throw new Error(`${file}: \`about\` needs a name and a direction`);
  return about;
}

function pageList(all) {
  const lines = all.map(({ code, file, about }) => {
    const load = code === "en" ? "async () => words" : `async () => (await import("language:${code}")).words`;
    return [code === "en" ? `import { words } from ${JSON.stringify(file)};` : "", `{ code: "${code}", name: ${JSON.stringify(about.name)}, dir: "${about.dir}", load: ${load} }`];
  });
  return `${lines.map(([first]) => first).join("\n")}\nexport const LANGUAGES = [${lines.map(([, line]) => line).join(", ")}];`;
}

function consoleList(all) {
  const imports = all.map(({ file }, at) => `import { administrator as words${at} } from ${JSON.stringify(file)};`);
  const lines = all.map(({ code, about }, at) => `{ code: "${code}", name: ${JSON.stringify(about.name)}, dir: "${about.dir}", words: words${at} }`);
  return `${imports.join("\n")}\nexport const LANGUAGES = [${lines.join(", ")}];`;
}
