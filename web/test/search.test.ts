// Search on a device: the same is found with its index and without, only what is shown is opened, and the index's files are sealed, follow
// their chats, and are never believed when they do not fit.
import assert from "node:assert/strict";
import { test } from "node:test";

import { type Device, Device as TheDevice, fileOf, load, saveRooms, wipeKeys } from "../src/client/device";
import { ClientError } from "../src/client/error";
import { Cabinet, MemoryFiles } from "../src/client/files";
import { Lock, type Place } from "../src/client/lock";
import type { Room, Slot } from "../src/client/room";
import { search } from "../src/client/search";
import { newState } from "../src/client/state";
import { newTemporary } from "../src/client/temporary";
import { makeRoom, thin } from "../src/client/thin";
import { Notes } from "../src/client/views";
import { ChatWords, wordsFile } from "../src/client/word_index";
import { folded, wantedOf, wordsOf } from "../src/client/words";
import { AccountId, AccountKey, type Bytes, ChatId, DeviceId, Digest, EmbedId, FieldName, ItemId, Key, MessageId, type Role } from "../src/format/index";
import { Dice } from "./world/dice";

/** A device that was never at a server. */
async function aDevice(files: MemoryFiles = new MemoryFiles()): Promise<Device> {
  const cabinet = await Cabinet.open(files, null);
  const setup = { transport: { hasCookies: false } as never, files, key: null, clock: () => Date.now() };
  return new TheDevice(setup, cabinet, newState(AccountId.random(), DeviceId.random(), new AccountKey(await Key.random(), 1)));
}

/** The same browser later: what is on the disk, and nothing else. */
async function later(device: Device): Promise<Device> {
  const again = new TheDevice(device.setup, await Cabinet.open(device.setup.files, null), device.state);
  await load(again);
  return again;
}

const hashOf = (text: string) => Digest.of(new TextEncoder().encode(text) as Bytes);
const field = (name: string) => ItemId.field(FieldName.parse(name));

async function message(id: MessageId, body: string, parent: MessageId | null = null, role: Role = "user", refs: EmbedId[] = []): Promise<[ItemId, Slot]> {
  const said = { role, parent, createdAt: 1_000, body, model: null, reason: null, refs, proof: null, shared: [] };
  return [id, { hash: await hashOf(`${id} ${body}`), item: { kind: "message", rev: 1, message: said } }];
}

async function text(id: ItemId, body: string): Promise<[ItemId, Slot]> {
  return [id, { hash: await hashOf(`${id} ${body}`), item: { kind: "text", rev: 1, text: { body } } }];
}

const blanks = new WeakMap<Device, Promise<Room>>();

/** A chat with nothing in it: making keys for a thousand takes a while. */
function blank(device: Device): Promise<Room> {
  const make = async () => {
    const id = await newTemporary(device);
    const room = device.temporary.get(id);
    assert.ok(room !== undefined);
    device.temporary.delete(id);
    return room;
  };
  const made = blanks.get(device) ?? make();
  blanks.set(device, made);
  return made;
}

/** A stored chat with these messages. */
async function aChat(device: Device, title: string, bodies: readonly string[], updatedAt = 1_000, isKept = true): Promise<Room> {
  const [id, room] = [ChatId.random(), await blank(device)];
  const items = new Map<ItemId, Slot>([await text(field("title"), title)]);
  let leaf: MessageId | null = null;
  for (const body of bodies) {
    const next: MessageId = MessageId.random();
    const [key, slot] = await message(next, body, leaf);
    items.set(key, slot);
    leaf = next;
  }
  const stored: Room = { ...room, id, items, updatedAt, head: { ...room.head, leaf } };
  device.rooms.set(id, stored);
  if (isKept) await saveRooms(device, [id]);
  return stored;
}

/** Another state of a chat. */
async function changed(device: Device, { id }: Room, change: (items: Map<ItemId, Slot>) => Promise<void> | void): Promise<Room> {
  const room = device.rooms.get(id);
  assert.ok(room !== undefined);
  const now = { ...room, items: new Map(room.items) };
  await change(now.items);
  device.rooms.set(id, now);
  await saveRooms(device, [id]);
  return now;
}

