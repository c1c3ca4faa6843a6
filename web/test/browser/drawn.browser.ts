// How the page is drawn, over its double: a language that is written from right to left, fingers, links that nobody checked, and the watch for
// broken policies itself.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { chatId } from "./double";
import { BrowserWorld, DESKTOP, policyBreaks, PHONE, type Tab } from "./world";

let world: BrowserWorld;
before(async () => {
  world = await BrowserWorld.start(false);
});
after(async () => {
  await world?.stop();
});

async function show(tab: Tab, state: string, hash = `#/${chatId(1)}`): Promise<void> {
  await tab.page.goto(`${world.origin}/demo/?state=${state}${hash}`);
  await tab.page.locator("main").waitFor();
  await tab.page.waitForTimeout(200);
}

test("a language that is written from right to left sets the direction of the page by its file alone", async () => {
  for (const [name, viewport] of [["desktop", DESKTOP], ["phone", PHONE]] as const) {
    const tab = await world.tab({ viewport });
    await tab.page.addInitScript(() => localStorage.setItem("page.language", "xr"));
    await show(tab, "chat");
    assert.deepEqual(await tab.page.evaluate(() => [document.documentElement.lang, document.documentElement.dir]), ["xr", "rtl"]);
    if (name === "desktop") {
      const side = await tab.page.locator("#side").boundingBox();
      assert.ok(side !== null && side.x > viewport.width / 2, "the list is at the right");
    }
    const bubble = await tab.page.locator(".bubble").first().boundingBox();
    assert.ok(bubble !== null && bubble.x < viewport.width / 2, "what the person said is at the end of the line");
    assert.equal(await tab.page.evaluate(() => document.documentElement.scrollWidth > document.documentElement.clientWidth + 1), false);
    await tab.shot(`language-rtl-${name}`);
    await show(tab, "chat", "#/settings/general");
    await tab.page.locator("select").nth(1).selectOption({ label: "Deutsch" });
    await tab.page.getByRole("heading", { name: "Allgemein" }).waitFor();
    assert.equal(await tab.page.evaluate(() => document.documentElement.dir), "ltr");
    await tab.close();
  }
});

test("for fingers, nothing that is pressed is smaller than 40 px", async () => {
  const tab = await world.tab({ viewport: PHONE, hasTouch: true, isMobile: true });
  for (const [state, hash] of [["chat", undefined], ["approval", undefined], ["wish", undefined], ["approvalover", undefined], ["chat", "#/settings/general"], ["chat", "#/settings/privacy"], ["chat", "#/settings/security"], ["chat", "#/settings/data"], ["none", "#/"], ["locked", "#/"]] as const) {
    await show(tab, state, hash);
    assert.equal(await tab.page.evaluate(() => matchMedia("(pointer: coarse)").matches), true);
    const small = await tab.page.evaluate(() =>
      [...document.querySelectorAll<HTMLElement>("button, select, summary, input:not([type=checkbox]):not([type=file]), .tick, a.button, nav a")].flatMap((one) => {
        const { width, height } = one.getBoundingClientRect();
        // What cannot be seen cannot be pressed; links inside of text are as high as their line; a switch is larger than it looks.
        if (!one.checkVisibility({ visibilityProperty: true, opacityProperty: true }) || width <= 1 || one.matches(".switch, .skip")) return [];
        return height < 39.5 || (width < 39.5 && one.matches("button")) ? [`${one.className || one.tagName} ${Math.round(width)}×${Math.round(height)} ${(one.textContent ?? "").slice(0, 20)}`] : [];
      }),
    );
    assert.deepEqual(small, [], `${state} ${hash ?? ""}`);
  }
  await tab.shot("touch");
  await tab.close();
});

test("that nobody checked a link is seen without a pointer: a mark, and its words for fingers and for the keyboard", async () => {
  const words = "see [the timetable](https://ferry.example/times)";
  for (const { name, touch } of [{ name: "keyboard", touch: false }, { name: "touch", touch: true }]) {
    const tab = await world.tab({ viewport: touch ? PHONE : DESKTOP, hasTouch: touch, isMobile: touch });
    await tab.page.addInitScript((text) => Object.assign(globalThis, { HOSTILE: text }), words);
    await show(tab, "hostile");
    const link = tab.page.locator("article.answer a.link", { hasText: "the timetable" }).first();
    await link.waitFor();
    const mark = link.locator(".unchecked");
    assert.ok(((await mark.locator("svg").boundingBox())?.width ?? 0) >= 8, "the mark");
    assert.match((await link.textContent()) ?? "", /ferry\.example.*not checked/s);
    const wide = async () => ((await mark.locator("> span").boundingBox())?.width ?? 0) > 30;
    if (!touch) {
      assert.equal(await wide(), false, "quiet while nobody is on it");
      await tab.page.locator("#composer").focus();
      for (let steps = 0; steps < 60 && !(await link.evaluate((one) => one === document.activeElement)); steps++) await tab.page.keyboard.press("Shift+Tab");
    }
    assert.equal(await wide(), true, name);
    await tab.shot(`unchecked-${name}`);
    await tab.close();
  }
});

test("what is not sent is said where one writes, on a phone too", async () => {
  const tab = await world.tab({ viewport: PHONE });
  await show(tab, "chat");
  await tab.page.locator(".hint").getByText("text only, no files or images").waitFor();
  assert.equal(await tab.page.locator("#composer").getAttribute("aria-describedby"), "only-text");
  await tab.close();
});

test("a page that breaks its policy fails its test, whatever is forgiven", async () => {
  const other = await BrowserWorld.start(false);
  const tab = await other.tab();
  await tab.page.goto(`${other.origin}/demo/?state=chat#/`);
  await tab.page.locator("main").waitFor();
  await tab.page.evaluate(() => {
    const script = document.createElement("style");
    script.textContent = "body { color: red }";
    document.head.append(script);
  });
  await tab.page.waitForTimeout(200);
  assert.match(policyBreaks(tab.context).join("\n"), /^style-src/);
  tab.forgive();
  await assert.rejects(tab.close(), /nothing broke the policy/);
  await assert.rejects(other.stop(), /nothing broke the policy/);
});
