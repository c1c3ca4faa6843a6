// Keys: how one is made, derived, named and wiped.
//
//   bytes ──import──▶ CryptoKey that cannot be exported ──HKDF──▶ kid · sub-keys · the once-only key of an envelope
//     └── kept only where the format must seal the key itself again: account keys and keys of rings
//
// What is decided here, once: every key works through a non-extractable CryptoKey. `Key.hidden` forgets the bytes: roots,
// sub-keys, keys of letters and pairings. `Key.fromBytes` keeps a copy, since an account key is wrapped for another
// credential, paired or rotated, and a ring's key is sealed again by a rotation and kept in the device's sealed files. That
// copy ends with `wipe`. All of it lives in the worker.
//
// Easy to get wrong: printing. The fields are private to the engine (#), so no log, clone or JSON has them.

import { concat, fromHex, hex, random, same, u32, utf8, wipe } from "./bytes";
import type { Brand, Bytes } from "./bytes";

/** A key's public id, 16 lower-case hexadecimal digits. Names a key, proves nothing: the envelope's commitment does that. */
export type Kid = Brand<"kid">;

export const Kid = {
  /** Reads hexadecimal digits of either case; `null` if they are not sixteen. */
  parse(text: unknown): Kid | null {
    return typeof text === "string" && fromHex(text, 8) !== null ? (text.toLowerCase() as Kid) : null;
  },
  fromBytes(bytes: Bytes): Kid {
    if (bytes.length !== 8) throw new RangeError("a key id has 8 bytes");
    return hex(bytes) as Kid;
  },
  toBytes(kid: Kid): Bytes {
    const bytes = fromHex(kid, 8);
    if (bytes === null) throw new TypeError("not a key id, though checked when made");
    return bytes;
  },
};

/** 32 secret bytes and their public id. */
export class Key {
  readonly kid: Kid;
  readonly #hkdf: CryptoKey;
  #bytes: Bytes | null;
  readonly #subs = new Map<string, Promise<Key>>();
  readonly #macs = new Map<string, Promise<CryptoKey>>();

  private constructor(hkdf: CryptoKey, kid: Kid, bytes: Bytes | null) {
    this.#hkdf = hkdf;
    this.kid = kid;
    this.#bytes = bytes;
  }

  /** A new key from the system's random generator, kept. */
  static async random(): Promise<Key> {
    return Key.#make(random(32), true);
  }

  /** The key with these bytes, of which it keeps a copy. They must be uniformly random; nothing stretches them. */
  static async fromBytes(bytes: Bytes): Promise<Key> {
    return Key.#make(bytes.slice(), true);
  }

  /** The key with these bytes, which are wiped and not kept: it can derive and seal, and cannot itself be sealed. */
  static async hidden(bytes: Bytes): Promise<Key> {
    return Key.#make(bytes, false);
  }

  static async #make(bytes: Bytes, kept: boolean): Promise<Key> {
    if (bytes.length !== 32) throw new RangeError("a key has 32 bytes");
    try {
      const hkdf = await crypto.subtle.importKey("raw", bytes, "HKDF", false, ["deriveBits", "deriveKey"]);
      const kid = Kid.fromBytes(await expand(hkdf, NOTHING, KID, 8));
      return new Key(hkdf, kid, kept ? bytes : null);
    } finally {
      if (!kept) wipe(bytes);
    }
  }

  /** The sub-key of this name, hidden: `HKDF-SHA-256(key, salt = "", info = "seal/v1/sub/" ‖ label, 32)`. Derived once. */
  derive(label: string): Promise<Key> {
    return once(this.#subs, label, async () => Key.hidden(await this.dangerouslyDerive(label)));
  }

  /** The bytes of a sub-key, for algorithms that take a seed. The caller wipes them. */
  dangerouslyDerive(label: string): Promise<Bytes> {
    return expand(this.#hkdf, NOTHING, subInfo(label), 32);
  }

  /** `mac(sub(key, label), domain, bytes)`, where `mac = HMAC-SHA-256(key, u64 length of domain ‖ domain ‖ bytes)`. */
  async macUnder(label: string, domain: string, bytes: Bytes): Promise<Bytes> {
    const hmac = await once(this.#macs, label, () => {
      const how = { name: "HKDF", hash: "SHA-256", salt: NOTHING, info: subInfo(label) };
      return crypto.subtle.deriveKey(how, this.#hkdf, { name: "HMAC", hash: "SHA-256", length: 256 }, false, ["sign"]);
    });
    return signMac(hmac, domain, bytes);
  }

  /** The MAC under the key itself. Only for a key whose bytes are kept. */
  async mac(domain: string, bytes: Bytes): Promise<Bytes> {
    const how = { name: "HMAC", hash: "SHA-256" };
    const hmac = await crypto.subtle.importKey("raw", this.dangerouslyExposeBytes(), how, false, ["sign"]);
    return signMac(hmac, domain, bytes);
  }

  /** `HKDF-SHA-256(key, salt, info, length)`, for the envelope. The caller wipes it. */
  expand(salt: Bytes, info: Bytes, length: number): Promise<Bytes> {
    return expand(this.#hkdf, salt, info, length);
  }

  /** The secret itself, not a copy, for the code that must seal it. Throws if it is hidden or wiped. */
  dangerouslyExposeBytes(): Bytes {
    if (this.#bytes === null) throw new TypeError("this key's bytes are not kept");
    return this.#bytes;
  }

  /** Whether both have the same bytes; of keys with hidden bytes, whether they have the same id. */
  equals(other: Key): boolean {
    if (this.#bytes === null || other.#bytes === null) return this.kid === other.kid;
    return same(this.#bytes, other.#bytes);
  }

  /** Ends the copy of the bytes and of what was derived. The engine drops the CryptoKey with the object. */
  wipe(): void {
    wipe(this.#bytes);
    this.#bytes = null;
    this.#subs.clear();
    this.#macs.clear();
  }
}

async function expand(hkdf: CryptoKey, salt: Bytes, info: Bytes, length: number): Promise<Bytes> {
  const how = { name: "HKDF", hash: "SHA-256", salt, info };
  return new Uint8Array(await crypto.subtle.deriveBits(how, hkdf, length * 8));
}

async function signMac(hmac: CryptoKey, domain: string, bytes: Bytes): Promise<Bytes> {
  const name = utf8(domain);
  // u64: the upper half is zero for any text that fits into memory.
  const message = concat(u32(0), u32(name.length), name, bytes);
  return new Uint8Array(await crypto.subtle.sign("HMAC", hmac, message));
}

/** Remembers what is made under a name; a failure is not remembered. */
function once<T>(made: Map<string, Promise<T>>, name: string, make: () => Promise<T>): Promise<T> {
  const before = made.get(name);
  if (before) return before;
  const now = make();
  made.set(name, now);
  now.catch(() => made.delete(name));
  return now;
}

function subInfo(label: string): Bytes {
  return utf8(`seal/v1/sub/${label}`);
}

const NOTHING = new Uint8Array(0);
const KID = utf8("seal/v1/kid");
