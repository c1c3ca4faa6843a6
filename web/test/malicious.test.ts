// A server that lies: each lie ends in its own error, and nothing false is shown.
//
// The liar stands between a device and a real server and changes what passes. A "stranger" logged in just now and remembers nothing; a
// "friend" synced before the lie.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { logIn } from "../src/client/account";
import { addEmbed, chat, chats, data, deleteChat, deleteMessage, edit, newChat, say, setData, setDraft } from "../src/client/chats";
import { type Device, disconnect, openDevice } from "../src/client/device";
import { nameOf } from "../src/client/error";
import { MemoryFiles } from "../src/client/files";
import { listen } from "../src/client/live";
import { rotate } from "../src/client/rotate";
import { flush } from "../src/client/send";
import { embed, loadOlder, openChat, sync } from "../src/client/sync";
import { Digest, EmbedId, ItemId, Kid, MessageId, PublicKey, utf8 } from "../src/format/index";
import type { ChatId } from "../src/format/index";
import { type AccountState, type ChatSent, type ChatUpdated, type ItemSent, SessionOpened, readBody, writeBody } from "../src/protocol/index";
import { type Person, World, bodies } from "./world/index";
import { Liar, dropped, flipped, onAccount, onChat, onChats, onItem, withEnvelope } from "./world/lies";
import { Through } from "./world/ways";

let world: World;
before(async () => {
  world = await World.start();
});
after(() => world?.stop());

/** An honest device, what it wrote, and devices over a liar. */
class Scene {
  private constructor(
    readonly person: Person,
    readonly one: Device,
    readonly chat: ChatId,
    readonly other: ChatId,
    readonly ids: readonly [MessageId, MessageId, MessageId],
  ) {}

  static async make(): Promise<Scene> {
    const { person, device: one } = await world.person();
    const [trip, other] = [await newChat(one, "Trip"), await newChat(one, "Other")];
    const ids = [await say(one, trip, "first"), await say(one, trip, "second"), await say(one, trip, "third")] as const;
    await say(one, other, "elsewhere");
    await setDraft(one, trip, "a draft");
    await setData(one, "settings", "theme", "dark");
    await flush(one);
    return new Scene(person, one, trip, other, ids);
  }

  async stranger(): Promise<[Liar, Device]> {
    const liar = new Liar();
    const setup = world.setup(new MemoryFiles(), new Through(world.transport(), liar));
    return [liar, await world.device(this.person, setup)];
  }

  async friend(): Promise<[Liar, Device]> {
    const [liar, device] = await this.stranger();
    await sync(device, "all");
    return [liar, device];
  }

  /** The message of the other chat, as the server sends it. */
  async foreign(): Promise<ItemSent> {
    const [liar, device] = await this.friend();
    disconnect(device);
    const items = liar.chats().filter((sent) => sent.chat === this.other).flatMap((sent) => sent.items);
    return some(items.find((sent) => ItemId.isMessage(sent.item)));
  }
}

function some<T>(value: T | null | undefined): T {
  assert.ok(value !== null && value !== undefined);
  return value;
}

async function refused(done: Promise<unknown>): Promise<string> {
  try {
    await done;
  } catch (error) {
    return nameOf(error);
  }
  return "nothing was refused";
}

/** The name of the first refusal that listening ends in. */
async function refusedNews(device: Device): Promise<string> {
  try {
    while ((await listen(device, AbortSignal.timeout(PATIENCE))) !== null);
  } catch (error) {
    return nameOf(error);
  }
  return "nothing was refused";
}

/** How long nothing may happen, in milliseconds. */
const PATIENCE = 120_000;

const TITLE = ItemId.parse("meta:title");

