// A new account key for every ring, in one commit.
//
// The client opens each ring with the old key, seals every entry under the new one, and sends the digest of all entries with
// the commit. The server compares it with the digest of what it has; if they differ, nothing changes. Easy to get wrong:
// giving old keys a new birth. `born` stays, so a chat that an old generation made gets a new key before the next write.

import { concat, hash, lp, u32, utf8 } from "./bytes";
import type { Digest } from "./bytes";
import type { AccountId } from "./ids";
import { Kid } from "./key";
import { Entry, Ring } from "./ring";
import type { AccountKey, RingOf } from "./ring";

/** Seals every entry of a ring under the new account key. Refuses as `Ring.open` does: a ring that is not whole is not carried
 *  over. */
export async function restage(
  old: AccountKey,
  next: AccountKey,
  account: AccountId,
  of: RingOf,
  entries: readonly Entry[],
): Promise<Entry[]> {
  const ring = await Ring.open(old, account, of, entries);
  return Promise.all(ring.held.map(({ n, key, born }) => Entry.seal(next, account, of, n, key, born)));
}

/** `H("seal/v1/rings" ‖ u32 count ‖ each, sorted: lp(container) ‖ u32 n ‖ kid)`, over every entry of every ring. */
export function ringsDigest(entries: readonly (readonly [RingOf, Pick<Entry, "n" | "kid">])[]): Promise<Digest> {
  const names = entries.map(([of, { n, kid }]) => [of.container as string, n, kid] as const);
  // Containers and kids are ASCII, so the order of texts is the order of bytes.
  names.sort((a, b) => compare(a[0], b[0]) || a[1] - b[1] || compare(a[2], b[2]));
  const bytes = names.flatMap(([container, n, kid]) => [lp(container), u32(n), Kid.toBytes(kid)]);
  return hash(utf8("seal/v1/rings"), u32(names.length), concat(...bytes));
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
