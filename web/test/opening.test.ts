// What a server can do to a state, attack by attack: each is refused with the name that the format gives it, by a device that
// remembers and by one that does not. As crates/chat-format/tests/malicious.rs, without a server: only the format.

import assert from "node:assert/strict";
import { test } from "node:test";
import {
  AccountId, AccountKey, base64url, ChatId, Digest, Entry, fromUtf8, Head, Key, Kid, Message, MessageId, random, Refused, RingOf, Shelf, utf8, wellFormed,
} from "../src/format/index";
import type { Manifest } from "../src/format/index";
import type { Answer, ChatState, State } from "./differential/state";
import { answer, bytes, take } from "./differential/take";
import { nothing, World } from "./differential/world";
import type { Memory } from "./differential/world";

interface Story {
  world: World;
  memory: Memory;
  one: ChatId;
  two: ChatId;
}

/** Two chats with a few messages, a title and a pending reply, and a device that has seen all of it. */
async function story(): Promise<Story> {
  const world = await World.make();
  const [one, two] = [await world.create(), await world.create()];
  for (const words of ["a", "b", "c"]) await world.say(one, words);
  await world.title(one, "title");
  await world.say(two, "elsewhere");
  await world.ask(one);
  await world.publish();
  return { world, memory: world.memory(), one, two };
}

async function verdict(state: State): Promise<string> {
  const said: Answer = await answer(() => take(state));
  return "refused" in said ? said.refused : "ok";
}

/** What a device that remembers says, and what one says that does not. */
async function both(of: Story, spoil: (state: State) => unknown): Promise<[string, string]> {
  const verdicts: string[] = [];
  for (const memory of [of.memory, nothing()]) {
    const state = structuredClone(await of.world.state(memory));
    await spoil(state);
    verdicts.push(await verdict(state));
  }
  return [verdicts[0] ?? "", verdicts[1] ?? ""];
}

const everyone = (name: string): [string, string] => [name, name];

function chatOf(state: State, id: ChatId): ChatState {
  const chat = state.chats[id];
  assert.ok(chat);
  return chat;
}

const anything = (): Digest => Digest.fromBytes(random(32));

function flipped(text: string, at: number): string {
  const out = bytes(text);
  return base64url(out.with(at, (out.at(at) ?? 0) ^ 1));
}

test("an honest state opens", async () => {
  assert.deepEqual(await both(await story(), () => undefined), everyone("ok"));
});

test("what is dropped, doubled or swapped", async () => {
  const of = await story();
  const { one, two } = of;
  const attacks: [string, (chat: ChatState, state: State) => unknown][] = [
    ["withheld", (_, state) => delete state.chats[one]],
    ["withheld", (chat) => chat.items.pop()],
    ["list-refused", (chat) => chat.list.pop()],
    ["list-refused", (chat) => chat.list.push(...chat.list.slice(0, 1))],
    ["list-refused", (chat) => chat.list.push([MessageId.random(), anything()])],
    ["list-refused", (_, state) => state.floors.pop()],
    ["list-refused", (_, state) => state.floors.reverse()],
    ["list-refused", (chat, state) => (state.chats[ChatId.random()] = chat)],
    ["record-refused", (chat) => chat.items.forEach((item) => (item[1] = chat.items[0]?.[1] ?? ""))],
    ["record-refused", (chat) => (chat.items[0] = [chat.items[0]?.[0] ?? "", flipped(chat.items[0]?.[1] ?? "", -1)])],
    ["record-refused", (chat) => (chat.head = flipped(chat.head, -1))],
    ["record-refused", (chat) => (chat.head = "")],
    ["ring-forked", (chat, state) => (chat.head = chatOf(state, two).head)],
    ["record-refused", (_, state) => (state.manifest = flipped(state.manifest, -1))],
    ["ring-forked", (_, state) => (state.manifest = flipped(state.manifest, 2))],
    ["box-refused", (_, state) => (state.box_pub = base64url(random(32)))],
    ["key-refused", (_, state) => (state.ak = base64url(random(32)))],
  ];
  for (const [name, act] of attacks) {
    assert.deepEqual(await both(of, (state) => act(chatOf(state, one), state)), everyone(name), act.toString());
  }
});