test("lies about what a chat consists of are refused by name", async () => {
  const scene = await Scene.make();
  const [first, second, third] = scene.ids;
  const foreign = await scene.foreign();
  const at = (items: readonly ItemSent[], id: ItemId) => some(items.find((sent) => sent.item === id));
  const swapped = (items: readonly ItemSent[], one: ItemId, two: ItemId, withHash: boolean) => {
    const [left, right] = [at(items, one), at(items, two)];
    const as = (sent: ItemSent, other: ItemSent) => ({ ...withEnvelope(sent, other.envelope), hash: withHash ? other.hash : sent.hash });
    return items.map((sent) => (sent === left ? as(left, right) : sent === right ? as(right, left) : sent));
  };
  type ItemsLie = (items: readonly ItemSent[]) => readonly ItemSent[];
  const lies: [string, string, ItemsLie][] = [
    ["the tail is missing", "list-refused", (items) => items.filter((sent) => sent.item !== third)],
    ["one in the middle is missing", "list-refused", (items) => items.filter((sent) => sent.item !== second)],
    ["a field is missing", "list-refused", (items) => items.filter((sent) => sent.item !== TITLE)],
    ["two messages change places", "record-refused", (items) => swapped(items, first, second, false)],
    ["two messages change places with their hashes", "list-refused", (items) => swapped(items, first, second, true)],
    ["a message is a title", "record-refused", (items) => swapped(items, TITLE, second, false)],
    ["a message of another chat", "record-refused", (items) => onItem(items, first, (sent) => withEnvelope(sent, foreign.envelope))],
    ["a message of another chat is put in", "list-refused", (items) => [...items, foreign]],
    ["a message gets another id", "list-refused", (items) => onItem(items, first, (sent) => ({ ...sent, item: MessageId.random() }))],
    ["a message is there twice", "list-refused", (items) => [...items, { ...at(items, first), item: MessageId.random() }]],
    ["a byte is changed", "record-refused", (items) => onItem(items, third, (sent) => withEnvelope(sent, flipped(some(sent.envelope))))],
    ["a message without its words", "withheld", (items) => onItem(items, third, (sent) => withEnvelope(sent, undefined))],
    ["everything is left out", "list-refused", () => []],
  ];
  for (const [what, expected, lie] of lies) {
    const [liar, device] = await scene.stranger();
    liar.lie = onChat(scene.chat, (sent) => (sent.whole ? { ...sent, items: lie(sent.items) } : sent));
    assert.equal(await refused(sync(device, "all")), expected, what);
    assert.throws(() => chat(device, scene.chat), { name: "no-such-chat" }, `${what}: something is shown`);
    assert.deepEqual(bodies(device, scene.other), ["elsewhere"], `${what}: the other chat is fine`);
    // The lie ends: everything is there.
    liar.lie = null;
    await sync(device, "all");
    assert.deepEqual(bodies(device, scene.chat), ["first", "second", "third"], what);
    disconnect(device);
  }
});

