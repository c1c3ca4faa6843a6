// Accounts: register, log in, change and recover credentials, devices and sessions, log out.
//
//   register  an id from the server ─▶ account key, rings, floors and manifest made here ─▶ session
//   log in    proof ─▶ session and the account key, sealed for this credential ─▶ opened here
//
// Easy to get wrong: a log-in that makes a key. If the server has none, it is `account-missing`; a key is made once, by the device that
// registers.

import type { Bytes } from "../format/bytes";
import {
  type AccountId,
  AccountKey,
  BoxKey,
  DeviceId,
  Digest,
  Entry,
  FieldName,
  Floor,
  Key,
  type Login,
  type Manifest,
  Place,
  type RecoveryCode,
  Refused,
  Ring,
  RingOf,
  type Sealed,
  Text,
  openRecord,
  sealRecord,
  wellFormed,
} from "../format/index";
import { type ChangeCredentials, type FirstManifest, MAX_KEY, SHELVES, type SessionOpened } from "../protocol/index";
import { type Credential, Link, signingOf } from "./credential";
import { Device, type Setup, connect, disconnect, load, readState, requestOne, save, vacant } from "./device";
import { ClientError, isConflict } from "./error";
import { Cabinet } from "./files";
import { type Book, type State, newState, setAccountKey } from "./state";
import { refreshAccount } from "./sync";
import { Turns } from "./turns";
import { NOTHING, next, sealManifest, within } from "./write";

/** Who registers. */
export interface Registration {
  /** The login, which is in use from now on. */
  login: Login;
  /** The credentials, the one that signs first. A passkey needs a recovery code beside it. */
  credentials: Credential[];
  /** The code that the server printed for the first account, or an invitation. */
  code: string | null;
}

/** A device of the account, as the list has it. */
export interface DeviceLine {
  device: DeviceId;
  /** Its label; null if it has none, or one that does not open. */
  label: string | null;
  /** When it first came, in milliseconds since 1970. */
  createdAt: number;
  /** The day on which it was last seen, in days since 1970. */
  lastSeenDay: number;
  /** Its open sessions: what each is revoked by. */
  sessions: Bytes[];
  isThis: boolean;
}

/** Changes to how codes of an authenticator are asked for. */
export type TotpChange =
  /** From now on, with this secret; the code shows that the authenticator has it. */
  | { totp: "on"; secret: Bytes; code: string }
  /** No more. */
  | { totp: "off" };

/** Opens an account, and a session on this device. */
export async function register(setup: Setup, who: Registration): Promise<Device> {
  const cabinet = await vacant(setup);
  const link = new Link(setup.transport, null);
  const offer = await link.post("/account/register/begin", { login: who.login, invite: who.code ?? undefined });
  const ready = await inTurn(who.credentials, (credential) => signingOf(credential, offer.serverSalt, offer.profile));
  const by = ready[0];
  if (by === undefined) throw new Refused("login-refused");
  const [ak, device] = [await AccountKey.first(), DeviceId.random()];
  const made = await newAccount(ak, offer.account, device, setup.clock());
  const request = {
    account: offer.account,
    login: who.login,
    credentials: await inTurn(ready, (one) => one.newCredential(ak, offer.account, 1)),
    ring: made.ring,
    mailbox: made.mailbox,
    boxPub: made.book.boxPub,
    first: made.first,
    device,
  };
  const signed = await by.sign("/account/register", request, link, offer.challenge);
  const [opened, id] = await link.sendSigned("/account/register", signed);
  if (opened.account !== offer.account) throw new ClientError("unexpected");
  const state = newState(offer.account, device, ak);
  state.book = made.book;
  takeSession(setup, state, opened, id);
  return settled(setup, cabinet, state);
}

/** Logs in with any credential. What this device remembers of the account is kept and compared with. */
export async function logIn(setup: Setup, credential: Credential): Promise<Device> {
  const cabinet = await Cabinet.open(setup.files, setup.key);
  const known = await readState(cabinet);
  const link = new Link(setup.transport, null);
  const by = await link.ready(credential);
  const signed = await link.signed("/account/login", { kind: by.kind, device: known?.device }, by);
  const [opened, id] = await link.sendSigned("/account/login", signed);
  if (known !== null && known.account !== opened.account) throw new ClientError("occupied");
  const name = by.name();
  const seen = { generation: known?.generation ?? 0, rev: known?.wraps.get(name) ?? 0 };
  const kek = await by.root.kek();
  const { ak, rev } = await AccountKey.open(kek, opened.account, opened.generation, by.wrap(), opened.wrap ?? null, seen);
  const state = known ?? newState(opened.account, opened.device, ak);
  if (state.generation === ak.generation && !state.ak.equals(ak.key)) throw new Refused("key-refused");
  setAccountKey(state, ak);
  state.wraps.set(name, rev);
  takeSession(setup, state, opened, id);
  return settled(setup, cabinet, state);
}

