// Files in memory of a device that can be killed: after so many writes nothing more is kept.

import { ClientError } from "../../src/client/error";
import { type Files, MemoryFiles } from "../../src/client/files";
import type { Bytes } from "../../src/format/index";

export class MortalFiles implements Files {
  readonly #kept = new MemoryFiles();
  #left: number | null = null;

  /** The device is killed after so many writes. */
  killAfter(writes: number): void {
    this.#left = writes;
  }

  /** The device is started again. */
  revive(): void {
    this.#left = null;
  }

  read(name: string): Promise<Bytes | null> {
    return this.#kept.read(name);
  }

  async write(name: string, bytes: Bytes): Promise<void> {
    this.#counted();
    await this.#kept.write(name, bytes);
  }

  async writeAll(files: readonly (readonly [string, Bytes])[]): Promise<void> {
    for (const [name, bytes] of files) await this.write(name, bytes);
  }

  async remove(name: string): Promise<void> {
    this.#counted();
    await this.#kept.remove(name);
  }

  names(): Promise<string[]> {
    return this.#kept.names();
  }

  #counted(): void {
    if (this.#left === null) return;
    if (this.#left === 0) throw new ClientError("files");
    this.#left -= 1;
  }
}
