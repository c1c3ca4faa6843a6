// The way to a message that was searched for: over another branch, a summary, and what is not drawn yet.
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Jump, type Shown, type Way, wayTo } from "../src/ui/state/jump";

const messages = (n: number, more: object = {}) => Array.from({ length: n }, (_, at) => ({ id: `msg_${at}`, ...more }));
const jump = (at: number, more: Partial<Jump> = {}): Jump => ({ chat: "chat_a", message: `msg_${at}`, ...more });
const way = (to: Jump | null, shown: Partial<Shown> = {}): Way => wayTo(to, { chat: "chat_a", messages: messages(100), from: 0, limit: 30, ...shown });

test("a message that is drawn is gone to; one further up is drawn first", () => {
  assert.deepEqual(way(jump(99)), { is: "there" });
  assert.deepEqual(way(jump(70)), { is: "there" });
  assert.deepEqual(way(jump(69)), { is: "draw", last: 34 });
  assert.deepEqual(way(jump(69), { limit: 34 }), { is: "there" });
});

test("the chat that is still open when a result of another one is clicked waits, and forgets nothing", () => {
  assert.deepEqual(way(null), { is: "wait" });
  assert.deepEqual(way(jump(99, { chat: "chat_b" })), { is: "wait" });
});

test("what a summary stands for is unfolded", () => {
  assert.deepEqual(way(jump(59), { from: 60 }), { is: "unfold" });
  assert.deepEqual(way(jump(59), { from: 0 }), { is: "draw", last: 44 });
  assert.deepEqual(way(jump(60), { from: 60, limit: 40 }), { is: "there" }, "the summary itself");
});

test("a message of another branch: that branch is shown once, after the words of the chat are here", () => {
  assert.deepEqual(way(jump(100), { messages: messages(3, { missing: [] }) }), { is: "wait" });
  assert.deepEqual(way(jump(100)), { is: "branch" });
  assert.deepEqual(way(jump(100, { isBranchAsked: true })), { is: "lost" });
});

test("every way ends", () => {
  for (let at = 0; at < 101; at += 1) {
    const shown = { chat: "chat_a", messages: messages(100), from: 60, limit: 30 };
    let to = jump(at);
    for (let steps = 0; ; steps += 1) {
      assert.ok(steps < 4, `msg_${at}`);
      const next = wayTo(to, shown);
      if (next.is === "draw") shown.limit = next.last;
      else if (next.is === "unfold") shown.from = 0;
      else if (next.is === "branch") to = { ...to, isBranchAsked: true };
      else {
        assert.equal(next.is, at === 100 ? "lost" : "there");
        break;
      }
    }
  }
});