async function indexed(device: Device): Promise<Device> {
  while (device.words.isDue(device)) await device.words.step(device, 50);
  const { done, all } = device.words.progress(device);
  assert.equal(done, all);
  return device;
}

const look = (device: Device, words: string) => search(device, new Notes(), words);
const chatsOf = (device: Device, words: string) => look(device, words).hits.map(({ chat }) => chat);
const marked = (device: Device, words: string) => look(device, words).hits.map(({ excerpt, at, length }) => excerpt.slice(at, at + length));

test("words are the same however they are written", () => {
  const same: [string, string][] = [
    ["Straße", "STRASSE"], ["Müller", "muller"], ["Éclair", "eclair"], ["ﬁnal", "final"], ["ΟΔΟΣ", "οδός"], ["İstanbul", "istanbul"], ["Łódź", "lodz"],
    ["ｗｉｄｅ", "wide"], ["أَحْمَد", "احمد"], ["Donau\u00addampf", "donaudampf"], ["Ёлка", "елка"],
  ];
  for (const [one, two] of same) assert.equal(folded(one), folded(two), one);
  assert.notEqual(folded("が"), folded("か"), "another sound is another word");
  assert.notEqual(folded("ปี"), folded("ปา"), "a vowel is no accent");
  const words = (of: string) => [...wordsOf(of)].sort();
  assert.deepEqual(words("Can't `foo_bar.baz()` 3.14 🎉"), ["14", "3", "bar", "baz", "can", "foo", "t"]);
  assert.deepEqual(words("我在北京大学学习"), [..."我在北京大学学习".match(/我在?|在|北京|大学|学习/gu) ?? []].sort());
  assert.ok(words("東京の学生です").includes("学生") && words("ภาษาไทยง่าย").includes("ไทย") && words("iPhone手机").includes("iphone"));
  assert.deepEqual(words(""), []);
  assert.deepEqual(wantedOf("Rust as").map(({ word, is }) => [word, is]), [["rust", "whole"], ["as", "beginning"]]);
  assert.deepEqual(words("x".repeat(5_000)), ["x".repeat(64)]);
  // A text without any spaces takes as long as its length says, and no longer.
  const began = performance.now();
  assert.ok(wordsOf("中文没有空格也要快一点。我们去北京大学".repeat(20_000)).size < 60);
  assert.ok(performance.now() - began < 30_000);
});

/** What the browser's dictionary is asked to cut, while something is done. */
async function cutBy(act: () => unknown): Promise<number[]> {
  const asked: number[] = [];
  const { segment } = Intl.Segmenter.prototype;
  Intl.Segmenter.prototype.segment = function (this: Intl.Segmenter, text: string) {
    asked.push(text.length);
    return segment.call(this, text);
  };
  try {
    await act();
  } finally {
    Intl.Segmenter.prototype.segment = segment;
  }
  return asked;
}

test("a message of a million signs without spaces is taken in piece by piece, and search cuts what may fit and nothing else", async () => {
  const device = await aDevice();
  const sign = (at: number) => String.fromCodePoint(0x4e00 + (at % 20_000));
  const million = `${Array.from({ length: 700_000 }, (_, at) => sign(at * 7)).join("")}北京大学${Array.from({ length: 300_000 }, (_, at) => sign(at * 11)).join("")}`;
  const room = await aChat(device, "long", ["before", million, "after"]);
  // Not in the index yet: only what has the words inside is cut.
  const looked = await cutBy(() => assert.deepEqual([chatsOf(device, "北京"), marked(device, "after")], [[room.id], ["after"]]));
  assert.ok(looked.length > 0 && looked.reduce((sum, length) => sum + length, 0) < 20_000, `${looked.length} pieces`);
  // Whoever has no time at all does one piece of it, and goes on from there.
  const pieces: number[] = [];
  let steps = 0;
  for (; device.words.isDue(device); steps++) {
    const cut = await cutBy(() => device.words.step(device, -1));
    assert.ok(cut.length <= 1 && (cut[0] ?? 0) <= 1_000, `${cut.length} pieces in a step`);
    pieces.push(...cut);
    assert.ok(steps < 2_000, "it ends");
  }
  assert.ok(pieces.length >= 1_000 && pieces.length <= 1_010, `${pieces.length} pieces: none twice`);
  assert.deepEqual([chatsOf(device, "北京"), chatsOf(device, "before after")], [[room.id], [room.id]]);
  // Letters are a word, of which the beginning counts; nothing is cut. One sign of another script among them changes nothing of that.
  assert.deepEqual(await cutBy(() => assert.deepEqual([...wordsOf("x".repeat(1_000_000))], ["x".repeat(64)])), []);
  const mixed = await cutBy(() => assert.ok([...wordsOf(`${"x".repeat(500_000)}学${"y".repeat(500_000)}`)].every((word) => word.length <= 64)));
  assert.deepEqual(mixed, [1_000]);
});

