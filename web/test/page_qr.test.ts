// QR codes: read back by another way than they were made, and one of the largest compared with what another encoder made of it.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import { Qr } from "../src/ui/parts/qr";
import { qrCode } from "../src/ui/qr";

const FLIPS: ((x: number, y: number) => boolean)[] = [
  (x, y) => (x + y) % 2 === 0, (_, y) => y % 2 === 0, (x) => x % 3 === 0, (x, y) => (x + y) % 3 === 0, (x, y) => (Math.floor(x / 3) + Math.floor(y / 2)) % 2 === 0,
  (x, y) => ((x * y) % 2) + ((x * y) % 3) === 0, (x, y) => (((x * y) % 2) + ((x * y) % 3)) % 2 === 0, (x, y) => (((x + y) % 2) + ((x * y) % 3)) % 2 === 0,
];

/** Reads a code of version 1: one block, no alignment pattern. */
function read(code: boolean[][]): string {
  const size = code.length;
  const at = (x: number, y: number) => (code[y]?.[x] === true ? 1 : 0);
  const format = [at(8, 0), at(8, 1), at(8, 2), at(8, 3), at(8, 4), at(8, 5), at(8, 7), at(8, 8), at(7, 8), at(5, 8), at(4, 8), at(3, 8), at(2, 8), at(1, 8), at(0, 8)];
  const bits = format.reduce((sum, bit, place) => sum | (bit << place), 0) ^ 0x5412;
  assert.equal(bits >>> 13, 0, "level M");
  const flips = FLIPS[(bits >>> 10) & 7];
  const isFixed = (x: number, y: number) => (x < 9 && y < 9) || (x < 9 && y >= size - 8) || (x >= size - 8 && y < 9) || x === 6 || y === 6;
  let stream = "";
  let isUp = true;
  for (let right = size - 1; right > 0; right -= 2) {
    if (right === 6) right -= 1;
    for (let step = 0; step < size; step += 1) {
      const y = isUp ? size - 1 - step : step;
      for (const x of [right, right - 1]) if (!isFixed(x, y)) stream += at(x, y) ^ Number(flips?.(x, y) ?? false);
    }
    isUp = !isUp;
  }
  assert.equal(stream.slice(0, 4), "0100", "bytes");
  const length = Number.parseInt(stream.slice(4, 12), 2);
  const bytes = Array.from({ length }, (_, n) => Number.parseInt(stream.slice(12 + 8 * n, 20 + 8 * n), 2));
  return new TextDecoder().decode(new Uint8Array(bytes));
}

test("what is written is read back", () => {
  for (const text of ["", "a", "pair me", "Grüße 😀", "12345678901234"]) assert.equal(read(qrCode(text) ?? []), text);
});

test("sizes follow the length, and what is too long is none", () => {
  const sizes = [14, 26, 42, 62, 84, 106, 122, 152, 180, 213].map((length) => qrCode("x".repeat(length))?.length);
  assert.deepEqual(sizes, [21, 25, 29, 33, 37, 41, 45, 49, 53, 57]);
  assert.equal(qrCode("x".repeat(214)), null);
});

test("what an authenticator scans fits, for a login as long as people have", () => {
  const uri = (login: string) => `otpauth://totp/${encodeURIComponent(`Confidant:${login}`)}?secret=${"A".repeat(52)}&issuer=Confidant&algorithm=SHA1&digits=6&period=30`;
  assert.ok(qrCode(uri("ana")) !== null && qrCode(uri(`${"a".repeat(40)}@${"b".repeat(20)}.example.org`)) !== null);
  assert.equal(Qr({ text: uri("x".repeat(200)), label: "" }), null, "then it is typed");
});

test("the largest is the one that another encoder makes", () => {
  const rows = (qrCode("z".repeat(213)) ?? []).map((row) => row.map(Number).join("")).join("\n");
  assert.equal(createHash("sha256").update(rows).digest("hex"), "f6862dc828d614e511c1aea5f5a112d3daed5599ae635fd3e675eb5a0f04fc3a");
});
