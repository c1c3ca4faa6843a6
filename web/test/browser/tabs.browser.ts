// Two tabs of one browser: one has the account at a time, another takes it over, and neither undoes what the other remembers.
// About the protocol and not about layout: run once.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Page } from "playwright-core";
import { BrowserWorld, type Tab } from "./world";

let world: BrowserWorld;
let tab: Tab;
const PASSWORD = "correct horse battery staple";

before(async () => {
  world = await BrowserWorld.start(true);
  tab = await world.tab();
});
after(async () => {
  await world?.stop();
});

async function ask(page: Page, text: string): Promise<void> {
  await page.fill("#composer", text);
  await page.press("#composer", "Enter");
  await page.locator("article.answer:not(.live)", { hasText: `noted: ${text}` }).last().waitFor();
}

async function unlock(page: Page): Promise<void> {
  await page.getByLabel("Password", { exact: true }).fill(PASSWORD);
  await page.getByRole("button", { name: "Unlock" }).click();
}

test("one tab has the account; another takes it over, after the password; and back", async () => {
  const one = tab.page;
  await one.goto(world.origin);
  await one.getByRole("button", { name: "Create an account" }).click();
  await one.getByLabel("Login").fill("alice");
  await one.getByLabel("Password", { exact: true }).fill(PASSWORD);
  await one.getByLabel("Password, again").fill(PASSWORD);
  await one.getByLabel("Invitation code").fill(world.server?.firstCode ?? "");
  await one.getByRole("button", { name: "Create the account" }).click();
  await one.getByLabel("I have kept the code").check();
  await one.getByRole("button", { name: "Continue" }).click();
  await ask(one, "said in the first tab");

  const two = await tab.context.newPage();
  await two.goto(world.origin);
  await two.getByText("Open in another tab").waitFor();
  assert.equal(await two.getByText("said in the first tab").count(), 0);
  await two.getByRole("button", { name: "Use it here" }).click();
  // Keys are in one worker's memory only: they do not wander from tab to tab.
  await unlock(two);
  await two.locator(".chat").first().click();
  await two.getByText("noted: said in the first tab").waitFor();
  await one.getByText("Open in another tab").waitFor();
  assert.equal(await one.getByText("said in the first tab").count(), 0, "the first tab has let go of it");
  await ask(two, "said in the second tab");

  await one.getByRole("button", { name: "Use it here" }).click();
  await unlock(one);
  await one.locator(".chat").first().click();
  await one.getByText("noted: said in the second tab").waitFor();
  await two.getByText("Open in another tab").waitFor();

  // The tab that has it goes: the other one need not be asked.
  await one.close();
  await two.getByRole("button", { name: "Unlock", exact: true }).waitFor();
  await unlock(two);
  await two.locator(".chat").first().click();
  await two.getByText("noted: said in the second tab").waitFor();
  await tab.close();
});
