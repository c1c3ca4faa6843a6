// What a client and a server agree that a branch is, without the words.
//
//   hist = mac(sub(CK, "hist"), "hist/v1", u32 count ‖ each: lp(id) ‖ u32 rev)
//
// Keyed: whoever stole a session cannot compute it, and so gets nothing out of the server's cache. Easy to get wrong:
// comparing digests of two chat keys. After a new key the server asks for the history once.

import { concat, Digest, lp, u32 } from "./bytes";
import type { MessageId } from "./ids";
import type { Held } from "./ring";

/** A message of a branch and its revision. */
export type Line = readonly [id: MessageId, rev: number];

/** The digest of a branch, from its first message to its last. */
export async function history(chatKey: Held, branch: readonly Line[]): Promise<Digest> {
  const bytes = concat(u32(branch.length), ...branch.flatMap(([id, rev]) => [lp(id), u32(rev)]));
  return Digest.fromBytes(await chatKey.key.macUnder("hist", "hist/v1", bytes));
}

/** What a client sends with a message. */
export interface Claim {
  /** How many messages the branch has before this one. */
  readonly count: number;
  /** The digest before this message; the server has it in its cache, or asks for the history. */
  readonly before: Digest;
  /** The digest with this message and its reply, at revision 1; the server stores it when it commits. */
  readonly after: Digest;
}

export const Claim = {
  /** The claim for `message` after `branch`, and for the reply with the id that the client picked. */
  async make(chatKey: Held, branch: readonly Line[], message: Line, reply: MessageId): Promise<Claim> {
    const before = await history(chatKey, branch);
    return { count: branch.length, before, after: await history(chatKey, [...branch, message, [reply, 1]]) };
  },
};
