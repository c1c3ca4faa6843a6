// A server that lost an account, and a device that still has it.
//
//   operator's code ─▶ new credentials for the same account key ─┬─ chats are there: their rings are put back, then sync
//                                                                 └─ they are not, or shall go: putBack
//
// The account key stays: the server never had it, so nothing that it lost tells about it. Everything that hangs on the server's own keys is
// new: the password is stretched with another salt, and there is a new recovery code.
//
// Easy to get wrong: believing the server about which chats there are. A restored account is checked like any other; what does not fit to
// this device's memory is refused until the person says otherwise (`putBack`).

import { type ChatId, type Login, Refused, RingOf } from "../format/index";
import type { MailboxPut, RingRows } from "../protocol/index";
import { firstList, inTurn, takeSession } from "./account";
import { type Credential, Link, signingOf } from "./credential";
import { type Device, disconnect, save } from "./device";
import { ClientError } from "./error";
import { rowsOf } from "./room";
import { keysPublics, keysRing, keysRows } from "./state";
import { chunks } from "./sync";
import { next } from "./write";

/** How a lost account is put back. */
export interface Restoration {
  /** The login that it has from now on. */
  login: Login;
  /** The credentials, the one that signs first. All others are gone. */
  credentials: Credential[];
  /** The code that the operator made for this account. */
  code: string;
  /** What becomes of chats that the server still has: they stay (`conflict` if they are of another account key), or they go. */
  rest: "stays" | "goes";
}

/** What a restored account has: what the server had (sync, after `restoreRings`), or nothing yet (`putBack`). */
export type Restored = "kept" | "empty";

/** Keys of chats that were put back. */
export interface RingsBack {
  /** How many chats the server can serve again. */
  restored: number;
  /** Chats whose keys are others there, or that are not there. */
  refused: ChatId[];
}

/**
 * Puts the account back on a server that lost it or cannot open it any more, and opens a session.
 *
 * `login-refused`: the code is not good, or not for this account. `conflict`: the account is alive or was erased, or the server has chats of
 * another account key. Cut off after the server did it, the code is used up: log in with the new credentials.
 */
export async function restore(device: Device, how: Restoration): Promise<Restored> {
  const { account: id, device: self, book } = device.state;
  if (book === null) throw new Refused("account-missing");
  const link = new Link(device.setup.transport, null);
  const { ak } = device;
  const offer = await link.post("/account/restore/begin", { account: id, login: how.login, code: how.code });
  const ready = await inTurn(how.credentials, (credential) => signingOf(credential, offer.serverSalt, offer.profile));
  const by = ready[0];
  if (by === undefined) throw new Refused("login-refused");
  // More than anybody has seen of this account: a wrap from before is older everywhere.
  const accountRev = next(Math.max(0, device.state.accountRev, offer.accountRev, ...device.state.wraps.values()));
  const boxRows = await keysRows(book.boxes, ak, id, RingOf.BOX);
  const publics = await keysPublics(book.boxes);
  const mailbox = boxRows.flatMap((entry, at): MailboxPut[] => {
    const boxPub = publics[at];
    return boxPub === undefined ? [] : [{ entry, boxPub }];
  });
  const ring = await keysRows(book.keys, ak, id, RingOf.ACCOUNT);
  const isKept = offer.generation > 0 && how.rest === "stays";
  const held = await keysRing(book.keys, ak, id, RingOf.ACCOUNT);
  // What this device verified stays its memory: the new list is taken in by the next sync, like anybody's.
  const anew = isKept ? null : await firstList(book, held, id, self, device.now());
  const request = {
    account: id,
    login: how.login,
    accountRev,
    generation: ak.generation,
    credentials: await inTurn(ready, (one) => one.newCredential(ak, id, accountRev)),
    ring,
    mailbox,
    first: anew?.first,
    device: self,
  };
  const signed = await by.sign("/account/restore", request, link, offer.challenge);
  const [opened, session] = await link.sendSigned("/account/restore", signed);
  if (opened.account !== id || opened.generation !== ak.generation) throw new ClientError("unexpected");
  disconnect(device);
  // No credential of before is one now.
  device.state.wraps = new Map(ready.map((one) => [one.name(), accountRev]));
  device.state.seq = 0;
  takeSession(device.setup, device.state, opened, session);
  device.link.session = device.state.session;
  await save(device);
  return isKept ? "kept" : "empty";
}

/** Gives the server the keys of chats back that it has lost, sealed as they were. Those that it has are left as they are. */
export async function restoreRings(device: Device, by: Credential): Promise<RingsBack> {
  const signing = await device.link.ready(by);
  const { ak } = device;
  const rows: RingRows[] = [];
  for (const [chat, room] of device.rooms) rows.push({ kind: "chat", chat, entries: await rowsOf(room, ak, device.state.account) });
  const back: RingsBack = { restored: 0, refused: [] };
  for (const rings of chunks(rows, RINGS)) {
    const answer = await device.link.prove("/account/restore/rings", { rings }, signing);
    back.restored += answer.restored;
    back.refused.push(...answer.refused);
  }
  return back;
}

/** When the newest of what this device has verified was written, in milliseconds since 1970. */
export function verifiedAt(device: Device): number | null {
  const times = [...device.rooms.values()].map((room) => room.head.at);
  if (device.account !== null) times.push(device.account.manifest.at);
  return times.length === 0 ? null : Math.max(...times);
}

/** Rings in one request. */
const RINGS = 500;
