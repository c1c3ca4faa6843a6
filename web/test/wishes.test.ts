// What a server asks a device for while it answers, at a real server: shown before it goes, given by the person's word or a switch of the
// chat, noted in the reply; and every way in which nothing may go.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { type AskOptions, NO_OPTIONS, ask, cancel, giveUp, setSwitch, unanswered } from "../src/client/asks";
import { chat, newChat, say, setData, setField } from "../src/client/chats";
import { type Device, connect, disconnect } from "../src/client/device";
import { nameOf } from "../src/client/error";
import { MemoryFiles } from "../src/client/files";
import { listen } from "../src/client/live";
import { flush } from "../src/client/send";
import { sync } from "../src/client/sync";
import type { Telling } from "../src/client/turns";
import { type Wish, excerpt, give, isCached, setCached, share, sharesOf, wordsOf } from "../src/client/wishes";
import { type ChatId, TurnId, utf8 } from "../src/format/index";
import type { ServerFrame } from "../src/protocol/index";
import { type Person, World, bodies } from "./world/index";
import { Model } from "./world/model";
import { Through } from "./world/ways";

let world: World;
let model: Model;
const SECONDS = 6;

before(async () => {
  model = await Model.start();
  // What the small model finds out: it wants what the question says that it wants.
  model.forms.set("prepare_turn", (material) => ({
    language_code: "en",
    tags: material.includes("want summary") ? ["tides"] : [],
    relevant_app_settings_and_memories: material.includes("want settings") ? ["city", "diet"] : [],
    harm: {},
  }));
  world = await World.start({ ...model.filling, CONFIDANT_WEB__ASK_DEVICE_SECONDS: String(SECONDS) });
});
after(async () => {
  await world?.stop();
  await model?.stop();
});

interface Scene {
  person: Person;
  device: Device;
  id: ChatId;
  /** Frames that left the device. */
  sent: string[];
  /** Frames that the server is made to say before its next one. */
  forged: ServerFrame[];
}

/** A device with something to give, and a chat that asks. */
async function scene(): Promise<Scene> {
  const [sent, forged]: [string[], ServerFrame[]] = [[], []];
  const between = {
    sends: (frame: string) => (sent.push(frame), "on" as const),
    receives: (frame: ServerFrame) => [...(frame.event.type === "ai_message_update" ? forged.splice(0) : []), frame],
  };
  const { person, device } = await world.person(world.setup(new MemoryFiles(), new Through(world.transport(), between)));
  await setData(device, "memory", "city", "Cork");
  await setData(device, "memory", "diet", "no nuts");
  for (const [title, summary, words] of [
    ["Sailing", "About tides and boats.", "the tides at the harbour turn at six"],
    ["Cooking", "About bread.", "flour and water"],
    ["Fishing", "Where to fish when tides change.", "nothing to see"],
  ] as const) {
    const one = await newChat(device, title);
    await setField(device, one, "summary", summary);
    await say(device, one, words);
  }
  const id = await newChat(device, "Trip");
  await flush(device);
  return { person, device, id, sent, forged };
}

const there = (part: Partial<AskOptions> = {}): AskOptions => ({ ...NO_OPTIONS, available: ["city", "diet"], isPerson: true, ...part });

/** Listens until this is told; all that was. */
async function until(device: Device, told: Telling["told"]): Promise<Telling[]> {
  const all: Telling[] = [];
  for (;;) {
    const news = await listen(device);
    if (news?.news !== "turn") continue;
    all.push(news.told.what);
    if (news.told.what.told === told) return all;
    if (news.told.what.told === "failed" || news.told.what.told === "ended") throw new Error(`it ${news.told.what.told} before ${told}`);
  }
}

async function wished(device: Device): Promise<Wish> {
  const last = (await until(device, "wish")).at(-1);
  assert.ok(last?.told === "wish");
  return last.wish;
}

