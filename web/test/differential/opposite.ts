// The Rust side of the differential run: a program that answers one JSON line for each it is given, in order.

import { spawn } from "node:child_process";
import type { ChildProcessWithoutNullStreams } from "node:child_process";
import { createInterface } from "node:readline";
import type { Answer, Rust } from "./state";

export class Opposite implements Rust {
  readonly #program: ChildProcessWithoutNullStreams;
  readonly #waiting: { done: (answer: Answer) => void; failed: (error: Error) => void }[] = [];

  constructor(path: string) {
    this.#program = spawn(path, [], { stdio: "pipe" });
    createInterface({ input: this.#program.stdout }).on("line", (line) => {
      this.#waiting.shift()?.done(JSON.parse(line) as Answer);
    });
    let said = "";
    this.#program.stderr.on("data", (chunk: Buffer) => (said += chunk.toString()));
    this.#program.stdin.on("error", () => undefined);
    const over = (why: string): void => {
      for (const one of this.#waiting.splice(0)) one.failed(new Error(`the Rust side ended: ${why} ${said}`));
    };
    this.#program.on("error", (error) => over(error.message));
    this.#program.on("exit", (code) => over(`exit ${code}`));
  }

  ask(what: { do: string } & Record<string, unknown>): Promise<Answer> {
    return new Promise((done, failed) => {
      this.#waiting.push({ done, failed });
      this.#program.stdin.write(`${JSON.stringify(what)}\n`);
    });
  }

  end(): void {
    this.#program.stdin.end();
  }
}
