// The words of a text, as search compares them: the same for what was written and for what is searched.
//
//   text ─▶ folded: one spelling (NFKC), no case, no accents ─▶ runs of letters and digits ─▶ words
//
// Scripts that write no spaces (Chinese, Japanese, Thai, …) are cut by the browser's own dictionary (Intl.Segmenter). In the others a run of
// letters is a word, by the same standard; it is not asked for those, since it takes the square of a text's length (Chromium, 2026).
// Every word is a piece of the folded text: search.ts relies on that. Easy to get wrong: marks. An accent goes, but the vowels of Thai and
// the voicing of Japanese are marks too, and another mark there is another word.

/** One spelling of a text: `Straße` and `STRASSE`, `é` and `e`, `ﬁ` and `fi` are the same. */
export function folded(text: string): string {
  if (/^[\0-\x7f]*$/.test(text)) return text.toLowerCase();
  // To upper case first: it spells ß and other letters out.
  const plain = text.normalize("NFKC").toUpperCase().toLowerCase().normalize("NFD").replace(MARKS, "").normalize("NFC");
  return plain.replace(/[ςıøłđðþæœ]/g, (letter) => SPELLED[letter] ?? letter);
}

/** The different words of a text, in no order that says anything. With `needles`, only those matter that have one of them inside. */
export function wordsOf(text: string, needles: readonly string[] | null = null): Set<string> {
  const words = new Set<string>();
  for (const piece of piecesOf(text, needles)) for (const word of piece) words.add(word);
  return words;
}

/**
 * The same in pieces, each of which is little work: whoever takes them may do something else in between. A text of a million signs without
 * spaces takes seconds.
 */
export function* piecesOf(text: string, needles: readonly string[] | null = null): Generator<string[], void> {
  let words: string[] = [];
  for (const run of new Set(folded(text).match(RUN))) {
    if (!UNSPACED.test(run)) {
      words.push(short(run));
      if (words.length < MOST_RUNS) continue;
      yield words;
      words = [];
      continue;
    }
    for (const part of partsOf(run)) if (needles === null || hasAny(part, needles)) yield [...cut(part)].map(({ word }) => word);
  }
  if (words.length > 0) yield words;
}

/** The words of one run of letters and digits, and where each begins. With `needles`, only those matter that have one of them inside. */
export function* placesOf(run: string, needles: readonly string[] | null = null): Generator<{ word: string; at: number }, void> {
  if (!UNSPACED.test(run)) {
    yield { word: short(run), at: 0 };
    return;
  }
  let from = 0;
  for (const part of partsOf(run)) {
    if (needles === null || hasAny(part, needles)) for (const { word, at } of cut(part)) yield { word, at: from + at };
    from += part.length;
  }
}

/** What is cut at once of a run without spaces. */
function* partsOf(run: string): Generator<string, void> {
  for (let at = 0; at < run.length; at += LONGEST_RUN) yield run.slice(at, at + LONGEST_RUN);
}

/** A part that has no sign of such a script is a word: the dictionary takes the square of its length. */
function* cut(part: string): Generator<{ word: string; at: number }, void> {
  if (!UNSPACED.test(part)) yield { word: short(part), at: 0 };
  else for (const { segment, index } of segmenter().segment(part)) yield { word: short(segment), at: index };
}

function hasAny(text: string, needles: readonly string[]): boolean {
  return needles.some((needle) => text.includes(needle));
}

/** Something that is searched for. */
export interface Wanted {
  word: string;
  /** whole: this word. beginning: words that begin so. within: words that have it somewhere, since where a word ends is a guess. */
  is: "whole" | "beginning" | "within";
}

/** What a person searches for: all of these words. The last one may not be written to its end. None: there are only signs. */
export function wantedOf(query: string): Wanted[] {
  const words = (folded(query.slice(0, LONGEST_QUERY)).match(RUN) ?? []).flatMap((run) => [...placesOf(run)].map(({ word }) => word)).slice(0, MOST_WANTED);
  return words.map((word, at): Wanted => {
    const is = UNSPACED.test(word) ? "within" : at === words.length - 1 ? "beginning" : "whole";
    return { word, is };
  });
}

export function isWanted({ word, is }: Wanted, written: string): boolean {
  switch (is) {
    case "whole":
      return written === word;
    case "beginning":
      return written.startsWith(word);
    case "within":
      return written.includes(word);
  }
}

/** Long runs are no words, but keys and the like: their beginning is enough to find them. */
function short(word: string): string {
  return word.slice(0, LONGEST_WORD);
}

let made: Intl.Segmenter | null = null;

/** The same for everybody: what was indexed in one language is searched in another. */
function segmenter(): Intl.Segmenter {
  made ??= new Intl.Segmenter("en", { granularity: "word" });
  return made;
}

/** Letters and digits with their marks. In what was not folded, also signs that nobody sees. */
export const RUN = /[\p{L}\p{N}\p{M}\u00ad\u200b-\u200f\u2060\ufeff]+/gu;
const UNSPACED = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]/u;
/** Accents, the points of Hebrew and Arabic with its stretched lines, and signs that nobody sees. */
const MARKS = /[\u00ad\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670\u06d6-\u06dc\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed\u200b-\u200f\u2060\ufeff]/g;
/** Letters that are not a letter and a mark, but that people type without theirs. */
const SPELLED: Readonly<Record<string, string>> = { ς: "σ", ı: "i", ø: "o", ł: "l", đ: "d", ð: "d", þ: "th", æ: "ae", œ: "oe" };
const LONGEST_WORD = 64;
/** Characters that are cut at once. */
const LONGEST_RUN = 1_000;
/** Words of other scripts in one piece. */
const MOST_RUNS = 5_000;
/** Characters of what is searched for that are looked at: a page that was pasted by mistake must not keep the worker busy for seconds. */
const LONGEST_QUERY = 1_000;
/** As many as a mask of bits has. */
const MOST_WANTED = 16;
