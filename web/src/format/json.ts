// Strict JSON: a record has one meaning, in every language.
//
// A reader refuses what no writer writes: a field twice, a field it does not know, `null` for a field that is left out, an
// array in place of an object, a fraction, half of a surrogate pair, bytes after the end. Space, escapes and the order of
// fields are free.
//
//   text ──JSON.parse──▶ record ──write──▶ the same text? done (what our writers write, nearly always)
//                                  └─ else: both texts as trees, which must be equal
//
// Easy to get wrong: trusting JSON.parse. It keeps the last of two equal keys, takes 1.0 for 1 and halves of surrogates; so
// a record is written again and compared.
//
// One difference to Rust: numbers above 2^53 are refused here, since a `number` cannot hold them. Times are milliseconds.

import { fromUtf8, isU32, isWellFormed, utf8 } from "./bytes";
import type { Bytes } from "./bytes";
import { Refused } from "./error";

/** What a record is written as: its fields, in the order of the format. */
export type Fields = { readonly [name: string]: Json };
export type Json = null | boolean | number | string | readonly Json[] | Fields;

/** How one kind of record is read and written. */
export interface Codec<T> {
  /** Its fields, version aside. */
  write(record: T): Fields;
  /** Takes JSON apart with the functions below, which refuse what does not fit. */
  read(fields: Reader): T;
}

/** The JSON of a record. Text with half of a surrogate pair is `record-refused`: no reader would take it. */
export function write<T>(codec: Codec<T>, record: T): Bytes {
  const fields = codec.write(record);
  // The compiler knows a number from a text, and not a whole number from a fraction.
  JSON.stringify(fields, (_, value: unknown) => {
    if (typeof value === "number" && (!Number.isSafeInteger(value) || value < 0)) throw new RangeError("not a whole number");
    return value;
  });
  return utf8(print(fields));
}

/** Reads a record, or `record-refused`. */
export function read<T>(codec: Codec<T>, json: Bytes): T {
  const text = fromUtf8(json);
  if (text === null) throw refused();
  const record = codec.read(new Reader(parse(text)));
  const written = print(codec.write(record));
  if (written !== text && !sameTree(tree(text), tree(written))) throw refused();
  return record;
}

function print(fields: Fields): string {
  const text = JSON.stringify({ v: 1, ...fields });
  // JSON.stringify writes a half surrogate as an escape, and only that; a text may also have these words with a backslash.
  if (/\\ud[89a-f]/.test(text)) tree(text);
  return text;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw refused();
  }
}

/** Takes an object apart. What is missing or of another type is `record-refused`; what is left over shows when written. */
export class Reader {
  readonly #fields: { readonly [name: string]: unknown };

  constructor(value: unknown) {
    if (typeof value !== "object" || value === null || Array.isArray(value)) throw refused();
    this.#fields = value as { readonly [name: string]: unknown };
  }

  has(name: string): boolean {
    return Object.hasOwn(this.#fields, name);
  }

  text(name: string): string {
    const value = this.#get(name);
    if (typeof value !== "string") throw refused();
    return value;
  }

  u32(name: string): number {
    const value = this.#get(name);
    if (!isU32(value)) throw refused();
    return value;
  }

  /** Milliseconds since 1970. */
  time(name: string): number {
    const value = this.#get(name);
    if (typeof value !== "number" || !Number.isSafeInteger(value) || value < 0) throw refused();
    return value;
  }

  /** A text that `check` takes: an id, a digest. */
  like<T extends string>(name: string, check: (value: unknown) => value is T): T {
    const value = this.#get(name);
    if (!check(value)) throw refused();
    return value;
  }

  /** A text that `parse` reads; it gives `null` for any other. */
  parsed<T extends string>(name: string, parse: (value: unknown) => T | null): T {
    const value = parse(this.#get(name));
    if (value === null) throw refused();
    return value;
  }

  list(name: string): unknown[] {
    const value = this.#get(name);
    if (!Array.isArray(value)) throw refused();
    return value as unknown[];
  }

  object(name: string): Reader {
    return new Reader(this.#get(name));
  }

  isNull(name: string): boolean {
    return this.#get(name) === null;
  }

  names(): string[] {
    return Object.keys(this.#fields);
  }

  #get(name: string): unknown {
    if (!this.has(name)) throw refused();
    return this.#fields[name];
  }
}

function refused(): Refused {
  return new Refused("record-refused");
}

/** Any JSON in which no object has a key twice and no number a fraction. */
type Tree = null | boolean | number | string | Tree[] | Map<string, Tree>;

function sameTree(a: Tree, b: Tree): boolean {
  if (Array.isArray(a)) return Array.isArray(b) && a.length === b.length && a.every((item, at) => sameTree(item, b[at] ?? null));
  if (!(a instanceof Map)) return a === b;
  if (!(b instanceof Map) || a.size !== b.size) return false;
  for (const [name, value] of a) {
    const other = b.get(name);
    if (other === undefined || !sameTree(value, other)) return false;
  }
  return true;
}

/** Reads text that JSON.parse took, and refuses what JSON.parse lets through. So the grammar is right already: this walks
 *  over tokens, and looks at keys, numbers and surrogates. */
function tree(text: string): Tree {
  let at = 0;

  function peek(): string {
    while (at < text.length && " \t\n\r".includes(text.charAt(at))) at++;
    return text.charAt(at);
  }

  function string(): string {
    const start = at++;
    while (text.charAt(at) !== '"') at += text.charAt(at) === "\\" ? 2 : 1;
    const value = JSON.parse(text.slice(start, ++at)) as string;
    if (!isWellFormed(value)) throw refused();
    return value;
  }

  function number(): number {
    const digits = /^-?[0-9.eE+-]+/.exec(text.slice(at, at + 400))?.[0] ?? "";
    const value = Number(digits);
    if (!/^(0|-?[1-9][0-9]*)$/.test(digits) || !Number.isSafeInteger(value)) throw refused();
    at += digits.length;
    return value;
  }

  function list(depth: number): Tree[] {
    const items: Tree[] = [];
    at++;
    while (peek() !== "]") {
      items.push(any(depth));
      if (peek() === ",") at++;
    }
    at++;
    return items;
  }

  function object(depth: number): Map<string, Tree> {
    const fields = new Map<string, Tree>();
    at++;
    while (peek() !== "}") {
      const name = string();
      if (peek() === ":") at++;
      if (fields.has(name)) throw refused();
      fields.set(name, any(depth));
      if (peek() === ",") at++;
    }
    at++;
    return fields;
  }

  function any(depth: number): Tree {
    if (depth > MAX_DEPTH) throw refused();
    const first = peek();
    if (first === "{") return object(depth + 1);
    if (first === "[") return list(depth + 1);
    if (first === '"') return string();
    for (const [word, value] of WORDS) {
      if (!text.startsWith(word, at)) continue;
      at += word.length;
      return value;
    }
    return number();
  }

  return any(0);
}

const WORDS: readonly [string, null | boolean][] = [
  ["null", null],
  ["true", true],
  ["false", false],
];
/** As deep as the Rust reader goes; records have three levels. */
const MAX_DEPTH = 127;