const given = (sent: readonly string[]) => sent.filter((frame) => frame.includes('"client_data"'));
const added = (sent: readonly string[]) => {
  const frame = sent.findLast((one) => one.includes('"chat_message_added"')) ?? "{}";
  return (JSON.parse(frame) as { event: Record<string, unknown> }).event;
};
const noted = (device: Device, id: ChatId) => chat(device, id).branch.at(-1)?.shared.map(({ what, bytes }) => `${what} ${bytes}`);

test("what an answer asks for is shown before it goes; some of it, nothing, or all goes, and is noted in the sealed reply", async () => {
  const { person, device, id, sent } = await scene();
  const { turn } = await ask(device, id, "want settings and want summary", there());
  await flush(device);
  assert.deepEqual(added(sent)["asks"], ["settings", "summary", "search"]);
  const both = [await wished(device), await wished(device)];
  const settings = both.find(({ what }) => what === "settings");
  const similar = both.find(({ what }) => what === "summary");
  assert.ok(settings !== undefined && similar !== undefined);
  assert.deepEqual(settings.names, ["city", "diet"]);
  assert.deepEqual(settings.pieces.map(({ name, text }) => [name, text]), [["city", "Cork"], ["diet", "no nuts"]]);
  assert.deepEqual(similar.pieces.map(({ name }) => name).sort(), ["Fishing", "Sailing"], "those that have to do with it");
  assert.deepEqual(given(sent), [], "nothing went before the person's word");
  // Nothing of another kind, nothing that was not asked for, nothing twice.
  const [city] = settings.pieces;
  assert.ok(city !== undefined);
  assert.equal(await give(device, id, turn, "settings", [{ ...city, what: "search" }]).catch(nameOf), "too-large");
  assert.equal(await give(device, id, turn, "search", []).catch(nameOf), "unasked");
  await give(device, id, turn, "settings", [city]);
  assert.equal(await give(device, id, turn, "settings", settings.pieces.slice(1)).catch(nameOf), "unasked");
  await give(device, id, turn, "summary", []);
  await until(device, "ended");
  assert.equal(await give(device, id, turn, "summary", similar.pieces).catch(nameOf), "unasked", "it is answered");
  await flush(device);
  assert.ok(model.last.includes("Cork"), "the model has what was given");
  assert.ok(!model.last.includes("no nuts") && !model.last.includes("About tides"), "and nothing else");
  assert.equal(given(sent).length, 2);
  assert.deepEqual(noted(device, id), ["settings 4"]);
  assert.deepEqual(noted(await world.synced(person), id), ["settings 4"], "on every device");
});

test("what was given is noted, once, also if another device stores the answer first", async () => {
  const { person, device: one, id } = await scene();
  const two = await world.synced(person);
  const { turn } = await ask(one, id, "want settings", there());
  await flush(one);
  const wish = await wished(one);
  await sync(two, "all");
  await give(one, id, turn, "settings", wish.pieces.slice(0, 1));
  // The other device is faster, and does not know what was given.
  await until(two, "ended");
  await flush(two);
  assert.deepEqual(two.rooms.get(id)?.head.pending, []);
  assert.deepEqual(noted(two, id), []);
  for (let times = 0; times < 2; times++) {
    await sync(one, "all");
    await flush(one);
    await sync(two, "all");
    assert.deepEqual(noted(two, id), ["settings 4"]);
  }
  assert.deepEqual([one.state.queue.ops.length, one.state.queue.copies.length, one.state.asks.length], [0, 0, 0]);
  assert.deepEqual(bodies(one, id), bodies(two, id));
});

test("a search finds what other chats say, and not what the server has", async () => {
  const { device, id } = await scene();
  const { turn } = await ask(device, id, 'call search {"query":"tides"}', there());
  await flush(device);
  const wish = await wished(device);
  assert.deepEqual([wish.what, wish.query], ["search", "tides"]);
  assert.deepEqual(wish.pieces.map(({ name, text }) => [name, text]), [["Sailing", "the tides at the harbour turn at six"]]);
  await give(device, id, turn, "search", wish.pieces);
  await until(device, "ended");
  await flush(device);
  assert.match(bodies(device, id).at(-1) ?? "", /the tides at the harbour turn at six/);
  assert.deepEqual(noted(device, id), ["search 36"]);
});

