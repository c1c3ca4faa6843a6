// A QR code of a short text: byte mode, error correction level M, versions 1 to 10 (213 bytes at most).
//
//   bytes ─▶ header, padding ─▶ blocks with Reed-Solomon remainders, interleaved ─▶ zigzag into the matrix ─▶ the best of eight masks
//
// After ISO/IEC 18004. Easy to get wrong: the format bits. They stand twice, and are masked with a constant of their own.

/** Rows of dark (true) and light modules, without the quiet zone. Null if the text is too long. */
export function qrCode(text: string): boolean[][] | null {
  const bytes = new TextEncoder().encode(text);
  const version = VERSIONS.findIndex((one, at) => bytes.length <= capacity(one, at + 1)) + 1;
  const shape = VERSIONS[version - 1];
  if (version === 0 || shape === undefined) return null;
  const words = interleaved(dataWords(bytes, shape, version), shape);
  const blank = drawFunctions(version, shape.align);
  placeWords(blank, words);
  let best: Matrix | null = null;
  let least = Number.POSITIVE_INFINITY;
  for (let mask = 0; mask < 8; mask += 1) {
    const one = masked(blank, mask);
    const score = penalty(one.dark);
    if (score < least) [best, least] = [one, score];
  }
  return best?.dark ?? null;
}

interface Shape {
  total: number;
  /** Words of error correction per block, and how many blocks. */
  ecc: number;
  blocks: number;
  align: number[];
}

// Level M, by version.
const VERSIONS: Shape[] = [
  { total: 26, ecc: 10, blocks: 1, align: [] },
  { total: 44, ecc: 16, blocks: 1, align: [6, 18] },
  { total: 70, ecc: 26, blocks: 1, align: [6, 22] },
  { total: 100, ecc: 18, blocks: 2, align: [6, 26] },
  { total: 134, ecc: 24, blocks: 2, align: [6, 30] },
  { total: 172, ecc: 16, blocks: 4, align: [6, 34] },
  { total: 196, ecc: 18, blocks: 4, align: [6, 22, 38] },
  { total: 242, ecc: 22, blocks: 4, align: [6, 24, 42] },
  { total: 292, ecc: 22, blocks: 5, align: [6, 26, 46] },
  { total: 346, ecc: 26, blocks: 5, align: [6, 28, 50] },
];

function capacity(shape: Shape, version: number): number {
  return shape.total - shape.ecc * shape.blocks - (version < 10 ? 2 : 3);
}

function dataWords(bytes: Uint8Array, shape: Shape, version: number): number[] {
  const bits: number[] = [];
  const push = (value: number, count: number) => {
    for (let at = count - 1; at >= 0; at -= 1) bits.push((value >>> at) & 1);
  };
  push(0b0100, 4);
  push(bytes.length, version < 10 ? 8 : 16);
  for (const byte of bytes) push(byte, 8);
  const size = (shape.total - shape.ecc * shape.blocks) * 8;
  push(0, Math.min(4, size - bits.length));
  while (bits.length % 8 !== 0) bits.push(0);
  for (let pad = 0xec; bits.length < size; pad ^= 0xec ^ 0x11) push(pad, 8);
  const words: number[] = [];
  for (let at = 0; at < bits.length; at += 8) words.push(bits.slice(at, at + 8).reduce((sum, bit) => sum * 2 + bit, 0));
  return words;
}

function interleaved(data: number[], shape: Shape): number[] {
  const short = Math.floor(data.length / shape.blocks);
  const longer = data.length % shape.blocks;
  const divisor = generator(shape.ecc);
  const blocks: { data: number[]; ecc: number[] }[] = [];
  let at = 0;
  for (let index = 0; index < shape.blocks; index += 1) {
    const length = short + (index >= shape.blocks - longer ? 1 : 0);
    const part = data.slice(at, at + length);
    blocks.push({ data: part, ecc: remainder(part, divisor) });
    at += length;
  }
  const out: number[] = [];
  for (let column = 0; column <= short; column += 1) {
    for (const block of blocks) {
      const word = block.data[column];
      if (word !== undefined) out.push(word);
    }
  }
  for (let column = 0; column < shape.ecc; column += 1) for (const block of blocks) out.push(block.ecc[column] ?? 0);
  return out;
}

