// Chats whose words went to make room: their titles stay, their words come back, and a server cannot use the gap.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { chat, chats, copies, deleteMessage, edit, newChat, say, sayAll, setDraft, waiting } from "../src/client/chats";
import { type Device, disconnect } from "../src/client/device";
import { ClientError, nameOf } from "../src/client/error";
import { MemoryFiles } from "../src/client/files";
import { listen } from "../src/client/live";
import { flush } from "../src/client/send";
import { openChat, sync } from "../src/client/sync";
import { makeRoom, thin } from "../src/client/thin";
import type { Bytes, ChatId } from "../src/format/index";
import { World, bodies } from "./world/index";
import { Liar, onChat } from "./world/lies";
import { Through } from "./world/ways";

let world: World;
before(async () => {
  world = await World.start();
});
after(() => world?.stop());

const WORDS = Array.from({ length: 20 }, (_, at) => `${at}: some words that take room `.repeat(10));
const EVERYTHING = Number.MAX_SAFE_INTEGER;

async function scene() {
  const liar = new Liar();
  const files = new MemoryFiles();
  const setup = world.setup(files, new Through(world.transport(), liar));
  const { person, device: one } = await world.person();
  const id = await newChat(one, "Long");
  const ids = await sayAll(one, id, WORDS);
  await setDraft(one, id, "a draft");
  await flush(one);
  const two = await world.synced(person, setup);
  return { one, two, id, ids, liar, files, setup };
}

async function size(files: MemoryFiles): Promise<number> {
  let bytes = 0;
  for (const name of await files.names()) bytes += (await files.read(name))?.length ?? 0;
  return bytes;
}

function view(device: Device, id: ChatId): unknown {
  const { branch, messages, fields, draft, rev } = chat(device, id);
  return { branch, messages, fields, draft, rev };
}

test("titles and drafts stay, words go, and come back when the chat is opened", async () => {
  const { one, two, id, files, setup } = await scene();
  const before = await size(files);
  const whole = view(two, id);
  assert.ok((await thin(two, new Set(), EVERYTHING)) > 5_000);
  assert.ok((await size(files)) < before - 5_000, "the files are smaller");
  assert.deepEqual([chat(two, id).isThin, chat(two, id).branch], [true, []]);
  assert.deepEqual([chat(two, id).fields.get("title"), chat(two, id).draft], ["Long", "a draft"]);
  disconnect(two);
  const again = await world.opened(setup);
  assert.deepEqual(chats(again), [id]);
  assert.equal(chat(again, id).isThin, true);
  await sync(again, "all");
  assert.equal(chat(again, id).isThin, true, "a sync brings only what is new");
  await openChat(again, id);
  assert.deepEqual(view(again, id), whole);
  // Written to by another device meanwhile, heard of or not.
  await thin(again, new Set(), EVERYTHING);
  await say(one, id, "heard of");
  await flush(one);
  while (chat(again, id).rev < chat(one, id).rev) assert.ok((await listen(again, AbortSignal.timeout(20_000))) !== null);
  assert.equal(chat(again, id).isThin, true);
  disconnect(again);
  await say(one, id, "not heard of");
  await flush(one);
  await openChat(again, id);
  assert.deepEqual(bodies(again, id), [...WORDS, "heard of", "not heard of"]);
  assert.deepEqual(view(again, id), view(one, id));
});

test("what is being used stays whole", async () => {
  const { two, id } = await scene();
  assert.equal(await thin(two, new Set([id]), EVERYTHING), 0);
  await say(two, id, "waits");
  assert.equal(await thin(two, new Set(), EVERYTHING), 0);
  assert.equal(chat(two, id).isThin, false);
});

test("what waits for a thin chat is decided against the whole chat", async () => {
  const { one, two, id, ids } = await scene();
  const [first, second, third] = ids;
  assert.ok(first !== undefined && second !== undefined && third !== undefined);
  await edit(two, id, first, "edited offline");
  await deleteMessage(two, id, second);
  await edit(two, id, third, "edited by two");
  // As if the chat had been made thin by a device that was killed before it sent these.
  const waits = two.state.queue.ops;
  two.state.queue.ops = [];
  await thin(two, new Set(), EVERYTHING);
  two.state.queue.ops = waits;
  await edit(one, id, third, "edited by one");
  await flush(one);
  await flush(two);
  assert.deepEqual([waiting(two), copies(two).map((copy) => copy.text)], [[], ["edited by two"]]);
  assert.deepEqual(bodies(two, id), ["edited offline", "edited by one", ...WORDS.slice(3)]);
});

test("a server cannot use the gap", async () => {
  const { one, two, id, liar } = await scene();
  const old = liar.chats().filter((sent) => sent.chat === id);
  await say(one, id, "later");
  await flush(one);
  await sync(two, "all");
  await thin(two, new Set(), EVERYTHING);
  const before = view(two, id);
  const refused = async (lie: Liar["lie"]) => {
    liar.lie = lie;
    try {
      await openChat(two, id);
    } catch (error) {
      assert.deepEqual(view(two, id), before, "nothing of it is shown");
      return nameOf(error);
    }
    return "nothing was refused";
  };
  const replay = old[0];
  assert.ok(replay !== undefined);
  assert.equal(await refused(onChat(id, () => replay)), "rolled-back");
  assert.equal(await refused(onChat(id, (sent) => ({ ...sent, items: sent.items.slice(1) }))), "list-refused");
  // The list is right, and the words stay away: a deletion that waits must not be decided without them.
  const wordless = onChat(id, (sent) => ({ ...sent, items: sent.items.map(({ envelope: _, ...rest }) => rest) }));
  assert.equal(await refused(wordless), "withheld");
  // Something newer that does not follow from what was seen.
  await say(one, id, "latest");
  await flush(one);
  assert.equal(await refused(onChat(id, (sent) => ({ ...sent, trail: undefined }))), "forked");
  liar.lie = null;
  await openChat(two, id);
  assert.deepEqual(bodies(two, id), [...WORDS, "later", "latest"]);
});

/** A browser that has so much room, and not a byte more. */
class CrampedFiles extends MemoryFiles {
  most = Infinity;

  override async write(name: string, bytes: Bytes): Promise<void> {
    const there = (await this.read(name))?.length ?? 0;
    if ((await size(this)) - there + bytes.length > this.most) throw new ClientError("quota");
    await super.write(name, bytes);
  }
}

test("a browser without room keeps every title, and the words of the newest chats", async () => {
  const { person, device: one } = await world.person();
  const ids: ChatId[] = [];
  for (let at = 0; at < 8; at++) {
    const id = await newChat(one, `chat ${at}`);
    await sayAll(one, id, WORDS);
    await flush(one);
    ids.push(id);
  }
  const files = new CrampedFiles();
  const two = await world.device(person, world.setup(files));
  files.most = (await size(files)) + 70_000;
  assert.equal(await sync(two, "all").then(() => null, nameOf), "quota");
  assert.equal(await makeRoom(two, new Set(), 10_000), true);
  await sync(two, "all");
  disconnect(two);
  const again = await world.opened(world.setup(files));
  assert.deepEqual([...chats(again)].sort(), [...ids].sort());
  assert.deepEqual(ids.map((id) => chat(again, id).fields.get("title")), ids.map((_, at) => `chat ${at}`));
  const whole = ids.map((id) => !chat(again, id).isThin);
  assert.deepEqual([whole.at(0), whole.at(-1)], [false, true], "the oldest went first");
  // With even less nothing is lost either: it is said that there is no room.
  files.most = 1_000;
  assert.equal(await makeRoom(again, new Set(), EVERYTHING), false);
});
