// Two browsers and the program's own command line on one account. Whatever they do, and whoever is offline meanwhile: in the end all three
// show the same chats and the same words, and what lost is kept as a copy.
//
//   CONVERGE_SEED    another run than the usual one
//   CONVERGE_STEPS   how many things are done, 24 without it
// About the protocol and not about layout: run once.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Page } from "playwright-core";
import { Dice } from "../world/dice";
import type { Line, RustDevice } from "../world/server";
import { answered, ask, chatCalled, logIn, openChat, register, rename, stored, tryNow } from "./steps";
import { BrowserWorld, type Tab } from "./world";

let world: BrowserWorld;
let tabs: [Tab, Tab];
let rust: RustDevice;

before(async () => {
  world = await BrowserWorld.start(true, { doors: 2 });
  tabs = [await world.tab(), await world.tab()];
  const code = await register(world, tabs[0], "alice", world.server?.firstCode);
  await chatCalled(tabs[0].page, "Ours", "said first");
  await logIn(world, tabs[1], "alice", undefined, 1);
  await openChat(tabs[1].page, "Ours");
  const server = world.server;
  assert.ok(server !== null);
  rust = server.rust("alice", code);
});
after(() => world?.stop());

/** Nothing waits any more: stored, or lost against another device and kept as a copy. */
async function settled(page: Page): Promise<void> {
  await page.locator(".foot").getByText(/in sync|conflicted cop/).waitFor();
}

async function goOffline(at: 0 | 1): Promise<void> {
  world.reach(false, at);
  await tabs[at].page.getByText("The server cannot be reached.").waitFor();
}

async function goOnline(at: 0 | 1): Promise<void> {
  world.reach(true, at);
  await tryNow(tabs[at].page);
  await settled(tabs[at].page);
}

test("live: what one browser writes, the other and the command line read, and the other way round", async () => {
  const [one, two] = [tabs[0].page, tabs[1].page];
  await openChat(one, "Ours");
  await ask(two, "from the second browser");
  await answered(one, "noted: from the second browser");
  const [line] = await rust.do("/list");
  const chat = String(line?.["chat"]);
  await rust.do(`/open ${chat}`, "/rename Ours together");
  for (const page of [one, two]) await page.locator("header.head h1", { hasText: "Ours together" }).waitFor();
  assert.deepEqual(await rust.read(chat), ["said first", "noted: said first", "from the second browser", "noted: from the second browser"]);
});

test("a draft and a title that two browsers wrote offline: one is shown, the other is a copy, and nothing is thrown away unseen", async () => {
  const [one, two] = [tabs[0].page, tabs[1].page];
  await goOffline(0);
  await goOffline(1);
  // Twice, and as long: what is shown follows all the same.
  await rename(one, "Named by 1st");
  await rename(one, "Named by one");
  await rename(two, "Named by two");
  await one.fill("#composer", "draft of one");
  await two.fill("#composer", "draft of two");
  for (const page of [one, two]) await page.waitForTimeout(3_000);
  await goOnline(0);
  await stored(one);
  await goOnline(1);
  await two.locator(".foot a", { hasText: "conflicted cop" }).click();
  await two.getByText("Named by two").first().waitFor();
  await two.getByText("draft of two").first().waitFor();
  await tabs[1].shot("converge-copies");
  const copy = two.locator(".card", { hasText: "Named by two" });
  await copy.getByText("Another device changed it first.").waitFor();
  await copy.getByRole("button", { name: "Use mine" }).click();
  await one.locator("header.head h1", { hasText: "Named by two" }).waitFor();
  await two.locator(".card", { hasText: "draft of two" }).getByRole("button", { name: "Throw mine away" }).click();
  await two.getByText("None.").waitFor();
  await openChat(two, "Named by two");
  await two.waitForFunction(() => (document.getElementById("composer") as HTMLTextAreaElement | null)?.value === "draft of one");
  for (const page of [one, two]) await stored(page);
  for (const tab of tabs) tab.forgive();
});

