// What a person does with an account and a browser, in a real browser against the real program: the recovery code at the door and a new one, a
// new password, devices, staying unlocked, theme, language and Enter; and what is typed for a chat that does not exist yet.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Page } from "playwright-core";
import { answered, ask, atEachSize, lock, logIn, PASSWORD, register, showList, stored, unlock } from "./steps";
import { BrowserWorld, type Tab } from "./world";

atEachSize((size, opposite) => {
  let world: BrowserWorld;
  let tab: Tab;
  let page: Page;
  let recovery = "";
  let password = PASSWORD;

  before(async () => {
    world = await BrowserWorld.start(true);
    tab = await world.tab(size.options);
    page = tab.page;
    recovery = await register(world, tab, "owner", world.server?.firstCode ?? "");
  });

  after(async () => {
    await world?.stop();
  });

  const settings = (part: string, on: Page = page) => on.goto(`${world.origin}/#/settings/${part}`);
  const typed = (on: Page = page) => on.inputValue("#composer");
  const typedIs = (text: string, on: Page = page) => on.waitForFunction((wanted) => (document.getElementById("composer") as HTMLTextAreaElement | null)?.value === wanted, text);

  /** Answers the dialog that asks for the password. */
  async function prove(on: Page = page, words = password): Promise<void> {
    const dialog = on.getByRole("dialog");
    await dialog.getByLabel("Password", { exact: true }).fill(words);
    await dialog.getByRole("button", { name: "Continue" }).click();
  }

  /** A recovery code that is shown: keeps it, and goes on. */
  async function takeCode(on: Page): Promise<string> {
    const code = (await on.locator(".code-shown").textContent()) ?? "";
    await on.getByLabel("I have kept the code").check();
    await on.getByRole("button", { name: "Continue" }).click();
    return code;
  }

  async function newChat(on: Page = page): Promise<void> {
    await on.goto(`${world.origin}/#/`);
    await on.getByText("What is on your mind?").waitFor();
  }

  test("what is typed for a new chat outlives a reload and locking, sealed on the device; another tab has it too", async () => {
    await newChat();
    await page.fill("#composer", "CANARY-half a thought");
    await page.waitForTimeout(1_000);
    await page.reload();
    await unlock(page);
    await typedIs("CANARY-half a thought");
    // No pause: locking keeps it by itself.
    await page.fill("#composer", "CANARY-half a thought, and more");
    await lock(page);
    const kept = await page.evaluate(async () => {
      const texts: string[] = [];
      for (const { name } of await indexedDB.databases()) {
        const db = await new Promise<IDBDatabase>((resolve, reject) => {
          const open = indexedDB.open(name ?? "");
          open.onsuccess = () => resolve(open.result);
          open.onerror = () => reject(open.error ?? new Error("no database"));
        });
        const all = await new Promise<unknown[]>((resolve, reject) => {
          const asked = db.transaction("files").objectStore("files").getAll();
          asked.onsuccess = () => resolve(asked.result as unknown[]);
          asked.onerror = () => reject(asked.error ?? new Error("not read"));
        });
        texts.push(...all.map((one) => new TextDecoder().decode(one as Uint8Array)));
        db.close();
      }
      return texts.join("\n");
    });
    assert.ok(kept.length > 100 && !kept.includes("CANARY"), "it is sealed");
    await unlock(page);
    await typedIs("CANARY-half a thought, and more");
    const second = await tab.context.newPage();
    await second.goto(world.origin);
    await second.getByRole("button", { name: "Use it here" }).click();
    await unlock(second);
    await typedIs("CANARY-half a thought, and more", second);
    await second.close();
    await page.getByRole("heading", { name: "Locked" }).waitFor();
    await unlock(page);
    await typedIs("CANARY-half a thought, and more");
    // Sent, it is gone; of a temporary chat nothing is kept.
    await page.fill("#composer", "a question");
    await ask(page, "a question");
    await answered(page, "noted: a question");
    await showList(page);
    await page.getByRole("button", { name: "Temporary chat" }).click();
    await page.fill("#composer", "CANARY-nowhere");
    await page.waitForTimeout(1_000);
    await page.reload();
    await unlock(page);
    await page.getByText("What is on your mind?").waitFor();
    await page.waitForTimeout(500);
    assert.equal(await typed(), "");
    assert.ok(!tab.sent.some((frame) => frame.includes("CANARY")), "nothing of it left the device");
  });

  test("the name of a device is seen by the others, and a device is logged out from another one", async () => {
    await settings("devices");
    await page.getByLabel("Name of this device").fill("Laptop at home");
    await page.getByRole("button", { name: "Save" }).click();
    await page.locator(".lines li", { hasText: "Laptop at home · this device" }).waitFor();
    const other = await world.tab(opposite.options);
    await logIn(world, other, "owner", password);
    await other.page.getByText("What is on your mind?").waitFor();
    await settings("devices", other.page);
    await other.page.locator(".lines li", { hasText: "Laptop at home" }).waitFor();
    await tab.shot(`devices-${size.name}`);
    await page.reload();
    await unlock(page, password);
    await settings("devices");
    await page.getByRole("button", { name: "Log out", exact: true }).first().click();
    await prove();
    await page.getByText("The device is logged out.").waitFor();
    await other.page.getByText("This device was logged out from another device.").waitFor();
    other.forgive();
    await other.close();
  });

  test("a new password opens the account, and the old one does not", async () => {
    await settings("security");
    const next = "another long password";
    await page.getByLabel("New password", { exact: true }).fill(next);
    await page.getByLabel("Password, again").fill(next);
    await page.getByRole("button", { name: "Change" }).click();
    await prove();
    await page.getByText("The password is changed.").waitFor();
    password = next;
    await lock(page);
    await unlock(page, password);
    await page.getByRole("heading", { name: "Security" }).waitFor();
    const other = await world.tab(opposite.options);
    await logIn(world, other, "owner", PASSWORD);
    await other.page.getByRole("button", { name: "Log in", exact: true }).waitFor();
    await other.page.locator(".problem").first().waitFor();
    await other.page.getByLabel("Password", { exact: true }).fill(password);
    await other.page.getByRole("button", { name: "Log in", exact: true }).click();
    await other.page.getByText("What is on your mind?").waitFor();
    other.forgive();
    await other.close();
  });

  test("a new recovery code: the old one stops working, the new one opens the account at the door and is replaced", async () => {
    await settings("security");
    await page.getByRole("button", { name: "Make a new recovery code" }).click();
    await prove();
    const fresh = await takeCode(page);
    assert.match(fresh, /^([a-z2-7]{4}-){7}[a-z2-7]{4}$/);
    assert.notEqual(fresh, recovery);
    const other = await world.tab(opposite.options);
    const on = other.page;
    await on.goto(world.origin);
    await on.getByRole("button", { name: "Lost the password" }).click();
    await on.getByLabel("Login").fill("owner");
    await on.getByLabel("Recovery code").fill(recovery);
    const third = "a third long password";
    await on.getByLabel("New password", { exact: true }).fill(third);
    await on.getByRole("button", { name: "Set a new password" }).click();
    await on.locator(".problem").first().waitFor();
    await on.getByLabel("Recovery code").fill(fresh);
    await on.getByLabel("New password", { exact: true }).fill(third);
    await on.getByRole("button", { name: "Set a new password" }).click();
    await on.locator(".code-shown").waitFor();
    await other.shot(`recovered-${opposite.name}`);
    recovery = await takeCode(on);
    assert.notEqual(recovery, fresh);
    password = third;
    await on.getByText("What is on your mind?").waitFor();
    // On a phone, too, it is seen that the page is unlocked; and a touch locks it.
    await on.getByRole("button", { name: /lock now/ }).first().waitFor();
    await other.shot(`unlocked-${opposite.name}`);
    await lock(on);
    await unlock(on, password);
    await on.getByText("What is on your mind?").waitFor();
    other.forgive();
    await other.close();
  });

  test("staying unlocked: the page opens by itself after a reload, until that is switched off", async () => {
    tab.forgive();
    await page.reload();
    const again = page.getByRole("button", { name: "Log in" });
    // The password was changed by the other device: this one's session is over, its files open with the password that it knows.
    await page.getByRole("heading", { name: "Locked" }).waitFor();
    await unlock(page, "another long password");
    await again.first().click();
    await page.getByRole("dialog").getByLabel("Password", { exact: true }).fill(password);
    await page.getByRole("dialog").getByRole("button", { name: "Log in", exact: true }).click();
    await stored(page);
    await settings("security");
    await page.getByRole("switch", { name: "Stay unlocked on this device" }).click();
    await page.locator('[role=switch][aria-checked="true"]').first().waitFor();
    await page.reload();
    await page.getByRole("heading", { name: "Security" }).waitFor();
    await page.getByRole("switch", { name: "Stay unlocked on this device" }).click();
    await page.locator('[role=switch][aria-checked="false"]').first().waitFor();
    await page.reload();
    await page.getByRole("heading", { name: "Locked" }).waitFor();
    await unlock(page, password);
    tab.forgive();
  });

  test("theme, language and Enter: each is chosen, seen at once, and outlives a reload", async () => {
    await settings("general");
    await page.getByLabel("Theme").selectOption({ label: "Dark" });
    assert.equal(await page.evaluate(() => document.documentElement.dataset["theme"]), "dark");
    await page.getByRole("switch", { name: "Enter sends" }).click();
    await page.getByLabel("Language").selectOption({ label: "Deutsch" });
    await page.getByRole("heading", { name: "Allgemein" }).waitFor();
    assert.deepEqual(await page.evaluate(() => [document.documentElement.lang, document.documentElement.dir]), ["de", "ltr"]);
    await page.reload();
    await page.getByLabel("Passwort", { exact: true }).fill(password);
    await page.getByRole("button", { name: "Entsperren" }).click();
    await page.getByRole("heading", { name: "Allgemein" }).waitFor();
    assert.equal(await page.evaluate(() => document.documentElement.dataset["theme"]), "dark");
    await tab.shot(`settings-german-${size.name}`);
    await page.goto(`${world.origin}/#/`);
    await page.fill("#composer", "eine Zeile");
    await page.press("#composer", "End");
    await page.press("#composer", "Enter");
    assert.equal(await typed(), "eine Zeile\n");
    await page.press("#composer", "Control+Enter");
    await answered(page, "noted: eine Zeile");
    await settings("general");
    await page.getByLabel("Sprache").selectOption({ label: "English" });
    await page.getByRole("switch", { name: "Enter sends" }).click();
    await page.getByLabel("Theme").selectOption({ label: "Same as the system" });
    await page.goto(`${world.origin}/#/`);
    await ask(page, "one line");
    await answered(page, "noted: one line");
    await stored(page);
    await tab.close();
  });
});