test("all words, in any message and any form; titles first, then how much fits, then the newest", async () => {
  const device = await aDevice();
  const old = await aChat(device, "Notes", ["The Straße in München", "trains to Wien", "trains again"], 1);
  const titled = await aChat(device, "Trains", ["nothing else"], 2);
  const newer = await aChat(device, "More", ["one about trains"], 3);
  for (const one of [device, await indexed(device)]) {
    assert.deepEqual(chatsOf(one, "trains"), [titled.id, old.id, newer.id]);
    assert.deepEqual(chatsOf(one, "strasse wien"), [old.id], "the words may be in different messages");
    assert.deepEqual(marked(one, "munc"), ["Münc"]);
    assert.deepEqual(chatsOf(one, "trai wien"), [], "only the last word may be cut off");
    assert.deepEqual(chatsOf(one, "wien trai"), [old.id]);
    const [first] = look(one, "wien").hits;
    assert.deepEqual([first?.title, first?.excerpt, first?.message !== null], ["Notes", "trains to Wien", true]);
    assert.deepEqual([look(one, "  "), look(one, "wien").all].map((result) => (typeof result === "number" ? result : result.hits.length)), [0, 1]);
  }
});

test("languages: German, Chinese, Japanese, Thai, Arabic, Hebrew, and signs that are in no word", async () => {
  const device = await aDevice();
  const bodies = ["Übergrößenträger für Füße", "我在北京大学学习中文", "東京の大学の学生です", "ภาษาไทยง่ายมาก", "مُحَمَّدٌ ذهب إلى المكتبة", "שָׁלוֹם עולם", "Why not? 🎉 C++"];
  const ids: ChatId[] = [];
  for (const body of bodies) ids.push((await aChat(device, "x", [body])).id);
  const asked: [string, number, string][] = [
    ["ubergrossen", 0, "Übergrößenträger"], ["FUSSE", 0, "Füße"], ["北京", 1, "北京"], ["学习", 1, "学习"], ["学生", 2, "学生"], ["ไทย", 3, "ไทย"],
    ["محمد", 4, "مُحَمَّدٌ"], ["المكتبة", 4, "المكتبة"], ["שלום", 5, "שָׁלוֹם"], ["🎉", 6, "🎉"], ["++", 6, "++"],
  ];
  for (const one of [device, await indexed(device)]) {
    for (const [words, at, mark] of asked) assert.deepEqual([chatsOf(one, words), marked(one, words)], [[ids[at]], [mark]], words);
  }
});

test("with the index and without it, the same is found", async () => {
  const dice = new Dice(7);
  const some = ["rust", "Straße", "wien", "north", "北京大学", "学生", "Müller", "mull", "code", "can't", "one", "two", "ไทยง่าย", "ﬁnd"];
  const words = (most: number) => Array.from({ length: 1 + dice.below(most) }, () => some[dice.below(some.length)] ?? "").join(dice.below(4) === 0 ? "" : " ");
  const device = await aDevice();
  for (let at = 0; at < 30; at++) await aChat(device, words(2), Array.from({ length: dice.below(6) }, () => words(5)), at);
  const queries = Array.from({ length: 120 }, () => words(3).slice(0, 1 + dice.below(20)));
  const before = queries.map((query) => look(device, query));
  await indexed(device);
  const again = await indexed(await later(device));
  for (const [at, query] of queries.entries()) {
    for (const one of [device, again]) assert.deepEqual(look(one, query).hits, before[at]?.hits, query);
  }
});

