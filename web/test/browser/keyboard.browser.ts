// The main flows without a mouse, in a real browser against the real program: everything that is done here is done by keys, and what has the
// focus can be seen.
// By keys alone: at the size of a desk only.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { answered, PASSWORD, stored } from "./steps";
import { BrowserWorld, type Tab } from "./world";

let world: BrowserWorld;
let tab: Tab;

before(async () => {
  world = await BrowserWorld.start(true);
  tab = await world.tab();
});
after(() => world?.stop());

/** What has the focus, by its name. */
const focused = () =>
  tab.page.evaluate(() => {
    const at = document.activeElement;
    const label = at instanceof HTMLInputElement ? at.labels?.[0]?.textContent : null;
    return (at?.getAttribute("aria-label") ?? label ?? at?.textContent ?? "").trim();
  });

/** Goes on with Tab until that has the focus. */
async function reach(name: string, key: "Tab" | "Shift+Tab" = "Tab"): Promise<void> {
  const seen: string[] = [];
  for (let steps = 0; steps < 60; steps += 1) {
    const now = await focused();
    if (now.startsWith(name)) {
      const outline = await tab.page.evaluate(() => {
        const at = document.activeElement;
        return at === null ? "" : [at, at.parentElement, at.closest(".field, .box, form")].map((one) => (one === null ? "" : `${getComputedStyle(one).outlineStyle} ${getComputedStyle(one).borderColor}`)).join();
      });
      assert.match(outline, /solid|auto|rgb/, `${name}: the focus is seen`);
      return;
    }
    seen.push(now.slice(0, 30));
    await tab.page.keyboard.press(key);
  }
  assert.fail(`${name} is not reached: ${seen.join(" | ")}`);
}

const press = (...keys: string[]) => keys.reduce((so, key) => so.then(() => tab.page.keyboard.press(key)), Promise.resolve());
const type = (text: string) => tab.page.keyboard.type(text);

test("registering, asking, another answer, renaming, finding, settings, locking and unlocking: by keys alone", async () => {
  const { page } = tab;
  await page.goto(world.origin);
  await page.getByRole("heading", { name: "Log in" }).waitFor();
  await reach("Create an account");
  await press("Enter");
  await page.getByRole("heading", { name: "Create an account" }).waitFor();
  for (const [name, value] of [["Login", "alice"], ["Password", PASSWORD], ["Password, again", PASSWORD], ["Invitation code", world.server?.firstCode ?? ""]] as const) {
    await reach(name);
    await type(value);
    await press("Tab");
  }
  await reach("Create the account");
  await press("Enter");
  await page.locator(".code-shown").waitFor();
  await reach("I have kept the code");
  await press("Space");
  await reach("Continue");
  await press("Enter");
  await page.getByText("What is on your mind?").waitFor();
  await press("/");
  await type("Can this be done by keys?");
  await press("Enter");
  await answered(page, "noted: Can this be done by keys?");
  await stored(page);
  await reach("Retry", "Shift+Tab");
  await press("Enter");
  await page.getByText("2/2").first().waitFor();
  await page.locator("article.answer:not(.live) .status.good").last().waitFor();
  await reach("More for this chat", "Shift+Tab");
  await press("Enter");
  await page.getByRole("menuitem", { name: "Rename" }).waitFor();
  for (let steps = 0; steps < 10 && (await focused()) !== "Rename"; steps += 1) await press("ArrowDown");
  await press("Enter");
  await page.getByRole("textbox", { name: "Rename" }).waitFor();
  await press("Control+a");
  await type("By keys");
  await press("Enter");
  await page.locator("header.head h1", { hasText: "By keys" }).waitFor();
  await press("Control+k");
  await type("done by");
  await page.locator(".chat mark").first().waitFor();
  await tab.shot("keyboard-search");
  await press("Escape");
  await reach("Settings", "Shift+Tab");
  await press("Enter");
  await page.locator(".page h2").first().waitFor();
  await press("Control+Shift+L");
  await page.getByRole("heading", { name: "Locked" }).waitFor();
  await reach("Password");
  await type(PASSWORD);
  await press("Enter");
  await page.locator(".chat .title", { hasText: "By keys" }).waitFor();
  await tab.close();
});
