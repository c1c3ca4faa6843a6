// What travels: an event with its number, the same on a socket, as a server-sent event and as a posted body.
//
//   client ──▶ {"id": 7, "event": {"type": "delete_draft", …}}
//   server ◀── {"re": 7, "seq": 815, "event": {"type": "draft_deleted", …}}
//
// Easy to get wrong: `id` and `seq`. `id` is the client's own count, on one connection; `seq` is the account's, for good.

import { ClientEvent, ServerEvent } from "./events";
import { MAX_FRAME } from "./limits";
import { type Value, object, optional } from "./shapes";
import { u32, u64 } from "./values";

/** A request of a client. */
export const ClientFrame = object("ClientFrame", () => ({
  /** The client's number for it; answers have it as `re`. */
  id: u32,
  /** The event. */
  event: ClientEvent,
}), { limit: MAX_FRAME, link: "client-to-server" });
export type ClientFrame = Value<typeof ClientFrame>;

/** An answer, or news. */
export const ServerFrame = object("ServerFrame", () => ({
  /** The `id` of the request that it answers; left out for news. */
  re: optional(u32),
  /** The number of the change in the account, which grows by one with each; left out where nothing changed. */
  seq: optional(u64),
  /** The event. */
  event: ServerEvent,
}), { limit: MAX_FRAME, link: "server-to-client" });
export type ServerFrame = Value<typeof ServerFrame>;

/** Why a server closes a socket: the code of the close frame, which says nothing else. */
export const CLOSE = {
  /** The server stops, or the device did not keep up. Connect again, perhaps elsewhere, and sync. */
  stopping: 1001,
  /** A frame was over the limit. */
  tooLarge: 1009,
  /** `hello` had no valid ticket, or the first frame was something else. */
  unauthorised: 4401,
  /** The session is over; `force_logout` came before. */
  loggedOut: 4403,
  /** No `hello` within five seconds. */
  late: 4408,
  /** Too many frames. */
  rate: 4429,
} as const;