test("a switch of the chat gives without asking; it is off at first, for one chat only, and the command line knows it", async () => {
  const { person, device, id, sent } = await scene();
  assert.deepEqual(sharesOf(device, id), []);
  await share(device, id, "settings", true);
  await share(device, id, "search", true);
  await share(device, id, "search", false);
  await flush(device);
  const rust = world.rust(person);
  const lines = await rust.do(`/open ${id}`, "/share");
  assert.deepEqual(lines.flatMap((line) => ("shares" in line ? [line["shares"]] : [])), ["settings"]);
  // Nobody is there: what is not switched on is not even allowed.
  await ask(device, id, "want settings and want summary", there({ isPerson: false }));
  await flush(device);
  assert.deepEqual(added(sent)["asks"], ["settings"]);
  const told = await until(device, "ended");
  const gave = told.find((one) => one.told === "gave");
  assert.deepEqual(gave?.told === "gave" ? gave.pieces.map(({ name }) => name) : [], ["city", "diet"], "and it is said");
  await flush(device);
  assert.deepEqual(noted(device, id), ["settings 4", "settings 7"]);
  const other = await newChat(device, "Another");
  await ask(device, other, "want settings", there({ isPerson: false }));
  await flush(device);
  assert.deepEqual(added(sent)["asks"], []);
  await until(device, "ended");
  assert.equal(given(sent).length, 1);
});

test("what is switched off is allowed in no question and given to nobody, also where it was switched on for the chat", async () => {
  const { device, id, sent, forged } = await scene();
  await share(device, id, "settings", true);
  await setSwitch(device, "settings", false);
  await setSwitch(device, "similar", false);
  model.answers.set("want settings", ["a", "b", "c"]);
  const { turn } = await ask(device, id, "want settings", there({ off: ["search"], given: [{ what: "settings", name: "city", text: "Cork" }] }));
  forged.push(
    { event: { type: "request_client_data", chat: id, turn, what: "settings", names: ["city"] } },
    { event: { type: "request_client_data", chat: id, turn, what: "search", names: [], query: "tides" } },
    { event: { type: "request_client_data", chat: id, turn: TurnId.random(), what: "summary", names: ["tides"] } },
  );
  await flush(device);
  const question = added(sent);
  assert.deepEqual([question["asks"], question["available"], question["given"]], [[], [], []]);
  assert.deepEqual(question["off"], ["settings", "similar", "search"]);
  const refused: string[] = [];
  for (let isOver = false; !isOver; ) {
    try {
      const news = await listen(device);
      isOver = news?.news === "turn" && news.told.what.told === "ended";
    } catch (error) {
      refused.push(nameOf(error));
    }
  }
  assert.deepEqual(refused, ["unasked", "unasked", "unasked"]);
  assert.deepEqual(given(sent), []);
  assert.ok(!sent.some((frame) => frame.includes("Cork")), "nothing left in clear");
});

test("switched off while the question waited: nothing of it goes", async () => {
  const { device, id, sent } = await scene();
  await ask(device, id, "want settings", there({ given: [{ what: "settings", name: "city", text: "Cork" }] }));
  await setSwitch(device, "settings", false);
  await flush(device);
  assert.deepEqual([added(sent)["asks"], added(sent)["available"], added(sent)["given"]], [["summary", "search"], [], []]);
  await until(device, "ended");
});

test("without a word the answer goes on, and what comes later goes nowhere", { timeout: 180_000 }, async () => {
  const { device, id, sent } = await scene();
  const { turn } = await ask(device, id, "want settings", there());
  await flush(device);
  const wish = await wished(device);
  const began = Date.now();
  await until(device, "ended");
  assert.ok(Date.now() - began > (SECONDS - 2) * 1000, "it waited");
  assert.equal(await give(device, id, turn, "settings", wish.pieces).catch(nameOf), "unasked");
  await flush(device);
  assert.deepEqual([given(sent), noted(device, id)], [[], []]);
});

