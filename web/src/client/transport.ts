// How requests and frames travel. Everything else in this folder talks to these two interfaces.
//
//   Transport.post     path, body ──▶ body, and the id of a new session
//   Transport.connect  ──▶ Connection: send a frame, wait for the next one
//
// Easy to get wrong: a request that failed may have been carried out. A transport never repeats one by itself.

import type { Bytes } from "../format/bytes";
import type { Origin } from "../format/ids";
import { CLOSE, type RefusedSent } from "../protocol/index";
import { ClientError } from "./error";

/** What a session is shown by. */
export interface SessionKeys {
  /** Its id: a browser has it in the cookie, which scripts do not see, and then it is null here. */
  id: Bytes | null;
  /** Its secret: the header `Confidant-Session`. */
  secret: Bytes;
}

/** The answer to a POST. */
export interface Posted {
  /** The JSON; of an answer in frames, one frame per line. */
  body: Bytes;
  /** The id of the session that this answer opened, if it opened one and this is no browser. */
  session: Bytes | null;
}

/** Why there is no answer: the server refused, or the socket was closed with this code, or nobody knows. */
export type TransportFailure = { refused: RefusedSent } | { closed: number } | { offline: true };

export class TransportError extends Error {
  override readonly name = "TransportError";
  constructor(readonly failure: TransportFailure) {
    super("no answer");
  }

  static readonly offline = () => new TransportError({ offline: true });
}

/** What it is for whoever asked. */
export function fromTransport(error: unknown): unknown {
  if (!(error instanceof TransportError)) return error;
  const { failure } = error;
  if ("refused" in failure) return ClientError.denied(failure.refused);
  return new ClientError("closed" in failure && failure.closed === CLOSE.unauthorised ? "not-logged-in" : "offline");
}

/** A server, as a client reaches it. */
export interface Transport {
  /** The server's origin, as the person spells it. Proofs are bound to it. */
  readonly origin: Origin;
  /** Whether the id of a session is in a cookie that this program never sees. */
  readonly hasCookies: boolean;
  /** Sends a POST to one of the routes. */
  post(path: string, session: SessionKeys | null, body: string): Promise<Posted>;
  /** Opens a socket, or what stands for one where none passes. The first frame has to be `hello`. */
  connect(session: SessionKeys): Promise<Connection>;
}

/** An open socket. */
export interface Connection {
  send(frame: string): Promise<void>;
  /**
   * The next frame of the server. `stop` gives up waiting, with null: no frame is lost then, whoever asks next gets it. One waits at a
   * time.
   */
  next(stop?: AbortSignal): Promise<Bytes | string | null>;
  close(): void;
}
