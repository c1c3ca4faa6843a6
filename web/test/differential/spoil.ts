// What a malicious server does to a state: one random change. Both sides must then say the same of it.

import { base64url, ChatId, Digest, random } from "../../src/format/index";
import type { ChatState, Dice, Row, State, Way } from "./state";
import { bytes } from "./take";

/** Changes a copy of the state, and says what was done. `older` is the same account at an earlier time. */
export function spoil(dice: Dice, from: State, older: State): [state: State, what: string] {
  const state = structuredClone(from);
  const names = Object.keys(state.chats);
  const name = names.length > 0 ? dice.pick(names) : "";
  const chat = state.chats[name];
  const [what, act] = dice.pick([...OF_ACCOUNT, ...(chat ? OF_CHAT : [])]);
  act(dice, state, chat ?? NO_CHAT, older, name);
  return [state, what];
}

type Act = (dice: Dice, state: State, chat: ChatState, older: State, name: string) => void;

const NO_CHAT = {} as ChatState;

const OF_ACCOUNT: readonly [string, Act][] = [
  ["nothing", () => undefined],
  ["the account's ring", (dice, state) => spoilRows(dice, state.ring)],
  ["the mailbox's ring", (dice, state) => spoilRows(dice, state.box_ring)],
  ["the rings swapped", (_, state) => ([state.ring, state.box_ring] = [state.box_ring, state.ring])],
  ["another mailbox key", (_, state) => (state.box_pub = base64url(random(32)))],
  ["a changed manifest", (dice, state) => (state.manifest = flip(dice, state.manifest))],
  ["an older manifest", (_, state, __, older) => (state.manifest = older.manifest)],
  ["an older manifest and floors", (_, state, __, older) => ([state.manifest, state.floors] = [older.manifest, older.floors])],
  ["a floor for the manifest", (dice, state) => (state.manifest = dice.pick(state.floors))],
  ["the manifest's trail", (dice, state) => spoilWay(dice, state.trail)],
  ["a changed floor", (dice, state) => swap(dice, state.floors, (floor) => flip(dice, floor))],
  ["two floors swapped", (dice, state) => swap(dice, state.floors, () => dice.pick(state.floors))],
  ["a floor dropped", (dice, state) => state.floors.splice(dice.roll(16), 1)],
  ["an older floor", (dice, state, _, older) => swap(dice, state.floors, (__, at) => older.floors[at] ?? "")],
  ["another account key", (_, state) => (state.ak = base64url(random(32)))],
  ["the older account key", (_, state, __, older) => ([state.ak, state.generation] = [older.ak, older.generation])],
  ["another generation", (dice, state) => (state.generation += dice.pick([-1, 1]))],
  ["a newer generation was seen", (_, state) => (state.seen[0] = state.generation + 1)],
  ["another manifest was seen", (dice, state) => (state.seen[1] = { rev: dice.roll(9), envelope: anything() })],
  ["the older manifest was seen", (_, state, __, older) => (state.seen[1] = older.seen[1])],
  ["nothing was seen", (_, state) => (state.seen = [0, null])],
  ["a chat that nobody made", (_, state) => {
    const [one] = Object.values(state.chats);
    if (one) state.chats[ChatId.random()] = structuredClone(one);
  }],
];

