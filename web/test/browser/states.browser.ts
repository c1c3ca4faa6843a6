// Every state of the page, drawn over the double: at desktop and phone size, light and dark, right to left; no error, no broken policy, no
// serious finding of the accessibility scan, nothing wider than the screen.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { chatId, SCENES } from "./double";
import { BrowserWorld, DESKTOP, PHONE, type Tab } from "./world";

let world: BrowserWorld;
let axe = "";

before(async () => {
  world = await BrowserWorld.start(false);
  axe = await readFile(join(process.env["WEB_DIR"] ?? ".", "node_modules/axe-core/axe.min.js"), "utf8");
});

after(async () => {
  await world?.stop();
});

async function show(tab: Tab, state: string, hash = `#/${chatId(1)}`, query = ""): Promise<void> {
  await tab.page.goto(`${world.origin}/demo/?state=${state}${query}${hash}`);
  await tab.page.locator("main").waitFor();
  await tab.page.waitForTimeout(150);
}

/** Findings that are serious, by rule and element. The scan runs through the browser's own door, which no page's policy closes. */
async function findings(tab: Tab): Promise<string[]> {
  await tab.page.evaluate(`${axe}; 0`);
  const found = (await tab.page.evaluate("axe.run(document, { resultTypes: ['violations'] }).then(({ violations }) => violations)")) as { id: string; impact: string; nodes: { html: string }[] }[];
  return found.filter(({ impact }) => impact === "serious" || impact === "critical").flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html.slice(0, 160)}`));
}

const isTooWide = (tab: Tab) => tab.page.evaluate(() => document.documentElement.scrollWidth > document.documentElement.clientWidth + 1);

const PLACES = [
  { name: "desktop", options: { viewport: DESKTOP, colorScheme: "light" as const }, query: "" },
  { name: "phone", options: { viewport: PHONE, colorScheme: "dark" as const }, query: "" },
  { name: "rtl", options: { viewport: PHONE, colorScheme: "light" as const, locale: "de-DE" }, query: "&dir=rtl" },
];

for (const { name, options, query } of PLACES) {
  test(`every state is drawn: ${name}`, async () => {
    const tab = await world.tab(options);
    for (const state of Object.keys(SCENES)) {
      await show(tab, state, state === "empty" ? "#/" : undefined, query);
      await tab.shot(`state-${state}-${name}`);
      assert.equal(await isTooWide(tab), false, `${state}: nothing is wider than the screen`);
      if (query === "") assert.deepEqual(await findings(tab), [], state);
    }
    await tab.close();
  });
}

test("settings, outbox and the keyboard map are accessible", async () => {
  for (const { name, options } of PLACES.slice(0, 2)) {
    const tab = await world.tab(options);
    for (const part of ["general", "privacy", "memories", "devices", "security", "data"]) {
      await show(tab, "chat", `#/settings/${part}`);
      await tab.page.locator(".page h2").first().waitFor();
      await tab.shot(`settings-${part}-${name}`);
      assert.equal(await isTooWide(tab), false, part);
      assert.deepEqual(await findings(tab), [], `${part}, ${name}`);
      if (part !== "privacy") continue;
      await tab.page.getByRole("heading", { name: "Focus modes" }).scrollIntoViewIfNeeded();
      await tab.page.getByRole("switch", { name: "Plan a project" }).click();
      await tab.page.getByLabel("Another tool, by name").fill("ncts.*");
      await tab.page.getByRole("button", { name: "Switch off", exact: true }).click();
      await tab.page.getByText("switched off by ncts.*").first().waitFor();
      assert.equal(await tab.page.getByRole("switch", { name: "ncts.book" }).isDisabled(), true);
      await tab.shot(`settings-offers-${name}`);
      await tab.page.getByRole("switch", { name: "web.search" }).scrollIntoViewIfNeeded();
      await tab.shot(`settings-tools-${name}`);
      assert.deepEqual(await findings(tab), [], `offers, ${name}`);
    }
    await show(tab, "unsent", "#/outbox");
    await tab.page.getByText("Is the ferry in March calm?").first().waitFor();
    assert.deepEqual(await findings(tab), [], `outbox, ${name}`);
    await tab.page.keyboard.press("?");
    await tab.page.getByRole("dialog", { name: "Keyboard" }).waitFor();
    assert.deepEqual(await findings(tab), [], `keys, ${name}`);
    await tab.close();
  }
});

test("one word more changes one text node", async () => {
  const tab = await world.tab();
  await show(tab, "streaming");
  await tab.page.getByText("dates left").waitFor();
  const changes = await tab.page.evaluate(async (chat) => {
    const seen: string[] = [];
    const watch = new MutationObserver((all) => all.forEach((one) => seen.push(one.type)));
    const live = document.querySelector("article.live .words");
    if (live === null) throw new Error("no answer");
    watch.observe(live, { subtree: true, childList: true, characterData: true, attributes: true });
    const { played } = globalThis as unknown as { played: { emit: (event: object) => void } };
    const so = "The office in Cork has **three** dates left:\n\n1. 1 March, 09:20\n2. 3 March, 10:";
    played.emit({ type: "words", chat, turn: "turn_1", at: so.length, text: "40 in the" });
    for (let tries = 0; tries < 300 && seen.length === 0; tries++) await new Promise((resolve) => setTimeout(resolve, 100));
    await new Promise((resolve) => setTimeout(resolve, 200));
    return seen;
  }, chatId(1));
  assert.deepEqual(changes, ["characterData"]);
  await tab.close();
});

