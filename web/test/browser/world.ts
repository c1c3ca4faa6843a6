// What tests in a browser stand on: Chromium, a server with a model, the page before it, and a watch for what must never happen.
//
// Easy to get wrong: a test that passes while the console has errors. `Tab.close` fails if the page logged an error, threw, or broke its policy.
import assert from "node:assert/strict";
import { createHash, X509Certificate } from "node:crypto";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium, type Browser, type BrowserContext, type Page } from "playwright-core";
import { Model } from "../world/model";
import { Server } from "../world/server";

interface Served {
  port: number;
  /** What was asked for, as `METHOD /path?query`. */
  log: string[];
  reach: (isOn: boolean) => void;
  stop: () => void;
}

export const DESKTOP = { width: 1280, height: 860 };
export const PHONE = { width: 360, height: 740 };

/** What broke the policy in any page of a context. Nothing forgives it. */
const broken = new WeakMap<BrowserContext, string[]>();

/** Hears of everything that a page's policy refuses, from its first line on. */
async function watched(context: BrowserContext): Promise<BrowserContext> {
  const found: string[] = [];
  broken.set(context, found);
  await context.exposeBinding("brokePolicy", (_, what: string) => void found.push(what));
  await context.addInitScript(() => {
    document.addEventListener("securitypolicyviolation", (event) => {
      const { effectiveDirective, blockedURI, sourceFile, lineNumber, sample } = event;
      (globalThis as unknown as { brokePolicy: (what: string) => void }).brokePolicy(`${effectiveDirective} ${blockedURI} ${sourceFile}:${lineNumber} ${sample}`);
    });
  });
  return context;
}

/** What broke the policy in this context. */
export function policyBreaks(context: BrowserContext): readonly string[] {
  return broken.get(context) ?? [];
}

/** A tab of a browser of its own: nothing is shared with another one but the server. */
export class Tab {
  readonly problems: string[] = [];
  /** Bodies of requests that left the page, as text. */
  readonly sent: string[] = [];

  constructor(readonly page: Page, readonly context: BrowserContext) {
    page.on("console", (message) => {
      if (message.type() === "error") this.problems.push(`console: ${message.text()}`);
    });
    page.on("pageerror", (error) => this.problems.push(`thrown: ${error.message}`));
    page.on("request", (request) => {
      const body = request.postData();
      if (body !== null) this.sent.push(body);
    });
    page.on("websocket", (socket) => socket.on("framesent", ({ payload }) => this.sent.push(String(payload))));
  }

  /** Counts from now on only. What broke the policy counts all the same. */
  forgive(): void {
    this.problems.length = 0;
  }

  async shot(name: string): Promise<void> {
    await this.page.screenshot({ path: join(process.env["SCREENSHOTS"] ?? ".", `${name}.png`) });
  }

  async close(): Promise<void> {
    await this.context.close();
    assert.deepEqual(policyBreaks(this.context), [], "nothing broke the policy");
    assert.deepEqual(this.problems, [], "no errors in the console");
  }
}

interface WorldOptions {
  /** Whether the model fills in forms as well. */
  isFilling?: boolean;
  /** Settings of the program, besides those that every test has. */
  settings?: Record<string, string>;
  /** The page is at this name, over TLS, as behind an operator's proxy; without it, at localhost. */
  tlsName?: string | null;
  /** The page is at this name, over plain HTTP: what an operator has who forgot TLS. */
  plainName?: string | null;
  /** Changes what the program says on sockets. */
  between?: ((text: string) => string[]) | null;
  /** Whether a WebSocket passes. */
  sockets?: boolean;
  /** At how many addresses the program is reached: each can be cut off by itself. */
  doors?: number;
}

interface Certificate {
  key: string;
  cert: string;
  /** The hash of its public key, as the browser is told to trust it. */
  pin: string;
}

