// What can go wrong between a browser and the program, each in a real browser against the real program: a clear state is drawn, nothing that
// was typed is lost, and it arrives later.
//
//   browser ─▶ a proxy that can be cut off, and that can lie (world/lies.ts) ─▶ the program, which can be put back to a backup
// About the protocol and not about layout: run once, with a phone where a second browser is needed. The states are drawn at both sizes in
// states.browser.ts.
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, beforeEach, test } from "node:test";
import type { Page } from "playwright-core";
import { logIn as logInDevice } from "../../src/client/account";
import { say } from "../../src/client/chats";
import { type Device, disconnect } from "../../src/client/device";
import { MemoryFiles } from "../../src/client/files";
import { flush } from "../../src/client/send";
import { sync } from "../../src/client/sync";
import { type ChatId, RecoveryCode } from "../../src/format/index";
import { readBody, ServerFrame, writeBody } from "../../src/protocol/index";
import { dropped, Liar, onChat } from "../world/lies";
import { program } from "../world/ways";
import { releaseOf } from "./release";
import { answered, ask, chatCalled, lock, logIn, openChat, PASSWORD, register, rename, stored, tryNow, unlock } from "./steps";
import { BrowserWorld, PHONE, type Tab } from "./world";

let world: BrowserWorld;
let tab: Tab;
let page: Page;
let recovery = "";
const liar = new Liar();

before(async () => {
  const between = (text: string) => liar.receives(readBody(ServerFrame, text)).map((frame) => writeBody(ServerFrame, frame));
  // What an answer asks this device for is shown elsewhere (asks.browser.ts): here it goes on without, at once.
  world = await BrowserWorld.start(true, { between, settings: { CONFIDANT_WEB__ASK_DEVICE_SECONDS: "1" } });
  tab = await world.tab();
  page = tab.page;
  recovery = await register(world, tab, "alice", world.server?.firstCode);
  await chatCalled(page, "The first chat", "What is there?");
});
after(() => world?.stop());

// What one test leaves behind is not the next one's fault.
beforeEach(() => {
  liar.lie = null;
  world.reach(true);
});

/** Cut off, and back: what the page does about it is its own. */
async function reconnect(on: Page): Promise<void> {
  world.reach(false);
  await on.getByText("The server cannot be reached.").waitFor();
  world.reach(true);
  await tryNow(on);
}

/** Another device of the same person, without a browser. */
async function device(): Promise<Device> {
  const setup = { transport: program(world.server?.origin ?? ("" as never)), files: new MemoryFiles(), key: null, clock: () => Date.now() };
  const one = await logInDevice(setup, { kind: "recovery", code: RecoveryCode.parse(recovery) });
  await sync(one, "all");
  return one;
}

