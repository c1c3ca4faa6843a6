// What can go wrong, by name: what happened. Never what was written.
//
//   Refused      (format) this device does not believe what the server sent: nothing of it is shown
//   denied       the server did not do what was asked
//   own          offline, logged-out, …: this client's own
//
// `Refused` of the format is thrown as it is; everything else is a ClientError. Both have a `name`, which is what the page shows words for.
// Easy to get wrong: treating `offline` as "not done". The answer may have been lost on the way back.

import { Refused } from "../format/error";
import { type ErrorName, type LogoutReason, Malformed, type RefusedSent, isErrorName } from "../protocol/index";

/** Names that only a client has. */
export type OwnName =
  /** The server cannot be reached, or the connection ended before the answer. What was written is kept. */
  | "offline"
  /** The session ended; `reason` says why. */
  | "logged-out"
  /** There is no session. */
  | "not-logged-in"
  /** The server's answer is not one of the protocol. */
  | "unexpected"
  /** Another device is replacing the account key. */
  | "frozen"
  /** What was written is larger than the server takes. */
  | "too-large"
  /** There is no such chat on this device. */
  | "no-such-chat"
  /** There is no such message in this chat. */
  | "no-such-message"
  /** These files are another device's or another account's. */
  | "occupied"
  /** The device's files cannot be read or written. */
  | "files"
  /** The browser has no room for the device's files. */
  | "quota"
  /** The device's files do not open. */
  | "damaged"
  /** It is the only way to log in besides the recovery code. */
  | "last-way"
  /** The keys are not in memory: unlock first. */
  | "locked"
  /** A part of this client did not load: the server is away, or has another page. */
  | "not-loaded"
  /** This client cannot do it. */
  | "unsupported";

/** Why something was not done. */
export class ClientError extends Error {
  override readonly name: OwnName | ErrorName;
  /** Whether the server refused, or this client. */
  readonly kind: "own" | "denied";
  /** When to try again, in milliseconds, if the server says so. */
  readonly retryMs: number | null;
  /** Why this device was logged out. */
  readonly reason: LogoutReason | null;

  constructor(name: OwnName | ErrorName, more: { kind?: "own" | "denied"; retryMs?: number | null; reason?: LogoutReason } = {}) {
    super(name);
    this.name = name;
    this.kind = more.kind ?? "own";
    this.retryMs = more.retryMs ?? null;
    this.reason = more.reason ?? null;
  }

  /** The server refused the request. */
  static denied(sent: Pick<RefusedSent, "error" | "retryMs">): ClientError {
    return new ClientError(sent.error, { kind: "denied", retryMs: sent.retryMs ?? null });
  }

  static loggedOut(reason: LogoutReason): ClientError {
    return new ClientError("logged-out", { reason });
  }
}

/** Whether the server refused the request, by this name if one is given. */
export function isDenied(error: unknown, name?: ErrorName): error is ClientError {
  return error instanceof ClientError && error.kind === "denied" && (name === undefined || error.name === name);
}

/** The name of what the server refused; one that is not of the protocol cannot be denied. */
export function deniedName(error: ClientError): ErrorName {
  return isErrorName(error.name) ? error.name : "unavailable";
}

/** Whether it is an error of this client, by this name. */
export function isOwn(error: unknown, name: OwnName): error is ClientError {
  return error instanceof ClientError && error.kind === "own" && error.name === name;
}

/** Whether this device refused what the server sent, by this name if one is given. */
export function isRefused(error: unknown, name?: Refused["name"]): error is Refused {
  return error instanceof Refused && (name === undefined || error.name === name);
}

/** Whether the server says that there is no such thing. */
export function isNotFound(error: unknown): boolean {
  return isDenied(error, "not-found");
}

/** Whether the server says that somebody else was first. */
export function isConflict(error: unknown): boolean {
  return isDenied(error, "conflict");
}

/** For what this device writes: it is too large. What it reads is mapped to `unexpected` where it is read. */
export function whenWriting(error: unknown): unknown {
  return error instanceof Malformed ? new ClientError("too-large") : error;
}

/** For what this device reads. */
export function whenReading(error: unknown): unknown {
  return error instanceof Malformed ? new ClientError("unexpected") : error;
}

/** The name to show for anything that was thrown. */
export function nameOf(error: unknown): string {
  return error instanceof ClientError || error instanceof Refused ? error.name : "unexpected";
}
