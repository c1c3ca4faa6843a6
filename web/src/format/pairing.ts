// A new device gets the account key from an old one; the server only carries it.
//
//   new device                              server                      old device
//   r, N ── shows r (and the origin) ─────────────────────────────────▶ reads it off the screen
//        ── id = HKDF(r), N ───────────────▶   ── N ──────────────────▶ K = HKDF(X25519, salt = r, … N ‖ O ‖ origin ‖ account)
//        ◀─────────────────────────────────────── O ‖ seal(K, AK ‖ u32 manifest rev ‖ H(manifest))
//
// r has 128 bits and is never sent, so the server cannot put itself between. Easy to get wrong: forgetting what came along.
// The manifest's mark is the new device's memory; without it, it could be shown an old state.

import { base32, concat, Digest, fromBase32, hex, hkdf, lp, PublicKey, random, readU32, u32, utf8, wipe } from "./bytes";
import type { Bytes } from "./bytes";
import { typedDigits } from "./credentials";
import { openOrNull, seal } from "./envelope";
import type { Context } from "./envelope";
import { Refused } from "./error";
import type { Mark } from "./head";
import type { AccountId, Origin } from "./ids";
import { Key } from "./key";
import { BoxKey } from "./mailbox";
import type { SeenAccount } from "./opening";
import { AccountKey } from "./ring";

/** What the two devices share: 16 random bytes, shown as a QR code or 26 digits. Good for two minutes, once. */
export class PairingSecret {
  readonly #bytes: Bytes;

  private constructor(bytes: Bytes) {
    this.#bytes = bytes;
  }

  /** A new one from the system's random generator. */
  static random(): PairingSecret {
    return new PairingSecret(random(16));
  }

  /** The secret with these bytes. */
  static fromBytes(bytes: Bytes): PairingSecret {
    if (bytes.length !== 16) throw new RangeError("a pairing secret has 16 bytes");
    return new PairingSecret(bytes.slice());
  }

  /** Reads the 26 digits, in either case, with spaces or hyphens; else `pair-refused`. */
  static parse(text: string): PairingSecret {
    const bytes = fromBase32(typedDigits(text), 16);
    if (bytes === null) throw new Refused("pair-refused");
    return new PairingSecret(bytes);
  }

  /** The 26 digits, to show on the new device. */
  dangerouslyToText(): string {
    return base32(this.#bytes);
  }

  /** The name of this pairing on the server, in hexadecimal: `HKDF(r, "", "seal/v1/pair/id", 16)`. */
  async id(): Promise<string> {
    return hex(await hkdf(this.#bytes, new Uint8Array(0), utf8("seal/v1/pair/id"), 16));
  }

  /** `HKDF(shared, salt = r, info, 32)`. */
  expand(shared: Bytes, info: Bytes): Promise<Bytes> {
    return hkdf(shared, this.#bytes, info, 32);
  }

  wipe(): void {
    wipe(this.#bytes);
  }
}

/** What is being paired: both devices must agree on it. */
export class Pairing {
  readonly #secret: PairingSecret;
  readonly #origin: Origin;
  readonly #account: AccountId;

  /** The secret that was shown, where both devices are logged in, and whose account. */
  constructor(secret: PairingSecret, origin: Origin, account: AccountId) {
    this.#secret = secret;
    this.#origin = origin;
    this.#account = account;
  }

  /** On the old device, after its proof with purpose `pair`: what to send. A public key of the new device that makes the
   *  shared secret zero is `pair-refused`. */
  async send(fresh: PublicKey, ak: AccountKey, manifest: Mark): Promise<Bytes> {
    const old = await BoxKey.random();
    const key = await this.key(old, fresh, fresh, old.publicKey);
    const data = concat(ak.key.dangerouslyExposeBytes(), u32(manifest.rev), Digest.toBytes(manifest.envelope));
    try {
      const sealed = await seal(key, await this.#context(ak.generation), 0, data);
      return concat(PublicKey.toBytes(old.publicKey), sealed);
    } finally {
      wipe(data);
    }
  }

  /** On the new device: the account key, and what to remember from now on. Whatever does not fit is `pair-refused`. */
  async receive(fresh: NewDevice, generation: number, wire: Bytes): Promise<{ ak: AccountKey; seen: SeenAccount }> {
    if (wire.length < 32) throw new Refused("pair-refused");
    const old = PublicKey.fromBytes(wire.subarray(0, 32));
    const key = await this.key(fresh.pair, old, fresh.publicKey, old);
    const opened = await openOrNull(key, await this.#context(generation), wire.subarray(32));
    if (opened === null || opened.rev !== 0 || opened.data.length !== 68) throw new Refused("pair-refused");
    const { data } = opened;
    try {
      const manifest = { rev: readU32(data, 32), envelope: Digest.fromBytes(data.subarray(36)) };
      const ak = new AccountKey(await Key.fromBytes(data.subarray(0, 32)), generation);
      return { ak, seen: { generation, manifest } };
    } finally {
      wipe(data);
    }
  }

  /** The key under which the old device seals, from either side. */
  async key(ours: BoxKey, theirs: PublicKey, fresh: PublicKey, old: PublicKey): Promise<Key> {
    const shared = await ours.agree(theirs);
    if (shared === null) throw new Refused("pair-refused");
    const points = [fresh, old].map(PublicKey.toBytes);
    const info = concat(utf8("seal/v1/pair/key"), ...points, lp(this.#origin), lp(this.#account));
    try {
      return await Key.hidden(await this.#secret.expand(shared, info));
    } finally {
      wipe(shared);
    }
  }

  async #context(generation: number): Promise<Context> {
    const container = await this.#secret.id();
    return { purpose: "pair", owner: this.#account, container, object: `account:${generation}`, field: "" };
  }
}

/** The new device's key pair, for one pairing. */
export class NewDevice {
  readonly pair: BoxKey;

  constructor(pair: BoxKey) {
    this.pair = pair;
  }

  /** A new pair. */
  static async random(): Promise<NewDevice> {
    return new NewDevice(await BoxKey.random());
  }

  /** The public half, N. */
  get publicKey(): PublicKey {
    return this.pair.publicKey;
  }
}
