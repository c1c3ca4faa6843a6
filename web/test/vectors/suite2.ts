// ChaCha20-Poly1305 (RFC 8439), so that the vectors of suite 2 hold here too. WebCrypto lacks it and the page never uses it:
// slow, and not in constant time. For tests only.

import type { Bytes } from "../../src/format/index";
import type { Aead } from "../../src/format/vectors";

export const CHACHA20_POLY1305: Aead = {
  suite: 2,
  async encrypt(key, aad, plain) {
    const body = xor(key, plain);
    const out = new Uint8Array(body.length + 16);
    out.set(body);
    out.set(tag(key, aad, body), body.length);
    return out;
  },
  async decrypt(key, aad, sealed) {
    const body = sealed.slice(0, -16);
    const right = tag(key, aad, body).every((byte, at) => byte === sealed[body.length + at]);
    return right ? xor(key, body) : null;
  },
};

/** The key stream from block 1 on, under a nonce of zeros. */
function xor(key: Bytes, data: Bytes): Bytes {
  const out = data.slice();
  for (let at = 0; at < out.length; at += 64) {
    const stream = block(key, 1 + at / 64);
    for (let i = 0; i < 64 && at + i < out.length; i++) out[at + i] = (out[at + i] ?? 0) ^ (stream[i] ?? 0);
  }
  return out;
}

function block(key: Bytes, counter: number): Bytes {
  const words = new DataView(key.buffer, key.byteOffset, 32);
  const start = new Uint32Array(16);
  start.set([0x61707865, 0x3320646e, 0x79622d32, 0x6b206574]);
  for (let at = 0; at < 8; at++) start[4 + at] = words.getUint32(at * 4, true);
  start[12] = counter;
  const state = start.slice();
  for (let round = 0; round < 10; round++) {
    for (let at = 0; at < 4; at++) quarter(state, at, 4 + at, 8 + at, 12 + at);
    for (let at = 0; at < 4; at++) quarter(state, at, 4 + ((at + 1) % 4), 8 + ((at + 2) % 4), 12 + ((at + 3) % 4));
  }
  const out = new Uint8Array(64);
  const view = new DataView(out.buffer);
  state.forEach((word, at) => view.setUint32(at * 4, word + (start[at] ?? 0), true));
  return out;
}

function quarter(state: Uint32Array, a: number, b: number, c: number, d: number): void {
  const turn = (to: number, add: number, mix: number, by: number): void => {
    state[to] = (state[to] ?? 0) + (state[add] ?? 0);
    const mixed = (state[mix] ?? 0) ^ (state[to] ?? 0);
    state[mix] = (mixed << by) | (mixed >>> (32 - by));
  };
  turn(a, b, d, 16);
  turn(c, d, b, 12);
  turn(a, b, d, 8);
  turn(c, d, b, 7);
}

function tag(key: Bytes, aad: Bytes, body: Bytes): Bytes {
  const once = block(key, 0);
  const clamp = 0x0ffffffc0ffffffc0ffffffc0fffffffn;
  const [r, s] = [little(once.subarray(0, 16)) & clamp, little(once.subarray(16, 32))];
  const lengths = new Uint8Array(16);
  const view = new DataView(lengths.buffer);
  view.setBigUint64(0, BigInt(aad.length), true);
  view.setBigUint64(8, BigInt(body.length), true);
  let sum = 0n;
  for (const part of [aad, body, lengths]) {
    for (let at = 0; at < part.length; at += 16) {
      const padded = new Uint8Array(16);
      padded.set(part.subarray(at, at + 16));
      sum = ((sum + little(padded) + (1n << 128n)) * r) % ((1n << 130n) - 5n);
    }
  }
  const out = new Uint8Array(16);
  const whole = sum + s;
  return out.map((_, at) => Number((whole >> BigInt(at * 8)) & 0xffn));
}

function little(bytes: Bytes): bigint {
  return bytes.reduceRight((value, byte) => (value << 8n) | BigInt(byte), 0n);
}
