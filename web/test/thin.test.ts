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
import { partsOf, readPreviews } from "../src/client/outline";
import { makeRoom, thin } from "../src/client/thin";
import { Notes, chatPage } from "../src/client/views";
import type { Bytes, ChatId } from "../src/format/index";
import { World, bodies } from "./world/index";
import { Liar, onChat } from "./world/lies";
import { Through } from "./world/ways";

let world: World;
before(async () => {
  world = await World.start();
});
after(() => world?.stop());

const WORDS = Array.from({ length: 20 }, (_, at) => `${at}: some words that take room `.repeat(100));
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
  while (chat(again, id).rev < chat(one, id).rev) assert.ok((await listen(again, AbortSignal.timeout(120_000))) !== null);
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
  files.most = (await size(files)) + 250_000;
  assert.equal(await sync(two, "all").then(() => null, nameOf), "quota");
  assert.equal(await makeRoom(two, new Set(), 60_000), true);
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

const CODE = "```rust\nfn main() {\n    println!(\"a canary of code\");\n}\n```";

/** A chat with a table, code, a link and long text, and others, at a device whose browser can be cramped. */
async function mixed() {
  const { person, device: one } = await world.person();
  const ids: ChatId[] = [];
  for (let at = 0; at < 3; at++) {
    const id = await newChat(one, `mixed ${at}`);
    await sayAll(one, id, [`Question ${at}. ${WORDS[0]}`, `Look:\n\n${CODE}\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\nhttps://example.org/x\n\n${"canary words ".repeat(600)}`, "short"]);
    await flush(one);
    ids.push(id);
  }
  const files = new CrampedFiles();
  const two = await world.synced(person, world.setup(files));
  const [first, second, third] = ids;
  assert.ok(first !== undefined && second !== undefined && third !== undefined);
  return { one, two, files, first, second, third };
}

test("what was opened longest ago goes first, and of its messages nodes and first words stay", async () => {
  const { two, files, first, second, third } = await mixed();
  for (const id of [third, first, second]) await openChat(two, id);
  assert.ok((await thin(two, new Set(), 1)) > 0);
  assert.deepEqual([first, second, third].map((id) => chat(two, id).isThin), [false, false, true], "not the one written to longest ago");
  const { messages } = chatPage(two, new Notes(), third);
  assert.deepEqual(messages.map((message) => message.missing?.map(({ type }) => type)), [["text"], ["text", "code", "table", "link", "paste"], ["text"]]);
  assert.deepEqual(messages.map(({ body, role }) => [body, role]), messages.map(() => ["", "user"]));
  assert.ok(messages.every((message) => JSON.stringify(message.missing).length < 800), "nodes are small");
  const firsts = new Map(await readPreviews(two, third));
  const code = messages[1]?.missing?.[1];
  assert.ok(code !== undefined && code.lang === "rust");
  assert.match(firsts.get(code.cid) ?? "", /^fn main/);
  assert.ok(!(await files.names()).some((name) => name.includes(code.cid)), "no file is named by what is in it");
  // Previews go before any other words.
  files.most = (await size(files)) + 10;
  const before = [first, second].map((id) => view(two, id));
  assert.equal(await makeRoom(two, new Set(), EVERYTHING), true);
  assert.deepEqual([await readPreviews(two, third), [first, second].map((id) => view(two, id))], [[], before]);
  files.most = Infinity;
  await openChat(two, third);
  assert.deepEqual(chatPage(two, new Notes(), third).messages.map((message) => message.missing), [undefined, undefined, undefined]);
});

test("the chat that is shown stays whole in memory; its file becomes nodes, or less", async () => {
  const { two, files, first, second, third } = await mixed();
  const setup = two.setup;
  const keep = new Set([second]);
  const shown = view(two, second);
  const whole = await size(files);
  files.most = 0;
  assert.equal(await makeRoom(two, keep, EVERYTHING), false, "there is no room at all");
  const places = chatPage(two, new Notes(), first).messages.map(({ body, missing }) => [body, missing?.length]);
  assert.deepEqual(places, [["", 1]], "where not even outlines found room, one place stands for the words");
  files.most = whole - 24_000;
  assert.equal(await makeRoom(two, keep, EVERYTHING), true);
  assert.deepEqual(view(two, second), shown);
  disconnect(two);
  const again = await world.opened(setup);
  assert.deepEqual([first, second, third].map((id) => chat(again, id).fields.get("title")), ["mixed 0", "mixed 1", "mixed 2"]);
  files.most = Infinity;
  await openChat(again, second);
  assert.deepEqual(view(again, second), shown);
});

test("without any room at all, what is written goes on in memory, and nothing is refused", async () => {
  const { one, two, files, first } = await mixed();
  let told = 0;
  two.onFull = () => (told += 1);
  files.most = 0;
  await say(two, first, "written without room");
  assert.ok(told > 0);
  await flush(two);
  assert.deepEqual(waiting(two), []);
  await sync(one, "all");
  assert.equal(bodies(one, first).at(-1), "written without room");
});

test("the parts of a message are told apart without their words", () => {
  const kinds = (body: string) => partsOf(body).map(({ type, lines }) => [type, lines]);
  assert.deepEqual(kinds("one\ntwo\n\nthree"), [["text", 2], ["text", 1]]);
  assert.deepEqual(kinds("a\n~~~\n```\nx\n~~~\nb"), [["text", 1], ["code", 2], ["text", 1]]);
  assert.deepEqual(kinds("```js\nnever closed"), [["code", 1]]);
  assert.deepEqual(kinds("text\n| a |\n|---|\nmore"), [["text", 1], ["table", 2], ["text", 1]]);
  assert.deepEqual(kinds("https://example.org/a"), [["link", 1]]);
  assert.deepEqual(kinds("x ".repeat(3_000)), [["paste", 1]]);
  assert.deepEqual(kinds("\r\n \n"), []);
});
