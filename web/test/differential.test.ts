// Random cases, both ways, against the Rust code: what one side seals the other opens; what one refuses the other refuses, with
// the same name.
//
//   cargo build -p confidant-chat-format --example opposite
//   CONFIDANT_OPPOSITE=…/debug/examples/opposite node test/run.mjs differential
//
// DIFFERENTIAL_ROUNDS says how many (300), DIFFERENTIAL_SEED repeats what happened (not the keys).

import assert from "node:assert/strict";
import { after, test } from "node:test";
import { Opposite } from "./differential/opposite";
import { KINDS, OFTEN, verdicts } from "./differential/rounds";
import { Dice } from "./differential/state";

const PATH = process.env["CONFIDANT_OPPOSITE"] ?? "";
const SEED = Number(process.env["DIFFERENTIAL_SEED"] ?? Date.now() % 1_000_000);
const ROUNDS = Number(process.env["DIFFERENTIAL_ROUNDS"] ?? 300);
const HOW = "CONFIDANT_OPPOSITE is not set: build `cargo build -p confidant-chat-format --example opposite` and give its path";

if (PATH === "") {
  test("random cases against the Rust side", { skip: process.env["CI"] ? false : HOW }, () => assert.fail(HOW));
} else {
  const rust = new Opposite(PATH);
  after(() => rust.end());
  for (const [name, round, share] of KINDS) {
    const times = Math.ceil(ROUNDS * share);
    void test(`${name}, ${times} times, seed ${SEED}`, async () => {
      const dice = new Dice(SEED);
      for (let at = 0; at < times; at++) {
        await round(dice, rust).catch((error: unknown) => {
          throw new Error(`round ${at} of seed ${SEED}`, { cause: error });
        });
      }
    });
  }
  void test("the random states were refused for many reasons", (t) => {
    t.diagnostic([...verdicts].map(([name, count]) => `${name} ${count}`).join(", "));
    // With fewer rounds, chance decides.
    if (ROUNDS >= 100) for (const name of OFTEN) assert.ok(verdicts.has(name), name);
  });
}
