// The figures of the page, in the order in which a person meets them. Each is taken in the page itself, by its own clock.
import { readFile, writeFile } from "node:fs/promises";
import { cpus, loadavg } from "node:os";
import { join } from "node:path";
import type { CDPSession, Page } from "playwright-core";
import { BrowserWorld } from "../../web/test/browser/world";
import { type Figures, markdown } from "./report";

const WEB = process.env["WEB_DIR"] ?? ".";
const PASSWORD = "correct horse battery staple";
const MESSAGES = Number(process.env["MESSAGES"] ?? 2_000);
const TIMES = 5;

interface Load {
  firstLoad(dist: string): Promise<{ page: string[]; worker: string[]; languages: string[]; sizes: Record<string, number> }>;
}

async function bytes(): Promise<Figures["bytes"]> {
  const { firstLoad } = (await import(`file://${join(WEB, "load.mjs")}`)) as Load;
  const { page, worker, languages, sizes } = await firstLoad(join(WEB, "dist"));
  const sum = (names: readonly string[]) => names.reduce((so, name) => so + (sizes[name] ?? 0), 0);
  return { page: sum(page), worker: sum(worker), language: Math.max(0, ...languages.map((name) => sizes[name] ?? 0)) };
}

/** An account with a long chat and twenty short ones, all of it stored by the server. */
async function settle(page: Page, world: BrowserWorld): Promise<void> {
  await page.goto(world.origin);
  await page.getByRole("button", { name: "Create an account" }).click();
  await page.getByLabel("Login").fill("bench");
  await page.getByLabel("Password", { exact: true }).fill(PASSWORD);
  await page.getByLabel("Password, again").fill(PASSWORD);
  await page.getByLabel("Invitation code").fill(world.server?.firstCode ?? "");
  await page.getByRole("button", { name: "Create the account" }).click();
  await page.getByLabel("I have kept the code").check();
  await page.getByRole("button", { name: "Continue" }).click();
  await page.goto(`${world.origin}/#/settings/data`);
  const chats = [chat("Long", MESSAGES), ...Array.from({ length: 20 }, (_, at) => chat(`Short ${at}`, 6))];
  await page.setInputFiles("input[type=file]", { name: "export.json", mimeType: "application/json", buffer: Buffer.from(JSON.stringify(chats)) });
  await page.getByText(/chats? imported/).waitFor();
  await page.goto(`${world.origin}/#/outbox`);
  await page.getByText("Everything is stored.").waitFor();
  await page.waitForFunction(() => navigator.serviceWorker.controller !== null);
}

/** What people write: paragraphs, a list, some code. */
function chat(name: string, messages: number): object {
  const words = "the quick brown fox jumps over a lazy dog and wonders about the price of winter tyres in Cork ".repeat(3);
  const body = (at: number) => (at % 2 === 0 ? `${at}: ${words}` : `${at}: ${words}\n\n- **one** thing\n- another\n\n${at % 10 === 1 ? "```js\nconst price = 2 + 2;\n```\n" : words}`);
  return { name, chat_messages: Array.from({ length: messages }, (_, at) => ({ sender: at % 2 === 0 ? "human" : "assistant", text: body(at) })) };
}

/** Argon2id as the page does it, alone, in a worker of its own: milliseconds. */
async function argon2(world: BrowserWorld): Promise<number[]> {
  const { page, context } = await world.tab();
  const code = await readFile(process.env["KDF"] ?? "", "utf8");
  await page.route("**/bench-*", (route) => (route.request().url().endsWith(".js") ? route.fulfill({ contentType: "text/javascript", body: code }) : route.fulfill({ contentType: "text/html", body: "<!doctype html>" })));
  await page.goto(`${world.origin}/bench-page`);
  const taken = await page.evaluate(async (times) => {
    const one = () => new Promise<number>((resolve) => {
      const [began, worker] = [performance.now(), new Worker("/bench-kdf.js", { type: "module" })];
      worker.onmessage = () => {
        worker.terminate();
        resolve(performance.now() - began);
      };
      worker.postMessage({ password: new Uint8Array(20), salt: new Uint8Array(32) });
    });
    const all: number[] = [];
    for (let at = 0; at < times; at += 1) all.push(await one());
    return all;
  }, TIMES);
  await context.close();
  return taken;
}

