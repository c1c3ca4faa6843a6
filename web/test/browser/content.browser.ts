// What a browser keeps and what it lets go, in a real browser against the real program: nothing readable at rest, long messages on demand,
// placeholders for words that went, embeds that are copied and come back.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Page } from "playwright-core";
import { BrowserWorld, type Tab } from "./world";
import { answered, ask, atEachSize, everythingKept, firstChat, listed, lock, newChat, openChat, register, rename, stored, tryNow, unlock } from "./steps";

atEachSize((size, opposite) => {
  let world: BrowserWorld;
  let tab: Tab;
  let page: Page;

  before(async () => {
    // What an answer asks this device for is shown elsewhere (asks.browser.ts): here it goes on without, at once.
    world = await BrowserWorld.start(true, { settings: { CONFIDANT_WEB__ASK_DEVICE_SECONDS: "1" } });
    tab = await world.tab(size.options);
    page = tab.page;
    await register(world, tab, "alice", world.server?.firstCode);
  });
  after(() => world?.stop());

  const CODE = "fn main() {\n    println!(\"CANARY-CODE\");\n}";
  const TABLE = "| what | much |\n| --- | ---: |\n| CANARY-TABLE | 2 |";
  const LONG = `CANARY-LONG begins.\n\n${"Some words that nobody reads twice. ".repeat(40)}\n\n\`\`\`rust\n${CODE}\n\`\`\`\n\n${"More of them, for a while. ".repeat(700)}\n\nCANARY-END of it.`;

  /** The worker's own commands, seen from outside: which were asked for. */
  async function watchWorker(on: Page): Promise<void> {
    await on.addInitScript(() => {
      const asked: string[] = [];
      Object.assign(globalThis, { asked });
      const post = Worker.prototype.postMessage;
      Worker.prototype.postMessage = function (this: Worker, ...args: unknown[]) {
        const [message] = args as [{ name?: string }];
        if (message?.name !== undefined) asked.push(message.name);
        return (post as (...all: unknown[]) => void).apply(this, args);
      } as typeof post;
    });
  }

  test("nothing readable is at rest: every record of every database is sealed", async () => {
    world.model.answers.set("CANARY-QUESTION", ["CANARY-ANSWER ", "with `CANARY-SPAN`\n\n", "```js\n", "'CANARY-BLOCK'\n", "```\n"]);
    await ask(page, "CANARY-QUESTION");
    await answered(page, "CANARY-ANSWER");
    await page.fill("#composer", "CANARY-DRAFT");
    await page.waitForTimeout(3_000);
    await stored(page);
    let kept = await everythingKept(page);
    // The words for search are kept a moment later.
    for (let tries = 0; tries < 240 && !kept.includes("words-chat_"); tries++) {
      await page.waitForTimeout(250);
      kept = await everythingKept(page);
    }
    assert.ok(kept.includes("words-chat_") && kept.includes("room-chat_") && kept.includes("state"), "there are files");
    assert.doesNotMatch(kept, /CANARY|confidant-session|"ak"/);
    await lock(page);
    assert.doesNotMatch(await everythingKept(page), /CANARY|confidant-session|"ak"/, "nor while it is locked");
    await unlock(page);
    await firstChat(page);
    await answered(page, "CANARY-ANSWER");
    await page.waitForFunction(() => (document.getElementById("composer") as HTMLTextAreaElement | null)?.value === "CANARY-DRAFT");
    await page.fill("#composer", "");
  });

  test("while an answer streams, nothing of it is written; at its end it is, once", async () => {
    world.model.answers.set("Stream slowly", ["CANARY-STREAM one ", "two ", "three"]);
    world.model.hold();
    await newChat(page);
    await ask(page, "Stream slowly");
    await page.locator("article.live", { hasText: "CANARY-STREAM" }).waitFor();
    const during = await everythingKept(page);
    await page.waitForTimeout(1_000);
    assert.equal(await everythingKept(page), during, "no file changes while words come");
    world.model.letGo();
    await answered(page, "one two three");
    await stored(page);
    const afterwards = await everythingKept(page);
    assert.notEqual(afterwards, during);
    assert.doesNotMatch(afterwards, /CANARY/);
  });

  test("a long message is shown short; the whole is loaded, opened and parsed when it is asked for", async () => {
    const other = await world.tab(opposite.options);
    await watchWorker(other.page);
    await newChat(page);
    world.model.answers.set("CANARY-END of it.", ["noted"]);
    await ask(page, LONG);
    await answered(page, "noted");
    await stored(page);
    await other.page.goto(world.origin);
    await other.page.getByLabel("Login").fill("alice");
    await other.page.getByLabel("Password", { exact: true }).fill("correct horse battery staple");
    await other.page.getByRole("button", { name: "Log in", exact: true }).click();
    await firstChat(other.page);
    const said = other.page.locator("article.said").first();
    await said.getByText("CANARY-LONG begins.").waitFor();
    assert.equal(await other.page.getByText("CANARY-END of it.").count(), 0);
    const height = (await said.boundingBox())?.height ?? 0;
    assert.ok(height < opposite.options.viewport.height, `${height} pixels of a screen`);
    await other.shot(`content-shortened-${opposite.name}`);
    const asked = () => other.page.evaluate(() => (globalThis as unknown as { asked: string[] }).asked.filter((name) => name === "body").length);
    assert.equal(await asked(), 0, "the whole is not asked for before");
    await said.getByRole("button", { name: "Click to show full message" }).click();
    await other.page.getByText("CANARY-END of it.").waitFor();
    assert.equal(await asked(), 1);
    await said.getByText("CANARY-CODE").waitFor();
    await said.getByRole("button", { name: "Show less" }).click();
    assert.equal(await other.page.getByText("CANARY-END of it.").count(), 0);
    // What is edited and copied is the whole, too.
    await said.hover();
    await said.getByRole("button", { name: "Edit and send again" }).click();
    assert.equal(await other.page.getByRole("textbox", { name: "Edit and send again" }).inputValue(), LONG);
    await other.close();
  });

  test("embeds are copied as what they are, and pasting them gives the same content", async () => {
    await tab.context.grantPermissions(["clipboard-read", "clipboard-write"]);
    world.model.answers.set("Show me embeds", ["```rust\n", CODE, "\n```\n\n", TABLE, "\n\nhttps://example.org/canary\n\n", "words ".repeat(900)]);
    await newChat(page);
    await ask(page, "Show me embeds");
    await answered(page, "Long text");
    await page.evaluate(() => {
      const seen: string[] = [];
      Object.assign(globalThis, { seen });
      document.getElementById("composer")?.addEventListener("paste", (event) => seen.push(event.clipboardData?.getData("application/x-openmates-embed+json") ?? ""), { capture: true });
    });
    const pasted = async (button: string, index = 0) => {
      await page.locator("article.answer").last().getByRole("button", { name: button }).nth(index).click();
      await page.fill("#composer", "");
      await page.focus("#composer");
      await page.keyboard.press("Control+v");
      return page.inputValue("#composer");
    };
    assert.equal(await pasted("Copy the code"), `\`\`\`rust\n${CODE}\n\`\`\`\n`);
    assert.equal(await pasted("Copy the table"), TABLE);
    assert.equal(await pasted("Copy the link"), "https://example.org/canary");
    assert.match(await pasted("Copy", 3), /^(words ){800}/);
    const json = await page.evaluate(() => (globalThis as unknown as { seen: string[] }).seen.map((text) => JSON.parse(text) as Record<string, unknown>));
    assert.deepEqual(json.map(({ type }) => type), ["code", "table", "link", "paste"]);
    assert.equal(json[0]?.["inlineContent"], CODE);
    // What was pasted is sent, and is the same embed again.
    await page.fill("#composer", "");
    await pasted("Copy the code");
    await page.press("#composer", "Enter");
    await page.locator("article.said figure.code", { hasText: "CANARY-CODE" }).waitFor();
    await page.locator("article.answer .status.good").last().waitFor();
  });

  // How Chromium counts: it asks for the quota when a page first writes, and hands out what was left then, without asking again until that is
  // used up or half a minute has passed. A limit that is set later is felt late, or not at all: so this tab has its limit before it has the
  // page. The limit goes with the session that set it, which therefore stays open.
  const LIMIT = 200_000;
  const filler = `CANARY-LARGE ${"some words that take room, ".repeat(1_000)}`;
  const large = (n: number) => `${filler}\n\nQuestion ${n}`;
  let narrow: Tab;

  async function typedIs(on: Page, text: string): Promise<void> {
    await on.waitForFunction((want) => (document.getElementById("composer") as HTMLTextAreaElement | null)?.value === want, text);
  }

  test("without room, words of other chats go before titles and drafts; places stand for them, and they load again", async () => {
    // Without the page's own copy, which takes room too, whenever it comes.
    narrow = await world.tab({ ...size.options, serviceWorkers: "block" });
    const limits = await narrow.context.newCDPSession(narrow.page);
    await limits.send("Storage.overrideQuotaForOrigin", { origin: world.origin, quotaSize: LIMIT });
    const { page: here } = narrow;
    await register(world, narrow, "bob");
    for (const n of [1, 2, 3, 4]) {
      await newChat(here);
      await ask(here, large(n));
      await answered(here, `noted: Question ${n}`);
      await rename(here, `Large ${n}`);
      if (n > 2) continue;
      await here.fill("#composer", `draft of ${n}`);
      await here.waitForTimeout(2_500);
    }
    await stored(here);
    const { usage = 0 } = await here.evaluate(() => navigator.storage.estimate());
    assert.ok(usage > 0 && usage <= LIMIT, `${usage} bytes are kept of four times ${filler.length}`);
    assert.equal(await here.getByText("The browser has no room left.").count(), 0, "there was room for what is not to be missed");
    // What the browser kept is what it has after a reload. Without a server: nothing is loaded.
    await here.reload();
    await unlock(here);
    await stored(here);
    world.reach(false);
    await here.getByText("The server cannot be reached.").waitFor();
    for (const n of [1, 2, 3, 4]) await listed(here, `Large ${n}`);
    await openChat(here, "Large 4");
    await answered(here, "noted: Question 4");
    assert.equal(await here.locator("article .embed.missing").count(), 0, "the newest chat is whole");
    await openChat(here, "Large 1");
    await here.locator("article .embed.missing").first().waitFor();
    assert.equal(await here.getByText("CANARY-LARGE").count() <= 1, true, "at most the first words");
    await typedIs(here, "draft of 1");
    await narrow.shot(`content-places-${size.name}`);
    await here.locator("article .embed.missing").first().click();
    await here.getByText("The server cannot be reached. What you wrote is kept.").waitFor();
    world.reach(true);
    await tryNow(here);
    await stored(here);
    await here.locator("article .embed.missing").first().click();
    await here.waitForFunction(() => document.querySelector("article .embed.missing") === null);
    await answered(here, "noted: Question 1");
    assert.doesNotMatch(await everythingKept(here), /CANARY|some words that take room/);
    narrow.forgive();
  });

  test("not even room for what is unsent: the page says so, goes on, and all of it arrives", async () => {
    const { page: here } = narrow;
    await openChat(here, "Large 4");
    await answered(here, "noted: Question 4");
    world.reach(false);
    await here.getByText("The server cannot be reached.").first().waitFor();
    const banner = here.getByText("The browser has no room left.");
    // What waits to be sent is on this device only: it never goes to make room.
    let last = 10;
    for (; last < 20 && !(await banner.isVisible()); last += 1) {
      await ask(here, large(last));
      await here.locator("article.said").nth(last - 9).waitFor();
    }
    await banner.waitFor();
    await narrow.shot(`content-no-room-${size.name}`);
    for (const n of [1, 2, 3, 4]) assert.equal(await here.locator(".chat .title", { hasText: `Large ${n}` }).count(), 1);
    world.reach(true);
    await tryNow(here);
    await answered(here, `noted: Question ${last - 1}`);
    await stored(here);
    await here.reload();
    await unlock(here);
    await stored(here);
    await openChat(here, "Large 4");
    // Each question stands behind the one before it, whose answer is another branch.
    await answered(here, `noted: Question ${last - 1}`);
    assert.equal(await here.locator("article.said").count(), 1 + last - 10, "every question is there");
    const asked = JSON.stringify(world.model.prompts);
    for (let n = 10; n < last; n += 1) assert.ok(asked.includes(`Question ${n}`), `question ${n} was asked`);
    await openChat(here, "Large 2");
    await typedIs(here, "draft of 2");
    narrow.forgive();
    await narrow.close();
  });

  test("nothing went wrong in the console on the way", () => tab.close());
});
