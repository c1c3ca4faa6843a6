// The main flows in a real browser, against the built page, a real server and a model: what a person does, in order, on a desk and on a phone.
import assert from "node:assert/strict";
import { after, afterEach, before, test } from "node:test";
import type { Page } from "playwright-core";
import { answered, ask, atEachSize, fits, hideList, listed, lock, more, newChat, openChat, PASSWORD, rename, showList, stored, tryNow, unlock } from "./steps";
import { BrowserWorld, type Tab } from "./world";

atEachSize((size, other) => {
  let world: BrowserWorld;
  let tab: Tab;
  let page: Page;
  let recoveryCode = "";

  before(async () => {
    // What an answer asks this device for is shown elsewhere (asks.browser.ts): here it goes on without, at once.
    world = await BrowserWorld.start(true, { settings: { CONFIDANT_WEB__ASK_DEVICE_SECONDS: "1" } });
    tab = await world.tab(size.options);
    page = tab.page;
  });

  after(async () => {
    await world?.stop();
  });

  // Each step stands on the one before: what went wrong is best seen.
  let steps = 0;
  const shot = (name: string) => tab.shot(`${name}-${size.name}`);
  afterEach(async () => {
    steps += 1;
    if (page.isClosed()) return;
    await shot(`flow-${steps}`);
    await fits(page);
  });

  test("a person registers, and the recovery code is shown once", async () => {
    await page.goto(world.origin);
    await page.getByRole("button", { name: "Create an account" }).click();
    await page.getByLabel("Login").fill("alice");
    await page.getByLabel("Password", { exact: true }).fill(PASSWORD);
    await page.getByLabel("Password, again").fill(PASSWORD);
    await page.getByLabel("Invitation code").fill(world.server?.firstCode ?? "");
    await shot("register");
    await page.getByRole("button", { name: "Create the account" }).click();
    recoveryCode = (await page.locator(".code-shown").textContent()) ?? "";
    assert.match(recoveryCode, /[a-z2-7]/);
    await shot("recovery-code");
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
    await shot("answered");
    await page.getByRole("button", { name: "What the server saw" }).click();
    await page.getByText("It cannot open your stored chats.").waitFor();
  });

  test("an answer is stopped, and what was said counts", async () => {
    world.model.answers.set("Say something long", ["Once upon ", "a time ", "there was"]);
    world.model.hold();
    await ask(page, "Say something long");
    await page.locator("article.live", { hasText: "Once upon" }).waitFor();
    await shot("streaming");
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
    await shot("branch");
  });

  test("a chat is renamed, pinned, found, deleted and taken back", async () => {
    await rename(page, "Sums of small numbers");
    await listed(page, "Sums of small numbers");
    await more(page, "Pin");
    await showList(page);
    await page.getByRole("heading", { name: "Pinned" }).waitFor();
    await page.fill("#search", "four numb");
    await page.locator(".chat mark").first().waitFor();
    assert.match((await page.locator(".chat .title").first().textContent()) ?? "", /Sums of small numbers/);
    await shot("search");
    await page.fill("#search", "four numbz");
    await page.getByText("0 results").waitFor();
    await page.fill("#search", "");
    await hideList(page);
    await page.getByRole("button", { name: "Sums of small numbers" }).click();
    await page.getByRole("dialog").getByText("As of", { exact: true }).waitFor();
    await shot("about-chat");
    await page.keyboard.press("Escape");
    await more(page, "Delete");
    await page.getByRole("button", { name: "Undo" }).click();
    await listed(page, "Sums of small numbers");
  });

  test("locked, nothing is shown; a wrong password does not open it; the right one does, after a reload too", async () => {
    await lock(page);
    assert.equal(await page.getByText("Sums of small numbers").count(), 0);
    assert.equal(await page.title(), "Confidant");
    await page.reload();
    await unlock(page, "not the password");
    await page.getByText("Login or password is wrong").waitFor();
    await unlock(page);
    await listed(page, "Sums of small numbers");
  });

  // A command may have connected while the keeper was dialling.
  test("after unlocking, it is in sync by itself", async () => {
    await stored(page);
  });

  test(`a second browser logs in, at ${other.name} size, and both see what either writes`, async () => {
    const second = await world.tab(other.options);
    await second.page.goto(world.origin);
    await second.page.getByLabel("Login").fill("alice");
    await second.page.getByLabel("Password", { exact: true }).fill(PASSWORD);
    await second.page.getByRole("button", { name: "Log in", exact: true }).click();
    await openChat(second.page, "Sums of small numbers");
    await second.page.getByText("noted: What is three and three?").waitFor();
    await second.shot(`second-${other.name}`);
    await openChat(page, "Sums of small numbers");
    await ask(second.page, "From the other");
    await answered(second.page, "noted: From the other");
    await answered(page, "noted: From the other");
    await second.close();
  });

  test("without the server one reads and writes; what waits is shown, and is sent afterwards", async () => {
    world.reach(false);
    await page.getByText("The server cannot be reached.").waitFor();
    await ask(page, "Written offline");
    await page.getByText("The question is kept here").waitFor();
    await showList(page);
    await page.locator(".foot a").click();
    await hideList(page);
    await page.getByText("Not stored yet").waitFor();
    await shot("outbox");
    world.reach(true);
    await tryNow(page);
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
    await shot("settings-privacy");
    await newChat(page);
    tab.sent.length = 0;
    await ask(page, "Is anything sent along?");
    await answered(page, "noted: Is anything sent along?");
    const asked = tab.sent.find((frame) => frame.includes("Is anything sent along?")) ?? "";
    assert.match(asked, /"off":\[[^\]]*"tools"/);
    assert.ok(!tab.sent.some((frame) => frame.includes("CANARY-CORK")), "nobody ticked it");
  });

  test("a draft stays with its chat, and a temporary chat is kept nowhere", async () => {
    await openChat(page, "Sums of small numbers");
    await page.fill("#composer", "half a thought");
    await showList(page);
    await page.getByRole("button", { name: "Temporary chat" }).click();
    await page.getByText("A temporary chat").waitFor();
    assert.equal(await page.inputValue("#composer"), "");
    tab.sent.length = 0;
    await ask(page, "Keep this nowhere");
    await answered(page, "noted: Keep this nowhere");
    await page.locator("article.answer").getByText("not kept").waitFor();
    await shot("temporary");
    await openChat(page, "Sums of small numbers");
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

  test("exports of big assistants and Markdown become chats; a chat is saved as Markdown", async () => {
    const tree = [{ title: "From a tree", current_node: "b", mapping: {
      a: { parent: null, message: { author: { role: "user" }, content: { parts: ["Asked in a tree"] } } },
      b: { parent: "a", message: { author: { role: "assistant" }, content: { parts: ["Answered in a tree"] }, metadata: { model_slug: "big" } } },
    } }];
    const list = [{ name: "From a list", chat_messages: [{ sender: "human", text: "Asked in a list" }, { sender: "assistant", content: [{ type: "text", text: "Answered in a list" }] }] }];
    for (const [name, mimeType, text] of [["tree.json", "application/json", JSON.stringify(tree)], ["list.json", "application/json", JSON.stringify(list)], ["notes.md", "text/markdown", "# From Markdown\n\n**You:** Asked in Markdown\n\n**Assistant:** Answered in Markdown"]] as const) {
      await page.setInputFiles("input[type=file]", { name, mimeType, buffer: Buffer.from(text) });
    }
    for (const [title, words] of [["From a tree", "Answered in a tree"], ["From a list", "Answered in a list"], ["From Markdown", "Answered in Markdown"]] as const) {
      await openChat(page, title);
      await answered(page, words);
    }
    await page.getByRole("button", { name: "More for this chat" }).click();
    const [file] = await Promise.all([page.waitForEvent("download"), page.getByRole("menuitem", { name: "Save as Markdown" }).click()]);
    const { readFile } = await import("node:fs/promises");
    const saved = await readFile((await file.path()) ?? "", "utf8");
    assert.match(saved, /^# From Markdown\n[\s\S]*Asked in Markdown[\s\S]*Answered in Markdown/);
  });

  test("a file that is dropped or pasted is not taken, and the composer says so", async () => {
    for (const kind of ["drop", "paste"]) {
      await page.evaluate((type) => {
        const data = new DataTransfer();
        data.items.add(new File(["x"], "picture.png", { type: "image/png" }));
        const event = type === "drop" ? new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true }) : new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true });
        document.getElementById("composer")?.dispatchEvent(event);
      }, kind);
      const said = page.getByText("Files and images cannot be sent yet: only text.");
      await said.first().waitFor();
      await page.locator(".note", { hasText: "Files and images" }).first().getByRole("button", { name: "Close" }).click();
      await said.first().waitFor({ state: "detached" });
    }
    // Beside the box the browser would open it in place of the page; and with a text, the text is taken.
    const seen = await page.evaluate(() => {
      const data = new DataTransfer();
      data.items.add(new File(["x"], "picture.png", { type: "image/png" }));
      const events = ["dragover", "drop"].map((type) => new DragEvent(type, { dataTransfer: data, bubbles: true, cancelable: true }));
      for (const event of events) document.querySelector("main")?.dispatchEvent(event);
      data.setData("text/plain", "picture.png");
      const pasted = new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true });
      document.getElementById("composer")?.dispatchEvent(pasted);
      return [...events, pasted].map((event) => event.defaultPrevented);
    });
    assert.deepEqual(seen, [true, true, false]);
    await page.getByText("Files and images cannot be sent yet: only text.").first().waitFor();
    await page.getByText("Only the text was taken.").first().waitFor();
  });

  // The server tells the browser to clear its storage, which closes the worker's database under it.
  test("the account is erased, with a receipt", async () => {
    await page.goto(`${world.origin}/#/settings/data`);
    await page.getByRole("button", { name: "Erase my account" }).click();
    await page.getByRole("dialog").getByLabel("Password", { exact: true }).fill(PASSWORD);
    await page.getByRole("dialog").getByRole("button", { name: "Continue" }).click();
    await page.getByText("Your account is erased").waitFor();
    await shot("erased");
  });

  test("nothing went wrong in the console on the way", async () => {
    await tab.close();
  });
});