test("chats that are kept back or put back are refused", async () => {
  const scene = await Scene.make();
  const withoutIt = onAccount((state) => ({ ...state, chats: new Map([...state.chats].filter(([id]) => id !== scene.chat)) }));
  // Kept back in the list and in the phases.
  let [liar, device] = await scene.stranger();
  liar.lie = (frame) => withoutIt(dropped(scene.chat)(frame));
  assert.equal(await refused(sync(device, "all")), "withheld");
  assert.deepEqual(chats(device), [], "nothing of a refused account is shown");
  // Kept back in the phases, and said to be missing when it is asked for.
  [liar, device] = await scene.stranger();
  liar.lie = dropped(scene.chat);
  assert.equal(await refused(sync(device, "all")), "withheld");
  assert.throws(() => chat(device, scene.chat), { name: "no-such-chat" });
  assert.equal(await refused(openChat(device, scene.chat)), "withheld");
  // Neither sent nor said to be missing: the floor is ahead of what this device has.
  [liar, device] = await scene.friend();
  await say(scene.one, scene.chat, "fourth");
  await flush(scene.one);
  liar.lie = onChat(scene.chat, () => null);
  assert.equal(await refused(sync(device, "all")), "withheld");
  assert.deepEqual(bodies(device, scene.chat), ["first", "second", "third"]);
  // Kept back when older chats are asked for.
  [liar, device] = await scene.stranger();
  await sync(device, "last_chat");
  liar.lie = dropped(scene.chat);
  assert.equal(await refused(loadOlder(device, 50)), "withheld");
  assert.deepEqual(bodies(device, scene.other), ["elsewhere"], "the others are there");
  liar.lie = null;
  await loadOlder(device, 50);
  assert.equal(bodies(device, scene.chat).length, 4);
  // Deleted, and put back in the list.
  [liar, device] = await scene.friend();
  const old = liar.chats().filter((sent) => sent.chat === scene.chat);
  await deleteChat(scene.one, scene.chat);
  await flush(scene.one);
  const versions = { messagesV: 1, titleV: 1, draftV: 0 };
  liar.lie = onAccount((state) => ({ ...state, chats: new Map([...state.chats, [scene.chat, versions]]) }));
  assert.equal(await refused(sync(device, "all")), "list-refused");
  // Put back in the phases only.
  [liar, device] = await scene.stranger();
  liar.lie = (frame) => {
    const { event } = frame;
    if (event.type !== "phase_2_last_20_chats_ready") return frame;
    return { ...frame, event: { ...event, chats: [...event.chats, ...old] } };
  };
  assert.equal(await refused(sync(device, "all")), "list-refused");
  assert.throws(() => chat(device, scene.chat), { name: "no-such-chat" });
});

test("an older state is rolled-back", async () => {
  const scene = await Scene.make();
  const [liar, device] = await scene.friend();
  const old = [...liar.heard];
  const oldChat = some(liar.chats().find((sent) => sent.chat === scene.chat));
  await edit(scene.one, scene.chat, scene.ids[0], "first, changed");
  await deleteMessage(scene.one, scene.chat, scene.ids[2]);
  await say(scene.one, scene.chat, "fourth");
  await flush(scene.one);
  await sync(device, "all");
  const now = ["first, changed", "second", "fourth"];
  assert.deepEqual(bodies(device, scene.chat), now);
  // The whole account of before, to a device with memory.
  const state = some(old.find(({ event }) => event.type === "account_state"));
  liar.lie = (frame) => (frame.event.type === "account_state" ? { ...frame, event: state.event } : frame);
  assert.equal(await refused(sync(device, "all")), "rolled-back");
  assert.deepEqual(bodies(device, scene.chat), now);
  // One chat of before, to a device with memory and to one without: the floor knows better.
  for (const [liar, device] of [await scene.friend(), await scene.stranger()]) {
    const isThere = chats(device).length > 0;
    liar.lie = (frame) => {
      const { event } = frame;
      if (event.type !== "phase_2_last_20_chats_ready" && event.type !== "chat_content_batch_response") return frame;
      return { ...frame, event: { ...event, chats: [...event.chats.filter((sent) => sent.chat !== scene.chat), oldChat] } };
    };
    assert.equal(await refused(sync(device, "all")), "rolled-back");
    if (isThere) assert.deepEqual(bodies(device, scene.chat), now);
    else assert.throws(() => chat(device, scene.chat), { name: "no-such-chat" });
  }
  // An old draft, and old account data.
  await setDraft(scene.one, scene.chat, "another draft");
  await setData(scene.one, "settings", "theme", "light");
  await flush(scene.one);
  const [second, friend] = await scene.friend();
  const records = some(old.find(({ event }) => event.type === "data_records"));
  second.lie = (frame) => (frame.event.type === "data_records" ? { ...frame, event: records.event } : frame);
  assert.equal(await refused(sync(friend, "all")), "rolled-back");
  assert.equal(data(friend, "settings", "theme"), "light");
  await say(scene.one, scene.chat, "fifth");
  await flush(scene.one);
  second.lie = onChat(scene.chat, (sent) => ({ ...sent, versions: { ...sent.versions, draftV: oldChat.versions.draftV } }));
  assert.equal(await refused(sync(friend, "all")), "rolled-back");
  assert.equal(chat(friend, scene.chat).draft, "another draft");
  // The old draft, said to be a newer one.
  second.lie = onChat(scene.chat, (sent) => ({ ...sent, versions: { ...sent.versions, draftV: 9 }, draft: some(oldChat.draft) }));
  assert.equal(await refused(sync(friend, "all")), "record-refused");
  assert.equal(chat(friend, scene.chat).draft, "another draft");
});

