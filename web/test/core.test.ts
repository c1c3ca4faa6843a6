// What the page asks for, end to end: the keeper, the lock and the commands, at a real server, with files in memory.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { type AccountCommands, Door, accountCommands } from "../src/client/account_commands";
import { type ChatCommands, chatCommands } from "../src/client/commands";
import type { CoreEvent } from "../src/client/core";
import { MemoryFiles } from "../src/client/files";
import { Keeper, errorOf } from "../src/client/keeper";
import { stateToJson } from "../src/client/state";
import { World } from "./world/index";
import { Model } from "./world/model";
import { Secrets } from "./world/secrets";
import { Through } from "./world/ways";
import { Weather } from "./world/weather";

let world: World;
let model: Model;
const keepers: Keeper[] = [];
/** Every key that is used here, and everything that a page would be told. */
const secrets = Secrets.watch();

before(async () => {
  model = await Model.start();
  world = await World.start(model.settings);
  await world.person();
});
after(async () => {
  for (const keeper of keepers) keeper.stop();
  await world.stop();
  await model.stop();
});

/** A tab of a browser: everything of a worker but its messages. */
class Tab {
  readonly events: CoreEvent[] = [];
  readonly weather = new Weather();
  readonly core: AccountCommands & ChatCommands;
  readonly keeper: Keeper;
  readonly door: Door;
  #hears: (() => void) | null = null;

  constructor(readonly files: MemoryFiles) {
    const emit = (event: CoreEvent) => {
      this.events.push(event);
      secrets.say(event);
      this.#hears?.();
    };
    const around = { emit, clock: () => Date.now(), isOnline: () => true };
    this.keeper = new Keeper(around);
    keepers.push(this.keeper);
    this.door = new Door(this.keeper, files, new Through(world.transport(), this.weather), around);
    this.core = overheard({ ...accountCommands(this.door), ...chatCommands(this.keeper) });
  }

  static async open(files = new MemoryFiles()): Promise<Tab> {
    const tab = new Tab(files);
    await tab.door.start();
    return tab;
  }

  /** Waits for an event that is like this, among those that came since `from`. */
  async hears<T extends CoreEvent["type"]>(type: T, is: (event: Extract<CoreEvent, { type: T }>) => boolean = () => true, from = 0) {
    for (;;) {
      for (const event of this.events.slice(from)) {
        if (event.type === type && is(event as Extract<CoreEvent, { type: T }>)) return event as Extract<CoreEvent, { type: T }>;
      }
      await new Promise<void>((resolve, reject) => {
        const late = setTimeout(() => reject(new Error(`no ${type}; ${JSON.stringify(this.events.slice(-4))}`)), 120_000);
        this.#hears = () => {
          clearTimeout(late);
          resolve();
        };
      });
    }
  }

  /** Waits until nothing waits to be stored. */
  async sent(): Promise<void> {
    while ((await this.core.waiting()).length > 0) await new Promise((resolve) => setTimeout(resolve, 20));
  }

  online() {
    return this.hears("connection", ({ connection }) => connection.state === "online", this.events.length);
  }
}

/** The same commands; what they give, and how they fail, is noted. */
function overheard<T extends object>(commands: T): T {
  const noted = (command: (...args: unknown[]) => Promise<unknown>) => async (...args: unknown[]) => {
    try {
      const value = await command(...args);
      secrets.say(value);
      return value;
    } catch (error) {
      secrets.say(errorOf(error));
      throw error;
    }
  };
  return Object.fromEntries(Object.entries(commands).map(([name, command]) => [name, noted(command as never)])) as T;
}

const fails = async (act: Promise<unknown>) => act.then(() => "nothing", (error: unknown) => errorOf(error).name);

let people = 0;
async function registered(): Promise<{ tab: Tab; login: string; recoveryCode: string }> {
  people += 1;
  const login = `core-${people}@example.org`;
  const tab = await Tab.open();
  assert.deepEqual(await tab.core.account(), { state: "none" });
  const online = tab.online();
  const { recoveryCode } = await tab.core.register(login, "correct horse");
  await online;
  return { tab, login, recoveryCode };
}

const password = (words: string) => ({ kind: "password" as const, password: words });

