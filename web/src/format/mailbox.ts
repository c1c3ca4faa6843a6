// Replies that came when no device was there: sealed by the server to the account's public key.
//
//   wire = E ‖ seal(HKDF(X25519, "", "seal/v1/box" ‖ E ‖ box_pub, 32), (reply, account, chat, reply id, turn), rev 1, JSON)
//
// with a new key pair E for each. What came after the answer, such as suggestions, is sealed likewise with the purpose
// `reply-more`. Anybody could write such a letter, so it counts only if the chat's sealed head waits for it. Easy to get
// wrong: acknowledging first. The message under the chat's key and the head without the pending item are one write; the
// letter goes after it.

import { concat, fromBase64url, hkdf, PublicKey, random, utf8, wipe } from "./bytes";
import type { Bytes } from "./bytes";
import { openOrNull, Sealed, seal } from "./envelope";
import type { Context } from "./envelope";
import { Refused } from "./error";
import type { Head, List, Pending } from "./head";
import type { AccountId, ChatId, MessageId, TurnId } from "./ids";
import { Key } from "./key";
import { Message, Text } from "./record";
import type { Held } from "./ring";

/** The private half of a mailbox, as a CryptoKey that cannot be exported. */
export class BoxKey {
  readonly publicKey: PublicKey;
  readonly #secret: CryptoKey;

  private constructor(secret: CryptoKey, publicKey: PublicKey) {
    this.#secret = secret;
    this.publicKey = publicKey;
  }

  /** The one in an entry of the mailbox's ring. */
  static of(held: Held): Promise<BoxKey> {
    return BoxKey.fromKey(held.key);
  }

  /** The one with these 32 bytes. */
  static fromKey(key: Key): Promise<BoxKey> {
    return BoxKey.#fromBytes(key.dangerouslyExposeBytes());
  }

  static async random(): Promise<BoxKey> {
    const bytes = random(32);
    try {
      return await BoxKey.#fromBytes(bytes);
    } finally {
      wipe(bytes);
    }
  }

