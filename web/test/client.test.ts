// Devices of one person at a real server: what one writes the others read, whatever came in between.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import {
  addEmbed, branchOff, chat, chats, copies, data, deleteChat, deleteMessage, discardCopy, edit, listed, newChat, rename, say, sayAll, setData,
  setDraft, setField, showBranch, useCopy, waiting, write,
} from "../src/client/chats";
import { type Device, disconnect } from "../src/client/device";
import { nameOf } from "../src/client/error";
import { MemoryFiles } from "../src/client/files";
import { type News, listen } from "../src/client/live";
import { flush } from "../src/client/send";
import { embed, loadOlder, openChat, sync } from "../src/client/sync";
import type { ChatId } from "../src/format/index";
import { Through } from "./world/ways";
import { Weather } from "./world/weather";
import { World, bodies } from "./world/index";

let world: World;
before(async () => {
  world = await World.start();
});
after(() => world?.stop());

/** Everything that a chat shows, for comparing devices. */
function shown(device: Device, id: ChatId): unknown {
  const { fields, branch, messages, draft, rev } = chat(device, id);
  return { fields: [...fields].sort(), branch, messages: [...messages].sort(([one], [two]) => (one < two ? -1 : 1)), draft, rev };
}

/** News until this kind came. */
async function until(device: Device, kind: News["news"]): Promise<News> {
  for (;;) {
    const news = await listen(device, AbortSignal.timeout(120_000));
    assert.ok(news !== null, `nobody heard of ${kind}`);
    if (news.news === kind) return news;
  }
}

async function fails(done: Promise<unknown>, name: string): Promise<void> {
  await assert.rejects(done, (error) => nameOf(error) === name);
}

test("what one device writes the other reads: words, fields, drafts, settings, attachments", async () => {
  const { person, device: one } = await world.person();
  const id = await newChat(one, "Trip");
  await say(one, id, "first");
  const map = await addEmbed(one, id, "a map");
  await write(one, id, "assistant", "Grüße, \u{1f44b}", [map], "some-model");
  await setField(one, id, "icon", "plane");
  await setDraft(one, id, "and then");
  await setData(one, "settings", "theme", "dark");
  assert.deepEqual(bodies(one, id), ["first", "Grüße, \u{1f44b}"], "seen before it is stored");
  await flush(one);
  assert.deepEqual(waiting(one), []);
  const two = await world.synced(person);
  assert.deepEqual(shown(two, id), shown(one, id));
  assert.equal(data(two, "settings", "theme"), "dark");
  assert.deepEqual(chat(two, id).branch[1]?.refs, [map]);
  assert.equal(await embed(two, id, map), "a map");
  assert.equal(await embed(two, id, map), "a map", "the second time it is here");
  assert.deepEqual([chats(two), listed(two)], [[id], [id]]);
});

test("a device hears what another does", async () => {
  const { person, device: one } = await world.person();
  const two = await world.synced(person);
  const id = await newChat(one, null);
  const first = await say(one, id, "first");
  await flush(one);
  assert.deepEqual(await until(two, "chat"), { news: "chat", chat: id });
  assert.deepEqual(bodies(two, id), ["first"]);
  await edit(one, id, first, "changed");
  await flush(one);
  await until(two, "chat");
  assert.deepEqual(bodies(two, id), ["changed"]);
  await setDraft(one, id, "typing");
  await flush(one);
  await until(two, "draft");
  assert.equal(chat(two, id).draft, "typing");
  await setData(one, "settings", "theme", "dark");
  await flush(one);
  await until(two, "data");
  assert.equal(data(two, "settings", "theme"), "dark");
  await deleteChat(one, id);
  await flush(one);
  assert.deepEqual(await until(two, "gone"), { news: "gone", chats: [id] });
  assert.deepEqual(chats(two), []);
});

test("waiting for news can be given up, and nothing is lost", async () => {
  const { person, device: one } = await world.person();
  const two = await world.synced(person);
  const stop = new AbortController();
  const waits = listen(two, stop.signal);
  setTimeout(() => stop.abort(), 20);
  assert.equal(await waits, null);
  const id = await newChat(one, "later");
  await flush(one);
  await until(two, "chat");
  assert.equal(chat(two, id).fields.get("title"), "later");
});