test("rings with gaps, forks and foreign keys", async () => {
  const of = await story();
  const { one, two, world } = of;
  await world.rotateChat(one);
  await world.rotateChat(one);
  type Act = (rows: ChatState["ring"], state: State) => unknown;
  const ring = (act: Act): Promise<[string, string]> => both(of, (state) => act(chatOf(state, one).ring, state));
  assert.deepEqual(await ring((rows) => rows.reverse()), everyone("ok"), "rows may come in any order");
  const attacks: [string, Act][] = [
    ["ring-gap", (rows) => rows.splice(0)],
    ["ring-gap", (rows) => rows.shift()],
    ["ring-gap", (rows) => rows.splice(1, 1)],
    ["ring-forked", (rows) => rows.pop()],
    ["ring-forked", (rows) => rows.push(...rows.slice(2))],
    ["key-refused", (rows) => Object.assign(rows[1] ?? {}, { kid: rows[0]?.kid })],
    ["key-refused", (rows) => rows[1]?.subs.reverse()],
    ["key-refused", (rows) => rows[1]?.subs.pop()],
    ["key-refused", (rows, state) => rows.splice(0, 1, ...chatOf(state, two).ring.slice(0, 1))],
    ["key-refused", (rows) => Object.assign(rows[0] ?? {}, { sealed: flipped(rows[0]?.sealed ?? "", 1) })],
  ];
  for (const [name, act] of attacks) assert.deepEqual(await ring(act), everyone(name), act.toString());
  const row = async (n: number): Promise<ChatState["ring"][0]> => {
    const { kid, subs, sealed } = await Entry.seal(world.ak, world.account, RingOf.chat(one), n, await Key.random(), 1);
    return { n, kid, subs: [...subs], sealed: base64url(sealed) };
  };
  const [ahead, other] = [await row(4), await row(1)];
  assert.deepEqual(await ring((rows) => rows.push(ahead)), everyone("ring-forked"), "an entry that nobody's head names");
  assert.equal((await ring((rows) => rows.splice(0, 1, other)))[0], "ring-forked", "the first key was seen, and is another one now");
});

test("trails that do not lead there", async () => {
  const of = await story();
  for (const words of ["d", "e", "f"]) await of.world.say(of.one, words);
  const trail = async (act: (chat: ChatState) => unknown): Promise<string> => (await both(of, (state) => act(chatOf(state, of.one))))[0];
  assert.equal(await trail(() => undefined), "ok");
  const attacks: ((chat: ChatState) => unknown)[] = [
    ({ trail }) => trail.steps.pop(),
    ({ trail }) => trail.steps.reverse(),
    ({ trail }) => trail.steps.unshift(...trail.steps.splice(1, 1)),
    ({ trail }) => (trail.chain = Digest.ZERO),
    ({ trail }) => (trail.steps[0] = [trail.steps[0]?.[0] ?? "", Digest.ZERO]),
    (chat) => (chat.trail = { chain: Digest.ZERO, steps: [] }),
  ];
  for (const act of attacks) assert.equal(await trail(act), "forked", act.toString());
});

test("older states, and what a device has seen", async () => {
  const of = await story();
  const { world, memory, one } = of;
  const before = await world.state(memory);
  await world.say(one, "d");
  await world.publish();
  const now = world.memory();
  assert.equal(await verdict({ ...before, seen: now.seen }), "rolled-back");
  assert.equal(await verdict(await world.state(memory)), "ok", "who saw the state before");
  const older = (state: State): unknown => (state.chats[one] = { ...chatOf(before, one), seen_head: chatOf(state, one).seen_head });
  assert.deepEqual(await both({ ...of, memory: now }, older), everyone("rolled-back"));
  const remembers = async (act: (state: State) => unknown): Promise<string> => (await both({ ...of, memory: now }, act))[0];
  const newerItems = (state: State): unknown => (chatOf(state, one).seen_revs = chatOf(state, one).list.map(([id]) => [id, 9]));
  assert.equal(await remembers(newerItems), "rolled-back");
  assert.equal(await remembers((state) => (state.seen = [2, state.seen[1]])), "key-refused");
  assert.equal(await remembers((state) => (state.seen[1] = { rev: state.seen[1]?.rev ?? 0, envelope: anything() })), "forked");
  assert.equal(await remembers((state) => (state.seen[1] = { rev: 99, envelope: anything() })), "rolled-back");
  assert.equal(await remembers((state) => (chatOf(state, one).seen_key = [1, "00112233445566ff"])), "ring-forked");
});

