// How a file of vectors is run: every section has a check, every case is checked, every field of a case is read. A section or
// a field that nobody knows is a failure, so that nothing is skipped silently. Works in Node and in a browser.

import { base64url, Digest, fromHex, Key, Kid, Refused } from "../../src/format/index";
import type { Bytes, PublicKey } from "../../src/format/index";

/** Checks all cases of a section, and says how many there were. */
export type Section = (cases: unknown) => Promise<number>;
export type Sections = Readonly<Record<string, Section>>;

/** Runs a file. Gives the number of cases of each section. */
export async function runSections(sections: Sections, file: unknown): Promise<Map<string, number>> {
  const vectors = file as Record<string, unknown>;
  const counts = new Map<string, number>();
  const names = Object.keys(vectors).filter((name) => name !== "about");
  equal(names.sort(), Object.keys(sections).sort(), "the sections of the file are those with a check");
  for (const [name, section] of Object.entries(sections)) {
    const count = await within(name, () => section(vectors[name]));
    if (count === 0) throw new Error(`section ${name} is empty`);
    counts.set(name, count);
  }
  return counts;
}

/** A check for each case of a list. */
export function each<T>(check: (one: T) => Promise<void>): Section {
  return async (cases) => {
    const list = cases as T[];
    const [has, read] = [new Set<string>(), new Set<string>()];
    for (const [at, one] of list.entries()) {
      await within(`${at} ${nameOf(one)}`, () => check(watched(one, has, read)));
    }
    const unread = [...has].filter((field) => !read.has(field));
    equal(unread, [], "fields that no check reads");
    return list.length;
  };
}

/** Sections inside of one, as in `must_fail`. */
export function inside(sections: Sections): Section {
  return async (cases) => [...(await runSections(sections, cases)).values()].reduce((sum, count) => sum + count, 0);
}

/** Notes which fields a case has and which are read. */
function watched<T>(one: T, has: Set<string>, read: Set<string>): T {
  if (typeof one !== "object" || one === null || Array.isArray(one)) return one;
  for (const field of Object.keys(one)) if (field !== "name") has.add(field);
  return new Proxy(one, {
    get(target, field) {
      read.add(String(field));
      return Reflect.get(target, field) as unknown;
    },
  });
}

async function within<T>(where: string, run: () => Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (error) {
    throw new Error(`${where}: ${error instanceof Error ? `${error.name}: ${error.message}` : String(error)}`, { cause: error });
  }
}

function nameOf(one: unknown): string {
  return typeof one === "object" && one !== null && "name" in one ? String(one.name) : "";
}

/** The name of the refusal; any other error goes on. */
export async function refusal(of: () => Promise<unknown>): Promise<string> {
  try {
    await of();
  } catch (error) {
    if (error instanceof Refused) return error.name;
    throw error;
  }
  return "nothing was refused";
}

export function equal(found: unknown, right: unknown, what = "value"): void {
  const [a, b] = [JSON.stringify(found), JSON.stringify(right)];
  if (a !== b) throw new Error(`${what}: ${a} is not ${b}`);
}

export function bytes(hex: string): Bytes {
  const out = fromHex(hex);
  if (out === null) throw new Error(`not hexadecimal: ${hex}`);
  return out;
}

export const key = (hex: string): Promise<Key> => Key.fromBytes(bytes(hex));
export const digest = (hex: string): Digest => Digest.fromBytes(bytes(hex));
export const publicKey = (hex: string): PublicKey => base64url(bytes(hex)) as PublicKey;

export function kid(hex: string): Kid {
  const out = Kid.parse(hex);
  if (out === null) throw new Error(`not a key id: ${hex}`);
  return out;
}