test("lies about the account are refused by name", async () => {
  const scene = await Scene.make();
  const first = <T>(list: readonly T[]): T => some(list[0]);
  const lies: [string, string, (state: AccountState) => AccountState][] = [
    ["another mailbox key", "box-refused", (state) => ({ ...state, boxPub: PublicKey.fromBytes(new Uint8Array(32).fill(9)) })],
    ["a floor is exchanged", "list-refused", (state) => {
      const [one, two, ...rest] = state.floors;
      return { ...state, floors: [{ ...some(one), envelope: some(two).envelope }, some(two), ...rest] };
    }],
    ["a floor is left out", "list-refused", (state) => ({ ...state, floors: state.floors.slice(0, -1) })],
    ["the account's ring is empty", "ring-gap", (state) => ({ ...state, ring: [] })],
    ["the mailbox's ring is empty", "ring-gap", (state) => ({ ...state, mailbox: [] })],
    ["a key has another name", "key-refused", (state) => ({ ...state, ring: [{ ...first(state.ring), kid: Kid.fromBytes(new Uint8Array(8).fill(1)) }] })],
    ["two entries with one number", "ring-forked", (state) => ({ ...state, ring: [...state.ring, first(state.ring)] })],
    ["a key is damaged", "key-refused", (state) => ({ ...state, ring: [{ ...first(state.ring), sealed: flipped(first(state.ring).sealed) }] })],
    ["the manifest is damaged", "record-refused", (state) => ({ ...state, manifest: flipped(state.manifest) })],
    ["the manifest is a floor", "record-refused", (state) => ({ ...state, manifest: first(state.floors).envelope })],
    ["chats are behind their floors", "rolled-back", (state) => ({
      ...state,
      chats: new Map([...state.chats].map(([id, versions]) => [id, { ...versions, messagesV: 0 }])),
    })],
  ];
  for (const [what, expected, lie] of lies) {
    const [liar, device] = await scene.stranger();
    liar.lie = onAccount(lie);
    assert.equal(await refused(sync(device, "all")), expected, what);
    assert.deepEqual(chats(device), [], what);
    disconnect(device);
  }
  // A way that does not lead from what was seen.
  const [liar, device] = await scene.friend();
  await newChat(scene.one, null);
  await flush(scene.one);
  liar.lie = onAccount((state) => {
    const trail = state.trail;
    return trail === undefined ? state : { ...state, trail: { ...trail, steps: trail.steps.map((step) => ({ ...step, live: Digest.ZERO })) } };
  });
  assert.equal(await refused(sync(device, "all")), "forked");
  liar.lie = onAccount((state) => ({ ...state, trail: undefined }));
  assert.equal(await refused(sync(device, "all")), "forked");
  // "The account key was replaced": nobody committed that.
  liar.lie = onAccount((state) => ({ ...state, generation: 2 }));
  await sync(device, "all");
  assert.equal(device.generation, 1, "what a server says about generations changes nothing");
});

