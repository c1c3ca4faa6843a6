// The queue: what waits is folded together, and what loses becomes one copy with the last words.

import assert from "node:assert/strict";
import { test } from "node:test";

import { type Act, Queue, baseOf, NOTHING_THERE, noteOf, TO_END } from "../src/client/queue";
import { ChatId, Digest, MessageId } from "../src/format/index";

const chat = ChatId.fromBits(new Uint8Array(16).fill(1));
const id = MessageId.fromBits(new Uint8Array(16).fill(2));
const mark = { rev: 1, envelope: Digest.ZERO };

function appended(body: string): Act {
  return { do: "append", id, note: noteOf("user", body, 0), to: TO_END };
}

test("an edit of what waits unsent is made in place", () => {
  const queue = new Queue();
  queue.append(chat, appended("one"));
  queue.edit(chat, id, "two", NOTHING_THERE);
  assert.deepEqual(queue.waiting().map((op) => op.text), ["two"]);
  queue.delete(chat, id, NOTHING_THERE);
  assert.deepEqual(queue.ops, [], "a message that nobody else saw needs no deletion");
});

test("an edit of what was sent shares its fate", () => {
  const queue = new Queue();
  queue.append(chat, appended("one"));
  queue.noteSent([1], mark);
  queue.edit(chat, id, "two", NOTHING_THERE);
  assert.deepEqual(queue.ops[1]?.act, { do: "edit", id, body: "two", base: { on: "op", n: 1 } });
  // Stored: the edit is made against what was stored.
  const stored = Queue.fromJson(structuredClone(queue.toJSON()));
  stored.confirm(chat, [mark]);
  assert.deepEqual(stored.ops.map((op) => op.act), [{ do: "edit", id, body: "two", base: baseOf("one") }]);
  // Lost: one copy, with the last words.
  queue.lost(1, { why: "chat-deleted" });
  assert.deepEqual(queue.ops, []);
  assert.deepEqual(queue.copies.map((copy) => copy.text), ["two"]);
});

test("a second edit does not win by a revision that another device made", () => {
  const queue = new Queue();
  queue.edit(chat, id, "mine 1", baseOf("old"));
  queue.noteSent([1], mark);
  queue.edit(chat, id, "mine 2", baseOf("old"));
  queue.lost(1, { why: "changed" });
  assert.deepEqual(queue.ops, []);
  assert.deepEqual(queue.copies.map((copy) => copy.text), ["mine 2"]);
});

test("a deletion of an edited message is made against what the chat has", () => {
  const unsent = new Queue();
  unsent.edit(chat, id, "new", baseOf("old"));
  unsent.delete(chat, id, baseOf("old"));
  assert.deepEqual(unsent.ops.map((op) => op.act), [{ do: "delete", id, base: baseOf("old") }]);
  const sent = new Queue();
  sent.edit(chat, id, "new", baseOf("old"));
  sent.noteSent([1], mark);
  sent.delete(chat, id, baseOf("old"));
  assert.deepEqual(sent.ops[1]?.act, { do: "delete", id, base: { on: "op", n: 1 } });
  sent.lost(1, { why: "changed" });
  assert.deepEqual([sent.ops, sent.copies], [[], []], "what was to be deleted leaves no copy");
});

test("a chat that was never sent is deleted without a word", () => {
  const queue = new Queue();
  queue.append(chat, { do: "create" });
  queue.append(chat, appended("one"));
  queue.deleteChat(chat);
  assert.deepEqual(queue.ops, []);
  queue.append(chat, { do: "create" });
  queue.noteSent([3], mark);
  queue.append(chat, appended("one"));
  queue.deleteChat(chat);
  assert.deepEqual(queue.waiting().map((op) => op.what.what), ["create", "delete-chat"]);
});

test("numbers go on after a queue was kept", () => {
  const queue = new Queue();
  queue.append(chat, appended("one"));
  const again = Queue.fromJson(JSON.parse(JSON.stringify(queue)));
  again.showBranch(chat, id);
  assert.deepEqual(again.ops.map((op) => op.n), [1, 2]);
  again.done([1, 2]);
  again.setDraft(chat, "typed", NOTHING_THERE);
  assert.deepEqual(again.ops.map((op) => op.n), [3]);
});