test("whoever is stored first wins, and the other has a copy that can be used", async () => {
  const { person, device: one } = await world.person();
  const id = await newChat(one, "Plan");
  const message = await say(one, id, "as it was");
  await flush(one);
  const two = await world.synced(person);
  await edit(one, id, message, "by one");
  await flush(one);
  await edit(two, id, message, "by two");
  await rename(two, id, "Plan B");
  await setDraft(two, id, "a draft of two");
  await flush(two);
  assert.deepEqual(bodies(two, id), ["by one"]);
  const [copy] = copies(two);
  assert.deepEqual([copy?.what, copy?.text, copy?.why], [{ what: "edit", id: message }, "by two", { why: "changed" }]);
  assert.equal(chat(two, id).fields.get("title"), "Plan B", "what nobody else changed is stored");
  await useCopy(two, copy?.number ?? 0);
  assert.deepEqual(bodies(two, id), ["by two"]);
  await flush(two);
  assert.deepEqual([copies(two), waiting(two)], [[], []]);
  await sync(one, "all");
  assert.deepEqual(shown(one, id), shown(two, id));
  // The same words are no conflict.
  await edit(one, id, message, "agreed");
  await flush(one);
  await edit(two, id, message, "agreed");
  await flush(two);
  assert.deepEqual([copies(two), bodies(two, id)], [[], ["agreed"]]);
});

test("drafts and settings of two devices: one loses, with a copy", async () => {
  const { person, device: one } = await world.person();
  const id = await newChat(one, null);
  await setData(one, "settings", "font", "serif");
  await flush(one);
  const two = await world.synced(person);
  await setDraft(one, id, "one typed");
  await setData(one, "settings", "font", "mono");
  await flush(one);
  await setDraft(two, id, "two typed");
  await setData(two, "settings", "font", "sans");
  await flush(two);
  assert.equal(chat(two, id).draft, "one typed");
  assert.equal(data(two, "settings", "font"), "mono");
  assert.deepEqual(copies(two).map((copy) => copy.text), ["two typed", "sans"]);
  for (const copy of [...copies(two)]) await discardCopy(two, copy.number);
  // What was removed is known to be removed by who wrote it last.
  await setData(one, "settings", "font", null);
  await setDraft(one, id, null);
  await flush(one);
  await setData(two, "settings", "font", "serif");
  await flush(two);
  assert.deepEqual(copies(two).map((copy) => copy.text), ["serif"], "another device removed what it replaces");
  assert.equal(data(two, "settings", "font"), null);
  await sync(two, "all");
  assert.equal(chat(two, id).draft, null);
});

test("answers move up when a message is deleted; a chat goes with everything in it", async () => {
  const { person, device: one } = await world.person();
  const id = await newChat(one, null);
  const [first, second] = await sayAll(one, id, ["first", "second", "third"]);
  const map = await addEmbed(one, id, "only the fourth shows this");
  const fourth = await write(one, id, "user", "fourth", [map], null);
  await flush(one);
  const two = await world.synced(person);
  await deleteMessage(one, id, second ?? fourth);
  await deleteMessage(one, id, fourth);
  await flush(one);
  await sync(two, "all");
  assert.deepEqual(bodies(two, id), ["first", "third"]);
  assert.equal(chat(two, id).branch[1]?.parent, first);
  await fails(embed(two, id, map), "no-such-message");
  // Words for a chat that went become a copy.
  await say(two, id, "too late");
  await deleteChat(one, id);
  await flush(one);
  await flush(two);
  assert.deepEqual(copies(two).map(({ text, why }) => [text, why.why]), [["too late", "chat-deleted"]]);
  assert.deepEqual(chats(two), []);
  await fails(openChat(two, id), "no-such-chat");
});

test("branches are the same on every device", async () => {
  const { person, device: one } = await world.person();
  const id = await newChat(one, null);
  const [first, second] = await sayAll(one, id, ["question", "another question"]);
  const other = await branchOff(one, id, first ?? null, "in place of the second");
  assert.deepEqual(bodies(one, id), ["question", "in place of the second"]);
  await flush(one);
  const two = await world.synced(person);
  assert.deepEqual(shown(two, id), shown(one, id));
  await showBranch(two, id, second ?? other);
  await flush(two);
  await sync(one, "all");
  assert.deepEqual(bodies(one, id), ["question", "another question"]);
  // The message behind which a branch begins goes meanwhile: it begins behind the one before.
  await branchOff(two, id, second ?? null, "behind the second");
  await deleteMessage(one, id, second ?? other);
  await flush(one);
  await flush(two);
  assert.deepEqual(bodies(two, id), ["question", "behind the second"]);
});