/** A certificate for this test only. */
function certificate(name: string): Certificate {
  const folder = mkdtempSync(join(tmpdir(), "confidant-tls-"));
  const [key, cert] = [join(folder, "key.pem"), join(folder, "cert.pem")];
  try {
    const what = ["-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", `/CN=${name}`, "-addext", `subjectAltName=DNS:${name}`];
    execFileSync("openssl", ["req", ...what, "-keyout", key, "-out", cert], { stdio: "pipe" });
    const made = readFileSync(cert, "utf8");
    const spki = new X509Certificate(made).publicKey.export({ type: "spki", format: "der" });
    return { key: readFileSync(key, "utf8"), cert: made, pin: createHash("sha256").update(spki).digest("base64") };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** A browser, a server and a model. */
export class BrowserWorld {
  readonly #contexts: BrowserContext[] = [];

  private constructor(readonly browser: Browser, readonly model: Model, readonly server: Server | null, private readonly served: readonly [Served, ...Served[]], private readonly at: (port: number) => string) {}

  /**
   * `real`: with the program behind the page; else only the page over its double. With PAGE_FOLDER the program serves the page of that
   * folder, and not the one inside it.
   */
  static async start(real: boolean, { isFilling = false, settings = {}, tlsName = null, plainName = null, between = null, doors = 1, sockets = true }: WorldOptions = {}): Promise<BrowserWorld> {
    const path = new URL("./serve.mjs", `file://${process.env["WEB_DIR"] ?? "."}/test/browser/`).href;
    const { serve } = (await import(path)) as { serve: (options: { program?: string | null; port?: number; tls?: Certificate | null; between?: WorldOptions["between"]; sockets?: boolean }) => Promise<Served> };
    const model = await Model.start();
    const ports = await Promise.all(Array.from({ length: doors }, () => (real ? freePort() : 0)));
    const tls = tlsName === null ? null : certificate(tlsName);
    const origin = (at: number) => (tlsName === null ? `http://${plainName ?? "localhost"}:${at}` : `https://${tlsName}:${at}`);
    const origins = ports.map(origin);
    const server = real ? await Server.start({ ...(isFilling ? model.filling : model.settings), ...pageFolder(), ...settings }, origins) : null;
    const [first, ...others] = await Promise.all(ports.map((port) => serve({ program: server?.origin ?? null, port, tls, between, sockets })));
    if (first === undefined) throw new Error("no door");
    // Its certificate counts as any other does, for this browser only: one with errors could have no passkeys.
    const names = tlsName ?? plainName;
    const found = names === null ? [] : [`--host-resolver-rules=MAP ${names} 127.0.0.1`];
    const trust = tls === null ? found : [...found, `--ignore-certificate-errors-spki-list=${tls.pin}`];
    const browser = await chromium.launch({ executablePath: process.env["CHROMIUM"] ?? "/usr/bin/chromium", args: ["--no-sandbox", ...trust] });
    return new BrowserWorld(browser, model, server, [first, ...others], origin);
  }

  /** What browsers asked for, as `METHOD /path?query`. */
  get log(): string[] {
    return this.served[0].log;
  }

  get origin(): string {
    return this.originOf(0);
  }

  /** The address of one of the doors. */
  originOf(door: number): string {
    return this.at((this.served[door] ?? this.served[0]).port);
  }

  /** Whether the program can be reached, through one door or any. */
  reach(isOn: boolean, door?: number): void {
    for (const [at, served] of this.served.entries()) if (door === undefined || door === at) served.reach(isOn);
  }

  async tab(options: { viewport?: { width: number; height: number }; colorScheme?: "light" | "dark"; locale?: string; serviceWorkers?: "allow" | "block"; hasTouch?: boolean; isMobile?: boolean } = {}): Promise<Tab> {
    const context = await watched(await this.browser.newContext({ viewport: DESKTOP, locale: "en-US", ...options }));
    this.#contexts.push(context);
    const page = await context.newPage();
    page.setDefaultTimeout(Number(process.env["TIMEOUT"] ?? 90_000));
    return new Tab(page, context);
  }

  /** A tab with an account that was just made; the recovery code is kept. */
  async registered(login: string, password: string, options: Parameters<BrowserWorld["tab"]>[0] = {}): Promise<Tab> {
    const tab = await this.tab(options);
    const { page } = tab;
    await page.goto(this.origin);
    await page.getByRole("button", { name: "Create an account" }).click();
    await page.getByLabel("Login").fill(login);
    await page.getByLabel("Password", { exact: true }).fill(password);
    await page.getByLabel("Password, again").fill(password);
    await page.getByLabel("Invitation code").fill(this.server?.firstCode ?? "");
    await page.getByRole("button", { name: "Create the account" }).click();
    await page.getByLabel("I have kept the code").check();
    await page.getByRole("button", { name: "Continue" }).click();
    await page.getByText("What is on your mind?").waitFor();
    return tab;
  }

  async stop(): Promise<void> {
    await this.browser.close();
    for (const served of this.served) served.stop();
    await this.model.stop();
    await this.server?.stop();
    // Also of those that no test has closed.
    assert.deepEqual(this.#contexts.flatMap(policyBreaks), [], "nothing broke the policy");
  }
}

function pageFolder(): Record<string, string> {
  const folder = process.env["PAGE_FOLDER"];
  return folder === undefined ? {} : { CONFIDANT_WEB__PAGE_FOLDER: folder };
}

async function freePort(): Promise<number> {
  const { createServer } = await import("node:net");
  return new Promise((resolve) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const address = server.address();
      server.close(() => resolve(typeof address === "object" && address !== null ? address.port : 0));
    });
  });
}