const OF_CHAT: readonly [string, Act][] = [
  ["a chat dropped", (_, state, __, ___, name) => delete state.chats[name]],
  ["the chat's ring", (dice, _, chat) => spoilRows(dice, chat.ring)],
  ["another chat's ring", (dice, state, chat) => (chat.ring = dice.pick(Object.values(state.chats)).ring)],
  ["the older ring", (_, __, chat, older, name) => (chat.ring = older.chats[name]?.ring ?? [])],
  ["a changed head", (dice, _, chat) => (chat.head = flip(dice, chat.head))],
  ["another chat's head", (dice, state, chat) => (chat.head = dice.pick(Object.values(state.chats)).head)],
  ["the older chat", (_, state, __, older, name) => {
    const [before, now] = [older.chats[name], state.chats[name]];
    if (before && now) {
      const { seen_head, seen_key, seen_revs } = now;
      state.chats[name] = { ...structuredClone(before), seen_head, seen_key, seen_revs };
    }
  }],
  ["the older head", (_, __, chat, older, name) => (chat.head = older.chats[name]?.head ?? "")],
  ["the older list", (_, __, chat, older, name) => (chat.list = older.chats[name]?.list ?? [])],
  ["the trail", (dice, _, chat) => spoilWay(dice, chat.trail)],
  ["an item dropped from the list", (dice, _, chat) => chat.list.splice(dice.roll(chat.list.length || 1), 1)],
  ["an item twice in the list", (_, __, chat) => chat.list.push(...chat.list.slice(0, 1))],
  ["an item with another hash", (dice, _, chat) => swap<[string, string]>(dice, chat.list, ([id]) => [id, anything()])],
  ["an envelope dropped", (dice, _, chat) => chat.items.splice(dice.roll(chat.items.length || 1), 1)],
  ["a changed envelope", (dice, _, chat) => swap<[string, string]>(dice, chat.items, ([id, sealed]) => [id, flip(dice, sealed)])],
  ["envelopes swapped", (dice, _, chat) => swap<[string, string]>(dice, chat.items, ([id]) => [id, dice.pick(chat.items)[1]])],
  ["list and envelope swapped", (dice, _, chat) => {
    const at = dice.roll(chat.list.length || 1);
    const [item, listed] = [chat.items[at], chat.list[at]];
    if (item && listed) [item[1], listed[1]] = [dice.pick(chat.items)[1], dice.pick(chat.list)[1]];
  }],
  ["another head was seen", (dice, _, chat) => (chat.seen_head = { rev: dice.roll(9), envelope: anything() })],
  ["no head was seen", (_, __, chat) => (chat.seen_head = null)],
  ["the head was seen a revision later", (_, __, chat) => {
    if (chat.seen_head) chat.seen_head = { ...chat.seen_head, rev: chat.seen_head.rev + 1 };
  }],
  ["another key was seen", (dice, _, chat) => (chat.seen_key = [dice.roll(4), "0123456789abcdef"])],
  ["newer items were seen", (_, __, chat) => (chat.seen_revs = chat.list.map(([id]) => [id, 9]))],
];

function spoilRows(dice: Dice, rows: Row[]): void {
  const at = dice.roll(rows.length || 1);
  const one = rows[at];
  if (!one) return;
  const acts: (() => unknown)[] = [
    () => rows.splice(at, 1),
    () => rows.push(structuredClone(one)),
    () => rows.reverse(),
    () => (one.n += dice.pick([-1, 1])),
    () => (one.kid = "0123456789abcdef"),
    () => one.subs.pop(),
    () => one.subs.reverse(),
    () => one.subs.push(one.kid),
    () => (one.sealed = flip(dice, one.sealed)),
    () => (one.sealed = dice.pick(rows).sealed),
    () => rows.splice(0),
  ];
  dice.pick(acts)();
}

function spoilWay(dice: Dice, way: Way): void {
  const acts: (() => unknown)[] = [
    () => way.steps.pop(),
    () => way.steps.shift(),
    () => way.steps.push([anything(), anything()]),
    () => (way.chain = anything()),
    () => way.steps.reverse(),
    () => swap<[string, string]>(dice, way.steps, ([live]) => [live, anything()]),
    () => swap<[string, string]>(dice, way.steps, ([, envelope]) => [anything(), envelope]),
    () => (way.steps = []),
  ];
  dice.pick(acts)();
}

function swap<T>(dice: Dice, list: T[], make: (one: T, at: number) => T): void {
  const at = dice.roll(list.length || 1);
  const one = list[at];
  if (one !== undefined) list[at] = make(one, at);
}

/** Changes a bit, a length, or the suite. */
export function flip(dice: Dice, text: string): string {
  const out = bytes(text);
  const at = dice.chance(3) ? dice.roll(80) : dice.roll(out.length || 1);
  if (dice.chance(8)) return base64url(out.subarray(0, at));
  if (dice.chance(8)) out[1] = 2;
  else out[at] = (out[at] ?? 0) ^ (1 << dice.roll(8));
  return base64url(out);
}

function anything(): Digest {
  return Digest.fromBytes(random(32));
}
