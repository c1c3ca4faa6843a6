// The content store: what nodes of a message stand for. A node has a reference; the words are here, or are loaded when they are wanted.
//
//   contentRef  "msg_…:120-480"  the characters 120 to 480 of that message's body
//                    │ get: memory, bounded; the oldest goes first
//                    ▼ load: the message itself, from the worker (its files, then the server)
//
// Nothing here is written anywhere: while words stream, they are only in memory. Easy to get wrong: keeping words in nodes. A node is small
// whatever it stands for, so a chat of thousands of messages stays small.
import type { Block } from "../markdown/lex";

/** Loads the body of a message; null if it is gone. */
export type LoadBody = (message: string) => Promise<string | null>;

/** What nodes stand for. */
export class ContentStore {
  private readonly blocks = new Map<string, Block>();
  private size = 0;

  constructor(private readonly limit = 4_000_000) {}

  get(ref: string): Block | undefined {
    const block = this.blocks.get(ref);
    if (block !== undefined) {
      // The newest is the last.
      this.blocks.delete(ref);
      this.blocks.set(ref, block);
    }
    return block;
  }

  put(ref: string, block: Block): void {
    const old = this.blocks.get(ref);
    if (old !== undefined) this.size -= old.raw.length;
    this.blocks.delete(ref);
    this.blocks.set(ref, block);
    this.size += block.raw.length;
    for (const [first, evicted] of this.blocks) {
      if (this.size <= this.limit || first === ref) break;
      this.blocks.delete(first);
      this.size -= evicted.raw.length;
    }
  }

  /** The words behind a reference, from the message's body if they are not in memory. Null if the message is gone or shorter now. */
  async load(ref: string, body: LoadBody): Promise<string | null> {
    const here = this.get(ref);
    if (here !== undefined) return here.raw;
    const place = parseRef(ref);
    if (place === null) return null;
    const text = await body(place.message);
    const source = text?.replace(/\r\n?/g, "\n") ?? null;
    return source !== null && source.length >= place.to ? source.slice(place.from, place.to) : null;
  }

  clear(): void {
    this.blocks.clear();
    this.size = 0;
  }
}

/** The reference of a part of a message. */
export function contentRef(message: string, from: number, to: number): string {
  return `${message}:${from}-${to}`;
}

/** Where a reference points. */
export function parseRef(ref: string): { message: string; from: number; to: number } | null {
  const found = /^([^:]+):(\d+)-(\d+)$/.exec(ref);
  if (found === null) return null;
  return { message: found[1] ?? "", from: Number(found[2]), to: Number(found[3]) };
}

/** A short fingerprint: tells whether words changed. It is no protection against anybody. */
export function contentHash(text: string): string {
  let one = 0xdeadbeef;
  let two = 0x41c6ce57;
  for (let at = 0; at < text.length; at += 1) {
    const unit = text.charCodeAt(at);
    one = Math.imul(one ^ unit, 2654435761);
    two = Math.imul(two ^ unit, 1597334677);
  }
  one = Math.imul(one ^ (one >>> 16), 2246822507) ^ Math.imul(two ^ (two >>> 13), 3266489909);
  two = Math.imul(two ^ (two >>> 16), 2246822507) ^ Math.imul(one ^ (one >>> 13), 3266489909);
  return (4294967296 * (2097151 & two) + (one >>> 0)).toString(36);
}
