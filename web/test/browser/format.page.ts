// What format.browser.ts runs inside the page.

import { runSections } from "../vectors/sections";
import { CHATS } from "../vectors/chats";
import { SEAL } from "../vectors/seal";
import { KINDS, verdicts } from "../differential/rounds";
import { Dice, type Answer, type Rust } from "../differential/state";
import { sealAndOpen, sync } from "../speed";

declare global {
  interface Window {
    format: typeof format;
    askRust(line: string): Promise<string>;
  }
}

const format = {
  /** Runs a file of vectors; gives the number of cases of each section. */
  async vectors(name: "seal-v1" | "chats-v1", file: string): Promise<[string, number][]> {
    return [...(await runSections(name === "seal-v1" ? SEAL : CHATS, JSON.parse(file)))];
  },

  /** Runs random cases; gives what was said of states, and how often. */
  async differential(seed: number, rounds: number): Promise<[string, number][]> {
    const rust: Rust = { ask: async (what) => JSON.parse(await window.askRust(JSON.stringify(what))) as Answer };
    for (const [name, round, share] of KINDS) {
      const dice = new Dice(seed);
      for (let at = 0; at < Math.ceil(rounds * share); at++) {
        await round(dice, rust).catch((error: unknown) => {
          throw new Error(`${name}, round ${at}: ${String(error)}`, { cause: error });
        });
      }
    }
    return [...verdicts];
  },

  async speed(): Promise<string[]> {
    const lines: string[] = [];
    await sealAndOpen((line) => lines.push(line));
    await sync((line) => lines.push(line));
    return lines;
  },
};

window.format = format;