test("from registering to an answer, and back after locking", async () => {
  const { tab, login, recoveryCode } = await registered();
  assert.match(recoveryCode, /^([a-z2-7]{4}-){7}[a-z2-7]{4}$/);
  const state = await tab.core.account();
  assert.ok(state.state === "open" && state.login === login && state.hasSession && !state.staysUnlocked);
  const chat = await tab.core.newChat({ title: "Trip" });
  model.answers.set("Where to?", ["To ", "Wien"]);
  const from = tab.events.length;
  await tab.core.open(chat);
  const asked = await tab.core.ask(chat, "Where to?");
  await tab.hears("begun", ({ turn }) => turn === asked.turn, from);
  await tab.hears("words", ({ turn, at }) => turn === asked.turn && at === 0, from);
  const ended = await tab.hears("ended", ({ turn }) => turn === asked.turn, from);
  assert.equal(ended.finish, "whole");
  await tab.sent();
  const page = await tab.core.open(chat);
  assert.deepEqual(page.messages.map(({ role, body, status }) => [role, body, status]), [
    ["user", "Where to?", "sealed"],
    ["assistant", "To Wien", "sealed"],
  ]);
  assert.deepEqual(page.turns, []);
  assert.equal(page.messages[1]?.heard?.finish, "whole");
  await tab.core.lock();
  assert.deepEqual(await tab.core.account(), { state: "locked", login });
  assert.equal(await fails(tab.core.chats()), "locked");
  assert.equal(await fails(tab.core.unlock(password("wrong horse"))), "login-refused");
  // Another tab, later: the files are there, and nothing opens them but what the person knows.
  const later = await Tab.open(tab.files);
  assert.deepEqual(await later.core.account(), { state: "locked", login });
  later.weather.isOff = true;
  await later.core.unlock(password("correct horse"));
  assert.deepEqual((await later.core.open(chat)).messages.map(({ body }) => body), ["Where to?", "To Wien"], "also offline");
  later.keeper.stop();
  const byCode = await Tab.open(tab.files);
  await byCode.core.unlock({ kind: "recovery", code: recoveryCode.toUpperCase() });
  assert.equal((await byCode.core.chats()).length, 1);
});

test("nothing of what was written lies in the browser's files in clear", async () => {
  const { tab } = await registered();
  const chat = await tab.core.newChat({ title: "canary-title" });
  await tab.core.say(chat, "canary-words");
  await tab.core.setDraft(chat, "canary-draft");
  await tab.core.setData("settings", "style", "canary-setting");
  const names = await tab.files.names();
  assert.ok(names.includes("state") && names.includes("lock") && !names.includes("device.key"));
  for (const name of names) {
    const text = Buffer.from((await tab.files.read(name)) ?? []).toString("latin1");
    assert.ok(!text.includes("canary") && !text.includes("correct horse"), name);
  }
});

test("staying unlocked is off at first, and ends with locking", async () => {
  const { tab, login } = await registered();
  tab.keeper.stop();
  const again = await Tab.open(tab.files);
  assert.equal((await again.core.account()).state, "locked");
  await again.core.unlock(password("correct horse"));
  await again.core.stayUnlocked(true);
  again.keeper.stop();
  const stays = await Tab.open(tab.files);
  const state = await stays.core.account();
  assert.ok(state.state === "open" && state.staysUnlocked);
  await stays.core.lock();
  const locked = await Tab.open(tab.files);
  assert.deepEqual(await locked.core.account(), { state: "locked", login });
});

test("what is written offline waits, and is sent when the server is there again", async () => {
  const { tab, login } = await registered();
  const chat = await tab.core.newChat({ title: "Trip" });
  await tab.sent();
  tab.weather.isOff = true;
  const from = tab.events.length;
  await tab.core.say(chat, "on the train");
  await tab.hears("connection", ({ connection }) => connection.state === "connecting" && connection.nextTryAt !== undefined, from);
  assert.deepEqual((await tab.core.waiting()).map(({ what, text }) => [what, text]), [["message", "on the train"]]);
  assert.equal((await tab.core.open(chat)).messages[0]?.status, "unsent");
  // Commands are done meanwhile, whatever becomes of the connection.
  await tab.core.rename(chat, "Train");
  tab.weather.isOff = false;
  await tab.core.retryNow();
  await tab.hears("connection", ({ connection }) => connection.state === "online", from);
  await tab.sent();
  const other = await Tab.open();
  const online = other.online();
  await other.core.logIn(login, password("correct horse"));
  await online;
  const [line] = await other.core.chats();
  assert.equal(line?.title, "Train");
  assert.deepEqual((await other.core.open(chat)).messages.map(({ body, status }) => [body, status]), [["on the train", "sealed"]]);
});

