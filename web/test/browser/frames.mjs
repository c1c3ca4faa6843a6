// What a server says on a WebSocket, changed on its way: the answer to the upgrade passes, then frame by frame.
//
// For tests only: frames that are not split, which is how the program sends them. Packed ones arrive as texts, which clients take as well.
import { Transform } from "node:stream";
import { inflateRawSync } from "node:zlib";

const TEXT = 1;
const BINARY = 2;

/** `change` gives the texts that arrive in place of one. */
export class Frames extends Transform {
  #rest = Buffer.alloc(0);
  #isOpen = false;

  constructor(change) {
    super();
    this.change = change;
  }

  _transform(chunk, _, done) {
    this.#rest = Buffer.concat([this.#rest, chunk]);
    if (!this.#isOpen) this.#answer();
    try {
      while (this.#isOpen && this.#frame());
      done();
    } catch (error) {
      done(error);
    }
  }

  #answer() {
    const end = this.#rest.indexOf("\r\n\r\n");
    if (end === -1) return;
    this.push(this.#rest.subarray(0, end + 4));
    this.#rest = this.#rest.subarray(end + 4);
    this.#isOpen = true;
  }

  /** Passes one frame on; false if it is not whole yet. */
  #frame() {
    const all = this.#rest;
    if (all.length < 2) return false;
    const short = all[1] & 127;
    const at = short < 126 ? 2 : short === 126 ? 4 : 10;
    if (all.length < at) return false;
    const length = short < 126 ? short : short === 126 ? all.readUInt16BE(2) : Number(all.readBigUInt64BE(2));
    if (all.length < at + length) return false;
    this.#rest = all.subarray(at + length);
    const [kind, body] = [all[0] & 15, all.subarray(at, at + length)];
    if (kind !== TEXT && kind !== BINARY) this.push(all.subarray(0, at + length));
    else for (const text of this.change((kind === TEXT ? body : inflateRawSync(body)).toString("utf8"))) this.push(framed(text));
    return true;
  }
}

function framed(text) {
  const body = Buffer.from(text, "utf8");
  const head = body.length < 126 ? Buffer.alloc(2) : body.length < 65_536 ? Buffer.alloc(4) : Buffer.alloc(10);
  head[0] = 128 | TEXT;
  head[1] = head.length === 2 ? body.length : head.length === 4 ? 126 : 127;
  if (head.length === 4) head.writeUInt16BE(body.length, 2);
  if (head.length === 10) head.writeBigUInt64BE(BigInt(body.length), 2);
  return Buffer.concat([head, body]);
}
