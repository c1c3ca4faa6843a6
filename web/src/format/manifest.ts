// Floors and manifest: which chats an account has, and how far each one is.
//
//   floor 0 … f   {chat: a head that it has reached}, a chat on the shelf of the first hex digit of H(chat id)
//   manifest      {g, uk, box, box_pub, floors: 16 × H(envelope), chain, …}
//
// Owns the two records. Easy to get wrong: a floor late. A chat gets its floor in the write that creates it and loses it in
// the write that deletes it; a chat without a floor is refused. Only the head may be ahead, by up to 60 seconds.

import { Digest, hash, PublicKey } from "./bytes";
import type { Bytes } from "./bytes";
import { Refused } from "./error";
import type { Mark } from "./head";
import { ChatId, DeviceId } from "./ids";
import { read, Reader, write } from "./json";
import type { Codec } from "./json";
import { Shelf } from "./record";

/** The chats of one shelf, each with a head that it has reached. With the envelope's hash and not only the revision, a device
 *  that remembers nothing cannot be shown another head of the same revision. */
export interface Floor {
  readonly chats: ReadonlyMap<ChatId, Mark>;
}

/** What is sealed as an account's manifest. */
export interface Manifest {
  /** Generation of the account key. */
  readonly g: number;
  /** Number of the newest entry in the account's ring. */
  readonly uk: number;
  /** Number of the newest entry in the mailbox's ring. */
  readonly boxN: number;
  /** The mailbox's public key. */
  readonly boxPub: PublicKey;
  /** `H(envelope)` of each of the 16 floors, shelf 0 first. */
  readonly floors: readonly Digest[];
  /** The chain up to this manifest. */
  readonly chain: Digest;
  /** When it was written, in milliseconds since 1970. */
  readonly at: number;
  /** Which device wrote it. */
  readonly device: DeviceId;
}

const FLOOR: Codec<Floor> = {
  write: ({ chats }) => {
    const sorted = [...chats].sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
    return { chats: Object.fromEntries(sorted.map(([chat, { rev, envelope }]) => [chat, { rev, envelope }])) };
  },
  read: (fields) => {
    const all = fields.object("chats");
    return {
      chats: new Map(
        all.names().map((chat) => {
          if (!ChatId.is(chat)) throw new Refused("record-refused");
          const mark = all.object(chat);
          return [chat, { rev: mark.u32("rev"), envelope: mark.parsed("envelope", Digest.parse) }];
        }),
      ),
    };
  },
};

const MANIFEST: Codec<Manifest> = {
  write: (manifest) => ({
    g: manifest.g,
    uk: manifest.uk,
    box: manifest.boxN,
    box_pub: manifest.boxPub,
    floors: manifest.floors,
    chain: manifest.chain,
    at: manifest.at,
    device: manifest.device,
  }),
  read: (fields) => ({
    g: fields.u32("g"),
    uk: fields.u32("uk"),
    boxN: fields.u32("box"),
    boxPub: fields.parsed("box_pub", PublicKey.parse),
    floors: readFloors(fields),
    chain: fields.parsed("chain", Digest.parse),
    at: fields.time("at"),
    device: fields.like("device", DeviceId.is),
  }),
};

function readFloors(fields: Reader): Digest[] {
  const floors = fields.list("floors").map(Digest.parse);
  if (floors.length !== Shelf.ALL.length) throw new Refused("record-refused");
  return floors.map((floor) => {
    if (floor === null) throw new Refused("record-refused");
    return floor;
  });
}

export const Floor = {
  /** Its JSON. */
  toJson: (floor: Floor): Bytes => write(FLOOR, floor),

  /** Reads its JSON, or `record-refused`; a chat of another shelf is refused too. */
  async fromJson(shelf: Shelf, json: Bytes): Promise<Floor> {
    const floor = read(FLOOR, json);
    const shelves = await Promise.all([...floor.chats.keys()].map(Shelf.of));
    if (shelves.some((other) => other !== shelf)) throw new Refused("record-refused");
    return floor;
  },
};

export const Manifest = {
  /** Its JSON. */
  toJson: (manifest: Manifest): Bytes => write(MANIFEST, manifest),
  /** Reads its JSON, or `record-refused`. */
  fromJson: (json: Bytes): Manifest => read(MANIFEST, json),
  /** What the chain has in place of a chat's list: `H(floors joined)`. */
  live: (floors: readonly Digest[]): Promise<Digest> => hash(...floors.map(Digest.toBytes)),
};
