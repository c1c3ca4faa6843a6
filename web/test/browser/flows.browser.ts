// The main flows in a real browser, against the built page, a real server and a model: what a person does, in order.
import assert from "node:assert/strict";
import { after, afterEach, before, test } from "node:test";
import type { Page } from "playwright-core";
import { BrowserWorld, PHONE, type Tab } from "./world";

let world: BrowserWorld;
let tab: Tab;
let page: Page;
let recoveryCode = "";
const PASSWORD = "correct horse battery staple";

before(async () => {
  world = await BrowserWorld.start(true);
  tab = await world.tab();
  page = tab.page;
});

after(async () => {
  await world?.stop();
});

// Each step stands on the one before: what went wrong is best seen.
let steps = 0;
afterEach(async () => {
  steps += 1;
  if (!page.isClosed()) await tab.shot(`flow-${steps}`);
});

async function ask(on: Page, text: string): Promise<void> {
  await on.fill("#composer", text);
  await on.press("#composer", "Enter");
}

/** Waits for this text in the last answer that is stored. */
async function answered(on: Page, text: string): Promise<void> {
  await on.locator("article.answer:not(.live)", { hasText: text }).last().waitFor();
}

test("a person registers, and the recovery code is shown once", async () => {
  await page.goto(world.origin);
  await page.getByRole("button", { name: "Create an account" }).click();
  await page.getByLabel("Login").fill("alice");
  await page.getByLabel("Password", { exact: true }).fill(PASSWORD);
  await page.getByLabel("Password, again").fill(PASSWORD);
  await page.getByLabel("Invitation code").fill(world.server?.firstCode ?? "");
  await tab.shot("register");
  await page.getByRole("button", { name: "Create the account" }).click();
  recoveryCode = (await page.locator(".code-shown").textContent()) ?? "";
  assert.match(recoveryCode, /[a-z2-7]/);
  await tab.shot("recovery-code");
  assert.ok(await page.getByRole("button", { name: "Continue" }).isDisabled(), "not before the code is kept");
  await page.getByLabel("I have kept the code").check();
  await page.getByRole("button", { name: "Continue" }).click();
  await page.getByText("What is on your mind?").waitFor();
  assert.equal(await page.getByText(recoveryCode).count(), 0, "it is not shown again");
});

test("a question is answered, word by word, and both are sealed", async () => {
  world.model.answers.set("What is two and two?", ["Two and two ", "make **four**.\n\n", "```js\n", "2 + 2\n", "```\n"]);
  await ask(page, "What is two and two?");
  await answered(page, "make four");
  await page.locator("article.answer .status.good").waitFor();
  await page.locator("article.said .status.good").waitFor();
  assert.equal(await page.locator("article.answer strong").textContent(), "four");
  await tab.shot("answered");
  await page.getByRole("button", { name: "What the server saw" }).click();
  await page.getByText("It cannot open your stored chats.").waitFor();
});

test("an answer is stopped, and what was said counts", async () => {
  world.model.answers.set("Say something long", ["Once upon ", "a time ", "there was"]);
  world.model.hold();
  await ask(page, "Say something long");
  await page.locator("article.live", { hasText: "Once upon" }).waitFor();
  await tab.shot("streaming");
  await page.locator("article.live").getByRole("button", { name: "Stop" }).click();
  await page.getByText("You stopped this answer.").first().waitFor();
  world.model.letGo();
  await answered(page, "Once upon");
});

test("another answer is an alternative, and an edited question another branch", async () => {
  await page.locator("article.answer").first().getByRole("button", { name: "Retry" }).click();
  await page.getByText("2/2").first().waitFor();
  await page.locator("article.answer").last().getByRole("button", { name: "The one before" }).click();
  await page.getByText("1/2").first().waitFor();
  const first = page.locator("article.said").first();
  await first.hover();
  await first.getByRole("button", { name: "Edit and send again" }).click();
  await page.getByRole("textbox", { name: "Edit and send again" }).fill("What is three and three?");
  await page.getByRole("button", { name: "Send again", exact: true }).click();
  await answered(page, "noted: What is three and three?");
  assert.equal(await page.locator("article.said").count(), 1, "the other branch is not shown");
  await tab.shot("branch");
});

test("a chat is renamed, pinned, found, deleted and taken back", async () => {
  await page.getByRole("button", { name: "More for this chat" }).click();
  await page.getByRole("menuitem", { name: "Rename" }).click();
  await page.getByRole("textbox", { name: "Rename" }).fill("Sums of small numbers");
  await page.keyboard.press("Enter");
  await page.locator(".chat .title", { hasText: "Sums of small numbers" }).waitFor();
  await page.getByRole("button", { name: "More for this chat" }).click();
  await page.getByRole("menuitem", { name: "Pin" }).click();
  await page.getByRole("heading", { name: "Pinned" }).waitFor();
  await page.keyboard.press("Control+k");
  await page.keyboard.type("three");
  await page.locator(".chat mark").first().waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "More for this chat" }).click();
  await page.getByRole("menuitem", { name: "Delete" }).click();
  await page.getByRole("button", { name: "Undo" }).click();
  await page.locator(".chat .title", { hasText: "Sums of small numbers" }).waitFor();
});