test("two devices that were forked, then meet", async () => {
  const { world, memory, one } = await story();
  const other = world.fork();
  await world.say(one, "left");
  await other.say(one, "right");
  const left = world.memory();
  assert.equal(await verdict(await other.state(memory)), "ok", "each is honest for who saw what was before");
  assert.equal(await verdict(await other.state(left)), "forked", "the same revision, other bytes");
  await other.say(one, "right again");
  assert.equal(await verdict(await other.state(left)), "forked", "a later revision of the other side");
});

test("a fork whose lists are the same", async () => {
  // One side waits for a reply, the other has a new key; no item changes. A chain of lists alone would not tell.
  const { world, one } = await story();
  const other = world.fork();
  await world.rotateChat(one);
  await other.ask(one);
  await other.ask(one);
  assert.equal(await verdict(await other.state(world.memory())), "forked");
});

test("a head that does not pass through the floor", async () => {
  const { world, memory, one } = await story();
  const other = world.fork();
  await world.say(one, "left");
  const between = await world.state(memory);
  await world.say(one, "left again");
  await world.publish();
  for (const words of ["right", "right again", "and again"]) await other.say(one, words);
  const chat = async (from: State): Promise<string> => {
    const state = await world.state(memory);
    return verdict({ ...state, chats: { ...state.chats, [one]: chatOf(from, one) } });
  };
  assert.equal(await chat(await world.state(memory)), "ok");
  assert.equal(await chat(between), "rolled-back", "newer than seen, older than the floor");
  assert.equal(await chat(await other.state(memory)), "forked", "follows from what was seen, past the floor");
});

test("a head that borrows the name of the floor's", async () => {
  // Both sides wrote once; the floor names the left one. The server shows the right one, and says that it is the left one's envelope.
  const { world, memory, one } = await story();
  const other = world.fork();
  await world.say(one, "left");
  await world.publish();
  await other.say(one, "right");
  const [state, shown] = [await world.state(memory), chatOf(await other.state(memory), one)];
  const named = chatOf(state, one).trail.steps.at(-1)?.[1];
  assert.ok(named !== undefined && shown.trail.steps.length === 1);
  const lie: ChatState = { ...shown, trail: { ...shown.trail, steps: shown.trail.steps.map(([live]) => [live, named]) } };
  assert.equal(await verdict({ ...state, chats: { ...state.chats, [one]: lie } }), "forked");
});

test("a retired account key, and a thief who has the keys of the generation before", async () => {
  const of = await story();
  const { world, memory, one } = of;
  const before = await world.state(memory);
  await world.rotate();
  const now = world.memory();
  assert.equal(await verdict({ ...before, seen: now.seen }), "key-refused", "who saw g + 1 refuses g");
  const after = { ...of, memory: now };
  assert.deepEqual(await both(after, () => undefined), everyone("ok"));
  assert.deepEqual(await both(after, (state) => state.ring.splice(0, 1, ...before.ring)), everyone("key-refused"));
  const oldRow = (state: State): unknown => chatOf(state, one).ring.splice(0, 1, ...chatOf(before, one).ring);
  assert.deepEqual(await both(after, oldRow), everyone("key-refused"));
  assert.deepEqual(await both(after, (state) => state.ring.pop()), everyone("ring-forked"), "the new key kept back");
  assert.deepEqual(await both(after, (state) => state.box_ring.pop()), everyone("ring-forked"), "the new mailbox kept back");
  const manifest = (state: State): unknown => ([state.manifest, state.floors] = [before.manifest, before.floors]);
  assert.deepEqual(await both(after, manifest), ["rolled-back", "key-refused"]);
  // A manifest under the old key, which names the new one.
  const forged = world.fork();
  await forged.publish(1);
  assert.deepEqual(await both({ ...after, world: forged }, () => undefined), everyone("ring-forked"));
  // A head under the old chat key, which is the chat's newest until somebody writes.
  await world.write(one, 1);
  assert.deepEqual(await both(after, () => undefined), everyone("key-refused"));
});