/** Logs this device in again, after its session ended. What it remembers stays, the queue with it. */
export async function logInAgain(device: Device, credential: Credential): Promise<void> {
  const fresh = await logIn(device.setup, credential);
  disconnect(device);
  [device.state, device.account, device.rooms] = [fresh.state, fresh.account, fresh.rooms];
  device.link.session = fresh.link.session;
  device.turns = new Turns();
}

async function settled(setup: Setup, cabinet: Cabinet, state: State): Promise<Device> {
  const device = new Device(setup, cabinet, state);
  await load(device);
  await save(device);
  return device;
}

/** Ends this session, or all of the account's. The files stay, for the next log-in; `forget` removes them. */
export async function logOut(device: Device, everywhere: boolean): Promise<void> {
  await device.link.post("/account/logout", { everywhere });
  disconnect(device);
  [device.state.session, device.link.session] = [null, null];
  await save(device);
}

/** Removes every file of this device. */
export function forget(device: Device): Promise<void> {
  disconnect(device);
  return device.cabinet.clear();
}

/** Adds credentials, or replaces those of the same kind and id. Removing one is `rotate`. */
export async function changeCredentials(
  device: Device,
  by: Credential,
  added: readonly Credential[],
  totp: TotpChange | null = null,
): Promise<void> {
  const signing = await device.link.ready(by);
  const ready = await inTurn(added, (credential) => device.link.ready(credential));
  for (let attempt = 0; ; attempt++) {
    const rev = await accountRev(device);
    const request: ChangeCredentials = {
      accountRev: rev,
      credentials: await inTurn(ready, (one) => one.newCredential(device.ak, device.state.account, next(rev))),
      totp: totp?.totp === "on" ? { secret: totp.secret, code: totp.code } : undefined,
      totpOff: totp?.totp === "off",
    };
    try {
      const changed = await device.link.prove("/account/credentials", request, signing);
      return await takeRev(device, changed.accountRev);
    } catch (error) {
      if (!isConflict(error) || attempt > 0) throw error;
      // Another device changed the account: its revision is asked for.
      device.state.accountRev = 0;
    }
  }
}

/** Replaces a lost password and the recovery code that signs this. Log in with the code first. */
export async function recover(device: Device, code: RecoveryCode, password: Credential, newCode: RecoveryCode): Promise<void> {
  const by = await device.link.ready({ kind: "recovery", code });
  const signing = await device.link.ready(password);
  const recovery = await device.link.ready({ kind: "recovery", code: newCode });
  const rev = await accountRev(device);
  const [ak, id, after] = [device.ak, device.state.account, next(rev)];
  const request = {
    accountRev: rev,
    password: await signing.newCredential(ak, id, after),
    recovery: await recovery.newCredential(ak, id, after),
  };
  const changed = await device.link.prove("/account/recover", request, by);
  await takeRev(device, changed.accountRev);
}

async function takeRev(device: Device, rev: number): Promise<void> {
  device.state.accountRev = rev;
  await save(device);
}

/** The revision of the account; asked for if it is not known. */
export async function accountRev(device: Device): Promise<number> {
  if (device.state.accountRev === 0) await accountSeen(device);
  return device.state.accountRev;
}

/** Asks for the account's rings, manifest and floors, and checks them. */
export async function accountSeen(device: Device): Promise<void> {
  await connect(device);
  await refreshAccount(device);
}

/** The account's devices and sessions. */
export async function devices(device: Device): Promise<DeviceLine[]> {
  const answer = await device.link.post("/account/devices", {});
  return inTurn(answer.devices, async (one) => ({
    device: one.device,
    label: one.label === undefined ? null : await openLabel(device, one.device, one.label),
    createdAt: one.createdAt,
    lastSeenDay: one.lastSeenDay,
    sessions: answer.sessions.filter((session) => session.device === one.device).map(({ session }) => session),
    isThis: one.device === device.state.device,
  }));
}

