// What a person types, pastes or imports can always be sealed: one half of a surrogate pair would stay in the queue for ever. And keys
// are gone when a device is locked.

import assert from "node:assert/strict";
import { test } from "node:test";
import { AccountId, AccountKey, ChatId, DeviceId, Key, Message } from "../src/format/index";
import { putNote } from "../src/client/chats";
import { Device, wipeKeys } from "../src/client/device";
import { Cabinet, MemoryFiles } from "../src/client/files";
import { TO_END, noteOf } from "../src/client/queue";
import { newState } from "../src/client/state";
import type { Transport } from "../src/client/transport";

async function device(): Promise<Device> {
  const [files, key, ak] = [new MemoryFiles(), await Key.random(), await AccountKey.first()];
  const setup = { transport: {} as Transport, files, key, clock: () => 7 };
  return new Device(setup, await Cabinet.open(files, key), newState(AccountId.random(), DeviceId.random(), ak));
}

test("words and a model's name of an imported file are mended", async () => {
  const one = await device();
  putNote(one, ChatId.random(), { ...noteOf("assistant", "a\ud83d", 7), model: "m\udc4b" }, TO_END);
  const act = one.state.queue.ops[0]?.act;
  assert.ok(act?.do === "append");
  const { role, body, model, refs, createdAt, shared } = act.note;
  assert.deepEqual([body, model], ["a\ufffd", "m\ufffd"]);
  assert.ok(Message.toJson({ role, parent: null, createdAt, body, model, reason: null, refs, proof: null, shared }).length > 0);
});

test("a device that is locked has no keys", async () => {
  const one = await device();
  const [uk, letters, secret] = [await Key.random(), await Key.random(), new Uint8Array(32).fill(7)];
  const bytes = [one.state.ak, uk, letters].map((key) => key.dangerouslyExposeBytes());
  one.state.session = { id: null, secret, expiresAt: 9 };
  one.state.book = { keys: [{ key: uk, born: 1 }], boxes: [{ key: letters, born: 1 }], boxPub: "" as never, manifest: new Uint8Array(0), floors: [] };
  wipeKeys(one);
  for (const secrets of [...bytes, secret]) assert.ok(secrets.every((byte) => byte === 0));
  assert.throws(() => one.state.ak.dangerouslyExposeBytes(), TypeError);
});
