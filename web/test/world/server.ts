// A real server for tests: the built program on a free port with a fresh data folder, and the Rust client as another device.
//
//   CONFIDANT_BIN   the program; without it, target/debug/confidant, in CARGO_TARGET_DIR if that is set
//
// Easy to get wrong: a test that passes because there was no server. Without the program these tests fail and say so.

import { type ChildProcess, spawn } from "node:child_process";
import { access, mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

import { Origin } from "../../src/format/index";

/** The program, or a sentence on how to get it. */
export async function program(): Promise<string> {
  const web = process.env["WEB_DIR"] ?? process.cwd();
  const target = process.env["CARGO_TARGET_DIR"] ?? join(dirname(web), "target");
  const path = process.env["CONFIDANT_BIN"] ?? join(target, "debug", "confidant");
  await access(path).catch(() => {
    throw new Error(`there is no program at ${path}; build it with cargo build, or set CONFIDANT_BIN`);
  });
  return path;
}

/** A server of this test's own. */
export class Server {
  private constructor(
    readonly origin: Origin,
    /** The code that the first account needs. */
    readonly firstCode: string,
    private readonly folder: string,
    private readonly child: ChildProcess,
    private readonly path: string,
  ) {}

  static async start(): Promise<Server> {
    const path = await program();
    const folder = await mkdtemp(join(tmpdir(), "confidant-test-"));
    const port = await freePort();
    const env = { ...bare(folder), CONFIDANT_WEB__REGISTRATION: "open" };
    const args = ["serve", "--listen", `127.0.0.1:${port}`, "--data-dir", join(folder, "data")];
    const child = spawn(path, args, { env, cwd: folder, stdio: ["ignore", "ignore", "pipe"] });
    const code = await started(child);
    return new Server(Origin.parse(`http://127.0.0.1:${port}`), code, folder, child, path);
  }

  async stop(): Promise<void> {
    const ended = new Promise((resolve) => this.child.once("exit", resolve));
    this.child.kill("SIGTERM");
    await ended;
    await rm(this.folder, { recursive: true, force: true });
  }

  /** The Rust client as a device of its own, which logs in with this recovery code. */
  rust(login: string, recoveryCode: string): RustDevice {
    const folder = join(this.folder, `device-${(devices += 1)}`);
    const env = { ...bare(this.folder), CHAT_RECOVERY_CODE: recoveryCode };
    const args = ["chat", "--server", this.origin, "--login", login, "--device", folder, "--json"];
    return new RustDevice(this.path, args, env, this.folder);
  }
}

let devices = 0;

/** A line that the Rust client printed. */
export type Line = Record<string, unknown>;

/** `confidant chat --server`, one process per step. */
export class RustDevice {
  #isIn = false;

  constructor(
    private readonly path: string,
    private readonly args: readonly string[],
    private readonly env: NodeJS.ProcessEnv,
    private readonly cwd: string,
  ) {}

  /** Does these commands, one after the other; the JSON lines that it printed. Each run syncs and flushes first. */
  async do(...commands: string[]): Promise<Line[]> {
    const how = this.#isIn ? [] : ["--recover"];
    const args = [...this.args, ...how, ...commands.flatMap((command) => ["--do", command])];
    const child = spawn(this.path, args, { env: this.env, cwd: this.cwd, stdio: ["ignore", "pipe", "pipe"] });
    const [out, err] = [gathered(child.stdout), gathered(child.stderr)];
    const code = await new Promise<number | null>((resolve) => child.once("close", resolve));
    if (code !== 0) throw new Error(`the Rust client failed: ${await err}`);
    this.#isIn = true;
    return (await out).split("\n").filter((line) => line !== "").map((line) => JSON.parse(line) as Line);
  }

  /** The words of a chat, in the order in which they are shown. */
  async read(chat: string): Promise<string[]> {
    return (await this.do(`/open ${chat}`)).map((line) => String(line["body"]));
  }
}

async function gathered(stream: NodeJS.ReadableStream): Promise<string> {
  let text = "";
  for await (const part of stream) text += String(part);
  return text;
}

/** No settings of whoever runs the test, and no home of theirs. */
function bare(home: string): NodeJS.ProcessEnv {
  return { PATH: process.env["PATH"], HOME: home, NO_COLOR: "1" };
}

/** Waits until it listens; the code for the first account, which it prints before. */
function started(child: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = "";
    child.once("exit", () => reject(new Error(`the server did not start: ${text}`)));
    child.stderr?.on("data", (part) => {
      text += String(part);
      const code = /needs this code, today: ([0-9a-f]+)/.exec(text)?.[1];
      if (text.includes("listening on") && code !== undefined) resolve(code);
    });
  });
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const address = server.address();
      server.close(() => (address !== null && typeof address === "object" ? resolve(address.port) : reject(new Error("no port"))));
    });
  });
}