/** From the click on "Unlock" until the last message of the chat is drawn. */
async function unlocking(page: Page, address: string): Promise<number[]> {
  const all: number[] = [];
  for (let at = 0; at < TIMES; at += 1) {
    await page.goto("about:blank");
    await page.goto(address);
    await page.getByLabel("Password", { exact: true }).fill(PASSWORD);
    await page.waitForTimeout(1_500);
    all.push(await timed(page, () => document.querySelector<HTMLButtonElement>("form button[type=submit]")?.click()));
  }
  return all;
}

/** From the click on a chat until its last message is drawn. */
async function opening(page: Page, hash: string): Promise<number[]> {
  const all: number[] = [];
  for (let at = 0; at < TIMES; at += 1) {
    await page.evaluate(() => { location.hash = "#/"; });
    await page.getByText("What is on your mind?").waitFor();
    await page.waitForTimeout(500);
    all.push(await timed(page, (to: string) => { location.hash = to; }, hash));
  }
  return all;
}

/** Runs something in the page; milliseconds until a frame is drawn that has the last message. */
async function timed<A>(page: Page, act: (arg: A) => void, arg?: A): Promise<number> {
  return page.evaluate(`new Promise((resolve) => {
    const began = performance.now();
    const look = () => document.querySelector("article[id^=msg_]") ? requestAnimationFrame(() => setTimeout(() => resolve(performance.now() - began))) : requestAnimationFrame(look);
    (${act.toString()})(${JSON.stringify(arg)});
    look();
  })`);
}

/** What changes in the page while words come: per frame, how many text nodes, and how many other changes. */
async function streaming(page: Page, world: BrowserWorld): Promise<Figures["streaming"]> {
  const pieces = Array.from({ length: 60 }, (_, at) => `word${at} `);
  world.model.answers.set("Say many words", pieces);
  await page.fill("#composer", "Say many words");
  await page.press("#composer", "Enter");
  await page.locator("article.live .words", { hasText: "word1" }).waitFor();
  return page.evaluate(() => new Promise<Figures["streaming"]>((resolve) => {
    const frames: { texts: number; others: number }[] = [];
    const live = document.querySelector("article.live .words");
    const watch = new MutationObserver((records) => {
      if (live?.textContent?.includes("word55") === true || document.querySelector("article.live") === null) return;
      const texts = new Set(records.filter(({ type }) => type === "characterData").map(({ target }) => target));
      frames.push({ texts: texts.size, others: records.filter(({ type }) => type !== "characterData").length });
    });
    watch.observe(document.body, { subtree: true, childList: true, characterData: true, attributes: true });
    const look = () => {
      if (document.querySelector("article.live") !== null) return void setTimeout(look, 50);
      watch.disconnect();
      resolve({ frames: frames.length, mostTexts: Math.max(0, ...frames.map(({ texts }) => texts)), mostOthers: Math.max(0, ...frames.map(({ others }) => others)), allOthers: frames.reduce((sum, { others }) => sum + others, 0) });
    };
    look();
  }));
}

interface TraceEvent {
  name: string;
  /** Microseconds. */
  ts: number;
  pid: number;
  args?: { frame_reporter?: { state?: string; scroll_state?: string; frame_source?: number; frame_sequence?: number } };
}