/** Items that count who opens them. */
class Watched extends Map<ItemId, Slot> {
  static opened = new Set<string>();
  override get(id: ItemId): Slot | undefined {
    const slot = super.get(id);
    if (ItemId.isMessage(id)) Watched.opened.add(id);
    return slot;
  }
  override entries(): MapIterator<[ItemId, Slot]> {
    for (const id of super.keys()) if (ItemId.isMessage(id)) Watched.opened.add(id);
    return super.entries();
  }
  override [Symbol.iterator](): MapIterator<[ItemId, Slot]> {
    return this.entries();
  }
}

test("of a thousand chats only those are opened that fit", async () => {
  const device = await aDevice();
  for (let at = 0; at < 1_000; at++) {
    const room = await aChat(device, `chat ${at}`, [`message of ${at}`, at % 250 === 0 ? "the needle is here" : "hay and more hay"], at, false);
    device.rooms.set(room.id, { ...room, items: new Watched(room.items) });
  }
  await indexed(device);
  Watched.opened.clear();
  const result = look(device, "needle");
  assert.deepEqual([result.hits.map(({ title }) => title), result.all, result.unsearched], [["chat 750", "chat 500", "chat 250", "chat 0"], 4, 0]);
  assert.ok(Watched.opened.size > 0 && Watched.opened.size <= 8, `${Watched.opened.size} messages`);
  Watched.opened.clear();
  assert.equal(look(device, "nowhere").all, 0);
  assert.equal(Watched.opened.size, 0);
  const many = look(device, "hay");
  assert.deepEqual([many.hits.length, many.all], [60, 996]);
  assert.ok(Watched.opened.size <= 120, "and of those, only what is shown");
});

test("nothing of it can be read in the files, and nothing of temporary chats is there", async () => {
  const files = new MemoryFiles();
  const device = await aDevice(files);
  const room = await aChat(device, "canary-title", ["canary-words of mine"]);
  const secret = await newTemporary(device);
  const [id, slot] = await message(MessageId.random(), "canary-temporary");
  device.temporary.get(secret)?.items.set(id, slot);
  await indexed(device);
  assert.deepEqual((await files.names()).filter((name) => name.startsWith("words-")), [wordsFile(room.id)]);
  for (const name of await files.names()) {
    const bytes = Buffer.from((await files.read(name)) ?? []);
    for (const encoding of ["latin1", "utf16le"] as const) assert.ok(!bytes.toString(encoding).includes("canary"), name);
    assert.ok(!name.includes("canary"));
  }
  assert.deepEqual(look(device, "canary").hits.map(({ chat }) => chat), [room.id]);
  // Opened, the file has words, and not how often or in which order.
  const opened = JSON.parse(Buffer.from((await device.cabinet.read(wordsFile(room.id))) ?? []).toString()) as { words: string };
  assert.equal(opened.words, "canary mine of title words");
});

test("files of other chats, of before, or damaged are noticed, and made anew", async () => {
  const files = new MemoryFiles();
  const device = await aDevice(files);
  const [one, two] = [await aChat(device, "one", ["apples"]), await aChat(device, "two", ["pears"])];
  await indexed(device);
  const old = await files.read(wordsFile(one.id));
  await changed(device, one, async (items) => {
    for (const id of items.keys()) if (ItemId.isMessage(id)) items.set(...(await message(id, "plums")));
  });
  await indexed(device);
  const finds = async (what: string) => {
    const again = await indexed(await later(device));
    assert.deepEqual([chatsOf(again, "plums"), chatsOf(again, "apples"), chatsOf(again, "pears")], [[one.id], [], [two.id]], what);
    const then = await indexed(await later(device));
    assert.deepEqual(chatsOf(then, "plums"), [one.id], `${what}, kept`);
  };
  await finds("as it was");
  assert.ok(old !== null);
  await files.write(wordsFile(one.id), old);
  await finds("an older file");
  const [a, b] = [await files.read(wordsFile(one.id)), await files.read(wordsFile(two.id))];
  assert.ok(a !== null && b !== null);
  await files.writeAll([[wordsFile(one.id), b], [wordsFile(two.id), a]]);
  await finds("two that were swapped");
  for (const damage of [new Uint8Array(0), new Uint8Array(400), a.slice(0, a.length - 1), a.map((byte, at) => (at === 60 ? byte ^ 1 : byte))]) {
    await files.write(wordsFile(one.id), damage as Bytes);
    await finds("damaged");
  }
  await files.remove(wordsFile(one.id));
  await finds("missing");
  // Sealed by this very device under the right name, and still another chat's, or none.
  const json = await device.cabinet.read(wordsFile(two.id));
  assert.ok(json !== null && ChatWords.fromJson(one.id, json) === null);
  await device.cabinet.write(wordsFile(one.id), new TextEncoder().encode('{"v":1}') as Bytes);
  await finds("another shape");
});

