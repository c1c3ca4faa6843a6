// What both sides of a differential run speak: cases and answers, a whole state of an account as a server sends it and as a device
// remembers it, and dice that a seed repeats. Works in Node and in a browser.

export type Answer = { ok: unknown } | { refused: string };

/** The Rust side: answers one case after another. */
export interface Rust {
  ask(what: { do: string } & Record<string, unknown>): Promise<Answer>;
}

/** Random choices that a seed repeats. Keys and salts are truly random all the same; what is chosen here is what happens. */
export class Dice {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** A whole number from 0 up to, and without, `below`. */
  roll(below: number): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) % below;
  }

  pick<T>(from: readonly T[]): T {
    const one = from[this.roll(from.length)];
    if (one === undefined) throw new Error("nothing to pick from");
    return one;
  }

  chance(oneIn: number): boolean {
    return this.roll(oneIn) === 0;
  }

  bytes(length: number): Uint8Array<ArrayBuffer> {
    return Uint8Array.from({ length }, () => this.roll(256));
  }

  /** Text with everything that is hard to spell. */
  text(): string {
    const pieces = ["", "a", "Grüße", "\u{1f44b}", '"', "\\", "\n", "\0", "\u001f", "\u007f", "\u2028", "é", "e\u0301", "ﬁ", "\ufeff", "0", "</script>", "שלום", "\u{10ffff}", "\b\f\r\t"];
    return Array.from({ length: this.roll(6) }, () => this.pick(pieces)).join("").repeat(this.chance(20) ? 200 : 1);
  }
}

export interface Row {
  n: number;
  kid: string;
  subs: string[];
  sealed: string;
}

export interface Way {
  chain: string;
  steps: [live: string, envelope: string][];
}

export interface MarkState {
  rev: number;
  envelope: string;
}

export interface ChatState {
  ring: Row[];
  head: string;
  trail: Way;
  list: [id: string, envelope: string][];
  items: [id: string, sealed: string][];
  seen_head: MarkState | null;
  seen_key: [n: number, kid: string] | null;
  seen_revs: [id: string, rev: number][];
}

export interface State {
  account: string;
  ak: string;
  generation: number;
  seen: [generation: number, manifest: MarkState | null];
  ring: Row[];
  box_ring: Row[];
  box_pub: string;
  manifest: string;
  trail: Way;
  floors: string[];
  chats: Record<string, ChatState>;
}
