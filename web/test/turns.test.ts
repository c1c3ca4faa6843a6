// Words go where they say, and the history is given for an open question of this socket, twice.
import assert from "node:assert/strict";
import { test } from "node:test";

import { Digest } from "../src/format/bytes";
import { ChatId, MessageId, TurnId } from "../src/format/ids";
import { type Stage, Turn, Turns } from "../src/client/turns";

function turn(begunOn: number | null = 1): Turn {
  return new Turn(ChatId.random(), TurnId.random(), MessageId.random(), MessageId.random(), Digest.ZERO, [], begunOn, 1);
}

test("words go where they say", () => {
  const one = turn();
  assert.deepEqual(one.hear(0, "Grü"), { heard: "words", at: 0 });
  assert.deepEqual(one.hear(0, "Gr"), { heard: "known" });
  // Bytes on the wire, units here: "ü" has two bytes and one unit.
  assert.deepEqual(one.hear(2, "üße"), { heard: "words", at: 3 }, "what overlaps is not said twice");
  assert.equal(one.words, "Grüße");
  assert.deepEqual(one.hear(9, "!"), { heard: "gap" });
  assert.deepEqual(one.hear(3, "x"), { heard: "gap" }, "inside a character");
  assert.deepEqual(one.hear(Number.MAX_SAFE_INTEGER, "x"), { heard: "gap" });
  assert.equal(one.words, "Grüße");
  assert.deepEqual(one.hear(2, "ay"), { heard: "words", at: 2 }, "other words replace them");
  assert.equal(one.words, "Gray");
  assert.deepEqual(one.hear(4, ""), { heard: "known" });
  assert.deepEqual(one.hear(4, "😀!"), { heard: "words", at: 4 });
  assert.deepEqual(one.hear(6, "!"), { heard: "gap" }, "inside a pair");
  assert.deepEqual(one.hear(8, "!?"), { heard: "words", at: 7 });
  assert.equal(one.words, "Gray😀!?");
  assert.equal(one.bytes, new TextEncoder().encode(one.words).length);
});

test("history is given for an open question of this socket, twice", () => {
  const one = turn();
  assert.ok(one.mayGive(one.chat, one.message, 1));
  assert.ok(!one.mayGive(ChatId.random(), one.message, 1), "another chat");
  assert.ok(!one.mayGive(one.chat, MessageId.random(), 1), "another message");
  assert.ok(!one.mayGive(one.chat, one.message, 2), "another socket");
  one.histories = 2;
  assert.ok(!one.mayGive(one.chat, one.message, 1), "a third time");
  const stages: Stage[] = [{ at: "answering" }, { at: "ended" }, { at: "over", error: "not-found" }];
  for (const stage of stages) {
    const over = turn();
    over.stage = stage;
    assert.ok(!over.mayGive(over.chat, over.message, 1), stage.at);
  }
  const listens = turn(null);
  assert.ok(!listens.mayGive(listens.chat, listens.message, 1), "another device's question");
});

test("a turn that is heard anew keeps its words; of many, one that is over is forgotten", () => {
  const turns = new Turns();
  const first = turn();
  first.hear(0, "Grüße");
  turns.add(first);
  const again = new Turn(first.chat, first.turn, first.message, first.reply, Digest.ZERO, [], null, 2);
  turns.add(again);
  assert.equal(turns.find(first.turn), again);
  assert.deepEqual([again.words, again.bytes], ["Grüße", 7]);
  assert.equal(turns.heard(first.chat, first.turn, 1), undefined, "another socket");
  const over = turn();
  turns.add(over);
  turns.fail(over.turn, "rate");
  assert.deepEqual(turns.told, [{ chat: over.chat, turn: over.turn, what: { told: "failed", error: "rate" } }]);
  for (let count = 0; count < 255; count++) turns.add(turn());
  assert.equal(turns.find(over.turn), undefined);
  assert.equal(turns.find(first.turn), again);
});
