// What a person does in nearly every test in a browser: registers, logs in, unlocks, asks, opens a chat. The same steps on a desk and on a
// phone, where the list of chats is behind a button.
import assert from "node:assert/strict";
import { describe } from "node:test";
import type { Page } from "playwright-core";
import { type BrowserWorld, DESKTOP, PHONE, type Tab } from "./world";

export interface Size {
  name: "desktop" | "phone";
  options: { viewport: { width: number; height: number }; colorScheme: "light" | "dark" };
}

const SIZES: readonly Size[] = [
  { name: "desktop", options: { viewport: DESKTOP, colorScheme: "light" } },
  { name: "phone", options: { viewport: PHONE, colorScheme: "dark" } },
];

/** Up to this width the list of chats is behind a button. */
const DRAWER = 760;

/** Runs the same flows on a desk and on a phone. `SIZE=phone` runs those only. */
export function atEachSize(flows: (size: Size, other: Size) => void): void {
  for (const size of SIZES) {
    const other = SIZES.find((one) => one !== size) ?? size;
    if ((process.env["SIZE"] ?? size.name) === size.name) describe(size.name, () => flows(size, other));
  }
}

/** Shows the list of chats, where it is not beside the chat anyway. */
export async function showList(page: Page): Promise<void> {
  await page.locator("#side").waitFor({ state: "attached" });
  if ((page.viewportSize()?.width ?? 0) > DRAWER) return;
  if ((await page.locator("#side.open").count()) === 0) await page.getByRole("button", { name: "Chats", exact: true }).click();
  await page.locator("#side.open").waitFor();
}

/** Puts it away again. */
export async function hideList(page: Page): Promise<void> {
  const open = page.locator("#side.open");
  if ((await open.count()) === 0) return;
  // A choice in it may be putting it away just now.
  await open.locator(".brand").getByRole("button", { name: "Close" }).click({ timeout: 10_000 }).catch(() => undefined);
  await open.waitFor({ state: "detached" });
}

/** Opens the chat that is at the top of the list. */
export async function firstChat(page: Page): Promise<void> {
  await showList(page);
  await page.locator("a.chat").first().click();
  await page.locator("header.head .menu").waitFor();
}

/** Waits until this is in the list. */
export async function listed(page: Page, title: string): Promise<void> {
  await showList(page);
  await page.locator(".chat .title", { hasText: title }).first().waitFor();
  await hideList(page);
}

export async function newChat(page: Page): Promise<void> {
  await showList(page);
  await page.getByRole("button", { name: "New chat" }).click();
  await page.getByText("What is on your mind?").waitFor();
}

/** Something in the menu of the chat that is open. */
export async function more(page: Page, name: string): Promise<void> {
  await page.getByRole("button", { name: "More for this chat" }).click();
  await page.getByRole("menuitem", { name }).click();
}

/** Nothing is wider than the screen. */
export async function fits(page: Page): Promise<void> {
  assert.equal(await page.evaluate(() => document.documentElement.scrollWidth > document.documentElement.clientWidth + 1), false, "nothing is wider than the screen");
}

export const PASSWORD = "correct horse battery staple";

/** Registers; gives the recovery code. */
export async function register(world: BrowserWorld, { page }: Tab, login: string, code = ""): Promise<string> {
  await page.goto(world.origin);
  await page.getByRole("button", { name: "Create an account" }).click();
  await page.getByLabel("Login").fill(login);
  await page.getByLabel("Password", { exact: true }).fill(PASSWORD);
  await page.getByLabel("Password, again").fill(PASSWORD);
  if (code !== "") await page.getByLabel("Invitation code").fill(code);
  await page.getByRole("button", { name: "Create the account" }).click();
  const recovery = (await page.locator(".code-shown").textContent()) ?? "";
  await page.getByLabel("I have kept the code").check();
  await page.getByRole("button", { name: "Continue" }).click();
  await page.getByText("What is on your mind?").waitFor();
  return recovery;
}

