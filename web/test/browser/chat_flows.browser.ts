// What a person does in a chat that other tests do not: a message deleted, a chat unpinned and saved as JSON, older chats loaded, an answer that
// was cut, the keys of the list; and what is still known about an answer after a reload, and on another device.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { after, before, test } from "node:test";
import type { Page } from "playwright-core";
import { answered, ask, atEachSize, chatCalled, firstChat, hideList, logIn, more, newChat, openChat, PASSWORD, register, showList, stored, unlock } from "./steps";
import { BrowserWorld, type Tab } from "./world";

atEachSize((size, opposite) => {
  let world: BrowserWorld;
  let tab: Tab;
  let page: Page;

  before(async () => {
    world = await BrowserWorld.start(true, { isFilling: true });
    world.model.forms.set("prepare_turn", (material) => ({ language_code: "en", harm: { direct_self_harm: material.includes("dark thought") ? 9 : 0 }, title: "A question" }));
    tab = await world.tab(size.options);
    page = tab.page;
    await register(world, tab, "writer", world.server?.firstCode ?? "");
  });

  after(async () => {
    await world?.stop();
  });

  test("what is known about an answer outlives a reload; another device says that it was received elsewhere", async () => {
    await ask(page, "what do you see?");
    await answered(page, "noted: what do you see?");
    await stored(page);
    await page.getByRole("button", { name: "What the server saw" }).click();
    const before = (await page.locator(".saw").textContent()) ?? "";
    assert.match(before, /It keeps a sealed copy for a day/);
    await page.reload();
    await unlock(page);
    await page.locator("article.answer", { hasText: "noted: what do you see?" }).waitFor();
    await page.getByRole("button", { name: "What the server saw" }).click();
    assert.equal(await page.locator(".saw").textContent(), before);
    const other = await world.tab(opposite.options);
    await logIn(world, other, "writer");
    await firstChat(other.page);
    await other.page.locator("article.answer", { hasText: "noted: what do you see?" }).waitFor();
    await other.page.getByRole("button", { name: "What the server saw" }).click();
    await other.page.getByText("Only the device that received the answer keeps more about it").waitFor();
    await other.shot(`saw-elsewhere-${opposite.name}`);
    await other.close();
  });

  test("that a request was declined, with where help is, outlives a reload and is seen on another device", async () => {
    await newChat(page);
    await ask(page, "a dark thought");
    await page.locator("article.answer.declined .status.good").waitFor();
    await stored(page);
    const other = await world.tab(opposite.options);
    await page.reload();
    await unlock(page);
    await logIn(world, other, "writer");
    await firstChat(other.page);
    for (const on of [page, other.page]) {
      await on.locator("article.answer.declined").getByText("This request was declined.").waitFor();
      await on.getByRole("complementary", { name: "You are not alone" }).first().waitFor();
    }
    await other.shot(`declined-elsewhere-${opposite.name}`);
    await other.close();
  });

  test("an answer that was cut says so, also after a reload", async () => {
    await newChat(page);
    world.model.answers.set("a very long one", Array.from({ length: 6 }, () => "long words ".repeat(4_000)));
    await ask(page, "a very long one");
    await page.getByText("The answer was too long and was cut here.").first().waitFor({ timeout: 120_000 });
    await stored(page);
    await page.reload();
    await unlock(page);
    await page.getByText("The answer was too long and was cut here.").first().waitFor();
  });

  test("a message is deleted after a question, and what follows it stays", async () => {
    await chatCalled(page, "Three words", "first");
    await ask(page, "second");
    await answered(page, "noted: second");
    const first = page.locator("article.said", { hasText: "first" });
    await first.hover();
    await first.getByRole("button", { name: "Delete the message" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
    await first.waitFor({ state: "detached" });
    await page.locator("article.answer", { hasText: "noted: first" }).waitFor();
    await stored(page);
    await page.reload();
    await unlock(page);
    await page.locator("article.answer", { hasText: "noted: second" }).waitFor();
    assert.equal(await page.locator("article.said", { hasText: "first" }).count(), 0);
  });

  test("a chat is pinned and unpinned, and saved as JSON", async () => {
    await more(page, "Pin");
    await showList(page);
    await page.getByRole("heading", { name: "Pinned" }).waitFor();
    await hideList(page);
    await more(page, "Unpin");
    await page.getByRole("heading", { name: "Pinned" }).waitFor({ state: "detached" });
    await page.getByRole("button", { name: "More for this chat" }).click();
    const [file] = await Promise.all([page.waitForEvent("download"), page.getByRole("menuitem", { name: "Save as JSON" }).click()]);
    const saved = JSON.parse(await readFile((await file.path()) ?? "", "utf8")) as { title: string; messages: { role: string; body: string; created_at: number }[] };
    assert.equal(saved.title, "Three words");
    assert.deepEqual(saved.messages.map(({ role, body }) => [role, body]), [["assistant", "noted: first"], ["user", "second"], ["assistant", "noted: second"]]);
    assert.ok(saved.messages.every(({ created_at: at }) => at > 1_700_000_000_000));
  });

  test("Alt with the arrows goes through the list", async () => {
    await chatCalled(page, "The upper one", "up here");
    await openChat(page, "Three words");
    await page.keyboard.press("Alt+ArrowUp");
    await page.locator("header.head h1", { hasText: "The upper one" }).waitFor();
    await page.keyboard.press("Alt+ArrowDown");
    await page.locator("header.head h1", { hasText: "Three words" }).waitFor();
  });

  test("chats of a file keep their dates; what cannot be read is said; a new device loads older chats when it is asked to", async () => {
    const many = Array.from({ length: 125 }, (_, n) => ({ name: `Imported ${n}`, chat_messages: [{ sender: "human", text: `words of ${n}`, created_at: "2025-03-01T10:00:00Z" }] }));
    await page.goto(`${world.origin}/#/settings/data`);
    await page.setInputFiles("input[type=file]", { name: "export.json", mimeType: "application/json", buffer: Buffer.from(JSON.stringify([...many, 7])) });
    await page.getByText("125 chats imported. 1 thing was left out: too large, unreadable, or there already.").waitFor({ timeout: 120_000 });
    await tab.shot(`imported-${size.name}`);
    await page.goto(`${world.origin}/#/`);
    await page.locator(".foot").getByText("in sync").waitFor({ state: "attached", timeout: 240_000 });
    await showList(page);
    await page.locator(".chat", { hasText: "Imported 7" }).first().click();
    await page.locator("article.said time", { hasText: "2025" }).waitFor();
    const other = await world.tab(opposite.options);
    await logIn(world, other, "writer", PASSWORD);
    await other.page.locator(".foot").getByText("in sync").waitFor({ state: "attached", timeout: 120_000 });
    await showList(other.page);
    const count = () => other.page.locator("a.chat").count();
    const before = await count();
    assert.ok(before >= 100 && before < 130, String(before));
    await other.page.getByRole("button", { name: "Load older chats" }).click();
    await other.page.waitForFunction((n) => document.querySelectorAll("a.chat").length > n, before);
    await other.page.getByRole("button", { name: "Load older chats" }).waitFor({ state: "detached" });
    assert.ok((await count()) > 125);
    await other.close();
    await tab.close();
  });
});
