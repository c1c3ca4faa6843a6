// What tests in a browser stand on: Chromium, a server with a model, the page before it, and a watch for what must never happen.
//
// Easy to get wrong: a test that passes while the console has errors. `Tab.close` fails if the page logged an error, threw, or broke its policy.
import assert from "node:assert/strict";
import { join } from "node:path";
import { chromium, type Browser, type BrowserContext, type Page } from "playwright-core";
import { Model } from "../world/model";
import { Server } from "../world/server";

interface Served {
  port: number;
  reach: (isOn: boolean) => void;
  stop: () => void;
}

export const DESKTOP = { width: 1280, height: 860 };
export const PHONE = { width: 360, height: 740 };

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

  /** Counts from now on only. */
  forgive(): void {
    this.problems.length = 0;
  }

  async shot(name: string): Promise<void> {
    await this.page.screenshot({ path: join(process.env["SCREENSHOTS"] ?? ".", `${name}.png`) });
  }

  async close(): Promise<void> {
    await this.context.close();
    assert.deepEqual(this.problems, [], "no errors in the console");
  }
}

/** A browser, a server and a model. */
export class BrowserWorld {
  private constructor(readonly browser: Browser, readonly model: Model, readonly server: Server | null, private readonly served: Served) {}

  /** `real`: with the program behind the page; else only the page over its double. */
  static async start(real: boolean): Promise<BrowserWorld> {
    const path = new URL("./serve.mjs", `file://${process.env["WEB_DIR"] ?? "."}/test/browser/`).href;
    const { serve } = (await import(path)) as { serve: (options: { program?: string | null; port?: number }) => Promise<Served> };
    const model = await Model.start();
    const port = real ? await freePort() : 0;
    const server = real ? await Server.start({ ...model.settings, CONFIDANT_WEB__ORIGINS: JSON.stringify([`http://localhost:${port}`]) }) : null;
    const served = await serve({ program: server?.origin ?? null, port });
    const browser = await chromium.launch({ executablePath: process.env["CHROMIUM"] ?? "/usr/bin/chromium", args: ["--no-sandbox"] });
    return new BrowserWorld(browser, model, server, served);
  }

  get origin(): string {
    return `http://localhost:${this.served.port}`;
  }

  /** Whether the program can be reached. The page's own files still can: they would come from the cache. */
  reach(isOn: boolean): void {
    this.served.reach(isOn);
  }

  async tab(options: { viewport?: { width: number; height: number }; colorScheme?: "light" | "dark"; locale?: string } = {}): Promise<Tab> {
    const context = await this.browser.newContext({ viewport: DESKTOP, locale: "en-US", ...options });
    const page = await context.newPage();
    page.setDefaultTimeout(Number(process.env["TIMEOUT"] ?? 20_000));
    return new Tab(page, context);
  }

  async stop(): Promise<void> {
    await this.browser.close();
    this.served.stop();
    await this.model.stop();
    await this.server?.stop();
  }
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
