// What a device keeps for itself, at a real server: the draft of a chat that does not exist yet, and what is known about answers; what every
// device knows of how an answer ended; and chats that are brought in.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { type AccountCommands, Door, accountCommands } from "../src/client/account_commands";
import { answersFile } from "../src/client/answer_notes";
import { ENDINGS, endingsOf, helpOf, withEnding } from "../src/client/endings";
import { type ChatCommands, chatCommands } from "../src/client/commands";
import { chat as view } from "../src/client/chats";
import type { CoreEvent, Finish } from "../src/client/core";
import type { Device } from "../src/client/device";
import { MemoryFiles } from "../src/client/files";
import { Keeper } from "../src/client/keeper";
import { makeRoom } from "../src/client/thin";
import type { ChatId, MessageId } from "../src/format/index";
import { World } from "./world/index";
import { Model } from "./world/model";

let world: World;
let model: Model;
const keepers: Keeper[] = [];

before(async () => {
  model = await Model.start();
  world = await World.start(model.filling);
  model.forms.set("prepare_turn", (material) => ({ language_code: "en", harm: { direct_self_harm: material.includes("dark thought") ? 9 : material.includes("feeling low") ? 5 : 0 }, title: "A question" }));
  await world.person();
});
after(async () => {
  for (const keeper of keepers) keeper.stop();
  await world?.stop();
  await model?.stop();
});

const PASSWORD = "correct horse";
const proof = { kind: "password" as const, password: PASSWORD };

/** A tab of a browser: everything of a worker but its messages. */
class Tab {
  readonly events: CoreEvent[] = [];
  readonly keeper: Keeper;
  readonly core: AccountCommands & ChatCommands;

  private constructor(readonly files: MemoryFiles, readonly door: Door, keeper: Keeper) {
    this.keeper = keeper;
    this.core = { ...accountCommands(door), ...chatCommands(keeper) };
  }

  static async open(files = new MemoryFiles()): Promise<Tab> {
    const hears: { tab?: Tab } = {};
    const around = { emit: (event: CoreEvent) => void hears.tab?.events.push(event), clock: () => Date.now(), isOnline: () => true };
    const keeper = new Keeper(around);
    keepers.push(keeper);
    const tab = new Tab(files, new Door(keeper, files, world.transport(), around), keeper);
    hears.tab = tab;
    await tab.door.start();
    return tab;
  }

