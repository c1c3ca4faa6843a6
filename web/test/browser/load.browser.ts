// How the page loads, in a real browser against the program: a small cold start, the second one from the browser's own copy, without a
// server, under a new release; and nothing of it stays behind when the account goes.
//
// The program serves a build that is made here from changed sources, so that it is another release than the one inside of the program.
// About the protocol and not about layout: run once, with a phone where a second browser is needed.
import assert from "node:assert/strict";
import { cp, mkdtemp, readdir, rename, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import type { Page } from "playwright-core";
import { releaseOf as madeRelease } from "./release";
import { everythingKept } from "./steps";
import { BrowserWorld, PHONE, Tab } from "./world";

const WEB = process.env["WEB_DIR"] ?? ".";
const PASSWORD = "correct horse battery staple";
/** What a browser logs by itself while nobody answers. */
const NOBODY = /ERR_INTERNET_DISCONNECTED|ERR_EMPTY_RESPONSE|ERR_CONNECTION|ERR_FAILED|status of 50\d|WebSocket/;

let world: BrowserWorld;
let tab: Tab;
let work: string;
let folder: string;
const settings: Record<string, string> = {};

/** The page as it would be with other words at the door: a release of its own. */
const releaseOf = (words: string) => madeRelease(join(work, words), "ui/lang/en.ts", (source) => source.replace('promise: "', `promise: "${words} `));

/** From now on the program serves that release. */
async function hand(release: string): Promise<void> {
  await rm(`${folder}-next`, { recursive: true, force: true });
  await cp(release, `${folder}-next`, { recursive: true });
  await rm(folder, { recursive: true, force: true });
  await rename(`${folder}-next`, folder);
}

interface FirstLoad {
  page: string[];
  worker: string[];
  sizes: Record<string, number>;
}

async function load(): Promise<{ FIRST_LOAD: number; firstLoad: (dist: string) => Promise<FirstLoad> }> {
  return (await import(`file://${join(WEB, "load.mjs")}`)) as { FIRST_LOAD: number; firstLoad: (dist: string) => Promise<FirstLoad> };
}

/** Names of files of the page that were asked for since. */
function files(since: number): string[] {
  return [...new Set(world.log.slice(since).flatMap((line) => /^GET \/([\w.-]*)\?b=/.exec(line)?.[1] ?? []))].sort();
}

async function unlock(page: Page): Promise<void> {
  await page.getByLabel("Password", { exact: true }).fill(PASSWORD);
  await page.getByRole("button", { name: "Unlock", exact: true }).click();
}

async function ask(page: Page, text: string): Promise<void> {
  await page.fill("#composer", text);
  await page.press("#composer", "Enter");
}

async function answered(page: Page, text: string): Promise<void> {
  await page.locator("article.answer:not(.live)", { hasText: text }).last().waitFor();
}

const isKept = (page: Page) => page.waitForFunction(async () => navigator.serviceWorker.controller !== null && (await navigator.serviceWorker.getRegistration())?.active?.state === "activated");
const caches_ = (page: Page) => page.evaluate(async () => (await caches.keys()).sort());
const buildOf = (page: Page) => page.evaluate(() => document.querySelector<HTMLMetaElement>('meta[name="build"]')?.content ?? "");
const lookAgain = (page: Page) => page.evaluate(() => void document.dispatchEvent(new Event("visibilitychange")));
const quiet = (page: Page) => page.waitForTimeout(2_000);

/** Waits until that was asked for, for a minute at most. */
async function asked(is: () => boolean): Promise<void> {
  for (let tries = 0; tries < 600 && !is(); tries++) await new Promise((resolve) => setTimeout(resolve, 100));
}

before(async () => {
  work = await mkdtemp(join(tmpdir(), "confidant-releases-"));
  folder = join(work, "served");
  await hand(await releaseOf("FIRST"));
  settings["CONFIDANT_WEB__PAGE_FOLDER"] = folder;
  world = await BrowserWorld.start(true, { settings });
  tab = await world.tab();
});

after(async () => {
  await world?.stop();
  await rm(work, { recursive: true, force: true });
});

test("a cold start loads what the build counts, less than 60 kB, and nothing more until something is typed", async () => {
  const { FIRST_LOAD, firstLoad } = await load();
  for (const [locale, more] of [["en-US", []], ["de-DE", ["de.js"]]] as const) {
    const visitor = await world.tab({ locale });
    const [since, { page: own, worker, sizes }] = [world.log.length, await firstLoad(folder)];
    await visitor.page.goto(world.origin);
    await visitor.page.locator("main.door form").waitFor();
    const wanted = [...own, ...worker, ...more].filter((name) => name !== "index.html").sort();
    await asked(() => files(since).length >= wanted.length);
    await quiet(visitor.page);
    assert.deepEqual(files(since), wanted, locale);
    const bytes = [...wanted, "index.html"].reduce((sum, name) => sum + (sizes[name] ?? Number.NaN), 0);
    assert.ok(bytes <= FIRST_LOAD, `${bytes} bytes in ${locale}`);
    assert.deepEqual(await caches_(visitor.page), [], "a visitor keeps nothing");
    assert.equal(await visitor.page.evaluate(async () => (await indexedDB.databases()).length), 0, "not even an empty database");

    await visitor.page.locator("main.door input").first().press("a");
    await visitor.page.waitForFunction(() => performance.getEntriesByType("resource").some(({ name }) => name.includes("/shell.js")));
    await asked(() => files(since).includes("client-opened.js"));
    assert.ok(files(since).includes("client-opened.js"), "what comes next is loaded while one types");
    await visitor.close();
  }
});

test("a part that does not come is said, and comes when it is there again", async () => {
  const visitor = await world.tab({ viewport: PHONE });
  await visitor.page.goto(world.origin);
  await visitor.page.locator("main.door form").waitFor();
  world.reach(false);
  // The part of the worker that logs in, and a part of the page.
  await visitor.page.getByLabel("Login").fill("nobody");
  await visitor.page.getByLabel("Password", { exact: true }).fill(PASSWORD);
  await visitor.page.locator("form button[type=submit]").click();
  await visitor.page.getByText("A part of the page could not be loaded.").waitFor();
  await visitor.page.getByRole("button", { name: "Add this device" }).first().click();
  await visitor.page.getByText("This part of the page could not be loaded.").waitFor();
  await visitor.shot("load-part-missing");
  world.reach(true);
  // Nothing has to be loaded anew: the next try asks for both once more.
  await visitor.page.getByRole("button", { name: "Try again" }).click();
  await visitor.page.locator("svg.qr").waitFor();
  await visitor.context.close();
  assert.deepEqual(visitor.problems.filter((line) => !NOBODY.test(line)), []);
});

test("after the first visit the page comes from the browser's own copy", async () => {
  const { page } = tab;
  await page.goto(world.origin);
  await page.getByRole("button", { name: "Create an account" }).click();
  await page.getByLabel("Login").fill("alice");
  await page.getByLabel("Password", { exact: true }).fill(PASSWORD);
  await page.getByLabel("Password, again").fill(PASSWORD);
  await page.getByLabel("Invitation code").fill(world.server?.firstCode ?? "");
  await page.getByRole("button", { name: "Create the account" }).click();
  await page.getByLabel("I have kept the code").check();
  await page.getByRole("button", { name: "Continue" }).click();
  await ask(page, "Said with a server");
  await answered(page, "noted: Said with a server");
  await isKept(page);
  const build = await buildOf(page);
  assert.deepEqual(await caches_(page), [`confidant-page-${build}`]);
  const kept = await page.evaluate(async (name) => (await (await caches.open(name)).keys()).map((one) => new URL(one.url).pathname), `confidant-page-${build}`);
  const built = (await readdir(folder)).filter((name) => !name.endsWith(".br") && !name.startsWith(".") && !name.startsWith("console.") && name !== "sw.js").map((name) => (name === "index.html" ? "/" : `/${name}`));
  assert.deepEqual(kept.sort(), built.sort(), "every file of the release, and nothing else");

  const since = world.log.length;
  await page.reload();
  await page.getByText("FIRST").waitFor();
  await unlock(page);
  await page.locator(".chat").first().click();
  await answered(page, "noted: Said with a server");
  await page.goto(`${world.origin}/#/settings/general`);
  await page.getByText("Start without a server").waitFor();
  await quiet(page);
  await tab.shot("load-settings");
  assert.deepEqual(files(since), [], "no file of the page was asked for again");
});

test("without a server the page starts, unlocks, reads and writes; what was written is sent later", async () => {
  const { context } = tab;
  await tab.page.close();
  await context.setOffline(true);
  world.reach(false);
  const page = await context.newPage();
  page.setDefaultTimeout(Number(process.env["TIMEOUT"] ?? 40_000));
  const problems: string[] = tab.problems;
  tab = new Tab(page, context);
  await page.goto(world.origin);
  await page.getByText("Locked").first().waitFor();
  await page.getByLabel("Password", { exact: true }).fill("not the password");
  await page.getByRole("button", { name: "Unlock", exact: true }).click();
  await page.locator("form .error, form .problem, [role=alert]").first().waitFor();
  await unlock(page);
  await page.locator(".chat").first().click();
  await answered(page, "noted: Said with a server");
  await ask(page, "Written without a server");
  await page.getByText("The question is kept here").waitFor();
  await tab.shot("load-offline");
  // Killed and started again: still there, still unsent.
  await page.reload();
  await unlock(page);
  await page.locator(".chat").first().click();
  await page.locator("article.said", { hasText: "Written without a server" }).waitFor();
  assert.equal(world.model.last.includes("Written without a server"), false);
  world.reach(true);
  await context.setOffline(false);
  await answered(page, "noted: Written without a server");
  await page.locator("article.said .status.good").last().waitFor();
  assert.deepEqual([...problems, ...tab.problems].filter((line) => !NOBODY.test(line)), []);
  tab.forgive();
});

test("a new release while a tab is open: parts are never mixed, the tab says so, and loads it with everything that was typed", async () => {
  const { page } = tab;
  const first = await buildOf(page);
  await hand(await releaseOf("SECOND"));
  await page.fill("#composer", "half a thought");
  const since = world.log.length;
  await lookAgain(page);
  await page.getByText("The server has a newer page than this tab.").waitFor();
  await tab.shot("load-stale");
  // A part that this tab had not loaded is the one of its own release.
  await page.evaluate(() => import(`/pairing.js?b=${document.querySelector<HTMLMetaElement>('meta[name="build"]')?.content}`));
  assert.ok(!files(since).includes("pairing.js"));
  await page.getByRole("button", { name: "Reload" }).click();
  await page.getByText("SECOND").waitFor();
  const second = await buildOf(page);
  assert.notEqual(second, first);
  await unlock(page);
  await page.locator(".chat").first().click();
  await page.waitForFunction(() => (document.getElementById("composer") as HTMLTextAreaElement | null)?.value === "half a thought");
  await answered(page, "noted: Written without a server");
  await isKept(page);
  await page.reload();
  await page.getByText("SECOND").waitFor();
  await page.waitForFunction(async () => (await caches.keys()).length === 1);
  assert.deepEqual(await caches_(page), [`confidant-page-${second}`], "nothing of the release before stays");
});

test("a locked tab in which nothing was typed loads a new release by itself", async () => {
  await hand(await releaseOf("THIRD"));
  await lookAgain(tab.page);
  await tab.page.getByText("THIRD").waitFor();
});

test("a server that refuses this release: the tab says so, and nothing is lost by loading the server's own", async () => {
  const { page } = tab;
  await unlock(page);
  await page.locator(".chat").first().click();
  await answered(page, "noted: Said with a server");
  const before = await buildOf(page);
  // The program has its own page from now on, and refuses every other.
  delete world.server?.settings["CONFIDANT_WEB__PAGE_FOLDER"];
  await page.fill("#composer", "typed before the new release");
  await page.waitForTimeout(2_500);
  await world.server?.use("data");
  await page.getByText("The server has a newer page than this tab.").waitFor();
  await page.getByRole("button", { name: "Reload" }).click();
  // The page waits for its successor for up to 17 seconds before it goes to the server.
  await page.getByLabel("Password", { exact: true }).waitFor({ timeout: 60_000 });
  assert.notEqual(await buildOf(page), before, "it is the server's own page");
  await unlock(page);
  await page.locator(".chat").first().click();
  await answered(page, "noted: Written without a server");
  await page.waitForFunction(() => (document.getElementById("composer") as HTMLTextAreaElement | null)?.value === "typed before the new release");
  assert.deepEqual(tab.problems.filter((line) => !NOBODY.test(line) && !line.includes("409") && !line.includes("404")), []);
  tab.forgive();
});

test("when the account goes, so does everything that was kept for it", async () => {
  const { page } = tab;
  await page.reload();
  await unlock(page);
  await isKept(page);
  await page.getByRole("button", { name: "Unlocked. Click to lock now." }).first().click();
  await page.getByRole("button", { name: "Use another account" }).click();
  await page.getByRole("button", { name: "Remove it" }).click();
  await page.getByRole("button", { name: "Create an account" }).waitFor();
  await page.waitForFunction(async () => (await caches.keys()).length === 0 && (await navigator.serviceWorker.getRegistrations()).length === 0);
  assert.doesNotMatch(await everythingKept(page), /(?:chat|acct|dev|msg)_|confidant-page|confidant-session/, "of the account nothing is left in any storage");
  assert.deepEqual(tab.problems.filter((line) => !NOBODY.test(line)), []);
  tab.forgive();
  await tab.close();
});
