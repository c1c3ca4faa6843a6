// SplitMix64: the same numbers from the same seed.

export class Dice {
  #state: bigint;

  constructor(seed: number) {
    this.#state = BigInt(seed);
  }

  #next(): bigint {
    this.#state = BigInt.asUintN(64, this.#state + 0x9e37_79b9_7f4a_7c15n);
    let z = this.#state;
    z = BigInt.asUintN(64, (z ^ (z >> 30n)) * 0xbf58_476d_1ce4_e5b9n);
    z = BigInt.asUintN(64, (z ^ (z >> 27n)) * 0x94d0_49bb_1331_11ebn);
    return z ^ (z >> 31n);
  }

  below(n: number): number {
    return Number(this.#next() % BigInt(n));
  }

  oneIn(n: number): boolean {
    return this.below(n) === 0;
  }

  pick<T>(from: readonly T[]): T | undefined {
    return from.length === 0 ? undefined : from[this.below(from.length)];
  }
}
