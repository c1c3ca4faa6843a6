// From what a person knows or holds to two keys: one that signs, one that opens the account key.
//
//   password ──NFKC, Argon2id──▶ pw_root  ┐
//   passkey ───PRF─────────────▶ prf_root ├──▶ sign (Ed25519)   proves to the server who asks
//   20 random bytes ──HKDF─────▶ rec_root ┘    kek              opens the account key; the server never has it
//
// Owns salts, roots and proofs. A root is a hidden key: its bytes are gone once it is made. A password is a JavaScript
// string, which nobody can wipe; whoever holds one drops it soon.
//
// Easy to get wrong: deriving with what the server asks for. There is one profile; another is refused before any work.

import { base32, concat, Digest, fromBase32, fromBase64url, hash, hkdf, lp, random, sha256, utf8, wipe } from "./bytes";
import type { Bytes } from "./bytes";
import { Refused } from "./error";
import { CredentialId } from "./ids";
import type { Login, Origin } from "./ids";
import { Key } from "./key";

/** The one profile of version 1: Argon2id, 64 MiB, three passes, one lane. */
export const PROFILE = 1;

/** The server's half of a password's salt: `mac(named key "logins", "prelogin", login)[0..16]`. */
export async function serverSalt(logins: Key, login: Login): Promise<Bytes> {
  return (await logins.mac("prelogin", utf8(login))).slice(0, 16);
}

/** The salt: `H("seal/v1/pw-salt" ‖ lp(login) ‖ server_salt)[0..16]`. With the login in it, a server cannot give two people
 *  one salt. A half of another length is `login-refused`. */
export async function passwordSalt(login: Login, serverSalt: Bytes): Promise<Bytes> {
  if (serverSalt.length !== 16) throw new Refused("login-refused");
  return Digest.toBytes(await hash(utf8("seal/v1/pw-salt"), lp(login), serverSalt)).slice(0, 16);
}

/** What `first` of the PRF extension is: `H("seal/v1/prf")`. */
export function prfInput(): Promise<Bytes> {
  return sha256(utf8("seal/v1/prf"));
}

/** What a credential comes down to, before its two keys. */
export class Root {
  readonly #key: Key;

  private constructor(key: Key) {
    this.#key = key;
  }

  /** `Argon2id(NFKC(password), salt, 64 MiB, 3, 1, 32)`. Takes some tenths of a second and 64 MiB. A profile other than 1 is
   *  `kdf-refused` before anything is derived. */
  static async fromPassword(password: string, salt: Bytes, profile: number): Promise<Root> {
    if (profile !== PROFILE || salt.length !== 16) throw new Refused("kdf-refused");
    const text = utf8(password.normalize("NFKC"));
    try {
      // Loaded when it is needed: few logins are by password on a device that has a passkey.
      const { argon2id } = await import("./kdf");
      return new Root(await Key.hidden(await argon2id(text, salt)));
    } finally {
      wipe(text);
    }
  }

  /** A passkey's PRF of `prfInput`, which is wiped. */
  static async fromPrf(output: Bytes): Promise<Root> {
    return new Root(await Key.hidden(output));
  }

  /** `HKDF(code, "", "seal/v1/rec", 32)`. */
  static async fromRecovery(code: RecoveryCode): Promise<Root> {
    return new Root(await Key.hidden(await code.expand("seal/v1/rec", 32)));
  }

  /** The key that opens the account key: `sub(root, "kek")`. */
  kek(): Promise<Key> {
    return this.#key.derive("kek");
  }