// ---- Reed-Solomon over GF(256), polynomial 0x11d ----

function multiply(one: number, two: number): number {
  let product = 0;
  for (let at = 7; at >= 0; at -= 1) {
    product = (product << 1) ^ ((product >>> 7) * 0x11d);
    product ^= ((two >>> at) & 1) * one;
  }
  return product;
}

function generator(degree: number): number[] {
  const out = new Array<number>(degree).fill(0);
  out[degree - 1] = 1;
  let root = 1;
  for (let step = 0; step < degree; step += 1) {
    for (let at = 0; at < degree; at += 1) out[at] = multiply(out[at] ?? 0, root) ^ (out[at + 1] ?? 0);
    root = multiply(root, 2);
  }
  return out;
}

function remainder(data: number[], divisor: number[]): number[] {
  const out = new Array<number>(divisor.length).fill(0);
  for (const word of data) {
    const factor = word ^ (out.shift() ?? 0);
    out.push(0);
    for (const [at, coefficient] of divisor.entries()) out[at] = (out[at] ?? 0) ^ multiply(coefficient, factor);
  }
  return out;
}

// ---- The matrix ----

interface Matrix {
  size: number;
  dark: boolean[][];
  /** Modules that carry no data. */
  fixed: boolean[][];
}

function set(matrix: Matrix, x: number, y: number, dark: boolean): void {
  const [row, fixed] = [matrix.dark[y], matrix.fixed[y]];
  if (row === undefined || fixed === undefined || x < 0 || x >= matrix.size) return;
  row[x] = dark;
  fixed[x] = true;
}

function drawFunctions(version: number, align: number[]): Matrix {
  const size = version * 4 + 17;
  const rows = () => Array.from({ length: size }, () => new Array<boolean>(size).fill(false));
  const matrix: Matrix = { size, dark: rows(), fixed: rows() };
  for (let at = 0; at < size; at += 1) {
    set(matrix, 6, at, at % 2 === 0);
    set(matrix, at, 6, at % 2 === 0);
  }
  for (const [cx, cy] of [[3, 3], [size - 4, 3], [3, size - 4]] as const) square(matrix, cx, cy, 4, (ring) => ring !== 2 && ring !== 4);
  for (const cx of align) {
    for (const cy of align) {
      const isCorner = (cx === 6 && cy === 6) || (cx === 6 && cy === size - 7) || (cx === size - 7 && cy === 6);
      if (!isCorner) square(matrix, cx, cy, 2, (ring) => ring !== 1);
    }
  }
  drawFormat(matrix, 0);
  drawVersion(matrix, version);
  return matrix;
}

function square(matrix: Matrix, cx: number, cy: number, radius: number, dark: (ring: number) => boolean): void {
  for (let dy = -radius; dy <= radius; dy += 1) {
    for (let dx = -radius; dx <= radius; dx += 1) set(matrix, cx + dx, cy + dy, dark(Math.max(Math.abs(dx), Math.abs(dy))));
  }
}

function drawFormat(matrix: Matrix, mask: number): void {
  // Level M is 00.
  let rest = mask;
  for (let at = 0; at < 10; at += 1) rest = (rest << 1) ^ ((rest >>> 9) * 0x537);
  const bits = ((mask << 10) | rest) ^ 0x5412;
  const bit = (at: number) => ((bits >>> at) & 1) === 1;
  const last = matrix.size - 1;
  for (let at = 0; at <= 5; at += 1) set(matrix, 8, at, bit(at));
  set(matrix, 8, 7, bit(6));
  set(matrix, 8, 8, bit(7));
  set(matrix, 7, 8, bit(8));
  for (let at = 9; at < 15; at += 1) set(matrix, 14 - at, 8, bit(at));
  for (let at = 0; at < 8; at += 1) set(matrix, last - at, 8, bit(at));
  for (let at = 8; at < 15; at += 1) set(matrix, 8, matrix.size - 15 + at, bit(at));
  set(matrix, 8, matrix.size - 8, true);
}

