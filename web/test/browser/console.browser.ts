// The administrator's page in a real browser, against the program: signing in, what it shows and never shows, being away, both languages,
// both sizes, the keyboard; no serious finding of the accessibility scan, nothing wider than the screen.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import type { Page } from "playwright-core";
import { BrowserWorld, DESKTOP, PHONE, type Tab } from "./world";

const MARKER = "marker-4711";
let world: BrowserWorld;
let token = "";
let axe = "";

before(async () => {
  world = await BrowserWorld.start(true);
  axe = await readFile(join(process.env["WEB_DIR"] ?? ".", "node_modules/axe-core/axe.min.js"), "utf8");
  token = (await world.server?.adminToken()) ?? "";
  for (const user of ["alice", "bob"]) for (let n = 0; n < 3; n++) await said(`app:room-${MARKER}:main:${user}-${MARKER}`, `my secret is ${MARKER} ${n}`);
});

after(async () => {
  await world?.stop();
});

async function said(session: string, query: string): Promise<void> {
  const answer = await fetch(`${world.server?.origin}/api/v1/session/${encodeURIComponent(session)}/turns`, {
    method: "POST", headers: { authorization: `Bearer ${token}`, "content-type": "application/json" }, body: JSON.stringify({ query, audience: "private" }),
  });
  assert.equal(answer.status, 200, await answer.text());
}

async function signIn(tab: Tab, button = "Sign in", isKept = false): Promise<Page> {
  const { page } = tab;
  await page.goto(`${world.origin}/console`);
  await page.locator("#token").fill(token);
  if (isKept) await page.getByRole("checkbox").check();
  await page.getByRole("button", { name: button }).click();
  await page.locator(".panels").waitFor();
  await page.locator(".audit tbody tr").first().waitFor();
  return page;
}

