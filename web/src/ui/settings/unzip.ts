// Reads files out of a ZIP archive, as the exports of assistants come in. The browser itself unpacks (DecompressionStream); here only the
// list of the archive is read.
//
//   end of the list ─▶ list ─▶ entries that are wanted ─▶ local header ─▶ stored or deflated bytes ─▶ text
//
// Nothing in an archive is believed: a name is only compared, sizes only bound what is unpacked, and an archive in an archive stays one.
// Easy to get wrong: a bomb. What comes out is counted while it comes, and everything is given up at the limit.

export interface Limits {
  /** Bytes that may come out, of all files together. */
  bytes: number;
  /** Files that are unpacked, and entries that are looked at. */
  files: number;
  entries: number;
}

export interface Unzipped {
  name: string;
  text: string;
}

/** The archive cannot be read, or is more than it may be. */
export class BadArchive extends Error {}

/** Whether these bytes begin as an archive does. */
export function isArchive(bytes: Uint8Array): boolean {
  return bytes.length > 4 && bytes[0] === 0x50 && bytes[1] === 0x4b && (bytes[2] === 3 || bytes[2] === 5);
}

/** The files whose names, without their folders, are wanted, as texts. */
export async function unzip(bytes: Uint8Array<ArrayBuffer>, isWanted: (name: string) => boolean, limits: Limits = LIMITS): Promise<Unzipped[]> {
  const found: Unzipped[] = [];
  let left = limits.bytes;
  for (const entry of listed(bytes, limits)) {
    const name = entry.path.split(/[/\\]/).at(-1) ?? "";
    if (name === "" || !isWanted(name)) continue;
    if (found.length >= limits.files) throw new BadArchive("too many files");
    const out = await unpacked(bytes, entry, left);
    left -= out.length;
    found.push({ name, text: new TextDecoder().decode(out) });
  }
  return found;
}

interface Entry {
  path: string;
  method: number;
  packed: number;
  at: number;
}

/** The entries of the list at the end. */
function* listed(bytes: Uint8Array, { entries }: Limits): Generator<Entry> {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const end = endOf(view);
  const count = view.getUint16(end + 10, true);
  // 0xffff and 0xffffffff say that the numbers are elsewhere: archives of that size are not read.
  if (count === 0xffff || count > entries) throw new BadArchive("too many entries");
  let at = view.getUint32(end + 16, true);
  for (let n = 0; n < count; n++) {
    if (at + 46 > bytes.length || view.getUint32(at, true) !== 0x02014b50) throw new BadArchive("a list that is cut");
    const [flags, method] = [view.getUint16(at + 8, true), view.getUint16(at + 10, true)];
    const [name, extra, comment] = [view.getUint16(at + 28, true), view.getUint16(at + 30, true), view.getUint16(at + 32, true)];
    if (at + 46 + name > bytes.length) throw new BadArchive("a name that is cut");
    const path = new TextDecoder().decode(bytes.subarray(at + 46, at + 46 + name));
    // One that is encrypted is not asked for a password.
    if ((flags & 1) === 0) yield { path, method, packed: view.getUint32(at + 20, true), at: view.getUint32(at + 42, true) };
    at += 46 + name + extra + comment;
  }
}

/** Where the end of the list is: a comment of up to 64 kB may follow it. */
function endOf(view: DataView): number {
  const first = Math.max(0, view.byteLength - 22 - 0xffff);
  for (let at = view.byteLength - 22; at >= first; at--) if (view.getUint32(at, true) === 0x06054b50) return at;
  throw new BadArchive("not an archive");
}

async function unpacked(bytes: Uint8Array<ArrayBuffer>, { method, packed, at }: Entry, most: number): Promise<Uint8Array> {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (at + 30 > bytes.length || view.getUint32(at, true) !== 0x04034b50) throw new BadArchive("an entry that is not there");
  const from = at + 30 + view.getUint16(at + 26, true) + view.getUint16(at + 28, true);
  if (from + packed > bytes.length) throw new BadArchive("an entry that is cut");
  const body = bytes.subarray(from, from + packed);
  if (method === 0) {
    if (body.length > most) throw new BadArchive("too large");
    return body;
  }
  if (method !== 8) throw new BadArchive("packed in another way");
  return inflated(body, most);
}

async function inflated(body: Uint8Array<ArrayBuffer>, most: number): Promise<Uint8Array> {
  const reader = new Blob([body]).stream().pipeThrough(new DecompressionStream("deflate-raw")).getReader();
  const pieces: Uint8Array[] = [];
  let size = 0;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      size += value.length;
      if (size > most) throw new BadArchive("too large");
      pieces.push(value);
    }
  } catch (error) {
    await reader.cancel().catch(() => undefined);
    throw error instanceof BadArchive ? error : new BadArchive("damaged");
  }
  const whole = new Uint8Array(size);
  let to = 0;
  for (const piece of pieces) {
    whole.set(piece, to);
    to += piece.length;
  }
  return whole;
}

/** What an export of many years fits into. */
const LIMITS: Limits = { bytes: 256 * 1024 * 1024, files: 50, entries: 20_000 };