/** What a browser shows: each chat's title, words and draft, by its address. */
async function shown(page: Page): Promise<Map<string, { title: string; words: string[]; draft: string }>> {
  const lines = await page.locator("nav .chat").evaluateAll((all) => all.map((one) => [one.getAttribute("href") ?? "", one.querySelector(".title")?.textContent ?? ""] as const));
  const chats = new Map<string, { title: string; words: string[]; draft: string }>();
  for (const [href, title] of lines) {
    await page.evaluate((hash) => {
      location.hash = hash;
    }, href);
    await page.locator(`nav .chat[href="${href}"][aria-current=page]`).waitFor();
    await page.waitForFunction((want) => document.querySelector("header.head h1")?.textContent === want && document.querySelector("article.live") === null, title);
    const words = (await page.locator("article .words").allTextContents()).map((text) => text.trim());
    chats.set(href.slice(2), { title, words, draft: await page.inputValue("#composer") });
  }
  return new Map([...chats].sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** A run: who does what is thrown, what is done is written down. */
class Run {
  readonly log: string[] = [];
  readonly #dice: Dice;
  readonly #isOffline: [boolean, boolean] = [false, false];
  #words = 0;

  constructor(readonly seed: number) {
    this.#dice = new Dice(seed);
  }

  async step(): Promise<void> {
    const who = this.#dice.below(5);
    if (who === 4) return this.#rust();
    const at = (who % 2) as 0 | 1;
    if (this.#dice.oneIn(5)) return this.#weather(at);
    const { page } = tabs[at];
    const word = `word-${(this.#words += 1)}`;
    const lines = page.locator("nav .chat");
    const count = await lines.count();
    const act = count === 0 ? 0 : this.#dice.below(8);
    this.log.push(`${at}${this.#isOffline[at] ? " offline" : ""}: ${["new", "delete", "rename", "rename", "draft", "draft", "ask", "ask"][act]} ${word}`);
    if (act === 0) {
      await page.getByRole("button", { name: "New chat" }).click();
      await page.getByText("What is on your mind?").waitFor();
      await ask(page, word);
      await page.locator("article.said", { hasText: word }).waitFor();
      return;
    }
    await lines.nth(this.#dice.below(count)).click();
    await page.locator("article").first().waitFor();
    if (act === 1) {
      await page.getByRole("button", { name: "More for this chat" }).click();
      await page.getByRole("menuitem", { name: "Delete" }).click();
      await page.getByText("What is on your mind?").waitFor();
    } else if (act < 4) await rename(page, word);
    else if (act < 6) {
      await page.fill("#composer", word);
      await page.waitForTimeout(2_500);
    } else {
      await ask(page, word);
      await page.locator("article.said", { hasText: word }).waitFor();
    }
  }

  async #weather(at: 0 | 1): Promise<void> {
    this.log.push(`${at}: ${this.#isOffline[at] ? "back" : "away"}`);
    if (this.#isOffline[at]) await goOnline(at);
    else await goOffline(at);
    this.#isOffline[at] = !this.#isOffline[at];
  }

  /** The command line is online whenever it runs: it syncs, does something and sends it. */
  async #rust(): Promise<void> {
    const word = `word-${(this.#words += 1)}`;
    const line = this.#dice.pick(await rust.do("/list"));
    const act = line === undefined ? 0 : this.#dice.below(4);
    this.log.push(`command line: ${["new", "says", "renames", "draft"][act]} ${word}`);
    const open = `/open ${String(line?.["chat"])}`;
    if (act === 0) await rust.do(`/new ${word}`, `in ${word}`);
    else if (act === 1) await rust.do(open, word);
    else await rust.do(open, act === 2 ? `/rename ${word}` : `/draft ${word}`);
  }

  /** Everybody is back, and nothing is on its way. */
  async end(): Promise<void> {
    for (const at of [0, 1] as const) if (this.#isOffline[at]) await this.#weather(at);
    // A deletion can be undone for a while, and drafts are sent every five seconds.
    await tabs[0].page.waitForTimeout(15_000);
    for (const { page } of tabs) await settled(page);
  }
}

test("any order of messages, titles, drafts, deletions and silence ends in the same chats everywhere", async () => {
  const run = new Run(Number(process.env["CONVERGE_SEED"] ?? 20_261_118));
  const steps = Number(process.env["CONVERGE_STEPS"] ?? 24);
  try {
    for (let step = 0; step < steps; step++) await run.step();
    await run.end();
    const deadline = Date.now() + 120_000;
    let [one, two] = [await shown(tabs[0].page), await shown(tabs[1].page)];
    while (JSON.stringify([...one]) !== JSON.stringify([...two]) && Date.now() < deadline) {
      [one, two] = [await shown(tabs[0].page), await shown(tabs[1].page)];
    }
    assert.deepEqual(one, two, "the browsers show different chats");
    assert.ok(one.size > 0, "nothing is left to compare");
    const lines = await rust.do("/sync", "/list");
    const text = (line: Line, name: string) => (typeof line[name] === "string" ? String(line[name]) : "");
    const listed = new Map(lines.map((line) => [String(line["chat"]), { title: text(line, "title") || "Untitled chat", draft: text(line, "draft") }]));
    assert.deepEqual(new Map([...listed].sort(([a], [b]) => (a < b ? -1 : 1))), new Map([...one].map(([id, { title, draft }]) => [id, { title, draft }])), "the command line lists others");
    for (const [id, { words }] of one) assert.deepEqual(await rust.read(id), words, `the command line reads something else in ${id}`);
  } catch (error) {
    for (const [at, tab] of tabs.entries()) await tab.shot(`converge-failed-${at}`);
    throw new Error(`seed ${run.seed}:\n${run.log.join("\n")}\n${error instanceof Error ? error.message : String(error)}`, { cause: error });
  }
  for (const tab of tabs) tab.forgive();
});

test("nothing else went wrong in the console on the way", async () => {
  for (const tab of tabs) await tab.close();
});
