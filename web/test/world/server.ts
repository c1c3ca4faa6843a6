// A real server for tests: the built program on a free port with a fresh data folder, and the Rust client as another device.
//
//   CONFIDANT_BIN   the program; without it, target/debug/confidant, in CARGO_TARGET_DIR if that is set
//
// Easy to get wrong: a test that passes because there was no server. Without the program these tests fail and say so.

import { type ChildProcess, spawn } from "node:child_process";
import { access, cp, mkdtemp, readFile, rm } from "node:fs/promises";
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
  #child: ChildProcess | null = null;
  #copies = 0;
  #data = "data";
  /** The code that the first account needs. */
  firstCode = "";

  private constructor(
    readonly origin: Origin,
    private readonly folder: string,
    private readonly path: string,
    readonly settings: Record<string, string>,
  ) {}

  /** `settings`: variables besides those that every test has. `origins`: where it is reached besides its own address. */
  static async start(settings: Record<string, string> = {}, origins: readonly string[] = []): Promise<Server> {
    const path = await program();
    const folder = await mkdtemp(join(tmpdir(), "confidant-test-"));
    const origin = Origin.parse(`http://127.0.0.1:${await freePort()}`);
    const all = origins.length === 0 ? {} : { CONFIDANT_WEB__ORIGINS: JSON.stringify([...origins, origin]) };
    const server = new Server(origin, folder, path, { ...settings, ...all });
    server.firstCode = await server.#run();
    return server;
  }

  async #run(): Promise<string> {
    const env = { ...bare(this.folder), CONFIDANT_WEB__REGISTRATION: "open", ...this.settings };
    const args = ["serve", "--listen", this.origin.slice("http://".length), "--data-dir", join(this.folder, this.#data)];
    this.#child = spawn(this.path, args, { env, cwd: this.folder, stdio: ["ignore", "ignore", "pipe"] });
    return started(this.#child);
  }

  async #end(): Promise<void> {
    const child = this.#child;
    if (child === null || child.exitCode !== null) return;
    const ended = new Promise((resolve) => child.once("exit", resolve));
    child.kill("SIGTERM");
    await ended;
  }

  async stop(): Promise<void> {
    await this.#end();
    await rm(this.folder, { recursive: true, force: true });
  }

  /** A copy of everything that the server keeps, as a backup has it. The server is started again. */
  async backup(): Promise<string> {
    const copy = `copy-${(this.#copies += 1)}`;
    await this.#end();
    await cp(join(this.folder, this.#data), join(this.folder, copy), { recursive: true });
    await this.#run();
    return copy;
  }

  /** Ends it and starts it again. */
  async restart(): Promise<void> {
    await this.#end();
    await this.#run();
  }

  /** Goes on with what is in that folder. */
  async use(data: string): Promise<void> {
    await this.#end();
    this.#data = data;
    await this.#run();
  }

  /** The administrator's token, which the first start makes. */
  async adminToken(): Promise<string> {
    return (await readFile(join(this.folder, this.#data, "admin.token"), "utf8")).trim();
  }

  /** The page from a machine of somebody's own, for this server: another process of the same program. */
  async ownPage(): Promise<OwnPage> {
    return OwnPage.start(this.path, this.folder, this.origin);
  }

  /** What the operator gives somebody whose account was lost. */
  async restoreCode(account: string): Promise<string> {
    const args = ["account", "restore", account, "--json", "--data-dir", join(this.folder, this.#data)];
    const child = spawn(this.path, args, { env: bare(this.folder), cwd: this.folder, stdio: ["ignore", "pipe", "pipe"] });
    const [out, err] = [gathered(child.stdout), gathered(child.stderr)];
    const code = await new Promise<number | null>((resolve) => child.once("close", resolve));
    if (code !== 0) throw new Error(`no code: ${await err}`);
    return String((JSON.parse(await out) as { code: unknown }).code);
  }

  /** The Rust client as a device of its own, which logs in with this recovery code. */
  rust(login: string, recoveryCode: string): RustDevice {
    const folder = join(this.folder, `device-${(devices += 1)}`);
    const env = { ...bare(this.folder), CHAT_RECOVERY_CODE: recoveryCode };
    const args = ["chat", "--server", this.origin, "--login", login, "--device", folder, "--json"];
    return new RustDevice(this.path, args, env, this.folder);
  }
}

/** `confidant page --server`, as a process of its own. */
export class OwnPage {
  private constructor(private readonly child: ChildProcess, readonly open: string, readonly listen: string, readonly said: { text: string }) {}

  static async start(path: string, folder: string, server: string, listen = "127.0.0.1:0", settings: Record<string, string> = {}): Promise<OwnPage> {
    const args = ["page", "--server", server, "--listen", listen, "--json"];
    const child = spawn(path, args, { env: { ...bare(folder), ...settings }, cwd: folder, stdio: ["ignore", "pipe", "pipe"] });
    const said = { text: "" };
    child.stderr.on("data", (part) => (said.text += String(part)));
    return new Promise((resolve, reject) => {
      let out = "";
      child.once("exit", (code) => reject(new Error(`the page was not handed out (${code}): ${said.text}`)));
      child.stdout.on("data", (part) => {
        out += String(part);
        if (!out.trimEnd().endsWith("}")) return;
        const { open, listen: at } = JSON.parse(out) as { open: string; listen: string };
        resolve(new OwnPage(child, open, at, said));
      });
    });
  }

  /** Ends it; its exit status. */
  async stop(): Promise<number | null> {
    if (this.child.exitCode !== null) return this.child.exitCode;
    const ended = new Promise<number | null>((resolve) => this.child.once("exit", resolve));
    this.child.kill("SIGTERM");
    return ended;
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
export function bare(home: string): NodeJS.ProcessEnv {
  return { PATH: process.env["PATH"], HOME: home, NO_COLOR: "1" };
}

/** Waits until it listens; the code for the first account, which it prints before while there is none. */
function started(child: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = "";
    child.once("exit", () => reject(new Error(`the server did not start: ${text}`)));
    child.stderr?.on("data", (part) => {
      text += String(part);
      if (text.includes("listening on")) resolve(/needs this code, today: ([0-9a-f]+)/.exec(text)?.[1] ?? "");
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