test("locked, nothing is shown; a wrong password does not open it; the right one does, after a reload too", async () => {
  await page.getByRole("button", { name: /lock now/ }).click();
  await page.getByRole("heading", { name: "Locked" }).waitFor();
  assert.equal(await page.getByText("Sums of small numbers").count(), 0);
  assert.equal(await page.title(), "Confidant");
  await page.reload();
  await page.getByLabel("Password", { exact: true }).fill("not the password");
  await page.getByRole("button", { name: "Unlock" }).click();
  await page.getByText("Login or password is wrong").waitFor();
  await page.getByLabel("Password", { exact: true }).fill(PASSWORD);
  await page.getByRole("button", { name: "Unlock" }).click();
  await page.locator(".chat .title", { hasText: "Sums of small numbers" }).waitFor();
});

// A command may have connected while the keeper was dialling.
test("after unlocking, it is in sync by itself", async () => {
  await page.getByText("in sync").waitFor({ timeout: 8_000 });
});

test("a second browser logs in, on a phone, and both see what either writes", async () => {
  const phone = await world.tab({ viewport: PHONE, colorScheme: "dark" });
  await phone.page.goto(world.origin);
  await phone.page.getByLabel("Login").fill("alice");
  await phone.page.getByLabel("Password", { exact: true }).fill(PASSWORD);
  await phone.page.getByRole("button", { name: "Log in", exact: true }).click();
  await phone.page.getByRole("button", { name: "Chats" }).click();
  await phone.page.locator(".chat .title", { hasText: "Sums of small numbers" }).click();
  await phone.page.getByText("noted: What is three and three?").waitFor();
  await phone.shot("phone-chat");
  await page.locator(".chat .title", { hasText: "Sums of small numbers" }).click();
  await ask(phone.page, "From the phone");
  await answered(phone.page, "noted: From the phone");
  await answered(page, "noted: From the phone");
  await phone.close();
});

test("without the server one reads and writes; what waits is shown, and is sent afterwards", async () => {
  world.reach(false);
  await page.getByText("The server cannot be reached.").waitFor();
  await ask(page, "Written offline");
  await page.getByText("The question is kept here").waitFor();
  await page.locator(".foot a").click();
  await page.getByText("Not stored yet").waitFor();
  await tab.shot("outbox");
  world.reach(true);
  await page.getByRole("button", { name: "Try now" }).click();
  await page.getByText("Everything is stored.").waitFor();
  tab.forgive();
  await page.goBack();
  await answered(page, "noted: Written offline");
});

test("what is switched off is in the request, and a memory goes only when it is ticked", async () => {
  await page.goto(`${world.origin}/#/settings/memories`);
  await page.getByLabel("Name", { exact: true }).fill("Home town");
  await page.getByLabel("What to remember").fill("CANARY-CORK");
  await page.getByRole("button", { name: "Add a memory" }).click();
  await page.getByText("home_town").waitFor();
  await page.goto(`${world.origin}/#/settings/privacy`);
  await page.getByRole("switch", { name: "Tools" }).click();
  await tab.shot("settings-privacy");
  await page.getByRole("button", { name: "New chat" }).click();
  tab.sent.length = 0;
  await ask(page, "Is anything sent along?");
  await answered(page, "noted: Is anything sent along?");
  const asked = tab.sent.find((frame) => frame.includes("Is anything sent along?")) ?? "";
  assert.match(asked, /"off":\[[^\]]*"tools"/);
  assert.ok(!tab.sent.some((frame) => frame.includes("CANARY-CORK")), "nobody ticked it");
});

test("a draft stays with its chat, and a temporary chat is kept nowhere", async () => {
  await page.locator(".chat .title", { hasText: "Sums of small numbers" }).click();
  await page.getByRole("heading", { name: "Sums of small numbers" }).waitFor();
  await page.fill("#composer", "half a thought");
  await page.getByRole("button", { name: "Temporary chat" }).click();
  await page.getByText("A temporary chat").waitFor();
  assert.equal(await page.inputValue("#composer"), "");
  tab.sent.length = 0;
  await ask(page, "Keep this nowhere");
  await answered(page, "noted: Keep this nowhere");
  await page.locator("article.answer").getByText("not kept").waitFor();
  await tab.shot("temporary");
  await page.locator(".chat .title", { hasText: "Sums of small numbers" }).click();
  await page.waitForFunction(() => (document.getElementById("composer") as HTMLTextAreaElement | null)?.value === "half a thought");
  await page.fill("#composer", "");
});

test("everything is exported after the password, and brought back as other chats", async () => {
  await page.goto(`${world.origin}/#/settings/data`);
  await page.getByRole("button", { name: "Export everything" }).click();
  await page.getByRole("dialog").getByLabel("Password", { exact: true }).fill(PASSWORD);
  const [file] = await Promise.all([page.waitForEvent("download"), page.getByRole("dialog").getByRole("button", { name: "Continue" }).click()]);
  const path = (await file.path()) ?? "";
  const { readFile } = await import("node:fs/promises");
  assert.match(await readFile(path, "utf8"), /What is three and three\?/);
  await page.setInputFiles("input[type=file]", { name: "export.json", mimeType: "application/json", buffer: await readFile(path) });
  await page.getByText(/chats? imported/).waitFor();
});

// The server tells the browser to clear its storage, which closes the worker's database under it.
test("the account is erased, with a receipt", async () => {
  await page.goto(`${world.origin}/#/settings/data`);
  await page.getByRole("button", { name: "Erase my account" }).click();
  await page.getByRole("dialog").getByLabel("Password", { exact: true }).fill(PASSWORD);
  await page.getByRole("dialog").getByRole("button", { name: "Continue" }).click();
  await page.getByText("Your account is erased").waitFor();
  await tab.shot("erased");
});

test("nothing went wrong in the console on the way", async () => {
  await tab.close();
});
