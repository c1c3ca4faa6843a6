// What the page's own code says of a whole state: the same question that the Rust side is asked with `take`.

import {
  Account, AccountId, AccountKey, Chat, ChatId, Digest, fromBase64url, fromUtf8, ItemId, Key, Kid, Message, PublicKey, Refused, Text,
} from "../../src/format/index";
import type { Bytes, Entry, Mark, Trail } from "../../src/format/index";
import type { Answer, ChatState, MarkState, Row, State, Way } from "./state";

export function bytes(text: string): Bytes {
  const out = fromBase64url(text);
  if (out === null) throw new Error("not base64url");
  return out;
}

export function digest(text: string): Digest {
  const out = Digest.parse(text);
  if (out === null) throw new Error("not a digest");
  return out;
}

export function kid(text: string): Kid {
  const out = Kid.parse(text);
  if (out === null) throw new Error("not a key id");
  return out;
}

export function publicKey(text: string): PublicKey {
  const out = PublicKey.parse(text);
  if (out === null) throw new Error("not a public key");
  return out;
}

export const entry = (row: Row): Entry => ({ n: row.n, kid: kid(row.kid), subs: row.subs.map(kid), sealed: bytes(row.sealed) });

/** Runs it, and gives a refusal as the Rust side does. Any other error goes on. */
export async function answer(run: () => Promise<unknown>): Promise<Answer> {
  try {
    return { ok: (await run()) ?? null };
  } catch (error) {
    if (error instanceof Refused) return { refused: error.name };
    throw error;
  }
}

/** Every item's revision and JSON, if all of it holds. */
export async function take(state: State): Promise<unknown> {
  const ak = new AccountKey(await Key.fromBytes(bytes(state.ak)), state.generation);
  const sent = {
    ring: state.ring.map(entry),
    boxRing: state.box_ring.map(entry),
    boxPub: publicKey(state.box_pub),
    manifest: bytes(state.manifest),
    trail: trail(state.trail),
    floors: state.floors.map(bytes),
  };
  const seen = { generation: state.seen[0], manifest: mark(state.seen[1]) };
  const account = await Account.open(AccountId.parse(state.account), ak, sent, seen);
  const ids = Object.keys(state.chats).sort().map((id) => ChatId.parse(id));
  account.checkChats(ids);
  const all: Record<string, unknown> = {};
  for (const id of ids) {
    const chat = state.chats[id];
    if (chat) all[id] = await takeChat(account, id, chat);
  }
  return all;
}

async function takeChat(account: Account, id: ChatId, state: ChatState): Promise<unknown> {
  const sent = {
    ring: state.ring.map(entry),
    head: bytes(state.head),
    trail: trail(state.trail),
    list: state.list.map(([item, envelope]) => [ItemId.parse(item), digest(envelope)] as const),
  };
  const seen = {
    head: mark(state.seen_head),
    key: state.seen_key === null ? null : ([state.seen_key[0], kid(state.seen_key[1])] as const),
    revs: new Map(state.seen_revs.map(([item, rev]) => [ItemId.parse(item), rev])),
  };
  const chat = await Chat.open(account, id, sent, seen);
  const items = await chat.items(new Map(state.items.map(([item, sealed]) => [ItemId.parse(item), bytes(sealed)])));
  return Object.fromEntries(
    [...items].map(([item, one]) => {
      const json = one.kind === "message" ? Message.toJson(one.message) : Text.toJson(one.text);
      return [item, [one.rev, fromUtf8(json)]];
    }),
  );
}

function trail(way: Way): Trail {
  return { chain: digest(way.chain), steps: way.steps.map(([live, envelope]) => ({ live: digest(live), envelope: digest(envelope) })) };
}

function mark(state: MarkState | null): Mark | null {
  return state && { rev: state.rev, envelope: digest(state.envelope) };
}
