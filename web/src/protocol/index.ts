// What a client of client-sealed chats and its server say to each other: the types of crates/chat-protocol.
//
//                          ClientFrame {id, event} ──▶
//   client                                                server       sockets, server-sent events, posts   [frames, events]
//                          ◀── ServerFrame {re, seq, event}
//
//                          Signed {body, proof, …} ──▶                 accounts, over HTTP                  [routes, login]
//
// `readBody` is the only door for what the server sent. Sizes are in ./limits. A test compares all of it with docs/PROTOCOL.md.

export * from "./account";
export * from "./answers";
export * from "./catalogue";
export * from "./chats";
export * from "./devices";
export * from "./drafts";
export * from "./errors";
export * from "./events";
export * from "./frames";
export * from "./keys";
export * from "./letters";
export * from "./limits";
export * from "./login";
export type { Purpose } from "../format/index";
export * from "./pairing";
export * from "./rotation";
export * from "./routes";
export * from "./remembered";
export * from "./safety";
export * from "./snapshots";
export { At, Malformed, type ObjectShape, type Shape, type Value, readBody, writeBody } from "./shapes";
export * from "./sync";
export { cutText, utf8Length } from "./values";
