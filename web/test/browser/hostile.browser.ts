// A hostile corpus in a real browser: in messages, titles, summaries, tags, suggestions, names of models and arguments of tools. Nothing of it
// runs, asks for anything elsewhere, hides, or turns text round; and the page goes on.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Page } from "playwright-core";
import { logIn as logInDevice } from "../../src/client/account";
import { newChat, rename, setData, setField, write } from "../../src/client/chats";
import { disconnect } from "../../src/client/device";
import { MemoryFiles } from "../../src/client/files";
import { flush } from "../../src/client/send";
import { sync } from "../../src/client/sync";
import { RecoveryCode } from "../../src/format/index";
import { DISGUISED, HIDDEN, HOSTILE, HUGE } from "../world/hostile";
import { program } from "../world/ways";
import { chatId } from "./double";
import { register, stored } from "./steps";
import { BrowserWorld, PHONE, type Tab } from "./world";

let world: BrowserWorld;

before(async () => {
  world = await BrowserWorld.start(true);
});
after(() => world?.stop());

/** What a tab asked for elsewhere, and windows that it opened. */
function watch({ page, context }: Tab): string[] {
  const seen: string[] = [];
  context.on("request", (request) => {
    if (!request.url().startsWith(world.origin)) seen.push(request.url());
  });
  context.on("page", (opened) => seen.push(`window ${opened.url()}`));
  page.on("dialog", (dialog) => {
    seen.push(`dialog ${dialog.message()}`);
    void dialog.dismiss();
  });
  return seen;
}

/** What there is in the document that must not be. */
async function findings(page: Page): Promise<string[]> {
  return page.evaluate(() => {
    const found: string[] = [];
    for (const element of document.querySelectorAll("*")) {
      const tag = element.tagName.toLowerCase();
      const isOwnScript = tag === "script" && /^\/(demo\/)?app\.js(\?b=[0-9a-z]+)?$/.test(element.getAttribute("src") ?? "");
      const isOwnStyle = tag === "link" && element.closest("head") !== null;
      if (["script", "img", "iframe", "object", "embed", "base", "style", "link", "video", "audio", "source", "template", "math"].includes(tag) && !isOwnScript && !isOwnStyle) found.push(`<${tag}>`);
      for (const { name, value } of element.attributes) {
        if (name.startsWith("on") || name === "srcdoc" || (name === "style" && value !== "" && element.closest("svg") === null && element.id !== "composer")) found.push(`${tag} ${name}=${value.slice(0, 60)}`);
        const isOwn = value.startsWith("#/") || value === "#composer" || element.closest("head") !== null || tag === "script";
        if ((name === "href" || name === "src" || name === "action") && !isOwn && !/^(https?:\/\/|mailto:)/.test(value)) found.push(`${tag} ${name}=${value.slice(0, 60)}`);
        if (name === "href" && /^https?:/.test(value) && element.getAttribute("rel") !== "noopener noreferrer nofollow") found.push(`a link that tells where it was: ${value}`);
      }
    }
    // Spelled by number, so that this file has none of them itself.
    const hidden = /[\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff]|[\u{e0000}-\u{e007f}]/u;
    const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    for (let node = walk.nextNode(); node !== null; node = walk.nextNode()) if (hidden.test(node.textContent ?? "")) found.push(`hidden in: ${(node.textContent ?? "").slice(0, 60)}`);
    if (hidden.test(document.title)) found.push("hidden in the title of the window");
    return found;
  });
}

/** How long the page takes to do nothing. */
async function answersIn(page: Page): Promise<number> {
  const before = Date.now();
  await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(resolve)));
  return Date.now() - before;
}

