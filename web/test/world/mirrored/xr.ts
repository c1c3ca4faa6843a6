// A language that is made for tests: English in other letters, written from right to left. The page over its double has it; nothing else does.
import { type About, type Administrator, type Words, administrator as englishConsole, words as english } from "../../../src/ui/lang/en";

export const about: About = { name: "Mirrored", dir: "rtl" };

const LETTERS = "אבגדהוזחטיכלמנסעפצקרשתאבגד";

/** Other letters for every word that is not filled in. */
function mirrored(text: string): string {
  return text.replace(/\{\w+\}|[a-z]/gi, (one) => (one.length > 1 ? one : (LETTERS[one.toLowerCase().charCodeAt(0) - 97] ?? one)));
}

export const words = Object.fromEntries(
  Object.entries(english).map(([key, text]) => [key, typeof text === "string" ? mirrored(text) : { one: mirrored(text.one), other: mirrored(text.other) }]),
) as Words;

export const administrator = Object.fromEntries(Object.entries(englishConsole).map(([key, text]) => [key, mirrored(text)])) as Administrator;