test("it follows its chat: written, edited, deleted, with attachments that came; the files go with the chat and with everything", async () => {
  const files = new MemoryFiles();
  const device = await aDevice(files);
  const [room, other] = [await aChat(device, "mine", ["first"]), await aChat(device, "other", ["keeps"])];
  await indexed(device);
  const embed = EmbedId.random();
  const said = MessageId.random();
  await changed(device, room, async (items) => {
    items.set(...(await message(said, "look at this", null, "assistant", [embed])));
    items.set(embed, { hash: await hashOf(`${embed} fn canary() {}`), item: null });
  });
  assert.deepEqual([chatsOf(device, "look"), chatsOf(await indexed(device), "look"), chatsOf(device, "canary")], [[room.id], [room.id], []]);
  await changed(device, room, async (items) => void items.set(...(await text(embed, "fn canary() {}"))));
  await indexed(device);
  assert.deepEqual(look(device, "canary").hits.map(({ chat, message: id, excerpt }) => [chat, id, excerpt]), [[room.id, said, "fn canary() {}"]]);
  await changed(device, room, (items) => void items.delete(said));
  assert.deepEqual([chatsOf(device, "look"), chatsOf(await indexed(device), "look")], [[], []]);
  device.rooms.delete(room.id);
  await saveRooms(device, [room.id]);
  assert.deepEqual((await files.names()).filter((name) => name.includes(room.id)), []);
  assert.deepEqual(chatsOf(await indexed(device), "first"), []);
  assert.deepEqual((await files.names()).filter((name) => name.includes(room.id)), [], "and it is not written again");
  assert.ok((await files.read(wordsFile(other.id))) !== null);
  wipeKeys(device);
  await device.words.step(device, 5);
  await Lock.clear(files as Place);
  await device.words.keep(device);
  assert.deepEqual(await files.names(), []);
});

test("what waits to be sent is found, and what was deleted meanwhile is not", async () => {
  const device = await indexed(await aDevice());
  const room = await aChat(device, "mine", ["before"]);
  const id = [...room.items.keys()].find(ItemId.isMessage);
  assert.ok(id !== undefined);
  await indexed(device);
  device.state.queue.edit(room.id, id, "afterwards", { on: "words", words: "before" });
  assert.deepEqual([chatsOf(device, "before"), chatsOf(device, "afterwards")], [[], [room.id]]);
  const fresh = ChatId.random();
  device.state.queue.append(fresh, { do: "create" });
  const note = { role: "user" as const, body: "brand new", model: null, refs: [], createdAt: 5, ask: null, shared: [] };
  device.state.queue.append(fresh, { do: "append", id: MessageId.random(), note, to: { to: "end" } });
  assert.deepEqual(chatsOf(device, "brand"), [fresh]);
});

/** Files that stop being written at some point, as when the tab is closed. */
class Mortal extends MemoryFiles {
  left = Infinity;
  override async write(name: string, bytes: Bytes): Promise<void> {
    if (this.left-- <= 0) throw new ClientError("files");
    await super.write(name, bytes);
  }
}