test("it is in sync by itself, also if a command connected first", async () => {
  const { tab } = await registered();
  const chat = await tab.core.newChat({ title: "Trip" });
  await tab.sent();
  await tab.core.lock();
  const online = tab.online();
  await tab.core.unlock(password("correct horse"));
  // Asks the server, while the keeper is only just dialling.
  await Promise.all([tab.core.open(chat), tab.core.loadOlder()]);
  await online;
});

test("two tabs of two browsers hear of each other; pinned, drafts, settings and search", async () => {
  const { tab: one, login } = await registered();
  const two = await Tab.open();
  const online = two.online();
  await two.core.logIn(login, password("correct horse"));
  await online;
  const chat = await one.core.newChat({ title: "Trip" });
  await one.core.say(chat, "We go to Wien by train");
  await two.hears("chats", ({ changed }) => changed.some(({ id, title }) => id === chat && title === "Trip"));
  await two.core.open(chat);
  const from = two.events.length;
  await one.core.setPinned(chat, true);
  await two.hears("chats", ({ changed }) => changed.some(({ pinned }) => pinned), from);
  await one.core.setSwitch("tools", false);
  await two.hears("data", ({ kind, name }) => kind === "settings" && name === "off");
  assert.deepEqual(await two.core.switchedOff(), ["tools"]);
  assert.deepEqual((await two.core.search("wien")).hits.map(({ excerpt, at, length }) => excerpt.slice(at, at + length)), ["Wien"]);
  await two.core.deleteChat(chat, 60_000);
  assert.deepEqual(await two.core.chats(), []);
  await two.core.undoDelete(chat);
  assert.equal((await two.core.chats()).length, 1);
  await two.core.deleteChat(chat);
  await one.hears("chats", ({ gone }) => gone.includes(chat));
});

test("branches: edit and resend, alternatives, and the newest leaf under one", async () => {
  const { tab } = await registered();
  const chat = await tab.core.newChat();
  await tab.core.open(chat);
  const answered = async (asking: Promise<{ turn: string }>) => {
    const from = tab.events.length;
    const { turn } = await asking;
    await tab.hears("ended", (event) => event.turn === turn, from);
    await tab.sent();
  };
  await answered(tab.core.ask(chat, "first"));
  const first = (await tab.core.open(chat)).messages[0];
  assert.ok(first !== undefined);
  await answered(tab.core.retry(chat, first.id));
  let page = await tab.core.open(chat);
  assert.deepEqual(page.messages[1]?.alternatives.at, 1);
  assert.equal(page.messages[1]?.alternatives.ids.length, 2);
  await answered(tab.core.askInstead(chat, first.id, "first, but better"));
  page = await tab.core.open(chat);
  assert.deepEqual(page.messages.map(({ body }) => body), ["first, but better", "noted: first, but better"]);
  assert.deepEqual(page.messages[0]?.alternatives, { at: 1, ids: [first.id, page.messages[0]?.id] });
  await tab.core.showBranch(chat, first.id);
  page = await tab.core.open(chat);
  assert.deepEqual([page.messages.length, page.messages[0]?.body, page.messages[1]?.alternatives.at], [2, "first", 1]);
});

test("a password that was changed elsewhere: the old one opens the files, the new one the account", async () => {
  const { tab: one, login } = await registered();
  const two = await Tab.open();
  const online = two.online();
  await two.core.logIn(login, password("correct horse"));
  await online;
  const chat = await two.core.newChat({ title: "Trip" });
  await two.sent();
  await one.core.changePassword(password("correct horse"), "new horse");
  const device = (await one.core.devices()).find(({ isThis }) => !isThis);
  await one.core.revokeDevice(password("new horse"), device?.device ?? "");
  await two.hears("connection", ({ connection }) => connection.state === "ended" && connection.error?.reason === "revoked");
  await two.core.say(chat, "kept");
  two.keeper.stop();
  const again = await Tab.open(two.files);
  assert.equal(await fails(again.core.logIn(login, password("new horse"))), "damaged");
  await again.core.unlock(password("correct horse"));
  await again.hears("connection", ({ connection }) => connection.state === "ended");
  const back = again.online();
  await again.core.logIn(login, password("new horse"));
  await back;
  assert.deepEqual((await again.core.open(chat)).messages.map(({ body, status }) => [body, status]), [["kept", "sealed"]]);
  again.keeper.stop();
  const last = await Tab.open(two.files);
  assert.equal(await fails(last.core.unlock(password("correct horse"))), "login-refused");
  await last.core.unlock(password("new horse"));
});