test("a chat of 2 000 messages opens under a second, and shows earlier ones when they come near", async () => {
  const tab = await world.tab();
  let took = Infinity;
  // One that took longer may have had to wait for others on this machine.
  for (let tries = 0; tries < 5 && took >= 1_000; tries++) {
    await show(tab, "long", "#/", `&n=${tries}`);
    took = await tab.page.evaluate(async (chat) => {
      const before = performance.now();
      location.hash = `#/${chat}`;
      while (document.querySelector("#msg_l1999") === null) await new Promise((resolve) => requestAnimationFrame(resolve));
      return performance.now() - before;
    }, chatId(1));
  }
  assert.ok(took < 1_000, `${took.toFixed(0)} ms`);
  const drawn = await tab.page.locator("article").count();
  assert.ok(drawn <= 40, `${drawn} messages are drawn at first`);
  await tab.page.locator(".scroll").evaluate((element) => { element.scrollTop = 0; });
  await tab.page.waitForFunction((n) => document.querySelectorAll("article").length > n, drawn);
  await tab.close();
});

test("a result of the search leads to its message: from another chat, behind the first words, and far up", async () => {
  const tab = await world.tab();
  const find = async (words: string) => {
    await tab.page.fill("#search", words);
    await tab.page.locator("a.chat", { has: tab.page.locator("mark") }).click();
  };
  await show(tab, "chat", `#/${chatId(2)}`);
  await find("roof box");
  await tab.page.locator("#msg_1.found").waitFor();
  await tab.page.locator("#msg_1").getByText("roof box").waitFor();
  await show(tab, "compressed", `#/${chatId(3)}`);
  await find("office decides");
  await tab.page.locator("#msg_2.found").waitFor();
  await show(tab, "long", `#/${chatId(1)}`);
  await find("1700. some");
  await tab.page.waitForFunction(() => {
    const box = document.querySelector("#msg_l1700.found")?.getBoundingClientRect();
    return box !== undefined && box.bottom > 0 && box.top < innerHeight;
  });
  await tab.close();
});

test("the scroll is not taken from somebody who reads", async () => {
  const tab = await world.tab();
  await show(tab, "streaming");
  const scroll = tab.page.locator(".scroll");
  await scroll.hover();
  await tab.page.mouse.wheel(0, -400);
  await tab.page.waitForTimeout(200);
  const before = await scroll.evaluate((element) => element.scrollTop);
  await tab.page.evaluate((chat) => {
    const { played } = globalThis as unknown as { played: { emit: (event: object) => void } };
    played.emit({ type: "words", chat, turn: "turn_1", at: 0, text: "new words\n\n".repeat(60) });
  }, chatId(1));
  await tab.page.waitForTimeout(200);
  assert.equal(await scroll.evaluate((element) => element.scrollTop), before);
  await tab.page.getByRole("button", { name: "To the newest message" }).click();
  await tab.page.waitForFunction(() => {
    const element = document.querySelector(".scroll");
    return element !== null && element.scrollHeight - element.scrollTop - element.clientHeight < 60;
  });
  await tab.close();
});

test("by keyboard alone: unlock, choose a chat, write, stop, lock", async () => {
  const tab = await world.tab();
  await show(tab, "locked");
  await tab.page.keyboard.type("a good password");
  await tab.page.keyboard.press("Enter");
  await tab.page.getByText("Importing a car").first().waitFor();
  await tab.page.keyboard.press("/");
  await tab.page.keyboard.type("By keyboard");
  await tab.page.keyboard.press("Shift+Enter");
  await tab.page.keyboard.type("alone");
  await tab.page.keyboard.press("Enter");
  await tab.page.locator("article.said", { hasText: "By keyboard" }).waitFor();
  await tab.page.keyboard.press("Escape");
  await tab.page.getByText("Stopping…").or(tab.page.getByText("You stopped")).first().waitFor();
  await tab.page.keyboard.press("Control+Shift+L");
  await tab.page.getByRole("heading", { name: "Locked" }).waitFor();
  await tab.close();
});

test("copied code is pasted as the same embed, and as plain text elsewhere", async () => {
  const tab = await world.tab();
  await tab.context.grantPermissions(["clipboard-read", "clipboard-write"]);
  await show(tab, "chat");
  await tab.page.getByRole("button", { name: "Copy the code" }).click();
  await tab.page.getByText("Copied").first().waitFor();
  assert.match(await tab.page.evaluate(() => navigator.clipboard.readText()), /^def vrt/);
  await tab.page.focus("#composer");
  await tab.page.keyboard.press("Control+v");
  assert.match(await tab.page.inputValue("#composer"), /^```python\ndef vrt[\s\S]*\n```\n$/);
  await tab.close();
});

test("a pairing code is drawn, and a QR code of a new device fills in its letters", async () => {
  const tab = await world.tab({ viewport: PHONE });
  await show(tab, "none");
  await tab.page.getByRole("button", { name: "Add this device" }).click();
  await tab.page.getByRole("img", { name: "QR code for the other device" }).waitFor();
  await tab.page.getByText("mfrg gzdf").waitFor();
  await tab.shot("pairing-phone");
  await show(tab, "chat", `#/pair/${"a".repeat(26)}`);
  await tab.page.getByLabel("Letters of the new device").waitFor();
  assert.equal(await tab.page.getByLabel("Letters of the new device").inputValue(), "a".repeat(26));
  assert.ok(!tab.page.url().includes("aaaa"), "the secret does not stay in the address");
  await tab.close();
});

test("an input method's Enter does not send", async () => {
  const tab = await world.tab();
  await show(tab, "chat");
  await tab.page.fill("#composer", "かな");
  await tab.page.evaluate(() => document.getElementById("composer")?.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", isComposing: true, bubbles: true, cancelable: true })));
  assert.equal(await tab.page.inputValue("#composer"), "かな");
  await tab.page.press("#composer", "Enter");
  await tab.page.locator("article.said", { hasText: "かな" }).waitFor();
  await tab.close();
});
