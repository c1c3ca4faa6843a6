// What a server asks for in the middle of an answer, in a real browser against the real program: shown before it goes, given, denied, left
// until its time is over; a tab that is locked, a turn that is stopped, a server that is gone. In every case: what left the page.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Page } from "playwright-core";
import { atEachSize, fits, lock, logIn, newChat as begin, PASSWORD, showList, tryNow, unlock } from "./steps";
import { BrowserWorld, Tab } from "./world";

atEachSize((size, other) => {
  let world: BrowserWorld;
  let tab: Tab;
  let page: Page;
  const shot = (name: string) => tab.shot(`${name}-${size.name}`);
  const SECONDS = 15;

  before(async () => {
    world = await BrowserWorld.start(true, { isFilling: true, settings: { CONFIDANT_WEB__ASK_DEVICE_SECONDS: String(SECONDS) } });
    world.model.forms.set("prepare_turn", (material) => ({
      language_code: "en",
      harm: {},
      title: "A question",
      tags: material.includes("want similar") ? ["tides"] : [],
      relevant_app_settings_and_memories: material.includes("want memories") ? ["home_town", "shoe_size"] : [],
    }));
    world.model.forms.set("enrich_turn", (material) => ({ chat_summary: material.includes("ebb") ? "CANARY-EBB: about tides at the harbour" : "Nothing much" }));
    tab = await world.registered("asker", PASSWORD, size.options);
    page = tab.page;
  });

  after(async () => {
    await world?.stop();
  });

  const card = (on: Page = page) => on.locator("section.wish");
  const gone = (canary: string) => tab.sent.some((frame) => frame.includes(canary));
  const given = () => tab.sent.filter((frame) => frame.includes('"client_data"'));

  async function ask(text: string, on: Page = page): Promise<void> {
    await on.fill("#composer", text);
    await on.press("#composer", "Enter");
  }

  async function answered(text: string, on: Page = page): Promise<void> {
    await on.locator("article.answer:not(.live)", { hasText: text }).last().waitFor();
    await on.locator("article.answer:not(.live)", { hasText: text }).last().locator(".status.good").waitFor();
  }

  async function newChat(): Promise<void> {
    await begin(page);
    tab.sent.length = 0;
  }

  async function remember(name: string, body: string): Promise<void> {
    await page.goto(`${world.origin}/#/settings/memories`);
    await page.getByLabel("Name", { exact: true }).fill(name);
    await page.getByLabel("What to remember").fill(body);
    await page.getByRole("button", { name: "Add a memory" }).click();
    await page.locator(".memory", { hasText: name }).waitFor();
  }

  test("what would go is shown before it goes; one piece is left out, and the sealed answer notes the other", async () => {
    await remember("home_town", "CANARY-CORK");
    await remember("shoe_size", "CANARY-43");
    await newChat();
    await ask("want memories one");
    await card().waitFor();
    await card().getByText("CANARY-CORK").waitFor();
    assert.ok(!gone("CANARY-"), "nothing went before the person's word");
    assert.match((await card().getByRole("timer").textContent()) ?? "", /second/, "the time that is left is shown");
    assert.match(await page.title(), /^●/, "a hidden tab says that somebody waits");
    await shot("wish");
    await fits(page);
    await card().getByLabel("CANARY-43").uncheck();
    await card().getByRole("button", { name: "Give 1" }).click();
    await answered("noted: want memories one");
    assert.equal(given().length, 1);
    assert.ok(gone("CANARY-CORK") && !gone("CANARY-43"));
    assert.ok(world.model.last.includes("CANARY-CORK") && !world.model.last.includes("CANARY-43"), "the model saw what was given");
    await page.getByRole("button", { name: "What the server saw" }).click();
    await page.getByText("While it answered, this device gave it: memories (11 bytes).").waitFor();
    await page.getByText("It was told the names of 2 memories.").waitFor();
    await shot("wish-saw");
    assert.doesNotMatch(await page.title(), /●/);
  });

  test("denied, nothing goes", async () => {
    await newChat();
    await ask("want memories two");
    await card().getByRole("button", { name: "Give nothing" }).click();
    await answered("noted: want memories two");
    assert.ok(!gone("CANARY-"));
    assert.equal(given().length, 1, "that it gets nothing is said");
  });

  test("another browser of the account is not asked, and sees the answer", async () => {
    const second = await world.tab(other.options);
    await logIn(world, second, "asker");
    await second.page.getByText("What is on your mind?").waitFor();
    await newChat();
    await ask("want memories three");
    await card().waitFor();
    await showList(second.page);
    await second.page.locator("a.chat").first().click();
    await second.page.locator("article.said", { hasText: "want memories three" }).waitFor();
    assert.equal(await card(second.page).count(), 0);
    await card().getByRole("button", { name: "Give nothing" }).click();
    await answered("noted: want memories three");
    await second.page.locator("article.answer", { hasText: "noted: want memories three" }).waitFor();
    assert.ok(!second.sent.some((frame) => frame.includes("client_data")));
    await ask("want memories four", second.page);
    await card(second.page).waitFor();
    await second.shot(`wish-second-${other.name}`);
    await card(second.page).getByRole("button", { name: "Give nothing" }).click();
    await answered("noted: want memories four", second.page);
    await second.close();
  });

  test("stopped meanwhile: the card goes, and nothing went", async () => {
    await newChat();
    await ask("want memories five");
    await card().waitFor();
    await page.locator("article.live").getByRole("button", { name: "Stop" }).click();
    await card().waitFor({ state: "detached" });
    assert.deepEqual([given(), gone("CANARY-")], [[], false]);
    const unanswered = page.getByRole("button", { name: "Do not wait" });
    await unanswered.waitFor();
    await unanswered.click();
    await unanswered.waitFor({ state: "detached" });
  });

  test("the server is gone meanwhile: the card goes, nothing went, and the answer comes once it is back", async () => {
    await newChat();
    await ask("want memories six");
    await card().waitFor();
    world.reach(false);
    await card().waitFor({ state: "detached" });
    world.reach(true);
    await tryNow(page);
    await answered("noted: want memories six");
    assert.deepEqual([given(), gone("CANARY-")], [[], false]);
    tab.forgive();
  });

  test("locked meanwhile: nothing is shown and nothing went; the answer is there afterwards", async () => {
    await newChat();
    await ask("want memories seven");
    await card().waitFor();
    await lock(page);
    assert.equal(await page.getByText("CANARY-").count(), 0);
    assert.equal(await page.title(), "Confidant");
    await unlock(page);
    await answered("noted: want memories seven");
    assert.deepEqual([given(), gone("CANARY-")], [[], false]);
  });

  test("another tab takes over meanwhile: neither gives anything, and the answer is there", async () => {
    await newChat();
    await ask("want memories taken over");
    await card().waitFor();
    const second = new Tab(await tab.context.newPage(), tab.context);
    await second.page.goto(page.url());
    await second.page.getByRole("button", { name: "Use it here" }).click();
    await unlock(second.page);
    await page.getByText("Open in another tab").waitFor();
    assert.equal(await card().count(), 0);
    await answered("noted: want memories taken over", second.page);
    assert.equal(await card(second.page).count(), 0);
    assert.ok(![...tab.sent, ...second.sent].some((frame) => frame.includes("CANARY-") || frame.includes('"client_data"')));
    await page.getByRole("button", { name: "Use it here" }).click();
    await unlock(page);
    await page.locator("#composer").waitFor();
    await second.page.close();
    assert.deepEqual(second.problems, []);
  });

  test("without a word it goes on after its time", async () => {
    await newChat();
    await ask("want memories eight");
    await card().waitFor();
    await page.locator("article.answer:not(.live)", { hasText: "noted: want memories eight" }).waitFor({ timeout: (SECONDS + 20) * 1000 });
    assert.equal(await card().count(), 0);
    assert.deepEqual([given(), gone("CANARY-")], [[], false]);
  });

  test("similar chats and a search are shown before they go; a switch of the chat gives without asking, and is off at first", async () => {
    await newChat();
    await ask("the ebb is at six");
    await answered("noted: the ebb is at six");
    await page.waitForFunction(() => document.querySelector(".chat small")?.textContent?.includes("CANARY-EBB"));
    await newChat();
    await ask("want similar");
    await card().getByText("CANARY-EBB").waitFor();
    assert.ok(!gone("CANARY-EBB"));
    await shot("wish-similar");
    await card().getByRole("button", { name: "Give 1" }).click();
    await answered("noted: want similar");
    assert.ok(gone("CANARY-EBB"));
    tab.sent.length = 0;
    await ask('call search {"query":"ebb"}');
    await card().getByText("noted: the ebb is at six").waitFor();
    assert.deepEqual(given(), []);
    await card().getByLabel("In this chat, give search results without asking from now on").check();
    await card().getByRole("button", { name: /^Give [0-9]/ }).click();
    await answered("the ebb is at six");
    tab.sent.length = 0;
    await ask('call search {"query":"six"}');
    await page.locator(".steps", { hasText: "Given without asking" }).or(page.locator("article.answer:not(.live)").nth(2)).first().waitFor();
    await page.locator("article.answer:not(.live)").nth(2).waitFor();
    assert.equal(given().length, 1);
    assert.equal(await card().count(), 0);
    await page.getByRole("button", { name: /goes along|go along|nothing else is sent/ }).click();
    await page.getByRole("switch", { name: "search results" }).and(page.locator("[aria-checked=true]")).waitFor();
    await page.getByRole("switch", { name: "memories" }).and(page.locator("[aria-checked=false]")).waitFor();
    await shot("give");
  });

  test("switched off: it is in no request, not even by name", async () => {
    await page.goto(`${world.origin}/#/settings/privacy`);
    for (const name of ["Offer memories by name", "Past chats", "Search in your chats"]) await page.getByRole("switch", { name }).click();
    await newChat();
    await ask("want memories and want similar");
    await answered("noted: want memories and want similar");
    const asked = JSON.parse(tab.sent.find((frame) => frame.includes('"chat_message_added"')) ?? "{}") as { event: Record<string, unknown> };
    assert.deepEqual([asked.event["asks"], asked.event["available"], asked.event["given"]], [[], [], []]);
    assert.deepEqual(asked.event["off"], ["settings", "similar", "search"]);
    assert.ok(!gone("CANARY-") && !gone("home_town") && given().length === 0);
    await page.getByRole("button", { name: "What the server saw" }).click();
    await page.getByText("Switched off: settings, similar, search.").waitFor();
  });

  test("nothing went wrong in the console on the way", async () => {
    await tab.close();
  });
});