test("what is written offline waits, outlives the program, and is stored once", async () => {
  const weather = new Weather();
  const files = new MemoryFiles();
  const setup = world.setup(files, new Through(world.transport(), weather));
  const { person, device } = await world.person(setup);
  let one = device;
  const id = await newChat(one, "Kept");
  await say(one, id, "before");
  await flush(one);
  weather.isOff = true;
  await say(one, id, "offline");
  const never = await newChat(one, "Never stored");
  await fails(flush(one), "offline");
  assert.deepEqual(waiting(one).map((op) => op.what.what), ["message", "create", "field"]);
  one = await world.opened(setup);
  assert.deepEqual(bodies(one, id), ["before", "offline"], "read and written without a server");
  await deleteChat(one, never);
  weather.isOff = false;
  // The answer is lost: nobody knows whether it was stored.
  weather.next = ["unanswered", "on"];
  await fails(flush(one), "offline");
  assert.deepEqual(waiting(one).map((op) => op.isSent), [true]);
  one = await world.opened(setup);
  await flush(one);
  assert.deepEqual(waiting(one), []);
  const two = await world.synced(person);
  assert.deepEqual(bodies(two, id), ["before", "offline"]);
  assert.deepEqual(chats(two), [id]);
  assert.deepEqual(shown(one, id), shown(two, id));
});

test("an edit whose answer was lost, and that another device went on from, is no conflict", async () => {
  const weather = new Weather();
  const { person, device: one } = await world.person(world.setup(new MemoryFiles(), new Through(world.transport(), weather)));
  const id = await newChat(one, null);
  const message = await say(one, id, "as it was");
  await flush(one);
  await edit(one, id, message, "by one");
  weather.next = ["unanswered"];
  await fails(flush(one), "offline");
  const two = await world.synced(person);
  assert.deepEqual(bodies(two, id), ["by one"]);
  await edit(two, id, message, "by two, who saw it");
  await flush(two);
  await sync(one, "all");
  await flush(one);
  assert.deepEqual([bodies(one, id), copies(one), waiting(one)], [["by two, who saw it"], [], []]);
});

test("the sealed list of chats follows within a minute, whoever wrote", async () => {
  const weather = new Weather();
  const { person, device: one } = await world.person(world.setup(new MemoryFiles(), new Through(world.transport(), weather)));
  const floorOf = (device: Device, id: ChatId) => device.account?.floors.get(id)?.rev;
  const id = await newChat(one, null);
  await say(one, id, "first");
  await flush(one);
  await say(one, id, "second");
  await flush(one);
  assert.equal(floorOf(one, id), chat(one, id).rev);
  // The write is stored, and the device ends before it notes that in the list.
  await say(one, id, "third");
  weather.next = ["lost", "on"];
  await fails(flush(one), "offline");
  assert.deepEqual(waiting(one), []);
  let later = 0;
  const two = await world.synced(person, { ...world.setup(), clock: () => Date.now() + later });
  assert.deepEqual(bodies(two, id), ["first", "second", "third"], "a new device is shown how the head follows");
  await flush(two);
  assert.equal(floorOf(two, id), chat(two, id).rev - 1, "it may still do so itself");
  later = 61_000;
  await flush(two);
  assert.equal(floorOf(two, id), chat(two, id).rev);
});

test("what came before a connection ended is kept", async () => {
  const { person, device: one } = await world.person();
  const id = await newChat(one, "Here");
  await say(one, id, "before the end");
  await flush(one);
  // Cut off one frame later each time; the last time it failed, only the settings did not come.
  let last: Device | null = null;
  for (let frames = 1; ; frames++) {
    const weather = new Weather();
    const setup = world.setup(new MemoryFiles(), new Through(world.transport(), weather));
    const two = await world.device(person, setup);
    weather.heard = frames;
    const failed = await sync(two, "all").then(() => null, nameOf);
    if (failed === null) break;
    assert.equal(failed, "offline");
    last = await world.opened(setup);
  }
  assert.ok(last !== null);
  assert.deepEqual(bodies(last, id), ["before the end"]);
});