async function findings(tab: Tab): Promise<string[]> {
  await tab.page.evaluate(`${axe}; 0`);
  const found = (await tab.page.evaluate("axe.run(document, { resultTypes: ['violations'] }).then(({ violations }) => violations)")) as { id: string; impact: string; nodes: { html: string }[] }[];
  return found.filter(({ impact }) => impact === "serious" || impact === "critical").flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html.slice(0, 160)}`));
}

const isTooWide = (tab: Tab) => tab.page.evaluate(() => document.documentElement.scrollWidth > document.documentElement.clientWidth + 1);

const fact = (page: Page, panel: string, name: string) => page.locator("section.panel", { hasText: panel }).locator(".facts > div", { hasText: name }).locator("dd").first().textContent();

for (const { name, options, button } of [
  { name: "desktop", options: { viewport: DESKTOP, colorScheme: "light" as const }, button: "Sign in" },
  { name: "phone", options: { viewport: PHONE, colorScheme: "dark" as const, locale: "de-DE" }, button: "Anmelden" },
]) {
  test(`it shows how the server is, and nothing that anybody said: ${name}`, async () => {
    const tab = await world.tab(options);
    await tab.page.goto(`${world.origin}/console`);
    await tab.page.locator("#token").waitFor();
    await tab.shot(`console-door-${name}`);
    assert.deepEqual(await findings(tab), [], "the door");
    assert.equal(await isTooWide(tab), false, "the door");
    const page = await signIn(tab, button);
    // Two more looks, so that the lines have something to show.
    await page.waitForResponse((response) => response.url().endsWith("/api/v1/console"));
    await page.waitForResponse((response) => response.url().endsWith("/api/v1/console"));
    await page.screenshot({ path: join(process.env["SCREENSHOTS"] ?? ".", `console-${name}.png`), fullPage: true });
    assert.deepEqual(await findings(tab), [], name);
    assert.equal(await isTooWide(tab), false, name);
    const text = (await page.locator("body").textContent()) ?? "";
    for (const never of [MARKER, "alice", "bob", token]) assert.ok(!text.includes(never), never);
    assert.ok(text.includes("app"), "sessions by channel");
    assert.ok(text.includes("turn.answered"), "the tail of the audit log");
    await tab.close();
  });
}

test("the numbers are the server's, and follow it", async () => {
  const tab = await world.tab();
  const page = await signIn(tab);
  assert.equal(await page.locator(".verdict").textContent(), " Everything works");
  const before = Number(await fact(page, "Since the start", "accepted"));
  assert.ok(before >= 6);
  await said(`app:other-${MARKER}:main:carol-${MARKER}`, "one more");
  await page.locator("section.panel", { hasText: "Since the start" }).locator(".facts > div", { hasText: "accepted" }).locator("dd", { hasText: String(before + 1) }).first().waitFor();
  assert.equal(await fact(page, "Key ring", "failed openings"), "0");
  assert.equal(await fact(page, "Key ring", "master keys held"), "1");
  const plots = await page.locator("svg[role=img]").evaluateAll((all) => all.map((one) => one.getAttribute("aria-label") ?? ""));
  assert.ok(plots.length >= 3 && plots.every((label) => /\d/.test(label)), plots.join("; "));
  await page.getByRole("button", { name: "Read again" }).click();
  await page.locator(".audit code", { hasText: "audit.viewed" }).first().waitFor();
  await tab.close();
});

test("a wrong token is refused, and none is kept unless that is ticked", async () => {
  const tab = await world.tab();
  const { page } = tab;
  await page.goto(`${world.origin}/console`);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByText("Enter a token.").waitFor();
  await page.locator("#token").fill("cft_wrong");
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByText("This token is unknown or was revoked.").waitFor();
  await tab.shot("console-refused");
  // The browser itself writes the 401 into the console.
  tab.forgive();
  await signIn(tab);
  assert.equal(await page.evaluate(() => JSON.stringify({ ...sessionStorage, ...localStorage })), "{}");
  await page.reload();
  await page.locator("#token").waitFor();
  await signIn(tab, "Sign in", true);
  await page.reload();
  await page.locator(".panels").waitFor();
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.locator("#token").waitFor();
  assert.equal(await page.locator("#token").inputValue(), "");
  assert.equal(await page.evaluate(() => sessionStorage.length), 0);
  await tab.close();
});

test("a server that is away is said to be, and comes back", async () => {
  const tab = await world.tab();
  const page = await signIn(tab);
  world.reach(false);
  await page.locator(".banner.grave", { hasText: "unreachable" }).waitFor();
  assert.ok(await page.locator(".panels.stale").isVisible(), "what was told last stays");
  await tab.shot("console-away");
  world.reach(true);
  await page.locator(".banner.grave").waitFor({ state: "detached" });
  tab.forgive();
  await tab.close();
});

test("everything is reached by the keyboard, and a hidden or paused page asks nothing", async () => {
  const tab = await world.tab();
  const { page } = tab;
  await page.goto(`${world.origin}/console`);
  await page.locator("#token").focus();
  await page.keyboard.type(token);
  await page.keyboard.press("Enter");
  await page.locator(".audit tbody tr").first().waitFor();
  const names: string[] = [];
  for (let n = 0; n < 12; n++) {
    await page.keyboard.press("Tab");
    names.push(await page.evaluate(() => document.activeElement?.getAttribute("aria-label") ?? document.activeElement?.textContent ?? ""));
  }
  for (const wanted of ["Language", "Pause", "Sign out", "Values", "Read again"]) assert.ok(names.some((name) => name.includes(wanted)), `${wanted}: ${names.join(", ")}`);
  await page.getByRole("button", { name: "Pause" }).click();
  let asked = 0;
  page.on("request", (request) => { if (request.url().includes("/api/")) asked += 1; });
  await page.waitForTimeout(4000);
  assert.equal(asked, 0, "paused");
  await page.getByRole("button", { name: "Resume" }).click();
  await page.waitForResponse((response) => response.url().endsWith("/api/v1/console"));
  await page.getByLabel("Language").selectOption("de");
  await page.getByRole("heading", { name: "Schlüsselbund" }).waitFor();
  assert.equal(await page.evaluate(() => document.documentElement.lang), "de");
  await tab.close();
});
