// The account key, and the rings of keys under it.
//
//   kek ──opens──▶ AK, generation g ──"wrap"──▶ ring of a chat:      1, 2, …, n   CK → msg, meta, embed, hist
//                                               ring of the account: 1, 2, …, n   UK → meta, index, cid
//                                               ring of the mailbox: 1, 2, …, n   X25519 private keys
//
// Owns what an entry is and when a ring is whole. Leaves to opening.ts whether it is the newest ring. Easy to get wrong:
// writing under a key that an older generation made. `Ring.writer` gives none in that case; append first, in one write with
// the head (or manifest) that names the new entry.

import { concat, readU32, u32, wipe } from "./bytes";
import { openOrNull, seal } from "./envelope";
import type { Context, Sealed } from "./envelope";
import { Refused } from "./error";
import type { AccountId, ChatId, CredentialId } from "./ids";
import { Key } from "./key";
import type { Kid } from "./key";

/** Which credential a wrap of the account key is for, as the context has it. */
export type Wrap = "pw" | "rec" | `prf:${CredentialId}`;

export const Wrap = {
  PASSWORD: "pw",
  RECOVERY: "rec",
  passkey: (id: CredentialId): Wrap => `prf:${id}`,
} as const;

/** What a device remembers of the wrap of its credential: the newest generation and revision. A new device has zeros. */
export interface SeenWrap {
  readonly generation: number;
  readonly rev: number;
}

export const SeenWrap: { NOTHING: SeenWrap } = { NOTHING: { generation: 0, rev: 0 } };

/** The key above all keys of an account, and its generation, which counts from 1. */
export class AccountKey {
  readonly key: Key;
  readonly generation: number;

  constructor(key: Key, generation: number) {
    this.key = key;
    this.generation = generation;
  }

  /** The first key of a new account. Only for an account that is being created: logging in never makes a key. */
  static async first(): Promise<AccountKey> {
    return new AccountKey(await Key.random(), 1);
  }

  /** Opens a wrap; gives its revision too, to remember. Not there: `account-missing`. Of a generation before the one that this
   *  device has seen, or does not open: `key-refused`. Made before the wrap that this device has used: `rolled-back`. */
  static async open(
    kek: Key,
    account: AccountId,
    generation: number,
    wrap: Wrap,
    sealed: Sealed | null,
    seen: SeenWrap,
  ): Promise<{ ak: AccountKey; rev: number }> {
    if (sealed === null) throw new Refused("account-missing");
    if (generation < seen.generation) throw new Refused("key-refused");
    const opened = await openOrNull(kek, keyContext(account, "", `account:${generation}`, wrap), sealed);
    if (opened === null) throw new Refused("key-refused");
    try {
      if (opened.rev < seen.rev) throw new Refused("rolled-back");
      if (opened.data.length !== 32) throw new Refused("key-refused");
      return { ak: new AccountKey(await Key.fromBytes(opened.data), generation), rev: opened.rev };
    } finally {
      wipe(opened.data);
    }
  }

  /** Seals the key for one credential. `accountRev` is the revision that the account has after this change. */
  wrap(kek: Key, account: AccountId, wrap: Wrap, accountRev: number): Promise<Sealed> {
    const context = keyContext(account, "", `account:${this.generation}`, wrap);
    return seal(kek, context, accountRev, this.key.dangerouslyExposeBytes());
  }

  /** A new key of the next generation; `null` after 2^32 of them. */
  async next(): Promise<AccountKey | null> {
    return this.generation < 0xffff_ffff ? new AccountKey(await Key.random(), this.generation + 1) : null;
  }
}

/** Whose ring: a chat's, the account's own (for its list of chats and its data), or the mailbox's. */
export type RingOf =
  | { readonly kind: "chat"; readonly container: ChatId }
  | { readonly kind: "account" | "box"; readonly container: "" };

export const RingOf = {
  ACCOUNT: { kind: "account", container: "" } satisfies RingOf,
  BOX: { kind: "box", container: "" } satisfies RingOf,
  chat: (container: ChatId): RingOf => ({ kind: "chat", container }),
} as const;

/** Which sub-key seals a record. */
export type Sub = "msg" | "meta" | "embed";

/** The sub-keys that seal records, whose ids a row lists, in this order. */
const LABELS: Record<RingOf["kind"], readonly Sub[]> = { chat: ["msg", "meta", "embed"], account: ["meta"], box: [] };

/** A row of a ring, as the server keeps it. */
export interface Entry {
  /** Its number, from 1. */
  readonly n: number;
  /** The id of the key inside. */
  readonly kid: Kid;
  /** The ids of the sub-keys that seal: `msg`, `meta`, `embed` of a chat, `meta` of an account. The server takes no envelope
   *  with another id. */
  readonly subs: readonly Kid[];
  /** `seal(sub(AK, "wrap"), (key, account, chat or "", "{n}:{kid}", kind), rev = g, key ‖ u32 born)`. */
  readonly sealed: Sealed;
}

export const Entry = {
  /** Seals `key` as entry `n`; `born` is the generation under which it was made. */
  async seal(ak: AccountKey, account: AccountId, of: RingOf, n: number, key: Key, born: number): Promise<Entry> {
    const data = concat(key.dangerouslyExposeBytes(), u32(born));
    try {
      const context = keyContext(account, of.container, `${n}:${key.kid}`, of.kind);
      const sealed = await seal(await ak.key.derive("wrap"), context, ak.generation, data);
      return { n, kid: key.kid, subs: (await subKeys(of, key)).map((sub) => sub.kid), sealed };
    } finally {
      wipe(data);
    }
  },

  /** What a server checks before it appends: the row is the next one. Else `conflict`. */
  checkAppend(length: number, entry: Entry): void {
    if (entry.n !== length + 1) throw new Refused("conflict");
  },
};