test("the Rust client is one of the devices", async () => {
  const { person, device: one } = await world.person();
  const rust = world.rust(person);
  const id = await newChat(one, "Both");
  await say(one, id, "from here: Grüße \u{1f30d}");
  await setDraft(one, id, "a draft");
  await flush(one);
  assert.deepEqual(await rust.read(id), ["from here: Grüße \u{1f30d}"]);
  const [line] = await rust.do("/list");
  assert.deepEqual([line?.["title"], line?.["draft"]], ["Both", "a draft"]);
  await rust.do(`/open ${id}`, "from there", "/edit 1 edited there", "/rename Ours", "/draft another draft");
  await sync(one, "all");
  assert.deepEqual(bodies(one, id), ["edited there", "from there"]);
  assert.deepEqual([chat(one, id).fields.get("title"), chat(one, id).draft], ["Ours", "another draft"]);
  // Both change the same message; what came second is a copy, here and there.
  const message = chat(one, id).branch[0]?.id;
  assert.ok(message !== undefined);
  await edit(one, id, message, "mine");
  await rust.do(`/open ${id}`, "/edit 1 theirs");
  await flush(one);
  assert.deepEqual([bodies(one, id)[0], copies(one)[0]?.text], ["theirs", "mine"]);
  await rust.do(`/open ${id}`, "/delete 1");
  const made = await rust.do("/new Theirs", "hello");
  await sync(one, "all");
  assert.deepEqual(bodies(one, id), ["from there"]);
  const theirs = String(made[0]?.["chat"]) as ChatId;
  assert.deepEqual(bodies(one, theirs), ["hello"]);
  await deleteChat(one, theirs);
  await flush(one);
  assert.deepEqual((await rust.do("/list")).map((line) => line["title"]), ["Ours"]);
});

test("a chat that does not fit into one message comes in parts", async () => {
  const { person, device: one } = await world.person();
  const id = await newChat(one, "Long");
  const texts = Array.from({ length: 45 }, (_, at) => `${at} `.repeat(60_000).slice(0, 190_000));
  await sayAll(one, id, texts);
  await flush(one);
  const two = await world.synced(person);
  assert.deepEqual(bodies(two, id), texts);
  // Opened again from its files.
  const files = new MemoryFiles();
  const three = await world.synced(person, world.setup(files));
  disconnect(three);
  assert.deepEqual(shown(await world.opened(world.setup(files)), id), shown(two, id));
});

test("more chats than a sync brings are loaded on demand", async () => {
  const { person, device: one } = await world.person();
  const ids: ChatId[] = [];
  for (let at = 0; at < 105; at++) ids.push(await newChat(one, `chat ${at}`));
  await flush(one);
  const two = await world.device(person);
  assert.deepEqual((await sync(two, "all")).older, true);
  assert.equal(chats(two).length, 100);
  const missing = ids.filter((id) => !chats(two).includes(id));
  assert.equal(missing.length, 5);
  const [wanted] = missing;
  assert.ok(wanted !== undefined);
  await openChat(two, wanted);
  assert.equal(chat(two, wanted).fields.get("title"), `chat ${ids.indexOf(wanted)}`);
  assert.equal((await loadOlder(two, 50)).older, false);
  assert.deepEqual([...chats(two)].sort(), [...ids].sort());
});

test("what cannot be stored is said where it is written", async () => {
  const { device: one } = await world.person();
  const id = await newChat(one, null);
  await fails(say(one, id, "x".repeat(300_000)), "too-large");
  await fails(setField(one, id, "Bad Name", "x"), "bad-id");
  await fails(edit(one, id, "msg_" as never, "x"), "no-such-message");
  await say(one, id, "half \ud83d of a pair");
  await flush(one);
  assert.deepEqual(bodies(one, id), ["half \ufffd of a pair"]);
});

test("clocks that are wrong by a day, in either direction, change nothing of the order or the words", async () => {
  const { person, device: one } = await world.person();
  const id = await newChat(one, "Clocks");
  await say(one, id, "now");
  await flush(one);
  const words = ["now"];
  for (const [skew, text] of [[86_400_000, "from tomorrow"], [-86_400_000, "from yesterday"]] as const) {
    const wrong = await world.synced(person, { ...world.setup(), clock: () => Date.now() + skew });
    assert.deepEqual(bodies(wrong, id), words);
    await say(wrong, id, text);
    await setDraft(wrong, id, `draft ${text}`);
    await flush(wrong);
    words.push(text);
    assert.deepEqual([bodies(wrong, id), waiting(wrong), copies(wrong)], [words, [], []]);
  }
  await sync(one, "all");
  assert.deepEqual([bodies(one, id), chat(one, id).draft], [words, "draft from yesterday"]);
});
