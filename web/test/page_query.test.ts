// What is typed into the search, however long or odd: it takes no time, and throws nothing.
import assert from "node:assert/strict";
import { test } from "node:test";
import { wantedOf } from "../src/client/words";

test("no search takes longer because it is long: of a text that was pasted by mistake, the beginning counts", () => {
  for (const piece of ["a", "\u0301", "(a+)+$", "ก", "漢字", "a\u200b", " ", "[*\\", "\ud800", "ﬁß"]) {
    const long = piece.repeat(300_000);
    const before = performance.now();
    const words = wantedOf(long);
    assert.ok(performance.now() - before < 3_000, JSON.stringify(piece));
    assert.ok(words.length <= 16);
    assert.deepEqual(words, wantedOf(long.slice(0, 1_000)), JSON.stringify(piece));
  }
});

test("signs that mean something in a pattern are signs", () => {
  assert.deepEqual(wantedOf("(.*) [a-z"), [{ word: "a", is: "whole" }, { word: "z", is: "beginning" }]);
  assert.deepEqual(wantedOf("\\"), []);
});
