// What opens this browser's files: a key that is nowhere beside them, sealed for each credential that the person used here.
//
//   password ─ Argon2id ─┐
//   recovery code ───────┼─▶ kek ─▶ "files" ─ opens ─▶ the key of the files ─▶ state, chats
//   passkey ─────────────┘
//   "stay unlocked" ───────▶ a key in IndexedDB that no script can read out ─ opens ─▶ the same
//
// The file `lock` is the only one that is not sealed: it has the login, the server's half of the salt and these envelopes, so that a person
// can unlock without a server. Whoever takes the browser's profile can try passwords against it, at the price of Argon2id each; with "stay
// unlocked" on, they need not. Easy to get wrong: a password that was changed elsewhere. The old one still opens these files, until the
// person logs in here with the new one.

import { type Bytes, base64url, fromBase64url, random, utf8 } from "../format/bytes";
import { type Context, openOrNull, seal } from "../format/envelope";
import { CredentialId, Key, Login, Refused } from "../format/index";
import { type Credential, type Signing, signingOf } from "./credential";
import { ClientError } from "./error";
import type { Files } from "./files";
import { LOCK, type LockFile, type Way, parseLock } from "./glimpse";

/** Where keys are kept that no script can read out. */
export interface KeyShelf {
  readKey(name: string): Promise<CryptoKey | null>;
  writeKey(name: string, key: CryptoKey): Promise<void>;
  removeKey(name: string): Promise<void>;
}

/** Where a browser keeps a device. */
export type Place = Files & KeyShelf;

/** The lock of one browser. */
export class Lock {
  private constructor(
    private readonly place: Place,
    private readonly file: LockFile,
  ) {}

  /** Null if nobody is here. */
  static async read(place: Place): Promise<Lock | null> {
    const bytes = await place.read(LOCK);
    if (bytes === null) return null;
    const file = parseLock(bytes);
    if (file === null) throw new ClientError("damaged");
    return new Lock(place, file);
  }

  /** A new lock without any way in yet. */
  static make(place: Place, login: string | null): Lock {
    return new Lock(place, { v: 1, login, salt: null, ways: [], stays: null });
  }

  get login(): string | null {
    return this.file.login;
  }

  get staysUnlocked(): boolean {
    return this.file.stays !== null;
  }

  /** The credential that a person shows, ready. Needs no server. `login-refused`: there is no such way in. */
  async signing(credential: Credential): Promise<Signing> {
    if (credential.kind !== "password") return signingOf(credential, null, 1);
    const server = fromBase64url(this.file.salt?.server ?? "");
    if (this.file.salt === null || server === null) throw new Refused("login-refused");
    return signingOf(credential, server, this.file.salt.profile);
  }

  /** The password of whoever is here. */
  password(password: string): Credential {
    if (this.file.login === null) throw new Refused("login-refused");
    return { kind: "password", login: Login.parse(this.file.login), password, totp: null };
  }

  /** The key of the files. `login-refused`: this does not open it. */
  async open(by: Signing): Promise<Key> {
    const kek = await filesKek(by);
    for (const way of this.file.ways.filter((one) => one.kind === by.kind && one.id === idOf(by))) {
      const opened = await openOrNull(kek, context(way), fromBase64url(way.sealed) ?? new Uint8Array(0));
      if (opened?.data.length === 32) return Key.fromBytes(opened.data);
    }
    throw new Refused("login-refused");
  }

  /** The key of the files, if it stays in this browser; null if not. */
  async openStaying(): Promise<Key | null> {
    if (this.file.stays === null) return null;
    const [keeper, bytes] = [await this.place.readKey(STAYS), fromBase64url(this.file.stays)];
    if (keeper === null || bytes === null) return null;
    try {
      const opened = await crypto.subtle.decrypt({ name: "AES-GCM", iv: bytes.subarray(0, NONCE) }, keeper, bytes.subarray(NONCE));
      return await Key.fromBytes(new Uint8Array(opened));
    } catch {
      return null;
    }
  }

  /** From now on this credential opens the files too, in place of another of its kind and id. */
  async add(key: Key, by: Signing, salt: { server: Bytes; profile: number } | null): Promise<void> {
    const way: Way = { kind: by.kind, id: idOf(by), sealed: "" };
    const sealed = await seal(await filesKek(by), context(way), 1, key.dangerouslyExposeBytes());
    way.sealed = base64url(sealed);
    // An account has one password and one recovery code.
    const isOther = (one: Way) => one.kind !== way.kind || (way.kind === "passkey" && one.id !== way.id);
    this.file.ways = [...this.file.ways.filter(isOther), way];
    if ("login" in by.signer) this.file.login = by.signer.login;
    if (salt !== null) this.file.salt = { server: base64url(salt.server), profile: salt.profile };
    await this.write();
  }

  /** Only these ways stay; what others knew is gone. */
  async keepOnly(kinds: readonly Signing[]): Promise<void> {
    this.file.ways = this.file.ways.filter((way) => kinds.some((by) => by.kind === way.kind && idOf(by) === way.id));
    await this.write();
  }

  /** Whether the key outlives the tab. */
  async stay(key: Key, isOn: boolean): Promise<void> {
    if (!isOn) {
      this.file.stays = null;
      await this.write();
      await this.place.removeKey(STAYS);
      return;
    }
    const keeper = await crypto.subtle.generateKey({ name: "AES-GCM", length: 256 }, false, ["encrypt", "decrypt"]);
    const iv = random(NONCE);
    const sealed = new Uint8Array(await crypto.subtle.encrypt({ name: "AES-GCM", iv }, keeper, key.dangerouslyExposeBytes()));
    await this.place.writeKey(STAYS, keeper);
    const whole = new Uint8Array(NONCE + sealed.length);
    whole.set(iv);
    whole.set(sealed, NONCE);
    this.file.stays = base64url(whole);
    await this.write();
  }

  async write(): Promise<void> {
    await this.place.write(LOCK, utf8(JSON.stringify(this.file)));
  }

  /** Removes the lock and everything that it locks. */
  static async clear(place: Place): Promise<void> {
    await place.removeKey(STAYS);
    for (const name of await place.names()) await place.remove(name);
  }
}

/** The id of a passkey's credential: from the id that the browser knows it by, which may have any length. */
export async function passkeyId(browsersId: string): Promise<CredentialId> {
  if (CredentialId.is(browsersId)) return browsersId;
  const hash = await crypto.subtle.digest("SHA-256", utf8(`confidant/passkey/${browsersId}`));
  return CredentialId.fromBits(new Uint8Array(hash, 0, 16).slice());
}

async function filesKek(by: Signing): Promise<Key> {
  return (await by.root.kek()).derive("files");
}

function idOf(by: Signing): string | null {
  return "login" in by.signer ? null : by.signer.credential;
}

function context(way: Way): Context {
  return { purpose: "client", owner: "", container: "lock", object: way.kind, field: way.id ?? "" };
}

const STAYS = "stays";
const NONCE = 12;