function drawVersion(matrix: Matrix, version: number): void {
  if (version < 7) return;
  let rest = version;
  for (let at = 0; at < 12; at += 1) rest = (rest << 1) ^ ((rest >>> 11) * 0x1f25);
  const bits = (version << 12) | rest;
  for (let at = 0; at < 18; at += 1) {
    const dark = ((bits >>> at) & 1) === 1;
    const long = matrix.size - 11 + (at % 3);
    const short = Math.floor(at / 3);
    set(matrix, long, short, dark);
    set(matrix, short, long, dark);
  }
}

function placeWords(matrix: Matrix, words: number[]): void {
  let at = 0;
  for (let right = matrix.size - 1; right >= 1; right -= 2) {
    if (right === 6) right = 5;
    for (let step = 0; step < matrix.size; step += 1) {
      for (const x of [right, right - 1]) {
        const isUp = ((right + 1) & 2) === 0;
        const y = isUp ? matrix.size - 1 - step : step;
        const row = matrix.dark[y];
        if (row === undefined || matrix.fixed[y]?.[x] === true || at >= words.length * 8) continue;
        row[x] = (((words[at >>> 3] ?? 0) >>> (7 - (at & 7))) & 1) === 1;
        at += 1;
      }
    }
  }
}

const MASKS: ((x: number, y: number) => boolean)[] = [
  (x, y) => (x + y) % 2 === 0,
  (_, y) => y % 2 === 0,
  (x) => x % 3 === 0,
  (x, y) => (x + y) % 3 === 0,
  (x, y) => (Math.floor(x / 3) + Math.floor(y / 2)) % 2 === 0,
  (x, y) => ((x * y) % 2) + ((x * y) % 3) === 0,
  (x, y) => (((x * y) % 2) + ((x * y) % 3)) % 2 === 0,
  (x, y) => (((x + y) % 2) + ((x * y) % 3)) % 2 === 0,
];

function masked(blank: Matrix, mask: number): Matrix {
  const flips = MASKS[mask] ?? (() => false);
  const dark = blank.dark.map((row, y) => row.map((one, x) => (blank.fixed[y]?.[x] === true ? one : one !== flips(x, y))));
  const out: Matrix = { ...blank, dark, fixed: blank.fixed.map((row) => [...row]) };
  drawFormat(out, mask);
  return out;
}

/** How hard a code is to read: long runs, squares, patterns that look like corners, and too much of one colour. */
function penalty(dark: boolean[][]): number {
  const size = dark.length;
  let score = 0;
  const line = (at: (index: number) => boolean) => {
    let run = 0;
    let before: boolean | null = null;
    let text = "";
    for (let index = 0; index < size; index += 1) {
      const one = at(index);
      text += one ? "1" : "0";
      run = one === before ? run + 1 : 1;
      before = one;
      if (run === 5) score += 3;
      else if (run > 5) score += 1;
    }
    for (const pattern of ["10111010000", "00001011101"]) for (let from = text.indexOf(pattern); from !== -1; from = text.indexOf(pattern, from + 1)) score += 40;
  };
  let count = 0;
  for (let y = 0; y < size; y += 1) {
    line((x) => dark[y]?.[x] === true);
    line((x) => dark[x]?.[y] === true);
    for (let x = 0; x < size; x += 1) {
      const one = dark[y]?.[x] === true;
      if (one) count += 1;
      if (x + 1 < size && y + 1 < size && dark[y]?.[x + 1] === one && dark[y + 1]?.[x] === one && dark[y + 1]?.[x + 1] === one) score += 3;
    }
  }
  return score + Math.floor(Math.abs((count * 20) / (size * size) - 10)) * 10;
}