/** Scrolls through the chat as a wheel does, with a trace: how many frames of the scroll were drawn, and how many were not. */
async function scrolling(page: Page, cdp: CDPSession): Promise<Figures["scrolling"]> {
  const events: TraceEvent[] = [];
  cdp.on("Tracing.dataCollected", ({ value }) => events.push(...(value as unknown as TraceEvent[])));
  await page.locator(".scroll").evaluate((element) => { element.scrollTop = element.scrollHeight; });
  await page.waitForTimeout(1_000);
  await cdp.send("Tracing.start", { transferMode: "ReportEvents", traceConfig: { includedCategories: ["cc", "benchmark"] } });
  await cdp.send("Input.synthesizeScrollGesture", { x: 700, y: 400, yDistance: PIXELS, speed: PIXELS / 5, gestureSourceType: "mouse" });
  const ended = new Promise((resolve) => cdp.once("Tracing.tracingComplete", resolve));
  await cdp.send("Tracing.end");
  await ended;
  const reports = events.flatMap(({ name, ts, pid, args }) => (name === "PipelineReporter" && args?.frame_reporter !== undefined ? [{ ts, pid, ...args.frame_reporter }] : []));
  // Only frames of the scroll: those before and after it have nothing to draw. A frame may have two reports, of the compositor and of the page's own thread.
  const frames = new Map<string, { ts: number; states: string[] }>();
  for (const { ts, pid, state = "", scroll_state: scrolled = "SCROLL_NONE", frame_source: source, frame_sequence: sequence } of reports) {
    const [key, before] = [`${pid} ${source} ${sequence}`, frames.get(`${pid} ${source} ${sequence}`)];
    if (scrolled !== "SCROLL_NONE") frames.set(key, { ts: before?.ts ?? ts, states: [...(before?.states ?? []), state] });
  }
  const all = [...frames.values()];
  const times = all.map(({ ts }) => ts);
  const isDrawn = (states: readonly string[]) => states.some((state) => state.startsWith("STATE_PRESENTED"));
  return {
    seconds: (Math.max(...times) - Math.min(...times)) / 1_000_000,
    drawn: all.filter(({ states }) => isDrawn(states)).length,
    // Scrolled in time by the compositor, while what the page itself changed came a frame later.
    partial: all.filter(({ states }) => isDrawn(states) && !states.includes("STATE_PRESENTED_ALL")).length,
    dropped: all.filter(({ states }) => !isDrawn(states) && states.includes("STATE_DROPPED")).length,
  };
}

/** The same over plain paragraphs: what this machine drops by itself. */
async function plainScrolling(world: BrowserWorld): Promise<Figures["scrolling"]> {
  const { page, context } = await world.tab();
  const body = `<!doctype html><div class="scroll" style="height:100vh;overflow:auto">${"<p>Plain words in a plain paragraph.</p>".repeat(2_000)}</div>`;
  await page.route("**/bench-plain", (route) => route.fulfill({ contentType: "text/html", body }));
  await page.goto(`${world.origin}/bench-plain`);
  const figures = await scrolling(page, await context.newCDPSession(page));
  await context.close();
  return figures;
}

/** How far is scrolled, in pixels. */
const PIXELS = 12_000;

const world = await BrowserWorld.start(true, { settings: { CONFIDANT_WEB__PAGE_FOLDER: join(WEB, "dist") } });
try {
  const { page, context } = await world.tab();
  page.setDefaultTimeout(300_000);
  await settle(page, world);
  await page.goto(`${world.origin}/#/`);
  await page.locator(".chat", { hasText: "Long" }).click();
  await page.locator("article").last().waitFor();
  // All of it is there: the last ones are drawn, and a line says how many are before.
  await page.locator(".earlier", { hasText: new RegExp(`\\b${(MESSAGES - 30).toLocaleString("en")}\\b`) }).waitFor();
  const address = page.url();
  const figures: Figures = {
    machine: `${cpus().length} cores, ${cpus()[0]?.model ?? "unknown"}, load average ${loadavg()[0]?.toFixed(1)}`,
    browser: `Chromium ${world.browser.version()}, headless, no GPU`,
    messages: MESSAGES,
    bytes: await bytes(),
    argon2: await argon2(world),
    unlock: await unlocking(page, address),
    open: await opening(page, new URL(address).hash),
    streaming: await streaming(page, world),
    scrolling: await scrolling(page, await context.newCDPSession(page)),
    plain: await plainScrolling(world),
  };
  process.stdout.write(`${JSON.stringify(figures, null, 2)}\n`);
  await writeFile(process.env["OUT"] ?? "PAGE.md", markdown(figures));
} finally {
  await world.stop();
}
