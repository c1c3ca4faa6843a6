// A server that was restored from a backup: the device says so, and on the person's word writes what it has again.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import {
  addEmbed, branchOff, chat, chats, copies, data, deleteChat, deleteMessage, edit, newChat, rename, say, setData, setDraft,
} from "../src/client/chats";
import { type Device, disconnect } from "../src/client/device";
import { nameOf } from "../src/client/error";
import { MemoryFiles } from "../src/client/files";
import { putBack } from "../src/client/put_back";
import { rotate } from "../src/client/rotate";
import { flush } from "../src/client/send";
import { embed, sync } from "../src/client/sync";
import { World, bodies } from "./world/index";

let world: World;
before(async () => {
  world = await World.start();
});
after(() => world?.stop());

async function refused(done: Promise<unknown>): Promise<string> {
  try {
    await done;
  } catch (error) {
    return nameOf(error);
  }
  return "nothing was refused";
}

/** What a device shows of every chat, without revisions: what is put back has other ones. */
function shown(device: Device): unknown {
  return [...chats(device)].sort().map((id) => {
    const { fields, branch, messages, draft } = chat(device, id);
    const all = [...messages.values()].map(({ id, parent, body }) => [id, parent, body].join(" "));
    return { id, fields: [...fields].sort(), branch: branch.map((message) => message.body), all: all.sort(), draft };
  });
}

/** A person with two devices at a server whose backup is older than what both have seen. */
async function restored() {
  const files = new MemoryFiles();
  const { person, device: one } = await world.person(world.setup(files));
  const id = await newChat(one, "Trip");
  const [first, second] = [await say(one, id, "first"), await say(one, id, "second")];
  const doomed = await newChat(one, "Doomed");
  await setData(one, "settings", "theme", "dark");
  await flush(one);
  const two = await world.synced(person);
  const copy = await world.server.backup();
  for (const device of [one, two]) disconnect(device);
  return { person, one, two, id, first, second, doomed, copy, files };
}

test("what is newer here is written again, and what went goes again", async () => {
  const { person, one, two, id, first, second, doomed, copy, files } = await restored();
  await edit(one, id, first, "first, changed");
  await deleteMessage(one, id, second);
  const third = await say(one, id, "third");
  await branchOff(one, id, first, "another third");
  const map = await addEmbed(one, id, "a map");
  await rename(one, id, "Journey");
  await setDraft(one, id, "typed");
  await setData(one, "settings", "theme", "light");
  await deleteChat(one, doomed);
  const later = await newChat(one, "Later");
  await say(one, later, "in a new chat");
  await flush(one);
  await sync(two, "all");
  const before = shown(one);
  assert.deepEqual(shown(two), before);
  await world.server.use(copy);
  for (const device of [one, two]) {
    disconnect(device);
    assert.equal(await refused(sync(device, "all")), "rolled-back");
    assert.deepEqual(shown(device), before, "what was refused changes nothing");
  }
  const done = await putBack(one);
  assert.deepEqual([done.chats, done.removed, done.copies, done.missing, done.refused], [1, 2, 0, 0, []]);
  assert.deepEqual(shown(one), before);
  assert.equal(data(one, "settings", "theme"), "light");
  assert.deepEqual(shown(await world.opened(world.setup(files))), before, "and it is kept");
  // The other device finds nothing left to do.
  const again = await putBack(two);
  assert.deepEqual([again.chats, again.written, again.removed, again.copies], [0, 0, 0, 0]);
  assert.deepEqual(shown(two), before);
  const fresh = await world.synced(person);
  assert.deepEqual(shown(fresh), before);
  assert.equal(await embed(fresh, id, map), "a map");
  // They go on as before.
  await edit(two, id, third, "third, changed");
  await flush(two);
  for (const device of [one, fresh]) {
    await sync(device, "all");
    assert.deepEqual(shown(device), shown(two));
  }
});

test("what another device wrote later stays, and mine is a copy", async () => {
  const { person, one, id, first, copy } = await restored();
  await edit(one, id, first, "mine");
  await setDraft(one, id, "my draft");
  await flush(one);
  disconnect(one);
  await world.server.use(copy);
  const other = await world.synced(person);
  for (const word of ["theirs 1", "theirs 2"]) {
    await edit(other, id, first, word);
    await setDraft(other, id, word);
    await flush(other);
  }
  assert.equal((await putBack(one)).copies, 2);
  assert.deepEqual(bodies(one, id), ["theirs 2", "second"]);
  assert.equal(chat(one, id).draft, "theirs 2");
  assert.deepEqual(copies(one).map((copy) => copy.text).sort(), ["mine", "my draft"]);
});

test("a state from before a rotation is never written to", async () => {
  const { person, one, id, copy } = await restored();
  await rotate(one, person.recovery, [person.recovery]);
  await say(one, id, "under the new key");
  await flush(one);
  const before = shown(one);
  disconnect(one);
  await world.server.use(copy);
  assert.equal(await refused(sync(one, "all")), "key-refused");
  assert.equal(await refused(putBack(one)), "key-refused");
  assert.deepEqual(shown(one), before);
});