async function openLabel(device: Device, id: DeviceId, sealed: Sealed): Promise<string | null> {
  if (device.account === null) return null;
  try {
    const opened = await openRecord(device.account.ring, device.account.id, labelPlace(id), sealed);
    return Text.fromJson(opened.json).body;
  } catch {
    return null;
  }
}

/** Gives this device a label, sealed. */
export async function label(device: Device, text: string): Promise<void> {
  await connect(device);
  const held = device.scribe().account.ring.writer;
  if (held === null) throw new Refused("key-refused");
  const id = device.state.device;
  const sealed = await sealRecord(held, device.state.account, labelPlace(id), 1, Text.toJson({ body: wellFormed(text) }));
  const [, answer] = await requestOne(device, { type: "label_device", device: id, label: within(sealed, MAX_KEY) });
  if (answer.type !== "devices_changed") throw new ClientError("unexpected");
}

/** Ends a device with its sessions. It still knows the account key: replace that with `rotate`. */
export async function revokeDevice(device: Device, by: Credential, other: DeviceId): Promise<void> {
  await device.link.prove("/account/devices/revoke", { device: other }, await device.link.ready(by));
}

/** Ends a session. */
export async function revokeSession(device: Device, by: Credential, session: Bytes): Promise<void> {
  await device.link.prove("/account/sessions/revoke", { session }, await device.link.ready(by));
}

function labelPlace(device: DeviceId): Place {
  return Place.data(FieldName.parse("device"), FieldName.parse(device));
}

/** Takes over a session that was opened. A browser keeps its id in a cookie; any other program has to get it. */
export function takeSession(setup: Setup, state: State, opened: SessionOpened, id: Bytes | null): void {
  if (id === null && !setup.transport.hasCookies) throw new ClientError("unexpected");
  state.device = opened.device;
  state.accountRev = opened.accountRev;
  state.session = { id: setup.transport.hasCookies ? null : id, secret: opened.session, expiresAt: opened.expiresAt };
}

/** What a new account has. */
async function newAccount(ak: AccountKey, id: AccountId, device: DeviceId, now: number) {
  const [uk, letters] = [await Key.random(), await Key.random()];
  const born = ak.generation;
  const ring = await Entry.seal(ak, id, RingOf.ACCOUNT, 1, uk, born);
  const mailbox = await Entry.seal(ak, id, RingOf.BOX, 1, letters, born);
  const opened = await Ring.open(ak, id, RingOf.ACCOUNT, [ring]);
  const empty: Book = {
    keys: [{ key: uk, born }],
    boxes: [{ key: letters, born }],
    boxPub: (await BoxKey.fromKey(letters)).publicKey,
    manifest: new Uint8Array(0),
    floors: [],
  };
  const { first, book } = await firstList(empty, opened, id, device, now);
  return { ring, mailbox, first, book };
}

/** Empty floors and their manifest, at revision 1, for an account with the keys of `book`; and the book that has them. */
export async function firstList(
  book: Book,
  ring: Ring,
  id: AccountId,
  device: DeviceId,
  now: number,
): Promise<{ first: FirstManifest; book: Book }> {
  const held = ring.writer;
  if (held === null) throw new Refused("key-refused");
  const json = Floor.toJson({ chats: new Map() });
  const shelves = Array.from({ length: SHELVES }, (_, shelf) => shelf);
  const floors = await Promise.all(shelves.map((shelf) => sealRecord(held, id, Place.floor(shelf), 1, json)));
  const manifest: Manifest = {
    g: held.born,
    uk: book.keys.length,
    boxN: book.boxes.length,
    boxPub: book.boxPub,
    floors: shelves.map(() => Digest.ZERO),
    chain: Digest.ZERO,
    at: now,
    device,
  };
  const head = await sealManifest({ floors }, NOTHING, Digest.ZERO, manifest, (rev, sealed) =>
    sealRecord(held, id, Place.MANIFEST, rev, sealed),
  );
  return { first: { floors, manifest: head }, book: { ...book, floors, manifest: head.envelope } };
}

/** One after the other: Argon2id takes 64 MiB each. */
export async function inTurn<T, U>(all: readonly T[], act: (one: T) => Promise<U>): Promise<U[]> {
  const done: U[] = [];
  for (const one of all) done.push(await act(one));
  return done;
}