  /** What the server keeps: the public half of Ed25519 with the seed `sub(root, "sign")`. */
  async publicKey(): Promise<Bytes> {
    // WebCrypto gives the public half of a private key only by exporting that; this handle goes out of reach at once.
    const { x } = await crypto.subtle.exportKey("jwk", await this.#signer(true));
    const bytes = fromBase64url(x ?? "");
    if (bytes?.length !== 32) throw new TypeError("an Ed25519 key has a public half of 32 bytes");
    return bytes;
  }

  /** Signs that the holder of this credential wants `statement`: 64 bytes. */
  async prove(statement: Statement): Promise<Bytes> {
    const bytes = await statement.bytes();
    return new Uint8Array(await crypto.subtle.sign("Ed25519", await this.#signer(false), bytes));
  }

  /** Whether both come from the same secret. */
  equals(other: Root): boolean {
    return this.#key.equals(other.#key);
  }

  async #signer(extractable: boolean): Promise<CryptoKey> {
    const seed = await this.#key.dangerouslyDerive("sign");
    const pkcs8 = concat(ED25519_PKCS8, seed);
    try {
      return await crypto.subtle.importKey("pkcs8", pkcs8, "Ed25519", extractable, ["sign"]);
    } finally {
      wipe(seed, pkcs8);
    }
  }
}

/** 20 random bytes on paper, as 32 base32 digits. */
export class RecoveryCode {
  readonly #bytes: Bytes;

  private constructor(bytes: Bytes) {
    this.#bytes = bytes;
  }

  /** A new one from the system's random generator. */
  static random(): RecoveryCode {
    return new RecoveryCode(random(20));
  }

  /** The code with these bytes. */
  static fromBytes(bytes: Bytes): RecoveryCode {
    if (bytes.length !== 20) throw new RangeError("a recovery code has 20 bytes");
    return new RecoveryCode(bytes.slice());
  }

  /** Reads what a person typed: either case, with spaces or hyphens anywhere. Else `login-refused`. */
  static parse(text: string): RecoveryCode {
    const bytes = fromBase32(typedDigits(text), 20);
    if (bytes === null) throw new Refused("login-refused");
    return new RecoveryCode(bytes);
  }

  /** The id of its credential, so that a device which has nothing but the code can name it. It gives nothing away about the
   *  root. */
  async credentialId(): Promise<CredentialId> {
    return CredentialId.fromBits(await this.expand("seal/v1/rec/id", 16));
  }

  /** The digits, in groups of four, to print once. */
  dangerouslyToText(): string {
    return (base32(this.#bytes).match(/.{4}/g) ?? []).join("-");
  }

  /** `HKDF(code, "", info, length)`. */
  expand(info: string, length: number): Promise<Bytes> {
    return hkdf(this.#bytes, new Uint8Array(0), utf8(info), length);
  }

  wipe(): void {
    wipe(this.#bytes);
  }
}

/** Digits as a person types them, without spaces and hyphens, in lower case. Only ASCII: the Kelvin sign is not a k. */
export function typedDigits(text: string): string {
  return text.replace(/[\p{White_Space}-]/gu, "").replace(/[A-Z]/g, (letter) => letter.toLowerCase());
}

/** What a proof is for. One made for one purpose is refused for another. */
export type Purpose = "login" | "change" | "export" | "erase" | "pair" | "restore";

export const PURPOSES: readonly Purpose[] = ["login", "change", "export", "erase", "pair", "restore"];

/** Who signs: whoever knows the password of this login, or holds this passkey or recovery code. */
export type Signer = Login | CredentialId;

/** What is signed: one purpose, at one origin, for one challenge and one body. */
export class Statement {
  readonly #origin: Origin;
  readonly #purpose: Purpose;
  readonly #signer: Signer;
  readonly #challenge: Bytes;
  readonly #body: Bytes;

  /** `challenge`: 32 random bytes of the server, good once. `body`: the request's, so that no other can be put under the
   *  proof. A challenge of another length is `login-refused`. */
  constructor(what: { origin: Origin; purpose: Purpose; signer: Signer; challenge: Bytes; body: Bytes }) {
    if (what.challenge.length !== 32) throw new Refused("login-refused");
    this.#origin = what.origin;
    this.#purpose = what.purpose;
    this.#signer = what.signer;
    this.#challenge = what.challenge;
    this.#body = what.body;
  }

  /** `"seal/v1/proof" ‖ lp(origin) ‖ lp(purpose) ‖ lp(login or credential) ‖ challenge ‖ H(body)`. */
  async bytes(): Promise<Bytes> {
    const names = [lp(this.#origin), lp(this.#purpose), lp(this.#signer)];
    return concat(utf8("seal/v1/proof"), ...names, this.#challenge, await sha256(this.#body));
  }

  /** Checks a proof against the key that a server keeps. Every failure is `login-refused`. A client needs this for tests. */
  async verify(publicKey: Bytes, proof: Bytes): Promise<void> {
    const key = await crypto.subtle.importKey("raw", publicKey, "Ed25519", true, ["verify"]);
    const valid = await crypto.subtle.verify("Ed25519", key, proof, await this.bytes());
    if (!valid) throw new Refused("login-refused");
  }
}

/** What stands before the 32 bytes of an Ed25519 seed in PKCS #8 (RFC 8410). */
const ED25519_PKCS8 = Uint8Array.from([0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20]);