test("lies about a chat's keys are refused by name", async () => {
  const scene = await Scene.make();
  const [liar, friend] = await scene.friend();
  disconnect(friend);
  const retired = some(liar.chats().find((sent) => sent.chat === scene.chat)?.ring[0]);
  // Two keys in the ring, the second of another generation.
  await rotate(scene.one, scene.person.recovery, [scene.person.recovery]);
  await say(scene.one, scene.chat, "under the new key");
  await flush(scene.one);
  type Ring = ChatSent["ring"];
  const lies: [string, string, (ring: Ring) => Ring][] = [
    ["the newest key is kept back", "ring-forked", (ring) => ring.slice(0, -1)],
    ["the first key is kept back", "ring-gap", (ring) => ring.slice(1)],
    ["two keys with one number", "ring-forked", (ring) => [...ring, some(ring[1])]],
    ["a key of a retired account key", "key-refused", (ring) => [retired, ...ring.slice(1)]],
    ["a key under another name", "key-refused", (ring) => [{ ...some(ring[0]), kid: some(ring[1]).kid }, ...ring.slice(1)]],
  ];
  for (const [what, expected, lie] of lies) {
    const [liar, device] = await scene.stranger();
    liar.lie = onChat(scene.chat, (sent) => ({ ...sent, ring: lie(sent.ring) }));
    assert.equal(await refused(sync(device, "all")), expected, what);
    assert.throws(() => chat(device, scene.chat), { name: "no-such-chat" }, what);
    liar.lie = null;
    await sync(device, "all");
    assert.deepEqual(bodies(device, scene.chat), ["first", "second", "third", "under the new key"]);
    disconnect(device);
  }
});

test("false news are refused by name", async () => {
  const scene = await Scene.make();
  const lies: [string, string, (news: ChatUpdated) => ChatUpdated][] = [
    ["the words are left out", "list-refused", (news) => ({ ...news, items: [] })],
    ["something is removed with it", "list-refused", (news) => ({ ...news, removed: [...news.removed, TITLE] })],
    ["other words", "record-refused", (news) => ({ ...news, items: news.items.map((sent) => withEnvelope(sent, flipped(some(sent.envelope)))) })],
    ["another head", "record-refused", (news) => ({ ...news, head: { ...news.head, envelope: flipped(news.head.envelope) } })],
    ["another list", "forked", (news) => ({ ...news, head: { ...news.head, live: Digest.ZERO } })],
  ];
  for (const [what, expected, lie] of lies) {
    const [liar, device] = await scene.friend();
    const before = bodies(device, scene.chat);
    liar.lie = (frame) => (frame.event.type === "chat_updated" ? { ...frame, event: { ...frame.event, ...lie(frame.event) } } : frame);
    await say(scene.one, scene.chat, what);
    await flush(scene.one);
    assert.equal(await refusedNews(device), expected, what);
    assert.deepEqual(bodies(device, scene.chat), before, `${what}: it is as it was`);
    disconnect(device);
  }
  // The same revision twice, with other bytes.
  const [liar, device] = await scene.friend();
  await say(scene.one, scene.chat, "once");
  await flush(scene.one);
  liar.lie = (frame) => {
    const news = liar.heard.findLast(({ event }) => event.type === "chat_updated")?.event;
    if (frame.event.type !== "account_updated" || news?.type !== "chat_updated") return frame;
    return { ...frame, event: { ...news, head: { ...news.head, envelope: flipped(news.head.envelope) } } };
  };
  assert.equal(await refusedNews(device), "forked");
  assert.equal(bodies(device, scene.chat).at(-1), "once");
});

