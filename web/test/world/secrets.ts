// Every key that code under test uses, to be looked for in what it says.
//
// Easy to get wrong: a search that finds nothing because of how it spells. A key inside of longer bytes has other digits in base64 than alone,
// by where it begins; and what is not plain data has no spelling at all, so it is refused.
import { base32 } from "../../src/format/bytes";

export class Secrets {
  /** In hexadecimal digits, each once. */
  readonly #keys = new Set<string>();
  readonly #said: string[] = [];

  /** Listens from now on, for as long as the process lives. */
  static watch(): Secrets {
    const secrets = new Secrets();
    const { subtle } = crypto;
    const importKey = subtle.importKey as (...args: unknown[]) => Promise<CryptoKey>;
    const heard = (...args: unknown[]) => {
      const [format, bytes, how] = args;
      if (bytes instanceof Uint8Array) secrets.#hear(String(format), bytes, (how as { name?: string }).name ?? String(how));
      return importKey.apply(subtle, args);
    };
    Object.defineProperty(subtle, "importKey", { value: heard, configurable: true, writable: true });
    return secrets;
  }

  /** Whatever a key is derived from, and seeds of signing and agreeing. Once-only keys of envelopes are derived from those. */
  #hear(format: string, bytes: Uint8Array, how: string): void {
    if (format === "pkcs8") this.add(bytes.slice(-32));
    else if (format === "raw" && (how === "HKDF" || how === "HMAC") && bytes.length === 32) this.add(bytes);
  }

  add(bytes: Uint8Array): void {
    this.#keys.add(Buffer.from(bytes).toString("hex"));
  }

  get size(): number {
    return this.#keys.size;
  }

  /** Notes what was said, which has to be plain data. */
  say(value: unknown): void {
    plain(value, "it");
    this.#said.push(JSON.stringify(value) ?? "");
  }

  /** What was said and has a key in it, cut short. */
  told(): string[] {
    const all = this.#said.join("\n");
    const found = [...this.#keys].flatMap((key) => spellings(Buffer.from(key, "hex")).filter((spelled) => all.includes(spelled)));
    return found.map((spelled) => `${all.slice(Math.max(0, all.indexOf(spelled) - 80), all.indexOf(spelled))}…`);
  }
}

/** How a key could stand in a text, alone or inside of something longer. */
export function spellings(key: Buffer): string[] {
  const inside = [0, 1, 2].map((before) => {
    // Digits that also depend on what stands around it are left out.
    const spelled = Buffer.concat([Buffer.alloc(before), key]).toString("base64").replace(/=+$/, "");
    return spelled.slice(Math.ceil((before * 8) / 6), Math.floor(((before + key.length) * 8) / 6));
  });
  const urls = inside.map((text) => text.replaceAll("+", "-").replaceAll("/", "_"));
  const hex = key.toString("hex");
  return [...new Set([...inside, ...urls, hex, hex.toUpperCase(), [...key].join(","), base32(new Uint8Array(key)).slice(0, 51)])];
}

/** Words, numbers, lists and objects of them: what a page may be told. */
function plain(value: unknown, at: string): void {
  if (value === null || ["string", "number", "boolean", "undefined"].includes(typeof value)) return;
  const isPlain = typeof value === "object" && (Array.isArray(value) || Object.getPrototypeOf(value) === Object.prototype);
  if (!isPlain) throw new TypeError(`${at} is not plain data`);
  for (const [name, part] of Object.entries(value)) plain(part, `${at}.${name}`);
}