/** A key of a ring, opened. */
export class Held {
  /** Its number in the ring. */
  readonly n: number;
  /** The generation of the account key under which it was made. */
  readonly born: number;
  readonly key: Key;
  readonly #subs: ReadonlyMap<Sub, Key>;

  constructor(n: number, born: number, key: Key, subs: ReadonlyMap<Sub, Key>) {
    this.n = n;
    this.born = born;
    this.key = key;
    this.#subs = subs;
  }

  /** Its sub-key that seals records of this kind; `null` if its ring has none. */
  sub(sub: Sub): Key | null {
    return this.#subs.get(sub) ?? null;
  }
}

/** A whole ring, opened: entries 1 to n, never empty. */
export class Ring {
  /** Every key, the first one first. */
  readonly held: readonly Held[];
  /** The entry with the highest number. */
  readonly newest: Held;
  readonly #generation: number;

  private constructor(held: readonly Held[], newest: Held, generation: number) {
    this.held = held;
    this.newest = newest;
    this.#generation = generation;
  }

  /** Opens every entry. In this order: a number is missing: `ring-gap`; two entries have one number: `ring-forked`; an entry
   *  does not open under this account key, has another generation, or holds another key than its row says: `key-refused`.
   *  Rows may come in any order. */
  static async open(ak: AccountKey, account: AccountId, of: RingOf, entries: readonly Entry[]): Promise<Ring> {
    const sorted = [...entries].sort((a, b) => a.n - b.n);
    const numbers = new Set(sorted.map((entry) => entry.n));
    if (numbers.size === 0 || [...numbers].some((n, at) => n !== at + 1)) throw new Refused("ring-gap");
    if (numbers.size !== sorted.length) throw new Refused("ring-forked");
    const wrap = await ak.key.derive("wrap");
    return Ring.#of(await Promise.all(sorted.map((entry) => openEntry(ak, wrap, account, of, entry))), ak.generation);
  }

  /** The ring of keys that this device has verified before and kept, in order, each with its birth. */
  static async fromKept(ak: AccountKey, of: RingOf, kept: readonly { key: Key; born: number }[]): Promise<Ring> {
    return Ring.#of(await Promise.all(kept.map(({ key, born }, at) => hold(of, at + 1, born, key))), ak.generation);
  }

  static #of(held: readonly Held[], generation: number): Ring {
    const newest = held.at(-1);
    if (newest === undefined) throw new Refused("ring-gap");
    return new Ring(held, newest, generation);
  }

  /** The key to write under: the newest, if this generation of the account key made it. `null` means: append first. */
  get writer(): Held | null {
    return this.newest.born === this.#generation ? this.newest : null;
  }

  /** The row after the newest. Send it with the ring's length, so that of two devices one loses with `conflict`. */
  append(ak: AccountKey, account: AccountId, of: RingOf, key: Key): Promise<Entry> {
    return Entry.seal(ak, account, of, this.newest.n + 1, key, ak.generation);
  }

  /** The key with this number. */
  get(n: number): Held | null {
    return this.held[n - 1] ?? null;
  }

  /** The key whose sub-key has this id. */
  find(sub: Sub, kid: Kid | null): Held | null {
    return this.held.findLast((held) => held.sub(sub)?.kid === kid && kid !== null) ?? null;
  }
}

async function openEntry(ak: AccountKey, wrap: Key, account: AccountId, of: RingOf, entry: Entry): Promise<Held> {
  const context = keyContext(account, of.container, `${entry.n}:${entry.kid}`, of.kind);
  const opened = await openOrNull(wrap, context, entry.sealed);
  if (opened === null) throw new Refused("key-refused");
  try {
    if (opened.data.length !== 36) throw new Refused("key-refused");
    const born = readU32(opened.data, 32);
    const key = await Key.fromBytes(opened.data.subarray(0, 32));
    const subs = await subKeys(of, key);
    const named = key.kid === entry.kid && sameKids(subs, entry.subs);
    if (opened.rev !== ak.generation || !named || born < 1 || born > ak.generation) throw new Refused("key-refused");
    return await hold(of, entry.n, born, key);
  } finally {
    wipe(opened.data);
  }
}

async function hold(of: RingOf, n: number, born: number, key: Key): Promise<Held> {
  // Derived once per key, so asking again costs nothing.
  const subs = await subKeys(of, key);
  const byLabel = new Map(LABELS[of.kind].flatMap((label, at): [Sub, Key][] => (subs[at] ? [[label, subs[at]]] : [])));
  return new Held(n, born, key, byLabel);
}

function subKeys(of: RingOf, key: Key): Promise<Key[]> {
  return Promise.all(LABELS[of.kind].map((label) => key.derive(label)));
}

function sameKids(subs: readonly Key[], named: readonly Kid[]): boolean {
  return subs.length === named.length && subs.every((sub, at) => sub.kid === named[at]);
}

/** The context of a key's envelope. */
function keyContext(account: AccountId, container: string, object: string, field: string): Context {
  return { purpose: "key", owner: account, container, object, field };
}

