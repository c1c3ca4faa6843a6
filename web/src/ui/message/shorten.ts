// Shortening what a person wrote: so many words or lines, counted here and not by CSS. A preview counts as several lines.
//
//   nodes ──▶ the first that fit; of a text that does not fit, its first words
//
// Only messages of the person are shortened. The whole is loaded, opened and parsed when it is asked for.
import { wordCount, type MessageNode } from "./parse";

export const MAX_WORDS = 90;
export const MAX_LINES = 14;
/** Lines that an embed counts as, whatever is in it. */
const EMBED_LINES = 5;
const CHARACTERS_A_LINE = 68;

export interface Shortened {
  body: string;
  isShortened: boolean;
}

/** What of a message is shown at first. `body` is a part of the message, cut at a word. */
export function shorten(body: string, nodes: MessageNode[], maxWords = MAX_WORDS, maxLines = MAX_LINES): Shortened {
  let words = 0;
  let lines = 0;
  let end = 0;
  for (const node of nodes) {
    const { from, to } = placeOf(node);
    const isEmbed = node.type !== "text";
    const raw = body.slice(from, to);
    const nodeLines = isEmbed ? EMBED_LINES : visualLines(raw);
    const nodeWords = isEmbed ? 0 : node.meta.words;
    if (words + nodeWords <= maxWords && lines + nodeLines <= maxLines) {
      words += nodeWords;
      lines += nodeLines;
      end = to;
      continue;
    }
    if (!isEmbed || node.type === "paste") {
      const part = cut(raw, maxWords - words, maxLines - lines);
      return { body: `${(body.slice(0, from) + part).trimEnd()}…`, isShortened: true };
    }
    // The first embed is shown even if it is alone too long: its preview is folded.
    const upTo = end === 0 ? to : end;
    return { body: body.slice(0, upTo).trimEnd(), isShortened: upTo < body.trimEnd().length };
  }
  return { body, isShortened: false };
}

function placeOf(node: MessageNode): { from: number; to: number } {
  const found = /:(\d+)-(\d+)$/.exec(node.contentRef);
  return { from: Number(found?.[1] ?? 0), to: Number(found?.[2] ?? 0) };
}

function visualLines(text: string): number {
  let lines = 0;
  for (const line of text.trimEnd().split("\n")) lines += Math.max(1, Math.ceil(line.length / CHARACTERS_A_LINE));
  return lines;
}

/** The first words of a text that take no more than this. */
function cut(text: string, words: number, lines: number): string {
  let out = "";
  let usedWords = 0;
  let usedLines = 0;
  for (const line of text.split("\n")) {
    if (usedLines >= lines || usedWords >= words) break;
    const room = Math.min(line.length, (lines - usedLines) * CHARACTERS_A_LINE);
    let kept = "";
    for (const word of line.slice(0, room).split(/(?<=\s)/)) {
      const count = wordCount(word);
      if (usedWords + count > words) {
        if (kept === "" && out === "") kept = word.slice(0, Math.max(24, words * 24));
        usedWords = words;
        break;
      }
      usedWords += count;
      kept += word;
    }
    // Not in the middle of a character.
    if (/[\ud800-\udbff]$/.test(kept)) kept = kept.slice(0, -1);
    out += `${kept}\n`;
    usedLines += Math.max(1, Math.ceil(kept.length / CHARACTERS_A_LINE));
  }
  return out.trimEnd();
}
