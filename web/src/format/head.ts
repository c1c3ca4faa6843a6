// A chat's head: what the chat consists of, sealed with every write.
//
//   live  = H("seal/v1/live" ‖ u32 count ‖ for each item by id: lp(id) ‖ H(envelope))
//   chain = H("seal/v1/chain" ‖ chain before ‖ H(envelope of the head before) ‖ live)      32 zeros twice at first
//
// Owns head, live and chain. Leaves to opening.ts when a head is refused. Easy to get wrong: a chain of lists alone. Two
// heads with one list may name different keys or pending replies, and would share a chain; so each link also has the
// envelope before it.

import { concat, Digest, hash, lp, u32, utf8 } from "./bytes";
import type { Bytes } from "./bytes";
import { Refused } from "./error";
import { DeviceId, MessageId, TurnId } from "./ids";
import type { ItemId } from "./ids";
import { read, Reader, write } from "./json";
import type { Codec } from "./json";
import { Kid } from "./key";

/** A chat's list: every item and the hash of its envelope. */
export type List = ReadonlyMap<ItemId, Digest>;

/** The digest of a chat's list. */
export function live(list: List): Promise<Digest> {
  // Ids are ASCII, so the order of texts is the order of bytes.
  const sorted = [...list].sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
  const bytes = sorted.flatMap(([id, envelope]) => [lp(id), Digest.toBytes(envelope)]);
  return hash(utf8("seal/v1/live"), u32(list.size), concat(...bytes));
}

/** The next link: after a chain and the envelope that has it, with the list (or floors) of the new one. */
export function chain(before: Digest, envelopeBefore: Digest, live: Digest): Promise<Digest> {
  return hash(utf8("seal/v1/chain"), ...[before, envelopeBefore, live].map(Digest.toBytes));
}

/** A reply that this account waits for. */
export interface Pending {
  /** The turn that asks. */
  readonly turn: TurnId;
  /** The message that the reply answers. */
  readonly parent: MessageId;
  /** The reply's id, which the client picked. */
  readonly reply: MessageId;
}

/** What is sealed as a chat's head. Its revision is the number of writes to the chat. */
export interface Head {
  /** Number of the newest key in the chat's ring. */
  readonly key: number;
  /** Id of that key. */
  readonly kid: Kid;
  /** How many items the list has. */
  readonly count: number;
  /** The list's digest. */
  readonly live: Digest;
  /** The chain up to this head. */
  readonly chain: Digest;
  /** The last message of the branch that is shown; `null` for an empty chat. */
  readonly leaf: MessageId | null;
  /** Replies that are waited for. */
  readonly pending: readonly Pending[];
  /** When it was written, in milliseconds since 1970. */
  readonly at: number;
  /** Which device wrote it. */
  readonly device: DeviceId;
}

const HEAD: Codec<Head> = {
  write: (head) => ({
    key: head.key,
    kid: head.kid,
    count: head.count,
    live: head.live,
    chain: head.chain,
    leaf: head.leaf,
    pending: head.pending.map(({ turn, parent, reply }) => ({ turn, parent, reply })),
    at: head.at,
    device: head.device,
  }),
  read: (fields) => ({
    key: fields.u32("key"),
    kid: fields.parsed("kid", Kid.parse),
    count: fields.u32("count"),
    live: fields.parsed("live", Digest.parse),
    chain: fields.parsed("chain", Digest.parse),
    leaf: fields.isNull("leaf") ? null : fields.like("leaf", MessageId.is),
    pending: fields.list("pending").map(readPending),
    at: fields.time("at"),
    device: fields.like("device", DeviceId.is),
  }),
};

function readPending(value: unknown): Pending {
  const fields = new Reader(value);
  return {
    turn: fields.like("turn", TurnId.is),
    parent: fields.like("parent", MessageId.is),
    reply: fields.like("reply", MessageId.is),
  };
}

export const Head = {
  /** Its JSON. */
  toJson: (head: Head): Bytes => write(HEAD, head),

  /** Reads its JSON, or `record-refused`. Two pending items with one reply id are refused too. */
  fromJson(json: Bytes): Head {
    const head = read(HEAD, json);
    if (new Set(head.pending.map(({ reply }) => reply)).size !== head.pending.length) throw new Refused("record-refused");
    return head;
  },

  /** Whether this is the head of that list; else `list-refused`. */
  async checkList(head: Head, list: List): Promise<void> {
    const leaf = head.leaf === null || list.has(head.leaf);
    if (list.size !== head.count || (await live(list)) !== head.live || !leaf) throw new Refused("list-refused");
  },
};

/** A sealed head or manifest, by its revision and the hash of its envelope: what a device remembers, and what a floor says of
 *  a chat. */
export interface Mark {
  readonly rev: number;
  /** `H(envelope)`. */
  readonly envelope: Digest;
}

/** One write, as the server keeps it for good: the list's digest after it, and `H(envelope)` of what was written. */
export interface Step {
  readonly live: Digest;
  readonly envelope: Digest;
}

/** What a server sends to show that what it has follows from what a device remembers. */
export interface Trail {
  /** The chain in the remembered head. Taken on trust: a false one cannot end in the right chain. */
  readonly chain: Digest;
  /** Every write since, the newest last. */
  readonly steps: readonly Step[];
}

export const Trail = {
  /** Nothing was written since. */
  NONE: { chain: Digest.ZERO, steps: [] } satisfies Trail as Trail,

  /** Whether a head or manifest with this mark, chain and list follows from the remembered one: an older one is `rolled-back`;
   *  another of the same revision, or one that the steps do not lead to, is `forked`. Without memory only the first revision
   *  can be checked: it follows from nothing. */
  async check(trail: Trail, seen: Mark | null, now: Mark, chainNow: Digest, liveNow: Digest): Promise<void> {
    if (seen === null) {
      const first = now.rev === 1 ? await chain(Digest.ZERO, Digest.ZERO, liveNow) : chainNow;
      if (first !== chainNow) throw new Refused("forked");
      return;
    }
    if (now.rev < seen.rev) throw new Refused("rolled-back");
    if (now.rev === seen.rev) {
      if (now.envelope !== seen.envelope) throw new Refused("forked");
      return;
    }
    // Before the walk: a server could send a million steps for one revision.
    const whole = trail.steps.length === now.rev - seen.rev && trail.steps.at(-1)?.live === liveNow;
    if (!whole) throw new Refused("forked");
    let [link, envelope] = [trail.chain, seen.envelope];
    for (const step of trail.steps) [link, envelope] = [await chain(link, envelope, step.live), step.envelope];
    if (link !== chainNow || envelope !== now.envelope) throw new Refused("forked");
  },

  /** Whether the way from the remembered head passes through this one; else `forked`. One from before the remembered head
   *  cannot be told. */
  passes(trail: Trail, seen: Mark, through: Mark): void {
    if (through.rev < seen.rev) return;
    const there = through.rev === seen.rev ? seen.envelope : trail.steps[through.rev - seen.rev - 1]?.envelope;
    if (there !== through.envelope) throw new Refused("forked");
  },
};