test("recovering, pairing, exporting, logging out and erasing", async () => {
  const { tab, login, recoveryCode } = await registered();
  const chat = await tab.core.newChat({ title: "Trip" });
  await tab.sent();
  const two = await Tab.open();
  await two.core.logIn(login, { kind: "recovery", code: recoveryCode });
  const { recoveryCode: next } = await two.core.recover(recoveryCode, "remembered");
  assert.notEqual(next, recoveryCode);
  await two.core.lock();
  await two.core.unlock(password("remembered"));
  const fresh = await Tab.open();
  const { text } = await fresh.core.pairOffer();
  assert.equal(await fresh.core.pairFetch(), "waiting");
  await two.core.pairSend(password("remembered"), text);
  const online = fresh.online();
  assert.equal(await fresh.core.pairFetch(), "paired");
  await online;
  await fresh.core.setUnlock(login, password("remembered"));
  assert.equal((await fresh.core.chats())[0]?.title, "Trip");
  await fresh.core.lock();
  await fresh.core.unlock(password("remembered"));
  const exported = JSON.parse(await two.core.exportAll(password("remembered"))) as { chats: { id: string }[] };
  assert.deepEqual(exported.chats.map(({ id }) => id), [chat]);
  assert.ok((await two.core.exportChat(chat, "markdown")).startsWith("# Trip\n"));
  assert.ok((await two.core.devices()).length >= 2);
  fresh.weather.isOff = true;
  await fresh.core.say(chat, "unsent");
  assert.equal(await fails(fresh.core.logOut()), "conflict", "something was not sent");
  fresh.weather.isOff = false;
  await fresh.core.logOut({ unsent: "throw-away" });
  assert.deepEqual([await fresh.core.account(), await fresh.files.names()], [{ state: "none" }, []]);
  // A third browser that is open while another one erases the account: its copy goes too.
  const third = await Tab.open();
  const thirdOnline = third.online();
  await third.core.logIn(login, password("remembered"));
  await thirdOnline;
  const from = third.events.length;
  assert.ok((await two.core.erase(password("remembered"))).length > 0);
  await third.hears("account", ({ account }) => account.state === "none", from);
  assert.deepEqual(await third.files.names(), []);
  assert.deepEqual([await two.core.account(), await two.files.names()], [{ state: "none" }, []]);
  assert.equal(await fails((await Tab.open()).core.logIn(login, password("remembered"))), "login-refused");
});

test("a temporary chat is answered, and nothing of it is kept anywhere", async () => {
  const { tab, login } = await registered();
  const chat = await tab.core.newChat({ temporary: true });
  await tab.core.open(chat);
  const answered = async (asking: Promise<{ turn: string }>) => {
    const from = tab.events.length;
    const { turn } = await asking;
    await tab.hears("ended", (event) => event.turn === turn, from);
    return from;
  };
  await answered(tab.core.ask(chat, "canary-question"));
  const from = await answered(tab.core.ask(chat, "and then?"));
  const history = await tab.hears("history", (event) => event.chat === chat, from);
  assert.equal(history.messages, 2, "the server had kept nothing");
  assert.ok(model.last.includes("canary-question"));
  const page = await tab.core.open(chat);
  assert.deepEqual(page.messages.map(({ body }) => body), [
    "canary-question",
    "noted: canary-question",
    "and then?",
    "noted: and then?",
  ]);
  assert.ok(page.chat.isTemporary);
  assert.deepEqual([page.turns, await tab.core.waiting()], [[], []]);
  const second = page.messages[2];
  await answered(tab.core.retry(chat, second?.id ?? ""));
  assert.equal((await tab.core.open(chat)).messages[3]?.alternatives.ids.length, 2);
  const { device } = tab.keeper;
  assert.ok(device !== null && !Buffer.from(stateToJson(device.state)).includes(chat), "not even its id");
  assert.ok((await tab.files.names()).every((name) => !name.includes(chat)));
  const other = await Tab.open();
  const online = other.online();
  await other.core.logIn(login, password("correct horse"));
  await online;
  assert.deepEqual(await other.core.chats(), []);
  await tab.core.lock();
  await tab.core.unlock(password("correct horse"));
  assert.deepEqual(await tab.core.chats(), []);
});

test("in all of that, no key came out: in no answer to a page, no event and no error", () => {
  assert.ok(secrets.size > 100, `${secrets.size} keys`);
  assert.deepEqual(secrets.told(), []);
});
