// Where a link leads, before anyone follows it. Only https, http and mailto lead anywhere; everything else stays text.
//
//   [pay here](https://bank.example@evil.example/)   ──▶  host "evil.example", shown beside the words
//   [x](javascript:…), [x](data:…), [x](//host)      ──▶  null: the words, without a link
//
// Easy to get wrong: what the eye sees. Bidi controls turn text round, zero-width characters hide in names, and a host may look like
// another one: it is shown as the browser will ask for it (punycode), never as it was written.

/** A link that may be followed. */
export interface SafeLink {
  href: string;
  /** What is shown beside the words. */
  host: string;
  /** Whether the words themselves name another host than the one it leads to. */
  disguised: boolean;
}

const SCHEMES = new Set(["https:", "http:", "mailto:"]);

/** The link, or null where it may not be one. `words` is what the person would read. */
export function safeLink(raw: string, words = ""): SafeLink | null {
  const text = raw.trim();
  if (text === "" || text.length > 2048 || HIDDEN_TEST.test(text)) return null;
  // Relative links would lead into this page's own address.
  if (!/^[a-z][a-z0-9+.-]*:/i.test(text)) return null;
  let url: URL;
  try {
    url = new URL(text);
  } catch {
    return null;
  }
  if (!SCHEMES.has(url.protocol)) return null;
  if (url.protocol === "mailto:") {
    const address = url.pathname;
    return address.includes("@") ? { href: `mailto:${address}`, host: readable(decode(address)), disguised: false } : null;
  }
  if (url.hostname === "") return null;
  // A name and password before the host serve only to look like another host.
  url.username = "";
  url.password = "";
  return { href: url.href, host: url.host, disguised: namesAnother(words, url.hostname) };
}

/** Text as it is shown: bidi controls and characters without width become visible, so that no word hides or turns round. */
export function readable(text: string): string {
  return spelled(text, (hex) => `⟨U+${hex.toUpperCase()}⟩`);
}

/** The same, each spelled as the caller says, from at least four hexadecimal digits. */
export function spelled(text: string, spell: (hex: string) => string): string {
  return HIDDEN_TEST.test(text) ? text.replace(HIDDEN, (one) => spell((one.codePointAt(0) ?? 0).toString(16).padStart(4, "0"))) : text;
}

function namesAnother(words: string, hostname: string): boolean {
  const named = /(?:^|[\s(<"'/@])((?:[\p{L}\p{N}-]+\.)+\p{L}{2,24})(?=$|[\s)>"'/:?#.,])/u.exec(words.trim().toLowerCase());
  if (named === null) return false;
  const written = named[1] ?? "";
  let asked = written;
  try {
    asked = new URL(`https://${written}`).hostname;
  } catch {
    return true;
  }
  const plain = (name: string) => name.replace(/^www\./, "");
  const [one, two] = [plain(asked), plain(hostname)];
  return !(one === two || two.endsWith(`.${one}`));
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

// Bidi embeddings, overrides and isolates; zero-width characters (the joiners inside scripts and emoji stay: ZWNJ and ZWJ are needed to
// write them); tags; the byte order mark; controls other than tab and newline.
const HIDDEN_CLASS = "[\\u0000-\\u0008\\u000b\\u000c\\u000e-\\u001f\\u007f-\\u009f\\u061c\\u180e\\u200b\\u200e\\u200f\\u202a-\\u202e\\u2060-\\u2064\\u2066-\\u206f\\ufeff\\ufff9-\\ufffb\\u{e0000}-\\u{e007f}]";
const HIDDEN = new RegExp(HIDDEN_CLASS, "gu");
const HIDDEN_TEST = new RegExp(HIDDEN_CLASS, "u");
