// Confidant for Node and browsers: turns with streaming, approvals, export, erasure and memory.
// `confidant-memory/redact` redacts, in Node: it starts the program that this package brings.

export { Confidant, Memories, Person, Session, TurnStream } from "./client.mjs";
export type { ConfidantOptions } from "./client.mjs";
export { ConfidantError } from "./errors.mjs";
export type { ErrorDetails, ErrorKind, Place } from "./errors.mjs";
export type * from "./types.mjs";
