// The committed vectors hold for the page's own code: what Rust sealed opens here, what must fail fails with its name.

import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import assert from "node:assert/strict";
import { CHATS } from "./vectors/chats";
import { SEAL } from "./vectors/seal";
import { each, equal, runSections } from "./vectors/sections";
import type { Sections } from "./vectors/sections";

async function run(name: string, sections: Sections): Promise<Map<string, number>> {
  const root = process.env["WEB_DIR"] ?? ".";
  return runSections(sections, JSON.parse(await readFile(join(root, "../vectors", name), "utf8")));
}

test("every case of vectors/seal-v1.json", async () => {
  const counts = await run("seal-v1.json", SEAL);
  assert.ok((counts.get("must_fail") ?? 0) >= 55);
});

test("every case of vectors/chats-v1.json", async () => {
  const counts = await run("chats-v1.json", CHATS);
  assert.ok((counts.get("must_fail") ?? 0) >= 90);
});

test("an unknown section, an empty one, an unread field and a wrong value are failures", async () => {
  const sections = { some: each<{ a: number }>(async (one) => equal(one.a, 1)) };
  await runSections(sections, { about: "", some: [{ a: 1 }] });
  for (const bad of [{ some: [{ a: 1 }], more: [] }, { some: [] }, { some: [{ a: 1, b: 2 }] }, { some: [{ a: 2 }] }, {}]) {
    await assert.rejects(runSections(sections, bad));
  }
});