test("a turn that was stopped, and a connection that was lost, get nothing", async () => {
  const { device, id, sent } = await scene();
  const { turn } = await ask(device, id, "want settings", there());
  await flush(device);
  const wish = await wished(device);
  await cancel(device, id, turn);
  assert.equal(await give(device, id, turn, "settings", wish.pieces).catch(nameOf), "unasked");
  for (let isOver = false; !isOver; ) {
    const news = await listen(device);
    isOver = news?.news === "turn" && ["ended", "failed"].includes(news.told.what.told);
  }
  // A turn that had said nothing has no answer.
  if (unanswered(device).length > 0) await giveUp(device, id, turn);
  await flush(device);
  const second = await ask(device, id, "want settings again", there());
  await flush(device);
  const again = await wished(device);
  disconnect(device);
  assert.equal(await give(device, id, second.turn, "settings", again.pieces).catch(nameOf), "unasked");
  await connect(device);
  assert.equal(await give(device, id, second.turn, "settings", again.pieces).catch(nameOf), "unasked", "another socket");
  await sync(device, "all");
  await until(device, "ended");
  await flush(device);
  assert.deepEqual([given(sent), noted(device, id)], [[], []]);
});

test("three pieces and four kibibytes is all that a turn has", async () => {
  const { device, id } = await scene();
  await setData(device, "memory", "diet", "x".repeat(4096));
  const { turn } = await ask(device, id, "want settings", there({ given: [{ what: "settings", name: "job", text: "baker" }] }));
  await flush(device);
  const wish = await wished(device);
  assert.deepEqual(wish.pieces.map(({ name }) => name), ["city"], "the other does not fit any more");
  const [city] = wish.pieces;
  assert.ok(city !== undefined);
  assert.equal(await give(device, id, turn, "settings", [city, city, city]).catch(nameOf), "too-large");
  assert.equal(await give(device, id, turn, "settings", [{ ...city, text: "x".repeat(4092) }]).catch(nameOf), "too-large");
  await give(device, id, turn, "settings", wish.pieces);
  await until(device, "ended");
});

test("a chat that is not cached says so in every question, on every device and on the command line", async () => {
  const { person, device, id, sent } = await scene();
  assert.ok(isCached(device, id));
  await setCached(device, id, false);
  await ask(device, id, "not kept");
  await flush(device);
  assert.equal(added(sent)["keep"], "turn");
  await until(device, "ended");
  await flush(device);
  const other = await world.synced(person);
  assert.ok(!isCached(other, id));
  const rust = world.rust(person);
  const lines = await rust.do(`/open ${id}`, "/cache", "/cache on");
  assert.deepEqual(lines.flatMap((line) => ("cache" in line ? [line["cache"]] : [])), ["off", "on"]);
  await sync(device, "all");
  assert.ok(isCached(device, id));
  await setSwitch(device, "cache", false);
  await ask(device, id, "kept by no chat");
  await flush(device);
  assert.equal(added(sent)["keep"], "turn", "switched off for all");
  await until(device, "ended");
});

test("words are found where they stand", () => {
  const text = "Über die Gezeiten… tides, TIDES and a tide";
  const found = wordsOf(text);
  assert.equal(found.get("über"), 0);
  assert.equal(text.slice(found.get("tide")).slice(0, 5), "tides");
  assert.ok(!found.has("a") && found.has("and"));
  const long = `${"😀".repeat(2000)} needle ${"ö".repeat(2000)}`;
  const cut = excerpt(long, wordsOf(long).get("needle") ?? 0);
  assert.ok(cut.includes("needle") && utf8(cut).length <= 1200);
  assert.equal(excerpt("short", 3), "short");
});
