// Redaction on this machine, in Node: the program `confidant redact --jsonl`, started once and asked line by line.
// Nothing leaves the machine, and nothing is stored. No error repeats what was to be redacted.

import { spawn, type ChildProcessWithoutNullStreams } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

import { ConfidantError } from "./errors.mjs";
import { quiet } from "./wire.mjs";

/** One place at which a rule held, in code points of the text that was given. */
export interface Finding {
  rule: string;
  tier: "critical" | "noncritical";
  start: number;
  end: number;
  path?: string;
}

/** A text, or a JSON value, without secrets and personal data. */
export interface Redacted<T> {
  value: T;
  /** Whether there was a private key, an Authorization header or a bearer token in it. It was replaced, but do not store such a text. */
  blocked: boolean;
  findings: Finding[];
}

export interface RedactorOptions {
  /** `false` leaves people's names in, which is several times faster. */
  names?: boolean;
  /** Number the placeholders; the same value gets the same number. */
  numbered?: boolean;
  /** Files of words, one per line, that are always or never replaced. */
  always?: string;
  never?: string;
  /** The program; the one that this package brings if missing. */
  program?: string;
  timeoutMs?: number;
}

interface Waiting {
  resolve(line: string): void;
  reject(error: ConfidantError): void;
  timer: ReturnType<typeof setTimeout>;
}

/** Redacts. The program starts with the first text, and ends with `close` or with this process, which it does not keep alive. */
export class Redactor {
  readonly #options: string[];
  readonly #program: string | undefined;
  readonly #timeoutMs: number;
  #running: Running | undefined;
  #closed = false;

  constructor(options: RedactorOptions = {}) {
    const { names = true, numbered = false, always, never, program, timeoutMs = 60_000 } = options;
    this.#options = ["redact", "--jsonl"];
    if (!names) this.#options.push("--no-names");
    if (numbered) this.#options.push("--numbered");
    if (always !== undefined) this.#options.push(`--always=${always}`);
    if (never !== undefined) this.#options.push(`--never=${never}`);
    this.#program = program;
    this.#timeoutMs = timeoutMs;
  }

  /** A text without secrets and personal data. */
  async redact(text: string): Promise<Redacted<string>> {
    const { text: value, blocked, findings } = await this.#ask(text);
    return quiet({ value: value as string, blocked: blocked === true, findings: findings as Finding[] }, ["blocked"]);
  }

  /** A JSON value without them: every text and key in it. */
  async redactJson(json: unknown): Promise<Redacted<unknown>> {
    const { text, value = text, blocked, findings } = await this.#ask(json);
    return quiet({ value, blocked: blocked === true, findings: findings as Finding[] }, ["blocked"]);
  }

  /** Ends the program. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#running?.end();
  }

  async #ask(value: unknown): Promise<Record<string, unknown>> {
    if (this.#closed) throw failed("closed", "the redactor is closed", "make another one");
    // A lone surrogate is no character, and undefined is no JSON.
    const line = JSON.stringify(typeof value === "string" ? value.replace(LONE, "\ufffd") : value);
    if (line === undefined) throw failed("not_json", "this value has no form in JSON", "give text, or a value that JSON has a form for");
    if (!this.#running?.lives) this.#running = new Running(this.#program, this.#options);
    const told = JSON.parse(await this.#running.ask(line, this.#timeoutMs)) as Record<string, unknown>;
    if ("error" in told) throw failed("not_json", "the program cannot read this value", "give text, or a value that JSON has a form for");
    return told;
  }
}

const LONE = /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

/** The program while it runs. It answers lines in their order. */
class Running {
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #waiting: Waiting[] = [];
  readonly #ended: Promise<void>;
  #complaint = "";
  lives = true;

  constructor(program: string | undefined, options: string[]) {
    // The launcher of this package knows where the program is, and says what is missing.
    const launcher = fileURLToPath(new URL("../confidant.js", import.meta.url));
    const [command, first] = program === undefined ? [process.execPath, [launcher]] : [program, []];
    this.#child = spawn(command, [...first, ...options], { stdio: "pipe" });
    const { stdin, stdout, stderr } = this.#child;
    createInterface({ input: stdout, crlfDelay: Infinity }).on("line", (line) => {
      const first = this.#waiting.shift();
      if (first) {
        clearTimeout(first.timer);
        first.resolve(line);
      }
      this.#rest();
    });
    stderr.setEncoding("utf8").on("data", (text: string) => {
      this.#complaint = (this.#complaint + text).slice(0, 4096);
    });
    // A pipe that breaks is said by the end of the program.
    stdin.on("error", () => {});
    this.#ended = new Promise((resolve) => {
      const over = (what: string) => {
        this.lives = false;
        const hint = /hint: ([^\n]*)/.exec(this.#complaint)?.[1] ?? "run `confidant redact --jsonl` to see why";
        for (const { reject, timer } of this.#waiting.splice(0)) {
          clearTimeout(timer);
          reject(failed("program_ended", what, hint));
        }
        resolve();
      };
      this.#child.on("error", (error: NodeJS.ErrnoException) => over(`the program cannot be started (${error.code})`));
      this.#child.on("close", (code, signal) => {
        const said = this.#complaint.replace(/^error: /, "").split("\n")[0]?.slice(0, 300);
        over(`the program ended with ${signal ?? `status ${code}`}${said ? `: ${said}` : ""}`);
      });
    });
    this.#rest();
  }

  ask(line: string, timeoutMs: number): Promise<string> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        reject(failed("timed_out", `the program said nothing for ${timeoutMs} ms`, "raise timeoutMs, or give shorter texts"));
        // What it says next would be the answer to another question.
        this.lives = false;
        this.#child.kill("SIGKILL");
        this.#child.stdin.destroy();
      }, timeoutMs);
      this.#waiting.push({ resolve, reject, timer });
      for (const handle of this.#handles()) handle.ref?.();
      this.#child.stdin.write(`${line}\n`);
    });
  }

  async end(): Promise<void> {
    this.lives = false;
    for (const handle of this.#handles()) handle.ref?.();
    this.#child.stdin.end();
    const timer = setTimeout(() => this.#child.kill("SIGKILL"), 5000);
    await this.#ended;
    clearTimeout(timer);
  }

  /** While nobody waits for it, it does not keep this process alive. */
  #rest(): void {
    if (this.#waiting.length === 0 && this.lives) for (const handle of this.#handles()) handle.unref?.();
  }

  #handles(): { ref?: () => void; unref?: () => void }[] {
    const { stdin, stdout, stderr } = this.#child;
    return [this.#child, stdin, stdout, stderr] as { ref?: () => void; unref?: () => void }[];
  }
}

function failed(code: string, what: string, hint: string): ConfidantError {
  return new ConfidantError(what, { kind: "program_failed", code, hint });
}