async function shownChat(on: Page): Promise<ChatId> {
  await on.waitForFunction(() => /#\/chat_/.test(location.hash));
  return new URL(on.url()).hash.slice(2) as ChatId;
}

const typed = (on: Page, text: string) => on.waitForFunction((want) => (document.getElementById("composer") as HTMLTextAreaElement | null)?.value === want, text);

test("a wrong password: said at the lock and at the door, and nothing is gone", async () => {
  await page.fill("#composer", "half a thought");
  await page.waitForTimeout(2_500);
  await lock(page);
  await unlock(page, "not the password");
  await page.getByText("Login or password is wrong").waitFor();
  await tab.shot("fault-wrong-password");
  await unlock(page);
  await openChat(page, "The first chat");
  await typed(page, "half a thought");
  const other = await world.tab({ viewport: PHONE });
  await logIn(world, other, "alice", "not the password");
  await other.page.getByText("Login or password is wrong").waitFor();
  await other.shot("fault-wrong-login-phone");
  // A refused log-in is an answer other than 200, which browsers write into their console.
  other.forgive();
  await other.close();
});

test("a lost key: files that do not open any more are said to be damaged; after logging in again everything is back", async () => {
  const other = await world.tab();
  await logIn(world, other, "alice");
  await openChat(other.page, "The first chat");
  await stored(other.page);
  await lock(other.page);
  await other.page.evaluate(async () => {
    const db = await new Promise<IDBDatabase>((resolve) => {
      const open = indexedDB.open("confidant");
      open.onsuccess = () => resolve(open.result);
    });
    const store = db.transaction("files", "readwrite").objectStore("files");
    const bytes = await new Promise<Uint8Array>((resolve) => {
      const get = store.get("state");
      get.onsuccess = () => resolve(get.result as Uint8Array);
    });
    bytes[bytes.length - 1] = (bytes.at(-1) ?? 0) ^ 1;
    await new Promise<void>((resolve) => {
      store.put(bytes, "state").onsuccess = () => resolve();
    });
    db.close();
  });
  await unlock(other.page);
  await other.page.getByText("What this browser has stored does not open.").waitFor();
  await other.shot("fault-damaged");
  await other.page.getByRole("button", { name: "Use another account" }).click();
  await other.page.getByRole("button", { name: "Remove it" }).click();
  await other.page.getByRole("heading", { name: "Log in" }).waitFor();
  await logIn(world, other, "alice");
  await openChat(other.page, "The first chat");
  await answered(other.page, "noted: What is there?");
  await other.close();
});

test("offline from the start: unlocked without a server, one reads and writes, and it arrives later", async () => {
  await stored(page);
  await lock(page);
  await page.reload();
  await page.getByRole("heading", { name: "Locked" }).waitFor();
  world.reach(false);
  await unlock(page);
  await page.locator(".banner").waitFor();
  await openChat(page, "The first chat");
  await answered(page, "noted: What is there?");
  await ask(page, "Asked offline");
  await page.getByText("The question is kept here").waitFor();
  await tab.shot("fault-offline");
  // Closed and opened again, still offline. The page itself comes from the program, so it is only reloaded when that is back.
  await lock(page);
  await unlock(page);
  await openChat(page, "The first chat");
  await page.getByText("The question is kept here").waitFor();
  world.reach(true);
  await tryNow(page);
  await answered(page, "noted: Asked offline");
  tab.forgive();
});

test("an expired session: said, with what is unsent kept, and sent after logging in again", async () => {
  await stored(page);
  await tab.context.clearCookies();
  await reconnect(page);
  await page.getByText("The session is over.").waitFor();
  await ask(page, "Asked without a session");
  await page.getByText("The question is kept here").waitFor();
  await tab.shot("fault-session");
  await page.getByRole("button", { name: "Log in", exact: true }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Password", { exact: true }).fill(PASSWORD);
  await dialog.getByRole("button", { name: "Log in", exact: true }).click();
  await answered(page, "noted: Asked without a session");
  assert.equal(await page.getByRole("dialog").count(), 0, "the dialog is gone");
  tab.forgive();
});

test("withheld: a new browser is told that a chat is missing, and shows the others", async () => {
  await chatCalled(page, "The second chat", "Is this kept back?");
  liar.lie = dropped(await shownChat(page));
  const other = await world.tab({ viewport: PHONE });
  await logIn(world, other, "alice");
  await other.page.getByText("does not fit what this device has seen").waitFor();
  await other.page.getByRole("button", { name: "What now?" }).click();
  await other.page.getByText("Name of the reason: withheld").waitFor();
  await other.shot("fault-withheld-phone");
  await other.page.getByRole("dialog").getByRole("button", { name: "Close" }).click();
  await other.page.getByRole("button", { name: "Chats" }).click();
  await other.page.locator(".chat small", { hasText: "This cannot be opened" }).waitFor();
  await openChat(other.page, "The first chat");
  await answered(other.page, "noted: What is there?");
  // Honest again: the chat is there.
  liar.lie = null;
  world.reach(false);
  await other.page.waitForTimeout(500);
  world.reach(true);
  await other.page.reload();
  await unlock(other.page);
  await openChat(other.page, "The second chat");
  await answered(other.page, "noted: Is this kept back?");
  other.forgive();
  await other.close();
  tab.forgive();
});

test("forked: another history than the one that was seen is refused; what was seen stays, and what was typed", async () => {
  await openChat(page, "The second chat");
  await stored(page);
  const chat = await shownChat(page);
  world.reach(false);
  await page.getByText("The server cannot be reached.").waitFor();
  const one = await device();
  await say(one, chat, "from a device that is not lied to");
  await flush(one);
  disconnect(one);
  liar.lie = onChat(chat, (sent) => ({ ...sent, trail: undefined }));
  await page.fill("#composer", "typed before the lie");
  await page.waitForTimeout(2_500);
  world.reach(true);
  await tryNow(page);
  await page.getByText("does not fit what this device has seen").waitFor();
  await page.getByRole("button", { name: "What now?" }).click();
  await page.getByText("Name of the reason: forked").waitFor();
  await tab.shot("fault-forked");
  await page.getByRole("dialog").getByRole("button", { name: "Close" }).click();
  assert.equal(await page.getByText("from a device that is not lied to").count(), 0);
  await answered(page, "noted: Is this kept back?");
  await typed(page, "typed before the lie");
  liar.lie = null;
  await reconnectRefused();
  await page.getByText("from a device that is not lied to").waitFor();
  await typed(page, "typed before the lie");
  await page.fill("#composer", "");
  tab.forgive();
});

/** After a refusal the page stays connected: the proxy hangs up. */
async function reconnectRefused(): Promise<void> {
  world.reach(false);
  await page.waitForTimeout(500);
  world.reach(true);
  await page.evaluate(() => window.dispatchEvent(new Event("online")));
  await tryNow(page);
  await stored(page);
}

test("rolled back: an older state is refused, with the words to say so, and this browser can write its own again", async () => {
  await openChat(page, "The first chat");
  await stored(page);
  const copy = await world.server?.backup();
  await reconnectRefused();
  await ask(page, "After the backup");
  await answered(page, "noted: After the backup");
  await rename(page, "Renamed after the backup");
  await stored(page);
  await world.server?.use(copy ?? "");
  await page.getByText("does not fit what this device has seen").waitFor();
  await page.fill("#composer", "typed while it is refused");
  await page.getByRole("button", { name: "What now?" }).click();
  await page.getByText("Name of the reason: rolled-back").waitFor();
  await tab.shot("fault-rolled-back");
  await page.getByRole("dialog").getByRole("button", { name: "Write mine again" }).click();
  await page.getByRole("button", { name: "The operator confirmed it" }).click();
  await page.getByText("Written again:").waitFor();
  await answered(page, "noted: After the backup");
  await typed(page, "typed while it is refused");
  await page.fill("#composer", "");
  // What is on the server again is what a new device gets.
  const one = await device();
  assert.ok([...one.rooms.values()].some((room) => JSON.stringify([...room.items.values()]).includes("After the backup")));
  disconnect(one);
  tab.forgive();
});

test("a clock that is wrong by a day, in either direction, changes nothing of the order or the words", async () => {
  // A release whose worker has the clock that its name says, in a world of its own: it and the page before it are wrong alike.
  const work = await mkdtemp(join(tmpdir(), "confidant-clocks-"));
  const prelude = `{ const skew = / skew=(-?\\d+)$/.exec(self.name); if (skew) { const now = Date.now; Date.now = () => now() + Number(skew[1]); self.name = self.name.slice(0, skew.index); } }\n`;
  const folder = await releaseOf(join(work, "release"), "client/worker.ts", (source) => `${prelude}${source}`);
  const clocks = await BrowserWorld.start(true, { settings: { CONFIDANT_WEB__PAGE_FOLDER: folder, CONFIDANT_WEB__ASK_DEVICE_SECONDS: "1" } });
  try {
    const tabs: Tab[] = [];
    for (const skew of [0, 86_400_000, -86_400_000]) {
      const one = await clocks.tab({ serviceWorkers: "block" });
      tabs.push(one);
      await one.page.addInitScript((by) => {
        const now = Date.now;
        Date.now = () => now() + by;
        const Plain = Worker;
        Object.assign(globalThis, {
          Worker: class extends Plain {
            constructor(url: string | URL, options: WorkerOptions = {}) {
              super(url, { ...options, name: `${options.name ?? ""} skew=${by}` });
            }
          },
        });
      }, skew);
    }
    const [right, ahead, behind] = tabs as [Tab, Tab, Tab];
    await register(clocks, right, "alice", clocks.server?.firstCode);
    await chatCalled(right.page, "Clocks", "said on time");
    for (const [one, words] of [[ahead, "from tomorrow"], [behind, "from yesterday"], [right, "on time again"]] as const) {
      if (one !== right) await logIn(clocks, one, "alice");
      await openChat(one.page, "Clocks");
      await ask(one.page, words);
      await answered(one.page, `noted: ${words}`);
      await stored(one.page);
    }
    // What was written offline by a wrong clock arrives, and what the others wrote meanwhile stays.
    for (const [one, words] of [[ahead, "offline, tomorrow"], [behind, "offline, yesterday"]] as const) {
      clocks.reach(false);
      await one.page.getByText("The server cannot be reached.").waitFor();
      await ask(one.page, words);
      await one.page.getByText("The question is kept here").waitFor();
      clocks.reach(true);
      await tryNow(one.page);
      await answered(one.page, `noted: ${words}`);
      await stored(one.page);
    }
    const want = ["said on time", "from tomorrow", "from yesterday", "on time again", "offline, tomorrow", "offline, yesterday"];
    for (const one of tabs) {
      await tryNow(one.page);
      await answered(one.page, "noted: offline, yesterday");
      const said = (await one.page.locator("article.said .words").allTextContents()).map((text) => text.trim());
      assert.deepEqual(said, want, "in the order in which they were written");
    }
    // It was wrong in the worker, too: what it wrote is from tomorrow, by its own word.
    const dates = await right.page.locator("article.said time").evaluateAll((all) => all.map((one) => Date.parse(one.getAttribute("datetime") ?? "") - Date.now()));
    assert.ok((dates[1] ?? 0) > 80_000_000 && (dates[2] ?? 0) < -80_000_000, dates.join());
    await right.page.locator(".chat", { hasText: "Clocks" }).waitFor();
    await right.shot("fault-clock");
    await ahead.shot("fault-clock-ahead");
    for (const one of tabs) {
      one.forgive();
      await one.close();
    }
  } finally {
    await clocks.stop();
    await rm(work, { recursive: true, force: true });
  }
});

test("a new device is let in by the code that it shows, and needs a password of its own afterwards", async () => {
  const other = await world.tab({ viewport: PHONE });
  await other.page.goto(world.origin);
  await other.page.getByRole("button", { name: "Add this device" }).click();
  await other.page.getByRole("img", { name: "QR code for the other device" }).waitFor();
  const letters = ((await other.page.locator(".code-shown").textContent()) ?? "").replaceAll(" ", "");
  assert.match(letters, /^[a-z2-7]{26}$/);
  await other.shot("fault-pairing-phone");
  // What the QR code says is this address.
  await page.goto(`${world.origin}/#/pair/${letters}`);
  await page.getByRole("button", { name: "Let it in" }).click();
  await page.getByRole("dialog").getByLabel("Password", { exact: true }).fill(PASSWORD);
  await page.getByRole("dialog").getByRole("button", { name: "Continue" }).click();
  await page.getByText("The device is let in.").waitFor();
  await other.page.getByText("Paired. Which login and password").waitFor();
  await other.page.getByLabel("Login").fill("alice");
  await other.page.getByLabel("Password", { exact: true }).fill(PASSWORD);
  await other.page.getByRole("button", { name: "Continue" }).click();
  await openChat(other.page, "The second chat");
  await answered(other.page, "noted: Is this kept back?");
  await other.page.reload();
  await unlock(other.page);
  await openChat(other.page, "The second chat");
  await answered(other.page, "noted: Is this kept back?");
  await other.close();
});

test("nothing else went wrong in the console on the way", () => tab.close());
