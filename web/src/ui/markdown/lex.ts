// Markdown to tokens, with bounds. marked's lexer finds blocks and words; what is hostile in size or depth becomes plain text.
//
//   text ──▶ blocks (marked) ──▶ inline tokens, only where the block is short enough
//                          └──▶ too long, too deep, or marked gave up: one plain token
//
// A stream is cut into blocks that are done and a tail that still grows: only the tail is read again with each word.
// Easy to get wrong: calling a block done too early. "-" behind a list may become its next item, so a block is done when two more follow it.
import { Lexer, type MarkedToken, type Token } from "marked";

/** How long a text is read as Markdown; more is shown as it is written. */
export const MAX_MARKDOWN = 120_000;
/** How long a paragraph is searched for emphasis and links: the search takes the square of it at worst. */
const MAX_INLINE = 12_000;
/** How deep quotes and lists may stand in each other. */
export const MAX_DEPTH = 12;

/** A block with the words that it was read from. */
export interface Block {
  raw: string;
  token: MarkedToken;
}

/** Reads a text as Markdown. Never throws. */
export function lex(text: string): Block[] {
  const source = text.replace(/\r\n?/g, "\n");
  if (source.length <= MAX_MARKDOWN) return read(source);
  // At a blank line or, without one, in the middle.
  const cut = source.lastIndexOf("\n\n", MAX_MARKDOWN);
  const at = cut > MAX_MARKDOWN / 2 ? cut : MAX_MARKDOWN;
  return [...read(source.slice(0, at)), plain(source.slice(at))];
}

/** A text that grows. */
export class Stream {
  private done: Block[] = [];
  private doneLength = 0;
  private text = "";

  /** The blocks of the text so far. The same objects come back for blocks that are done. */
  update(text: string): Block[] {
    const source = text.includes("\r") ? text.replace(/\r\n?/g, "\n") : text;
    if (!source.startsWith(this.text.slice(0, this.doneLength))) this.reset();
    this.text = source;
    if (source.length > MAX_MARKDOWN) {
      return [...this.done, plain(source.slice(this.doneLength))];
    }
    const tail = read(source.slice(this.doneLength));
    let keep = tail.length;
    for (let seen = 0; keep > 0 && seen < 3; keep -= 1) {
      if (tail[keep - 1]?.token.type !== "space") seen += 1;
    }
    const settled = tail.slice(0, keep);
    this.done.push(...settled);
    for (const block of settled) this.doneLength += block.raw.length;
    return [...this.done, ...tail.slice(keep)];
  }

  private reset(): void {
    this.done = [];
    this.doneLength = 0;
  }
}

function read(source: string): Block[] {
  if (source === "") return [];
  if (isTooDeep(source)) return [plain(source)];
  try {
    const lexer = new Lexer({ gfm: true, breaks: false, tokenizer: null });
    const tokens: Token[] = [];
    lexer.blockTokens(source, tokens);
    for (const waiting of lexer.inlineQueue) {
      if (waiting.src.length <= MAX_INLINE && !isKnotty(waiting.src)) lexer.inlineTokens(waiting.src, waiting.tokens);
      else waiting.tokens.push({ type: "text", raw: waiting.src, text: waiting.src });
    }
    return tokens.map((token) => ({ raw: token.raw, token: token as MarkedToken }));
  } catch {
    return [plain(source)];
  }
}

function plain(source: string): Block {
  return { raw: source, token: { type: "html", raw: source, text: source, pre: true, block: true } };
}

/** Whether a line opens more quotes and lists in each other than a person would. */
function isTooDeep(source: string): boolean {
  return /^(?:[ \t]*(?:>|[-*+][ \t]|\d{1,9}[.)][ \t])){40}/m.test(source) || /\n[ \t]{160}/.test(source);
}

/** Whether there are so many brackets or stars that looking for their partners takes long. */
function isKnotty(source: string): boolean {
  if (source.length < 2_000) return false;
  const knots = source.match(/[[\]*_`~<(]/g)?.length ?? 0;
  return knots > 1_500;
}