  static async #fromBytes(bytes: Bytes): Promise<BoxKey> {
    const pkcs8 = concat(X25519_PKCS8, bytes);
    try {
      // WebCrypto gives the public half only by exporting; the handle that is kept cannot be exported.
      const open = await crypto.subtle.importKey("pkcs8", pkcs8, "X25519", true, ["deriveBits"]);
      const { x } = await crypto.subtle.exportKey("jwk", open);
      const point = fromBase64url(x ?? "");
      if (point?.length !== 32) throw new TypeError("an X25519 key has a public half of 32 bytes");
      const secret = await crypto.subtle.importKey("pkcs8", pkcs8, "X25519", false, ["deriveBits"]);
      return new BoxKey(secret, PublicKey.fromBytes(point));
    } finally {
      wipe(pkcs8);
    }
  }

  /** A secret that both sides have; `null` if the other side's key makes it zero. The caller wipes it. */
  async agree(other: PublicKey): Promise<Bytes | null> {
    const point = await crypto.subtle.importKey("raw", PublicKey.toBytes(other), "X25519", true, []);
    try {
      const shared = new Uint8Array(await crypto.subtle.deriveBits({ name: "X25519", public: point }, this.#secret, 256));
      return shared.some((byte) => byte !== 0) ? shared : null;
    } catch (error) {
      // What WebCrypto says of a secret of zeros.
      if (error instanceof DOMException && error.name === "OperationError") return null;
      throw error;
    }
  }
}

/** What a letter is about. The server says it; the seal and the head prove it. */
export interface LetterFields {
  /** Whose. */
  readonly account: AccountId;
  /** In which chat. */
  readonly chat: ChatId;
  /** The id that the client picked for the reply. */
  readonly reply: MessageId;
  /** The turn that it answers. */
  readonly turn: TurnId;
}

export class Letter {
  readonly #of: LetterFields;

  constructor(of: LetterFields) {
    this.#of = of;
  }

  /** Seals a reply. A public key that makes the shared secret zero is `record-refused`. */
  async seal(boxPub: PublicKey, message: Message): Promise<Bytes> {
    return sealWire(await BoxKey.random(), boxPub, this.context("reply"), Message.toJson(message));
  }

  /** Seals what came after the reply. A public key that makes the shared secret zero is `record-refused`. */
  async sealMore(boxPub: PublicKey, more: Text): Promise<Bytes> {
    return sealWire(await BoxKey.random(), boxPub, this.context("reply-more"), Text.toJson(more));
  }

  /** Opens a letter with whichever key of the mailbox it was sealed to, and checks it against the chat. In this order: the
   *  reply is in the list: `duplicate`; nobody waits for it: `unasked`; it does not open, or is not a message of the
   *  assistant: `record-refused`; it answers another message than was asked: `unasked`. */
  async open(boxes: readonly BoxKey[], head: Head, list: List, wire: Bytes): Promise<Message> {
    if (list.has(this.#of.reply)) throw new Refused("duplicate");
    const pending = this.#pending(head);
    const message = Message.fromJson(await openWire(boxes, this.context("reply"), wire));
    if (message.role !== "assistant") throw new Refused("record-refused");
    if (message.parent !== pending.parent) throw new Refused("unasked");
    return message;
  }

  /** Opens what came after the reply, which the head still waits for: open both before either is written. Nobody waits:
   *  `unasked`; it does not open: `record-refused`. */
  async openMore(boxes: readonly BoxKey[], head: Head, wire: Bytes): Promise<Text> {
    this.#pending(head);
    return Text.fromJson(await openWire(boxes, this.context("reply-more"), wire));
  }

  /** The context of the envelope. */
  context(purpose: "reply" | "reply-more"): Context {
    const { account, chat, reply, turn } = this.#of;
    return { purpose, owner: account, container: chat, object: reply, field: turn };
  }

  /** The item of the head that waits for this reply to this turn; else `unasked`. */
  #pending(head: Head): Pending {
    const waited = head.pending.find(({ reply }) => reply === this.#of.reply);
    if (waited === undefined || waited.turn !== this.#of.turn) throw new Refused("unasked");
    return waited;
  }
}

async function sealWire(ephemeral: BoxKey, boxPub: PublicKey, context: Context, json: Bytes): Promise<Bytes> {
  const key = await letterKey(ephemeral, boxPub, ephemeral.publicKey, boxPub);
  return concat(PublicKey.toBytes(ephemeral.publicKey), await seal(key, context, REV, json));
}

/** Opens with whichever key of the mailbox it was sealed to; else `record-refused`. */
async function openWire(boxes: readonly BoxKey[], context: Context, wire: Bytes): Promise<Bytes> {
  if (wire.length < 32) throw new Refused("record-refused");
  const point = PublicKey.fromBytes(wire.subarray(0, 32));
  const sealed = wire.subarray(32);
  for (const own of boxes.toReversed()) {
    const key = await letterKey(own, point, point, own.publicKey);
    if (Sealed.kid(sealed) !== key.kid) continue;
    const opened = await openOrNull(key, context, sealed);
    if (opened?.rev !== REV) break;
    return opened.data;
  }
  throw new Refused("record-refused");
}

/** The key of one letter. `ours` and `theirs` agree on it from either side. */
export async function letterKey(ours: BoxKey, theirs: PublicKey, point: PublicKey, boxPub: PublicKey): Promise<Key> {
  const shared = await ours.agree(theirs);
  if (shared === null) throw new Refused("record-refused");
  const info = concat(utf8("seal/v1/box"), PublicKey.toBytes(point), PublicKey.toBytes(boxPub));
  try {
    return await Key.hidden(await hkdf(shared, new Uint8Array(0), info, 32));
  } finally {
    wipe(shared);
  }
}

/** A letter is written once. */
const REV = 1;
/** What stands before the 32 bytes of an X25519 private key in PKCS #8 (RFC 8410). */
const X25519_PKCS8 = Uint8Array.from([0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x6e, 4, 0x22, 4, 0x20]);
