// Refusals: one event for every request that was not done.
//
// Names of content are those of the format (`Refused`), all others are here. Easy to get wrong: an error that tells who has what. Things of
// other accounts are `not-found`, like things that never were.

import { Refused, type RefusedName } from "../format/error";
import { MAX_WORDS } from "./limits";
import { type Shape, type Value, object, optional, words } from "./shapes";
import { text, u64 } from "./values";

/** Why a request was refused before its content mattered. */
export const Failure = words("Failure", [
  /** A message, an envelope or a list is over its limit. */
  "too-large",
  /** The account has as many of these as it may have. */
  "too-many",
  /** Too many requests; wait for `retry_ms`. */
  "rate",
  /** It is not there, or belongs to somebody else. */
  "not-found",
  /** The message is not one of this protocol. */
  "malformed",
  /** No valid session or ticket. */
  "unauthorised",
  /** The server stops; connect again. */
  "stopping",
  /** The server cannot reach its database or keys. */
  "unavailable",
  "stale-client",
]);
export type Failure = Value<typeof Failure>;

/** The name of an error: one of the format's, or one of the protocol's. */
export type ErrorName = RefusedName | Failure;

const NAMES: ReadonlySet<string> = new Set([...Refused.ALL, ...Failure.words]);

export function isErrorName(name: unknown): name is ErrorName {
  return typeof name === "string" && NAMES.has(name);
}

export const ErrorName: Shape<ErrorName> = {
  what: `a name of FORMAT.md section 10, or ${Failure.what}`,
  read: (json, at) => (isErrorName(json) ? json : at.fail("is no name of an error")),
  write: (name) => name,
};

/** The status of an HTTP answer with this error. */
export function statusOf(name: ErrorName): number {
  return STATUS[name] ?? 422;
}

const STATUS: Partial<Record<ErrorName, number>> = {
  "bad-id": 400,
  "two-credentials": 400,
  malformed: 400,
  "login-refused": 401,
  unauthorised: 401,
  "not-found": 404,
  duplicate: 409,
  conflict: 409,
  "too-many": 409,
  "stale-client": 409,
  "too-large": 413,
  rate: 429,
  stopping: 503,
  unavailable: 503,
};

/** A request was not done. `re` of the frame says which; without it, the socket is meant. */
export const RefusedSent = object("RefusedSent", () => ({
  /** The name of the error. */
  error: ErrorName,
  /** What happened, for people. */
  what: text(MAX_WORDS),
  /** What to do, for people. */
  hint: text(MAX_WORDS),
  /** When to try again, in milliseconds. */
  retryMs: optional(u64),
}), { link: "refused" });
export type RefusedSent = Value<typeof RefusedSent>;
