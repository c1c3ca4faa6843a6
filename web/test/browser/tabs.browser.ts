// Two tabs of one browser: one has the account at a time, another takes it over, and neither undoes what the other remembers.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Page } from "playwright-core";
import { ask as say, answered, atEachSize, firstChat, register, unlock } from "./steps";
import { BrowserWorld, type Tab } from "./world";

atEachSize((size) => {
  let world: BrowserWorld;
  let tab: Tab;

  before(async () => {
    world = await BrowserWorld.start(true);
    tab = await world.tab(size.options);
  });
  after(async () => {
    await world?.stop();
  });

  async function ask(page: Page, text: string): Promise<void> {
    await say(page, text);
    await answered(page, `noted: ${text}`);
  }

  test("one tab has the account; another takes it over, after the password; and back", async () => {
    const one = tab.page;
    await register(world, tab, "alice", world.server?.firstCode);
    await ask(one, "said in the first tab");

    const two = await tab.context.newPage();
    await two.goto(world.origin);
    await two.getByText("Open in another tab").waitFor();
    assert.equal(await two.getByText("said in the first tab").count(), 0);
    await two.getByRole("button", { name: "Use it here" }).click();
    // Keys are in one worker's memory only: they do not wander from tab to tab.
    await unlock(two);
    await firstChat(two);
    await two.getByText("noted: said in the first tab").waitFor();
    await one.getByText("Open in another tab").waitFor();
    assert.equal(await one.getByText("said in the first tab").count(), 0, "the first tab has let go of it");
    await ask(two, "said in the second tab");

    await one.getByRole("button", { name: "Use it here" }).click();
    await unlock(one);
    await firstChat(one);
    await one.getByText("noted: said in the second tab").waitFor();
    await two.getByText("Open in another tab").waitFor();

    // The other tab may still be writing its last file: this one waits for that, and not for a time.
    const third = await tab.context.newPage();
    await third.goto(`${world.origin}/no-such-page`);
    await third.evaluate(() => {
      void navigator.locks.request("confidant-files", () => new Promise<void>((end) => Object.assign(globalThis, { end })));
    });
    const busy = two.getByRole("button", { name: "Use it here" });
    await busy.click();
    await third.waitForFunction(() => "end" in globalThis);
    await one.getByText("Open in another tab").waitFor();
    assert.equal(await busy.isDisabled(), true, "it waits");
    await third.evaluate(() => (globalThis as unknown as { end: () => void }).end());
    await unlock(two);
    await firstChat(two);
    await two.getByText("noted: said in the second tab").waitFor();
    await third.close();
    await one.getByRole("button", { name: "Use it here" }).click();
    await unlock(one);
    await firstChat(one);
    await one.getByText("noted: said in the second tab").waitFor();
    await two.getByText("Open in another tab").waitFor();

    // The tab that has it goes: the other one need not be asked.
    await one.close();
    await two.getByRole("button", { name: "Unlock", exact: true }).waitFor();
    await unlock(two);
    await firstChat(two);
    await two.getByText("noted: said in the second tab").waitFor();
    await tab.close();
  });
});