/** Logs in, as a new device. */
export async function logIn(world: BrowserWorld, { page }: Tab, login: string, password = PASSWORD, door = 0): Promise<void> {
  await page.goto(world.originOf(door));
  await page.getByLabel("Login").fill(login);
  await page.getByLabel("Password", { exact: true }).fill(password);
  await page.getByRole("button", { name: "Log in", exact: true }).click();
}

export async function lock(page: Page): Promise<void> {
  await showList(page);
  await page.getByRole("button", { name: /lock now/ }).click();
  await page.getByRole("heading", { name: "Locked" }).waitFor();
}

/** Which account is open, as the list says it. */
export async function isAccountOf(page: Page, login: string): Promise<void> {
  await page.locator(".who", { hasText: login }).waitFor({ state: "attached" });
}

export async function unlock(page: Page, password = PASSWORD): Promise<void> {
  await page.getByLabel("Password", { exact: true }).fill(password);
  await page.getByRole("button", { name: "Unlock" }).click();
}

export async function ask(page: Page, text: string): Promise<void> {
  await page.fill("#composer", text);
  await page.press("#composer", "Enter");
}

/** Waits for this text in an answer that is stored. */
export async function answered(page: Page, text: string): Promise<void> {
  await page.locator("article.answer:not(.live)", { hasText: text }).last().waitFor();
}

/** Opens a chat by its title, or by the words under it. */
export async function openChat(page: Page, title: string): Promise<void> {
  await showList(page);
  await page.locator(".chat", { hasText: title }).first().click();
  await page.locator("header.head h1", { hasText: title }).waitFor();
}

export async function rename(page: Page, title: string): Promise<void> {
  await more(page, "Rename");
  await page.getByRole("textbox", { name: "Rename" }).fill(title);
  await page.keyboard.press("Enter");
  await page.locator("header.head h1", { hasText: title }).waitFor();
}

/** Until everything that was written is stored. */
export async function stored(page: Page): Promise<void> {
  await page.locator(".foot").getByText("in sync").waitFor({ state: "attached" });
}

/** Tries the server again at once, unless the page has done so by itself meanwhile. */
export async function tryNow(page: Page): Promise<void> {
  await page.getByRole("button", { name: "Try now" }).click({ timeout: 3_000 }).catch(() => undefined);
}

/** A new chat with one question, called so. */
export async function chatCalled(page: Page, title: string, question: string): Promise<void> {
  await newChat(page);
  await ask(page, question);
  await answered(page, `noted: ${question}`);
  await rename(page, title);
  await stored(page);
}

/** Everything that this browser keeps, as texts: each record of each database, other storage, and the names of all of it. */
export async function everythingKept(page: Page): Promise<string> {
  return page.evaluate(async () => {
    const texts: string[] = [JSON.stringify({ ...localStorage }), JSON.stringify({ ...sessionStorage }), JSON.stringify(await caches.keys().catch(() => []))];
    const asText = (value: unknown): string => {
      if (value instanceof ArrayBuffer || ArrayBuffer.isView(value)) {
        const bytes = value instanceof ArrayBuffer ? new Uint8Array(value) : new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
        // As UTF-8 and as UTF-16: no word hides in another spelling.
        return `${new TextDecoder("utf-8").decode(bytes)}\n${new TextDecoder("utf-16le").decode(bytes)}`;
      }
      return value instanceof CryptoKey ? `key ${value.extractable}` : JSON.stringify(value) ?? "";
    };
    for (const { name } of await indexedDB.databases()) {
      const db = await new Promise<IDBDatabase>((resolve, reject) => {
        const open = indexedDB.open(name ?? "");
        open.onsuccess = () => resolve(open.result);
        open.onerror = () => reject(open.error ?? new Error("no database"));
      });
      for (const store of db.objectStoreNames) {
        const all = (ask: (store: IDBObjectStore) => IDBRequest) =>
          new Promise<unknown[]>((resolve, reject) => {
            const request = ask(db.transaction(store).objectStore(store));
            request.onsuccess = () => resolve(request.result as unknown[]);
            request.onerror = () => reject(request.error ?? new Error("not read"));
          });
        texts.push(...(await all((one) => one.getAllKeys())).map(asText), ...(await all((one) => one.getAll())).map(asText));
      }
      db.close();
    }
    return texts.join("\n");
  });
}