test("what somebody with the keys writes wrongly", async () => {
  const heads: [string, (head: Head) => Head][] = [
    ["ring-forked", (head) => ({ ...head, key: 2 })],
    ["ring-forked", (head) => ({ ...head, kid: Kid.parse("00112233445566ff") as Kid })],
    ["list-refused", (head) => ({ ...head, count: 9 })],
    ["list-refused", (head) => ({ ...head, leaf: MessageId.random() })],
    ["forked", (head) => ({ ...head, chain: anything() })],
    ["forked", (head) => ({ ...head, live: anything() })],
  ];
  for (const [name, spoil] of heads) {
    const of = await story();
    of.world.spoilHead = spoil;
    await of.world.write(of.one);
    assert.equal((await both(of, () => undefined))[0], name, spoil.toString());
  }
  const manifests: [string, (manifest: Manifest) => Manifest][] = [
    ["key-refused", (manifest) => ({ ...manifest, g: 2 })],
    ["ring-forked", (manifest) => ({ ...manifest, uk: 2 })],
    ["ring-forked", (manifest) => ({ ...manifest, boxN: 2 })],
    ["forked", (manifest) => ({ ...manifest, chain: anything() })],
  ];
  for (const [name, spoil] of manifests) {
    const of = await story();
    of.world.spoilManifest = spoil;
    await of.world.publish();
    assert.equal((await both(of, () => undefined))[0], name, spoil.toString());
  }
});

test("parents that are missing, or lead in a circle", async () => {
  const of = await story();
  of.world.spoilMessage = (message) => ({ ...message, parent: MessageId.random() });
  await of.world.say(of.one, "x");
  assert.deepEqual(await both(of, () => undefined), everyone("parent-missing"));
  const circle = await story();
  const leaf = circle.world.chats.get(circle.one)?.leaf;
  assert.ok(leaf);
  await circle.world.move(circle.one, leaf, leaf);
  assert.deepEqual(await both(circle, () => undefined), everyone("parent-missing"));
});

const recordRefused = (error: unknown): boolean => error instanceof Refused && error.name === "record-refused";

test("half of a surrogate pair is never sealed", () => {
  const message: Message = { role: "user", parent: null, createdAt: 7, body: "\ud83d", model: null, reason: null, refs: [], proof: null, shared: [] };
  assert.throws(() => Message.toJson(message), recordRefused);
  assert.equal(wellFormed("a\ud83db\u{1f44b}\udc4b"), "a\ufffdb\u{1f44b}\ufffd");
  assert.equal(Message.fromJson(Message.toJson({ ...message, body: wellFormed(message.body) })).body, "\ufffd");
  assert.equal(Message.fromJson(Message.toJson({ ...message, body: "\\ud83d \\\\ud83d" })).body, "\\ud83d \\\\ud83d", "words, no escape");
  assert.throws(() => Message.toJson({ ...message, body: "\\\ud83d" }), recordRefused);
  assert.throws(() => Message.toJson({ ...message, body: "x", createdAt: 1.5 }), RangeError);
});

test("JSON is free in spelling, and in nothing else", () => {
  const json = ' { "refs" : [], "role":"user","parent":null,"v":1,"created_at":7,"body":"Gr\\u00fc\\u00dfe, \\ud83d\\udc4b"} ';
  const message = Message.fromJson(utf8(json));
  assert.equal(message.body, "Grüße, \u{1f44b}");
  assert.equal(fromUtf8(Message.toJson(message)), '{"v":1,"role":"user","parent":null,"created_at":7,"body":"Grüße, \u{1f44b}","refs":[]}');
  const changes = [['"v":1', '"v":1,"__proto__":1'], ["7", "9007199254740992"], ["7", "7e0"], ["7", "-0"], ["}", "}}"], ['"refs"', '"refs":[],"refs"']];
  for (const [from = "", to = ""] of changes) {
    const bad = json.replace(from, to);
    assert.throws(() => Message.fromJson(utf8(bad)), recordRefused, bad);
  }
});

test("keys show nothing and end when wiped", async () => {
  const ak = await AccountKey.first();
  const shown = `${JSON.stringify(ak)} ${String(ak.key)} ${Object.keys(ak.key).join()}`;
  const secret = ak.key.dangerouslyExposeBytes();
  assert.ok(!shown.includes(base64url(secret)) && !shown.includes(Array.from(secret).join()));
  ak.key.wipe();
  assert.ok(secret.every((byte) => byte === 0));
  assert.throws(() => ak.key.dangerouslyExposeBytes(), TypeError);
  await assert.rejects(async () => ak.wrap(await Key.random(), AccountId.random(), "pw", 1), TypeError);
  const hidden = await (await Key.random()).derive("wrap");
  assert.throws(() => hidden.dangerouslyExposeBytes(), TypeError);
  assert.equal(Shelf.ALL.map(Shelf.digit).join(""), "0123456789abcdef");
});
