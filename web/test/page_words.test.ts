// The words of the page: every language has the same keys and the same places to fill in; every key is used, and every error has words.
import assert from "node:assert/strict";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { fill, LANGUAGES, preferred } from "../src/ui/i18n";
import { type Key, type Words, words as en } from "../src/ui/lang/en";

const forms = (words: Words, key: Key): string[] => {
  const entry = words[key];
  return typeof entry === "string" ? [entry] : [entry.one, entry.other];
};
const places = (text: string): string[] => [...text.matchAll(/\{(\w+)\}/g)].map((found) => found[1] ?? "").sort();

test("every language has the same keys, and the same places to fill in", async () => {
  for (const { code, load } of LANGUAGES) {
    const words = await load();
    assert.deepEqual(Object.keys(words).sort(), Object.keys(en).sort(), code);
    for (const key of Object.keys(en) as Key[]) {
      const wanted = [...new Set(forms(en, key).flatMap(places))].sort();
      const has = [...new Set(forms(words, key).flatMap(places))].sort();
      assert.deepEqual(has, wanted, `${code}: ${key}`);
      for (const text of forms(words, key)) assert.ok(text.trim() !== "", `${code}: ${key}`);
    }
  }
});

test("plurals and numbers are the language's own", async () => {
  assert.equal(fill(en, "en", "unsent", { n: 1 }), "1 change not sent");
  assert.equal(fill(en, "en", "unsent", { n: 1200 }), "1,200 changes not sent");
  const de = await LANGUAGES.find(({ code }) => code === "de")?.load();
  assert.ok(de);
  assert.equal(fill(de, "de", "unsent", { n: 1200 }), "1.200 Änderungen nicht gesendet");
  assert.equal(fill(en, "en", "lockedAs", { login: "{n}" }), "The chats of {n} are on this device, sealed.", "what is filled in is not filled in again");
});

test("the browser's language is taken if there is one", () => {
  assert.equal(preferred(["fr", "de-AT", "en"]), "de");
  assert.equal(preferred([]), "en");
});

async function sources(folder: string): Promise<string> {
  const names = (await readdir(folder, { recursive: true })).filter((name) => /\.tsx?$/.test(name) && !name.includes("lang"));
  return (await Promise.all(names.map((name) => readFile(join(folder, name), "utf8")))).join("\n");
}

test("no key is left over, and every name of the format, the protocol and the client has words", async () => {
  const web = process.env["WEB_DIR"] ?? ".";
  const code = await sources(join(web, "src/ui"));
  const isUsed = (key: string) => code.includes(`"${key}"`) || code.includes(`\`${key.split(".")[0]}.\${`) || key.startsWith("error.");
  assert.deepEqual(Object.keys(en).filter((key) => !isUsed(key)), []);
  const format = await readFile(join(web, "src/format/error.ts"), "utf8");
  const names = [...format.matchAll(/"([a-z]+(?:-[a-z]+)+|forked|withheld|duplicate|unasked|conflict)"/g)].map((found) => found[1] ?? "");
  assert.ok(names.length > 10);
  assert.deepEqual(names.filter((name) => !(`error.${name}` in en)), []);
});

test("there is no HTML sink in the page", async () => {
  const code = await sources(join(process.env["WEB_DIR"] ?? ".", "src"));
  for (const sink of ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "dangerouslySetInnerHTML", "createContextualFragment", "DOMParser", "srcdoc", "eval("]) assert.ok(!code.includes(sink), sink);
});