test("another device writes the corpus everywhere, and the browser shows it as text", async () => {
  const tab = await world.tab();
  const elsewhere = watch(tab);
  const recovery = await register(world, tab, "alice", world.server?.firstCode);
  const setup = { transport: program(world.server?.origin ?? ("" as never)), files: new MemoryFiles(), key: null, clock: () => Date.now() };
  const one = await logInDevice(setup, { kind: "recovery", code: RecoveryCode.parse(recovery) });
  await sync(one, "all");
  const texts = [...HOSTILE, ...DISGUISED, HIDDEN];
  const chat = await newChat(one, null);
  for (const text of texts) {
    await write(one, chat, "user", text, [], null);
    await write(one, chat, "assistant", text, [], text);
  }
  await write(one, chat, "tool", texts.join("\n\n"), [], null);
  await write(one, chat, "summary", "In short: <img src=x onerror=alert(1)>", [], null);
  await write(one, chat, "user", "last words", [], null);
  const all = texts.join(" ");
  await rename(one, chat, all);
  for (const name of ["summary", "category", "icon"]) await setField(one, chat, name, all);
  for (const name of ["tags", "follow-ups"]) await setField(one, chat, name, JSON.stringify(texts));
  await setData(one, "suggestions", "new-chats", JSON.stringify(texts.slice(-4)));
  await setData(one, "memory", "hostile", all);
  await flush(one);
  disconnect(one);
  const { page } = tab;
  await page.locator(".chat").first().waitFor();
  await stored(page);
  assert.deepEqual(await findings(page), [], "the list");
  await page.locator(".chat").first().click();
  await page.getByText("last words").waitFor();
  await page.getByText("earlier messages are summed up").waitFor();
  await page.getByRole("button", { name: "Show full conversation" }).click();
  await page.getByText("What stands above the summary is no longer used for answers.").waitFor({ state: "attached" });
  for (let tries = 0; tries < 300 && (await page.locator("button.earlier").count()) > 0; tries += 1) {
    await page.locator(".scroll").evaluate((element) => {
      element.scrollTop = element.scrollTop > 0 ? 0 : 1;
    });
    await page.waitForTimeout(300);
  }
  assert.equal(await page.locator("button.earlier").count(), 0, "everything is drawn");
  await page.locator("article.said").first().waitFor();
  assert.deepEqual(await findings(page), [], "the chat");
  await tab.shot("hostile-chat");
  assert.ok((await page.locator("article.answer a.disguised").count()) >= 2, "links that look like others are marked");
  await page.fill("#search", "script");
  await page.locator(".chat mark").first().waitFor();
  assert.deepEqual(await findings(page), [], "what was found");
  await page.goto(`${world.origin}/#/settings/memories`);
  await page.getByText("hostile").first().waitFor();
  assert.deepEqual(await findings(page), [], "memories");
  await page.goto(`${world.origin}/#/`);
  await page.getByRole("group", { name: "Ideas" }).waitFor();
  assert.deepEqual(await findings(page), [], "suggestions");
  assert.deepEqual(elsewhere, [], "nothing is asked for elsewhere, and no window opens");
  await tab.close();
});

test("whatever is deep or huge is drawn, and the page goes on", async () => {
  const tab = await world.tab({ viewport: PHONE });
  const elsewhere = watch(tab);
  await tab.page.addInitScript(() => Object.assign(globalThis, { HOSTILE: sessionStorage.getItem("hostile") ?? "x" }));
  await tab.page.goto(`${world.origin}/demo/?state=hostile#/`);
  const megabyte = "word ".repeat(210_000);
  for (const [name, text] of Object.entries({ ...HUGE, megabyte, corpus: [...HOSTILE, ...DISGUISED, HIDDEN].join("\n\n") })) {
    await tab.page.evaluate((one) => sessionStorage.setItem("hostile", one), text);
    await tab.page.goto(`${world.origin}/demo/?state=hostile&n=${name}#/${chatId(1)}`);
    await tab.page.locator("#msg_h").waitFor();
    await tab.page.locator("section.ask pre.call").waitFor();
    const took = await answersIn(tab.page);
    assert.ok(took < 20_000, `${name}: ${took} ms`);
    assert.deepEqual(await findings(tab.page), [], name);
    assert.equal(await tab.page.evaluate(() => document.documentElement.scrollWidth > document.documentElement.clientWidth + 1), false, `${name}: nothing is wider than the screen`);
    const nodes = await tab.page.evaluate(() => document.querySelectorAll("*").length);
    assert.ok(nodes < 20_000, `${name}: ${nodes} elements`);
    if (name === "corpus") await tab.shot("hostile-phone");
  }
  // The call that is asked about is the call: nothing of it is left out or turned round.
  const call = (await tab.page.locator("pre.call").textContent()) ?? "";
  assert.match(call, /\\u202etxt\.exe/);
  assert.match(call, /<script>alert\(1\)<\/script>/);
  assert.deepEqual(elsewhere, []);
  await tab.close();
});