test("closed between any two writes, nothing wrong is found afterwards", async () => {
  for (let left = 0; left < 9; left++) {
    const files = new Mortal();
    const device = await aDevice(files);
    const rooms = [await aChat(device, "a", ["old one"]), await aChat(device, "b", ["old two"]), await aChat(device, "c", ["old three"])];
    await indexed(device);
    files.left = left;
    for (const room of rooms) {
      await changed(device, room, async (items) => {
        for (const id of items.keys()) if (ItemId.isMessage(id)) items.set(...(await message(id, "new words")));
      }).catch(() => undefined);
      await device.words.step(device, 5);
    }
    files.left = Infinity;
    const again = await later(device);
    const before = [look(again, "old").hits, look(again, "new").hits];
    assert.equal((before[0]?.length ?? 0) + (before[1]?.length ?? 0), 3);
    await indexed(again);
    assert.deepEqual([look(again, "old").hits, look(again, "new").hits], before);
  }
  // A chat that went, whose file of words stayed.
  const files = new MemoryFiles();
  const device = await aDevice(files);
  const room = await aChat(device, "gone", ["words"]);
  await indexed(device);
  await files.remove(fileOf(room.id));
  await indexed(await later(device));
  assert.deepEqual((await files.names()).filter((name) => name.includes(room.id)), []);
});

/** Files with room for so many bytes. */
class Cramped extends MemoryFiles {
  most = Infinity;
  override async write(name: string, bytes: Bytes): Promise<void> {
    let size = bytes.length;
    for (const other of await this.names()) if (other !== name) size += (await this.read(other))?.length ?? 0;
    if (size > this.most) throw new ClientError("quota");
    await super.write(name, bytes);
  }
}

test("a chat whose words went is found and named; one that nothing is known of is counted", async () => {
  const files = new Cramped();
  const device = await aDevice(files);
  const long = (about: string) => `${about} `.repeat(400);
  const one = await aChat(device, "Trip", [long("we take the night train"), "and the ferry"], 1);
  const two = await aChat(device, "Tax", [long("the form is due")], 2);
  await thin(device, new Set(), Number.MAX_SAFE_INTEGER);
  for (const here of [device, await later(device)]) {
    await indexed(here);
    const found = look(here, "ferry train");
    assert.deepEqual(found.hits.map(({ chat, title, isMissing, excerpt }) => [chat, title, isMissing, excerpt]), [[one.id, "Trip", true, ""]]);
    assert.ok(found.hits[0]?.message !== null, "it is known which message");
    assert.deepEqual([found.unsearched, look(here, "trip").hits[0]?.excerpt], [0, "Trip"]);
  }
  // The file of one is lost: nothing can make it again, and that is said, also while the index is not read.
  await files.remove(wordsFile(two.id));
  const again = await later(device);
  assert.deepEqual([look(again, "ferry").all, look(again, "ferry").unsearched], [0, 2]);
  await indexed(again);
  assert.deepEqual([look(again, "ferry").all, look(again, "ferry").unsearched, look(again, "tax").all], [1, 1, 1]);
  // What is written to it later is known.
  await changed(again, two, async (items) => void items.set(...(await message(MessageId.random(), "a refund"))));
  assert.deepEqual(chatsOf(again, "refund"), [two.id]);
  assert.deepEqual(chatsOf(await indexed(again), "refund"), [two.id]);
});

test("without room its files go before titles and drafts, and it never takes what others need", async () => {
  const files = new Cramped();
  const device = await aDevice(files);
  const room = await aChat(device, "Trip", [Array.from({ length: 2_000 }, (_, at) => `word${at}`).join(" ")]);
  await indexed(device);
  const size = async () => (await Promise.all((await files.names()).map((name) => files.read(name)))).reduce((sum, bytes) => sum + (bytes?.length ?? 0), 0);
  assert.ok((await files.read(wordsFile(room.id))) !== null);
  await thin(device, new Set(), Number.MAX_SAFE_INTEGER);
  files.most = (await size()) - 2_000;
  assert.equal(await makeRoom(device, new Set(), Number.MAX_SAFE_INTEGER), true);
  assert.equal(await files.read(wordsFile(room.id)), null);
  assert.deepEqual(chatsOf(device, "word77"), [room.id], "in memory it stays");
  assert.equal(device.words.isDue(device), false, "and it is not tried again at once");
  const again = await later(device);
  assert.deepEqual([chatsOf(again, "trip"), look(again, "word77").unsearched], [[room.id], 1]);
  // No room at all: a step tells nobody, and search goes on.
  files.most = 0;
  const cramped = await later(device);
  while (cramped.words.isDue(cramped)) await cramped.words.step(cramped, 5);
  assert.deepEqual(chatsOf(cramped, "trip"), [room.id]);
});
