// Where help is named: for somebody who may need it, and not for every request that is declined.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { needsHelp } from "../src/ui/screens/ending";

/** What the server says, by kind, in each of its languages. */
async function said(): Promise<Map<string, string[]>> {
  const text = await readFile(join(process.env["WEB_DIR"] ?? ".", "../crates/prepare/src/data/safety_texts.txt"), "utf8");
  const kinds = new Map<string, string[]>();
  for (const [, kind = "", words = ""] of text.matchAll(/^([a-z_]+) [a-z]{2} \| (.+)$/gm)) kinds.set(kind, [...(kinds.get(kind) ?? []), words]);
  return kinds;
}

test("help is shown where the server names it, in each of its languages, and nowhere else", async () => {
  const kinds = await said();
  const of = (kind: string) => kinds.get(kind) ?? assert.fail(kind);
  assert.ok(of("crisis_resources").length >= 5);
  for (const help of of("crisis_resources")) {
    assert.ok(needsHelp("declined", `${of("self_harm_refusal")[0]}\n\n${help}\n\n${of("redirect")[0]}`), help);
    assert.ok(needsHelp("whole", `An answer.\n\nIn two parts.\n\n${help}`), help);
    assert.ok(needsHelp("whole", `${help}\n`), help);
  }
  for (const refusal of of("refusal")) assert.ok(!needsHelp("declined", `${refusal}\n\n${of("redirect")[0]}`), refusal);
});

test("a chat that was closed names help; an answer that speaks of it on the way does not", () => {
  assert.ok(needsHelp("ended", ""));
  assert.ok(!needsHelp("whole", "Such as findahelpline.com.\n\nNow to your taxes."));
  for (const finish of ["whole", "cut", "cancelled", "asked_to_forget", "declined"] as const) assert.ok(!needsHelp(finish, "The ferry leaves at noon."), finish);
});