test("lies about drafts, settings and attachments are refused by name", async () => {
  const scene = await Scene.make();
  const map = await addEmbed(scene.one, scene.chat, "a map");
  const other = await addEmbed(scene.one, scene.chat, "another map");
  await setData(scene.one, "settings", "font", "serif");
  await setDraft(scene.one, scene.other, "the other's");
  await flush(scene.one);
  let [liar, device] = await scene.stranger();
  liar.lie = (frame) => onChats(frame, (sent) => (sent.draft === undefined ? sent : { ...sent, draft: flipped(sent.draft) }));
  assert.equal(await refused(sync(device, "all")), "record-refused");
  // One chat's draft in another.
  [liar, device] = await scene.friend();
  const drafts = liar.chats().flatMap((sent) => sent.draft ?? []);
  assert.equal(drafts.length, 2);
  [liar, device] = await scene.stranger();
  liar.lie = (frame) => onChats(frame, (sent) => ({ ...sent, draft: sent.draft === undefined ? undefined : drafts.find((one) => String(one) !== String(sent.draft)) }));
  assert.equal(await refused(sync(device, "all")), "record-refused");
  // Two settings change places.
  [liar, device] = await scene.stranger();
  liar.lie = (frame) => {
    const { event } = frame;
    if (event.type !== "data_records") return frame;
    const [one, two] = [some(event.records[0]), some(event.records[1])];
    return { ...frame, event: { ...event, records: [{ ...one, data: two.data }, { ...two, data: one.data }] } };
  };
  assert.equal(await refused(sync(device, "all")), "record-refused");
  assert.equal(data(device, "settings", "font"), null);
  // Attachments.
  [liar, device] = await scene.friend();
  const onEmbeds = (edit: (items: readonly ItemSent[]) => readonly ItemSent[]) => {
    liar.lie = (frame) => (frame.event.type === "send_embed_data" ? { ...frame, event: { ...frame.event, items: edit(frame.event.items) } } : frame);
  };
  onEmbeds((items) => items.map((sent) => withEnvelope(sent, flipped(some(sent.envelope)))));
  assert.equal(await refused(embed(device, scene.chat, map)), "record-refused");
  onEmbeds(() => []);
  assert.equal(await refused(embed(device, scene.chat, map)), "withheld");
  assert.equal(await refused(embed(device, scene.chat, EmbedId.random())), "no-such-message");
  liar.lie = null;
  assert.equal(await embed(device, scene.chat, other), "another map");
});

test("lies while logging in are refused by name", async () => {
  const scene = await Scene.make();
  const liar = new Liar();
  const onLogin = (edit: (opened: SessionOpened) => SessionOpened) => {
    liar.postLie = (path, posted) => {
      if (path !== "/account/login") return posted;
      return { ...posted, body: utf8(writeBody(SessionOpened, edit(readBody(SessionOpened, posted.body)))) };
    };
  };
  const files = new MemoryFiles();
  const setup = world.setup(files, new Through(world.transport(), liar));
  // "There is no account key, make one."
  onLogin((opened) => ({ ...opened, wrap: undefined }));
  assert.equal(await refused(logIn(setup, scene.person.recovery)), "account-missing");
  assert.equal(await openDevice(setup), null);
  onLogin((opened) => ({ ...opened, wrap: flipped(some(opened.wrap)) }));
  assert.equal(await refused(logIn(setup, scene.person.recovery)), "key-refused");
  assert.equal(await openDevice(setup), null);
});

test("two devices that were shown different worlds find out when they meet", async () => {
  const scene = await Scene.make();
  const [, two] = await scene.friend();
  const files = new MemoryFiles();
  const there = await world.synced(scene.person, world.setup(files));
  disconnect(there);
  // The server goes two ways: what one device writes, the other is not shown.
  const fork = await world.server.backup();
  await world.server.use(fork);
  disconnect(there);
  await say(there, scene.chat, "in the other world");
  await flush(there);
  disconnect(there);
  await world.server.use("data");
  disconnect(scene.one);
  await say(scene.one, scene.chat, "in this world");
  await newChat(scene.one, "Only here");
  await flush(scene.one);
  // The device of the other world meets this one.
  assert.equal(await refused(sync(there, "all")), "forked");
  assert.equal(bodies(there, scene.chat).at(-1), "in the other world", "nothing of this world is shown");
  disconnect(two);
  await sync(two, "all");
  assert.equal(bodies(two, scene.chat).at(-1), "in this world");
});
