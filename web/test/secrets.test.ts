// That keys stay in the worker: how other tests look for them, and that the page has no other way to them.
import assert from "node:assert/strict";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { base32, base64url, hex } from "../src/format/bytes";
import { Key } from "../src/format/index";
import { Secrets } from "./world/secrets";

const secrets = Secrets.watch();
const WEB = process.env["WEB_DIR"] ?? ".";

test("a key is found however it is spelled, and nothing else is", async () => {
  const key = await Key.random();
  const sub = await key.derive("meta");
  assert.ok(secrets.size >= 2, "also one that is hidden");
  for (const harmless of [null, [key.kid, sub.kid], { words: "nothing", n: 1, list: [undefined] }]) secrets.say(harmless);
  assert.deepEqual(secrets.told(), []);
  const bytes = key.dangerouslyExposeBytes();
  const inside = (before: number) => base64url(new Uint8Array([...new Uint8Array(before).fill(255), ...bytes, 255, 255]));
  for (const leak of [hex(bytes), base64url(bytes), base32(bytes), Buffer.from(bytes).toString("base64"), [...bytes], { deep: [{ down: inside(1) }] }, inside(2), inside(3), inside(22)]) {
    const one = new Secrets();
    one.add(bytes);
    one.say({ leak });
    assert.equal(one.told().length > 0, true, JSON.stringify(leak));
  }
});

test("what is not plain data is not said", async () => {
  for (const value of [new Uint8Array(3), await Key.random(), new Map(), () => 1, { a: [new Date()] }]) assert.throws(() => secrets.say(value), /is not plain data/);
});

/** The files of a folder, each with its text. */
async function files(folder: string): Promise<[name: string, text: string][]> {
  const names = (await readdir(join(WEB, folder), { recursive: true })).filter((name) => /\.tsx?$/.test(name));
  return Promise.all(names.map(async (name): Promise<[string, string]> => [name, await readFile(join(WEB, folder, name), "utf8")]));
}

test("the page takes nothing of the device but types and the names of switches, and a worker posts nothing but answers and events", async () => {
  for (const [name, text] of await files("src/ui")) {
    const taken = [...text.matchAll(/^import (?!type )[^;]*? from "(?:\.\.\/)+(?:client|format|protocol)\/([^"]+)"|import\("(?:\.\.\/)+(?:client|format|protocol)\/([^"]+)"\)/gm)].map(([, still, later]) => still ?? later);
    assert.deepEqual(taken.filter((from) => from !== "switches"), [], name);
  }
  const switches = await readFile(join(WEB, "src/client/switches.ts"), "utf8");
  assert.doesNotMatch(switches, /^import (?!type )/m, "it brings nothing else along");
  const posts = (await files("src/client")).flatMap(([name, text]) => [...text.matchAll(/postMessage\(([^)]*)\)/g)].map(([, what]) => `${name}: ${what}`)).sort();
  assert.deepEqual(posts.filter((line) => line.startsWith("worker.ts")), ["worker.ts: message", "worker.ts: message: core.FromWorker", "worker.ts: { event }"]);
});
