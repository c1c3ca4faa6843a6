// Chats that only their owner can read: what is sealed, and what a device checks before it shows anything.
//
//   password, passkey, code ─▶ Root ─▶ sign ──▶ proofs to the server                     [credentials]
//                                   └▶ kek ───▶ AccountKey, generation g                 [ring]
//                                                   │ opens
//                      ┌────────────────────────────┼──────────────────────────┐
//                      ▼                            ▼                          ▼
//                Ring of a chat              Ring of the account         Ring of the mailbox
//                      │ seals                      │ seals                    │ opens
//       messages, embeds, fields, head       floors, manifest, data      replies that waited   [record, head, manifest, mailbox]
//                      └──────── checked, in order, by Account and Chat ───────┘               [opening]
//
// A port of crates/chat-format and of the keys and the envelope of crates/seal, on WebCrypto: docs/FORMAT.md section 10 is
// normative, vectors/*.json prove it for both. Pure: no network, no storage, no clock. A server which drops, replays, swaps
// or edits something is refused by name: these functions throw `Refused`, whose `name` is one of the list.
//
// Conventions: a type and an object of the same name go together (`ChatId` the type, `ChatId.parse` the reader). Ids, digests,
// public keys and key ids are branded strings, equal by `===`; envelopes and other bytes are `Bytes`. Keys are in key.ts.
// Everything that hashes, derives, seals or opens is async.

export {
  base64url, concat, Digest, fromBase64url, fromHex, fromUtf8, hex, isWellFormed, PublicKey, random, sha256, utf8, wellFormed, wipe,
} from "./bytes";
export type { Bytes } from "./bytes";
export { passwordSalt, prfInput, PROFILE, PURPOSES, RecoveryCode, Root, serverSalt, Statement } from "./credentials";
export type { Purpose, Signer } from "./credentials";
export { open, OpenFailed, openOrNull, seal, Sealed } from "./envelope";
export type { Context, Unsealed } from "./envelope";
export { Refused } from "./error";
export type { RefusedName } from "./error";
export { chain, Head, live, Trail } from "./head";
export type { List, Mark, Pending, Step } from "./head";
export { Claim, history } from "./history";
export type { Line } from "./history";
export {
  AccountId, ChatId, CredentialId, DeviceId, EmbedId, FieldName, ItemId, Login, MessageId, Origin, SnapshotId, TurnId,
} from "./ids";
export type { FieldItem } from "./ids";
export { Key, Kid } from "./key";
export { BoxKey, Letter } from "./mailbox";
export type { LetterFields } from "./mailbox";
export { Floor, Manifest } from "./manifest";
export { Account, Chat, checkRoots, inOrder, SeenAccount, SeenChat } from "./opening";
export type { Item, SentAccount, SentChat } from "./opening";
export { NewDevice, Pairing, PairingSecret } from "./pairing";
export { Message, openRecord, Place, sealRecord, Shelf, Text } from "./record";
export type { Opened, Role, Shared } from "./record";
export { AccountKey, Entry, Held, Ring, RingOf, SeenWrap, Wrap } from "./ring";
export { restage, ringsDigest } from "./rotation";
export { Snapshot, SnapshotKey, SnapshotLink, SnapshotList } from "./snapshot";
export type { SealedSnapshot, SnapshotMessage } from "./snapshot";
export { adopt, besideId, Kind, Transcript } from "./transcript";
export type { Said } from "./transcript";
