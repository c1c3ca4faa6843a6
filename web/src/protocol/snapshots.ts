// Snapshots: a branch of a chat, sealed once more under a key of its own, that its owner shares with whoever has the link.
//
//   owner: make (session) ──▶ made      list, revoke (session)
//   whoever has the link: open (id) ──▶ list, messages, embeds          the key is in the link only
//
// Easy to get wrong: telling why there is nothing. An id that never was, one that was revoked and one that is over are the same `not-found`.

import type { Sealed } from "../format/envelope";
import type { ItemId } from "../format/ids";
import { MAX_EMBED, MAX_FRAME, MAX_KEY, MAX_MESSAGE, MAX_RECORD, MAX_SNAPSHOT, MAX_SNAPSHOT_ITEMS, MAX_SNAPSHOTS } from "./limits";
import { type At, type Value, list, object, optional } from "./shapes";
import { chatId, envelope, itemId, snapshotId, u32, u64 } from "./values";

/**
 * Shares a snapshot of a chat. All of it has at most 4 MiB.
 *
 * `key-refused`: the key is not sealed under a key of the chat. `duplicate`: there is a snapshot with this id. `too-many`: the account has as
 * many as it may have.
 */
export const MakeSnapshot = object("MakeSnapshot", () => ({
  /** The snapshot's id, which the device made. */
  id: snapshotId,
  /** The chat. */
  chat: chatId,
  /** Until when it can be opened, in milliseconds since 1970: at most 90 days from now. */
  expiresAt: u64,
  /** The snapshot's key, sealed under the chat's for the owner's devices. */
  key: envelope(MAX_KEY),
  /** The sealed list. */
  list: envelope(MAX_RECORD),
  /** Messages and embeds. */
  items: list(() => SnapshotItem, MAX_SNAPSHOT_ITEMS, 1),
}), { limit: MAX_FRAME, check: checkMake });
export type MakeSnapshot = Value<typeof MakeSnapshot>;

/** A message or an embed of a snapshot. */
export const SnapshotItem = object("SnapshotItem", () => ({
  /** Which: a message id or an embed id. */
  item: itemId,
  /** It. */
  envelope: envelope(MAX_EMBED),
}), { check: checkItem });
export type SnapshotItem = Value<typeof SnapshotItem>;

/** The snapshot is stored. */
export const SnapshotMade = object("SnapshotMade", () => ({
  /** Until when it can be opened, in milliseconds since 1970. */
  expiresAt: u64,
}));
export type SnapshotMade = Value<typeof SnapshotMade>;

/** Asks for the account's snapshots. */
export const RequestSnapshots = object("RequestSnapshots", () => ({}));
export type RequestSnapshots = Value<typeof RequestSnapshots>;

/** The account's snapshots that can be opened, the newest first. */
export const Snapshots = object("Snapshots", () => ({
  /** The snapshots. */
  snapshots: list(() => SnapshotLine, MAX_SNAPSHOTS),
}), { limit: MAX_FRAME });
export type Snapshots = Value<typeof Snapshots>;

/** A snapshot, as its owner sees it in a list. */
export const SnapshotLine = object("SnapshotLine", () => ({
  /** Its id. */
  id: snapshotId,
  /** The chat. */
  chat: chatId,
  /** When it was stored, in milliseconds since 1970. */
  madeAt: u64,
  /** Until when it can be opened. */
  expiresAt: u64,
  /** How many messages and embeds it has. */
  items: u32,
  /** Its key, sealed under the chat's. */
  key: envelope(MAX_KEY),
}));
export type SnapshotLine = Value<typeof SnapshotLine>;

/** Ends a snapshot: its link opens nothing any more. */
export const RevokeSnapshot = object("RevokeSnapshot", () => ({
  /** Which. */
  id: snapshotId,
}));
export type RevokeSnapshot = Value<typeof RevokeSnapshot>;

/** Asks for a snapshot. Whoever has its link may. */
export const OpenSnapshot = object("OpenSnapshot", () => ({
  /** Which. */
  id: snapshotId,
}));
export type OpenSnapshot = Value<typeof OpenSnapshot>;

/** A snapshot. */
export const SnapshotSent = object("SnapshotSent", () => ({
  /** Until when it can be opened, in milliseconds since 1970. */
  expiresAt: u64,
  /** The sealed list. */
  list: envelope(MAX_RECORD),
  /** Messages and embeds. */
  items: list(() => SnapshotItem, MAX_SNAPSHOT_ITEMS),
}), { limit: MAX_FRAME });
export type SnapshotSent = Value<typeof SnapshotSent>;

/** A snapshot in an export. */
export const SnapshotKept = object("SnapshotKept", () => ({
  /** The snapshot, as in the list. */
  line: SnapshotLine,
  /** What its link opens. Left out if the server cannot open its own seal any more. */
  content: optional(SnapshotSent),
}), { link: "snapshot_kept" });
export type SnapshotKept = Value<typeof SnapshotKept>;

interface Item {
  item: ItemId;
  envelope: Sealed;
}

function checkItem({ item, envelope: sealed }: Item, at: At): void {
  if (item.startsWith("meta:")) at.field("item").fail("expected a message or an embed");
  const limit = item.startsWith("msg_") ? MAX_MESSAGE : MAX_EMBED;
  if (sealed.length > limit) at.field("envelope").fail(`longer than ${limit} bytes`);
}

function checkMake(make: { list: Sealed; items: readonly Item[] }, at: At): void {
  const size = make.items.reduce((sum, { envelope: sealed }) => sum + sealed.length, make.list.length);
  if (size > MAX_SNAPSHOT) at.field("items").fail(`longer than ${MAX_SNAPSHOT} bytes`);
  const items = new Set<ItemId>(make.items.map(({ item }) => item));
  if (items.size !== make.items.length) at.field("items").fail("an item is there twice");
}
