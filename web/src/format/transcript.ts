// Proofs that the server's own model or tool said something, in that chat, after those words.
//
//   T_0 = H("seal/v1/transcript")      T_i = H(T_{i-1} ‖ kind ‖ H(text))
//   proof = mac(sub(account key, "proof"), "proof/v1", lp(chat) ‖ lp(id) ‖ kind ‖ T_i)
//
// The account key here is the server's, not the one that the person's devices share: a client keeps proofs and gives them
// back, and only tests make them here. Easy to get wrong: dropping what fails. A message whose proof fails still enters the
// prompt, as a quotation: kind 5.

import { concat, Digest, hash, lp, same, sha256, u32, utf8 } from "./bytes";
import { type ChatId, MessageId, type TurnId } from "./ids";
import type { Key } from "./key";

/** Who speaks, by its byte: 1 the person, 2 the model, 3 a tool, 4 a summary by the model, 5 words without proof. */
export type Kind = 1 | 2 | 3 | 4 | 5;
export const Kind = { USER: 1, ASSISTANT: 2, TOOL: 3, SUMMARY: 4, QUOTED: 5 } as const;

/** Where a branch stands. */
export class Transcript {
  /** `T_i`. */
  readonly digest: Digest;

  /** A place that is known. */
  constructor(digest: Digest) {
    this.digest = digest;
  }

  /** Before the first message. */
  static async start(): Promise<Transcript> {
    return new Transcript(await hash(utf8("seal/v1/transcript")));
  }

  /** After one more message, of exactly this text. (`then` would make this a promise to JavaScript.) */
  async after(kind: Kind, text: string): Promise<Transcript> {
    return new Transcript(await hash(Digest.toBytes(this.digest), Uint8Array.of(kind), await sha256(utf8(text))));
  }

  /** The proof for the message that ends here. */
  async prove(accountKey: Key, chat: ChatId, id: MessageId, kind: Kind): Promise<Digest> {
    const bytes = concat(lp(chat), lp(id), Uint8Array.of(kind), Digest.toBytes(this.digest));
    return Digest.fromBytes(await accountKey.macUnder("proof", "proof/v1", bytes));
  }
}

/** The id of what a turn leaves beside its answer: what tools said, then a summary, counted from 0. The same on every device. */
export async function besideId(turn: TurnId, n: number): Promise<MessageId> {
  const digest = await hash(utf8("seal/v1/beside"), lp(turn), u32(n));
  return MessageId.fromBits(Digest.toBytes(digest).subarray(0, 16));
}

/** A message that a client sent from its history: who speaks, says the client, and the server's proof, if it gave one. */
export interface Said {
  readonly id: MessageId;
  readonly kind: Kind;
  readonly text: string;
  readonly proof: Digest | null;
  /** Of a summary: where the transcript stood behind the words that it is about. */
  readonly sumsUp?: Transcript;
}

/** Takes over a branch from its first message, or from a place that the server has: gives the kind that each message has in
 *  the prompt, and where the branch then stands. A summary that says what it sums up stands beside the branch: the next message continues
 *  that place. As the first it takes the place of those words; anywhere else it has to stand right behind them. */
export async function adopt(
  accountKey: Key,
  chat: ChatId,
  from: Transcript,
  branch: readonly Said[],
): Promise<{ kinds: Kind[]; at: Transcript }> {
  const kinds: Kind[] = [];
  let at = from;
  for (const said of branch) {
    const before = said.kind === Kind.SUMMARY ? (said.sumsUp ?? at) : at;
    const isInPlace = before.digest === at.digest || kinds.length === 0;
    const next = await before.after(said.kind, said.text);
    const proof = said.proof === null ? null : Digest.toBytes(said.proof);
    const right = Digest.toBytes(await next.prove(accountKey, chat, said.id, said.kind));
    const proved = isInPlace && said.kind < Kind.QUOTED && proof !== null && same(proof, right);
    const kind = said.kind === Kind.USER || proved ? said.kind : Kind.QUOTED;
    const isBeside = kind === Kind.SUMMARY && said.sumsUp !== undefined;
    at = isBeside ? before : kind === said.kind ? next : await at.after(kind, said.text);
    kinds.push(kind);
  }
  return { kinds, at };
}