  async until(is: () => boolean | Promise<boolean>): Promise<void> {
    for (let tries = 0; !(await is()); tries++) {
      assert.ok(tries < 6_000, "in time");
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }

  online(): Promise<void> {
    return this.until(async () => (await this.core.connection()).state === "online");
  }

  async asked(chat: string, words: string): Promise<MessageId> {
    const { turn, reply } = await this.core.ask(chat, words);
    await this.until(() => this.events.some((event) => event.type === "ended" && event.turn === turn));
    await this.until(async () => (await this.core.waiting()).length === 0);
    return reply as MessageId;
  }
}

let people = 0;
async function registered(): Promise<{ tab: Tab; login: string }> {
  people += 1;
  const login = `kept-${people}@example.org`;
  const tab = await Tab.open();
  await tab.core.register(login, PASSWORD);
  await tab.online();
  return { tab, login };
}

async function answerIn(tab: Tab, chat: string, reply: string) {
  const { messages } = await tab.core.open(chat);
  const found = messages.find(({ id }) => id === reply);
  assert.ok(found);
  return found;
}

test("why a model answered is sealed beside its name, and known on every device", async () => {
  const { tab, login } = await registered();
  const id = await tab.core.newChat();
  const reply = await tab.asked(id, "hello there");
  const here = await answerIn(tab, id, reply);
  assert.ok(here.model !== null && here.reason !== null && here.reason.length > 10, `${here.model}: ${here.reason}`);
  const other = await Tab.open();
  await other.core.logIn(login, proof);
  await other.online();
  const there = await answerIn(other, id, reply);
  assert.deepEqual([there.model, there.reason], [here.model, here.reason]);
  assert.equal((await other.core.open(id)).messages[0]?.reason, null, "nobody chose who asks");
});

test("an edit that was begun is kept on the device, sealed, and goes with its message", async () => {
  const { tab } = await registered();
  const id = await tab.core.newChat();
  const [first, second] = [await tab.core.say(id, "one"), await tab.core.say(id, "two")];
  await tab.core.setEdit(id, first, "CANARY one, said better");
  await tab.core.setEdit(id, second, "CANARY two");
  await tab.core.setEdit(id, second, "CANARY two, said better");
  assert.deepEqual((await tab.core.open(id)).messages.map(({ body }) => body), ["one", "two"], "nothing is changed yet");
  assert.ok((await tab.core.waiting()).every(({ text }) => !text?.includes("CANARY")), "nothing of it waits to be sent");
  await tab.core.lock();
  for (const name of await tab.files.names()) assert.ok(!new TextDecoder().decode((await tab.files.read(name)) ?? undefined).includes("CANARY"), name);
  const later = await Tab.open(tab.files);
  await later.core.unlock(proof);
  const edits = async () => (await later.core.open(id)).edits;
  assert.deepEqual(await edits(), [{ message: first, body: "CANARY one, said better" }, { message: second, body: "CANARY two, said better" }]);
  await later.core.setEdit(id, first, null);
  assert.deepEqual(await edits(), [{ message: second, body: "CANARY two, said better" }]);
  await later.core.deleteMessage(id, second);
  assert.deepEqual(await edits(), []);
  // One that is too large to be kept is the page's alone, and a temporary chat keeps nothing.
  await assert.rejects(later.core.setEdit(id, first, "x".repeat(1_000_000)), { name: "too-large" });
  const short = await later.core.newChat({ temporary: true });
  await later.core.setEdit(short, first, "CANARY");
  assert.deepEqual((await later.core.open(short)).edits, []);
  // Only so many: the newest.
  for (let n = 0; n < 12; n++) await later.core.setEdit(id, await later.core.say(id, `m${n}`), `edited ${n}`);
  assert.deepEqual((await edits()).map(({ body }) => body), Array.from({ length: 8 }, (_, n) => `edited ${n + 4}`));
  await later.core.deleteChat(id);
});

test("the draft of a chat that does not exist yet is kept on the device, sealed, and nowhere else", async () => {
  const { tab, login } = await registered();
  assert.equal(await tab.core.firstDraft(), null);
  await tab.core.setFirstDraft("CANARY half a thought");
  assert.equal((await tab.core.waiting()).length, 0, "nothing of it waits to be sent");
  await tab.core.lock();
  for (const name of await tab.files.names()) assert.ok(!new TextDecoder().decode((await tab.files.read(name)) ?? undefined).includes("CANARY"), name);
  const later = await Tab.open(tab.files);
  await later.core.unlock(proof);
  assert.equal(await later.core.firstDraft(), "CANARY half a thought");
  const other = await Tab.open();
  await other.core.logIn(login, proof);
  assert.equal(await other.core.firstDraft(), null);
  await later.core.setFirstDraft(null);
  await later.core.lock();
  await later.core.unlock(proof);
  assert.equal(await later.core.firstDraft(), null);
});

test("what is known about an answer outlives locking, goes with its chat, and is not another device's", async () => {
  const { tab, login } = await registered();
  const chat = await tab.core.newChat({ title: "Notes" });
  const reply = await tab.asked(chat, "what do you see?");
  const known = await answerIn(tab, chat, reply);
  assert.ok(known.heard?.sent !== undefined && known.finish === "whole");
  await tab.core.lock();
  const later = await Tab.open(tab.files);
  await later.core.unlock(proof);
  assert.deepEqual((await answerIn(later, chat, reply)).heard, known.heard);
  const other = await Tab.open();
  await other.core.logIn(login, proof);
  await other.online();
  const there = await answerIn(other, chat, reply);
  assert.deepEqual([there.heard, there.finish], [undefined, undefined]);
  // A second answer, then the first message goes: its note goes, the other's stays.
  await later.online();
  const second = await later.asked(chat, "and now?");
  await later.core.deleteMessage(chat, reply);
  const file = answersFile(chat as ChatId);
  const kept = async () => new TextDecoder().decode((await later.keeper.device?.cabinet.read(file)) ?? undefined);
  assert.ok((await kept()).includes(second) && !(await kept()).includes(reply));
  await later.core.deleteChat(chat);
  await later.until(async () => !(await later.files.names()).includes(file));
});

test("how an answer ended is known on every device, also if nothing was noted there", async () => {
  const { tab, login } = await registered();
  const chat = await tab.core.newChat({ title: "Declined" });
  const reply = await tab.asked(chat, "a dark thought");
  assert.equal((await answerIn(tab, chat, reply)).finish, "declined");
  const other = await Tab.open();
  await other.core.logIn(login, proof);
  await other.online();
  const there = await answerIn(other, chat, reply);
  assert.deepEqual([there.finish, there.heard], ["declined", undefined]);
  const { files } = tab;
  await tab.core.lock();
  await files.remove(answersFile(chat as ChatId));
  const later = await Tab.open(files);
  await later.core.unlock(proof);
  assert.equal((await answerIn(later, chat, reply)).finish, "declined");
});

test("that somebody may need help is the server's word, kept sealed and known on every device, whatever the words are", async () => {
  const { tab, login } = await registered();
  const chat = await tab.core.newChat({ title: "Help" });
  const [plain, low, dark] = [await tab.asked(chat, "hello"), await tab.asked(chat, "feeling low"), await tab.asked(chat, "a dark thought")];
  const other = await Tab.open();
  await other.core.logIn(login, proof);
  await other.online();
  for (const one of [tab, other]) {
    const said = await Promise.all([plain, low, dark].map((reply) => answerIn(one, chat, reply)));
    assert.deepEqual(said.map(({ finish, isHelp }) => [finish ?? "whole", isHelp ?? false]), [["whole", false], ["whole", true], ["declined", true]]);
  }
});

test("two devices that note endings at once lose neither", async () => {
  const { tab, login } = await registered();
  const chat = (await tab.core.newChat({ title: "Two devices" })) as ChatId;
  const [first, second] = [await tab.asked(chat, "a dark thought"), await tab.asked(chat, "a dark thought again")] as [MessageId, MessageId];
  const other = await Tab.open();
  await other.core.logIn(login, proof);
  await other.online();
  for (const reply of [first, second]) assert.equal((await answerIn(other, chat, reply)).finish, "declined");
  // Each hears of another answer, and writes before it has the other's.
  const here = tab.keeper.device, there = other.keeper.device;
  assert.ok(here !== null && there !== null);
  here.state.queue.append(chat, { do: "ending", reply: first, finish: "cut" });
  there.state.queue.append(chat, { do: "ending", reply: second, finish: "cancelled" });
  const noted = (device: Device) => endingsOf(view(device, chat).fields.get(ENDINGS) ?? null);
  assert.deepEqual([noted(here).get(first), noted(here).get(second)], ["cut", "declined"], "seen before it is stored");
  for (const one of [tab, other]) one.keeper.sendSoon();
  for (const [one, device] of [[tab, here], [other, there]] as const) {
    await one.until(() => noted(device).get(first) === "cut" && noted(device).get(second) === "cancelled");
    assert.deepEqual(await one.core.copies(), []);
  }
});

test("a field of endings that another program wrote is read as far as it makes sense, and stays small", () => {
  for (const odd of [null, "", "{", "[]", "7", "null", '{"a":"sold"}', '{"a":{"finish":"cut"}}']) assert.equal(endingsOf(odd).size, 0, String(odd));
  assert.deepEqual([...endingsOf('{"msg_a":"cut","msg_b":"x"}')], [["msg_a", "cut"]]);
  const helped = '{"msg_a":"cut","msg_b":"whole help","msg_c":"help","msg_d":"x help"}';
  assert.deepEqual([[...endingsOf(helped)], [...helpOf(helped)]], [[["msg_a", "cut"], ["msg_b", "whole"]], ["msg_b"]]);
  assert.equal(withEnding(helped, "msg_a" as MessageId, "declined", true), '{"msg_a":"declined help","msg_b":"whole help"}');
  let field: string | null = null;
  for (let n = 0; n < 300; n++) field = withEnding(field, `msg_${n}` as MessageId, (["cut", "declined"] satisfies Finish[])[n % 2] ?? "cut");
  assert.equal(endingsOf(field).size, 200);
  assert.ok(endingsOf(field).has("msg_299") && !endingsOf(field).has("msg_0"));
  assert.match(ENDINGS, /^[a-z]+$/);
});

test("notes about answers are the last thing that goes to make room, and nothing of titles, drafts and keys does", async () => {
  const { tab } = await registered();
  const chat = (await tab.core.newChat({ title: "Small" })) as ChatId;
  await tab.asked(chat, "one");
  await tab.core.setFirstDraft("a thought");
  const { device } = tab.keeper;
  assert.ok(device !== null);
  await device.cabinet.write(answersFile(chat), new Uint8Array(2));
  // A browser that has room again only once the notes are gone.
  const { files } = tab;
  const [write, writeAll] = [files.write.bind(files), files.writeAll.bind(files)];
  const { ClientError } = await import("../src/client/error");
  const isFull = async () => (await files.names()).includes(answersFile(chat));
  files.write = async (name, bytes) => {
    if (await isFull()) throw new ClientError("quota");
    return write(name, bytes);
  };
  files.writeAll = async (all) => {
    if (await isFull()) throw new ClientError("quota");
    return writeAll(all);
  };
  assert.equal(await makeRoom(device, new Set(), 1_000), true);
  assert.equal(await isFull(), false);
  [files.write, files.writeAll] = [write, writeAll];
  await tab.core.lock();
  const later = await Tab.open(files);
  await later.core.unlock(proof);
  assert.deepEqual([(await later.core.chats()).map(({ title }) => title), await later.core.firstDraft()], [["Small"], "a thought"]);
});

test("chats are brought in with their dates, fields, embeds and memories; what is too large is left out and counted", async () => {
  const { tab } = await registered();
  const at = Date.parse("2025-03-01T10:00:00Z");
  await tab.core.setData("memory", "home_town", "Cork");
  const done = await tab.core.importChats({
    chats: [
      {
        title: "Old", fields: { icon: "car", tags: '["one","two"]', summary: "About it", pinned: "1", shares: '["settings"]', summaryX: "no" }, embeds: { old_embed: "code" },
        messages: [{ role: "user", body: "q", createdAt: at, refs: ["old_embed", "nothing"] }, { role: "assistant", body: "x".repeat(400_000) }, { role: "assistant", body: "r", model: "big", createdAt: at + 1000 }, { role: "user", body: "future", createdAt: Date.now() * 2 }],
      },
      { title: "Next", messages: [{ role: "user", body: "y" }] },
    ],
    memories: [{ name: "home_town", body: "Galway" }, { name: "shoe_size", body: "43" }, { name: "Not A Name", body: "z" }],
  });
  assert.deepEqual([done.chats.length, done.messages, done.memories, done.skipped], [2, 4, 1, 3]);
  await tab.until(async () => (await tab.core.waiting()).length === 0);
  const { chat, messages } = await tab.core.open(done.chats[0] ?? "");
  assert.deepEqual([chat.title, chat.icon, chat.tags, chat.summary, chat.pinned, chat.shares], ["Old", "car", ["one", "two"], "About it", true, []]);
  assert.deepEqual(messages.map(({ body, createdAt }) => [body, createdAt]).slice(0, 2), [["q", at], ["r", at + 1000]]);
  assert.ok(Math.abs((messages[2]?.createdAt ?? 0) - Date.now()) < 600_000);
  assert.equal(await tab.core.embed(chat.id, messages[0]?.embeds[0] ?? ""), "code");
  assert.deepEqual([await tab.core.data("memory", "home_town"), await tab.core.data("memory", "shoe_size")], ["Cork", "43"]);
});
