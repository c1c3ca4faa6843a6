// The page from somebody's own machine, for a server elsewhere: two programs and a browser. A person registers and asks through it; other
// pages get nothing; the server sees a program; being away, coming back, and a new start are states that lose nothing.
// About the protocol and not about layout: run once.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { createServer as createTlsServer } from "node:https";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createServer, request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { OwnPage, Server, program } from "../world/server";
import { BrowserWorld, type Tab } from "./world";

const PASSWORD = "correct horse battery staple";
let world: BrowserWorld;
let server: Server;
let own: OwnPage;
let tab: Tab;

before(async () => {
  world = await BrowserWorld.start(false);
  server = await Server.start(world.model.settings);
  own = await server.ownPage();
  tab = await world.tab();
});

after(async () => {
  await own?.stop();
  await server?.stop();
  await world?.stop();
});

/** The status of a request that no browser makes. */
function ask(path: string, method: string, headers: Record<string, string>): Promise<number> {
  const [host, port] = own.listen.split(":");
  return new Promise((resolve, reject) => {
    const asked = request({ host, port, path, method, headers }, (answer) => {
      answer.resume();
      resolve(answer.statusCode ?? 0);
    });
    asked.on("error", reject);
    asked.end(method === "POST" ? "{}" : undefined);
  });
}

async function pass(): Promise<string> {
  const found = (await tab.context.cookies()).find(({ name }) => name.startsWith("confidant-page-"));
  assert.ok(found);
  return `${found.name}=${found.value}`;
}

test("a person registers and asks through their own page", async () => {
  const { page } = tab;
  await page.goto(own.open);
  await page.getByText("This page comes from your own machine").waitFor();
  assert.equal(new URL(page.url()).pathname, "/", "the key is not left in the address");
  await tab.shot("own-page-door");
  await page.getByRole("button", { name: "Create an account" }).click();
  await page.getByLabel("Login").fill("alice");
  await page.getByLabel("Password", { exact: true }).fill(PASSWORD);
  await page.getByLabel("Password, again").fill(PASSWORD);
  await page.getByLabel("Invitation code").fill(server.firstCode);
  await page.getByRole("button", { name: "Create the account" }).click();
  await page.getByLabel("I have kept the code").check();
  await page.getByRole("button", { name: "Continue" }).click();
  await page.getByText("What is on your mind?").waitFor();
  world.model.answers.set("What is two and two?", ["Two and two ", "make four."]);
  await page.fill("#composer", "What is two and two?");
  await page.press("#composer", "Enter");
  await page.locator("article.answer:not(.live)", { hasText: "make four" }).waitFor();
  await page.locator("article.answer .status.good").waitFor();
  await tab.shot("own-page-answered");
  const names = await page.evaluate(async () => (await indexedDB.databases()).map(({ name }) => name));
  assert.deepEqual(names, [`confidant-${server.origin}`], "its files are under the server's name");
  const cookies = await tab.context.cookies();
  assert.ok(cookies.length === 2 && cookies.every(({ httpOnly, sameSite }) => httpOnly && sameSite === "Strict"), JSON.stringify(cookies));
});

test("the account is the server's: the page of another machine opens it with the same password", async () => {
  const other = await world.tab();
  const second = await server.ownPage();
  try {
    await other.page.goto(second.open);
    await other.page.getByLabel("Login").fill("alice");
    await other.page.getByLabel("Password", { exact: true }).fill(PASSWORD);
    await other.page.getByRole("button", { name: "Log in", exact: true }).click();
    await other.page.locator(".chat .title").first().waitFor();
    await other.close();
  } finally {
    assert.equal(await second.stop(), 0);
  }
});

test("the program that hands it out starts again, and nothing is lost", async () => {
  const { page } = tab;
  const at = own.listen;
  await own.stop();
  own = await OwnPage.start(await program(), tmpdir(), server.origin, at);
  await page.goto(own.open);
  await page.getByLabel("Password", { exact: true }).fill(PASSWORD);
  await page.getByRole("button", { name: "Unlock" }).click();
  await page.locator(".chat .title").first().waitFor();
  // What was asked of the program while it was gone, the browser writes into the console.
  tab.forgive();
});

test("other pages, other names and whoever has no key get nothing", async () => {
  const cookie = await pass();
  assert.equal(await ask("/", "GET", {}), 403, "no key");
  assert.equal(await ask("/", "GET", { cookie, host: "evil.example" }), 403, "another name");
  assert.equal(await ask("/", "GET", { cookie }), 200);
  for (const headers of [{ cookie }, { cookie, origin: "https://evil.example" }, { cookie, origin: `http://${own.listen}`, "sec-fetch-site": "cross-site" }] as Record<string, string>[]) {
    assert.equal(await ask("/account/prelogin", "POST", { "content-type": "application/json", ...headers }), 403, JSON.stringify(headers));
  }
  // A page of another program on this machine, in the same browser: the cookie goes with what it asks, since ports do not count.
  const other = createServer((_, answer) => answer.writeHead(200, { "content-type": "text/html" }).end("<!doctype html><title>evil</title>"));
  await new Promise<void>((resolve) => other.listen(0, "127.0.0.1", resolve));
  const address = other.address();
  const evil = await tab.context.newPage();
  const statuses: number[] = [];
  evil.on("response", (response) => { if (response.url().includes(own.listen)) statuses.push(response.status()); });
  await evil.goto(`http://127.0.0.1:${typeof address === "object" && address !== null ? address.port : 0}/`);
  const got = await evil.evaluate(async (base) => {
    const tried = (path: string, options: RequestInit) => fetch(base + path, { credentials: "include", ...options }).then((answer) => answer.status, () => 0);
    return [await tried("/", { mode: "no-cors" }), await tried("/account/logout", { method: "POST", body: "{}" }), await tried("/account/logout", { method: "POST", body: "{}", mode: "no-cors" })];
  }, `http://${own.listen}`);
  assert.deepEqual(got, [0, 0, 0], "it can read nothing");
  assert.ok(statuses.length >= 2 && statuses.every((status) => status === 403), `and nothing was done: ${statuses.join()}`);
  await evil.close();
  other.closeAllConnections();
  other.close();
});

test("a server that is away is a state of the page, and comes back", async () => {
  const { page } = tab;
  const before = own.said.text.length;
  const headers = { cookie: await pass(), origin: `http://${own.listen}`, "content-type": "application/json" };
  const restarted = server.backup();
  let status = 0;
  for (let tries = 0; tries < 500 && status !== 502; tries++) {
    status = await ask("/account/prelogin", "POST", headers);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  assert.equal(status, 502);
  assert.ok(own.said.text.slice(before).includes("cannot be reached"), own.said.text);
  await restarted;
  await page.fill("#composer", "Are you there?");
  await page.press("#composer", "Enter");
  await page.locator("article.answer:not(.live)", { hasText: "noted: Are you there?" }).waitFor();
  assert.ok(own.said.text.slice(before).includes("answers again"), own.said.text);
  tab.forgive();
  await tab.close();
});

test("a server whose certificate is wrong is refused before anything is sent", async () => {
  const folder = await mkdtemp(join(tmpdir(), "confidant-tls-"));
  const [key, cert] = [join(folder, "key.pem"), join(folder, "cert.pem")];
  const made = spawnSync("openssl", ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout", key, "-out", cert]);
  assert.equal(made.status, 0, String(made.stderr));
  let heard = 0;
  const tls = createTlsServer({ key: await readFile(key), cert: await readFile(cert) }, (_, answer) => { heard += 1; answer.end("{}"); });
  await new Promise<void>((resolve) => tls.listen(0, "127.0.0.1", resolve));
  const address = tls.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  try {
    await assert.rejects(OwnPage.start(await program(), folder, `https://localhost:${port}`), /certificate .* is not valid.*hint/s);
    await assert.rejects(OwnPage.start(await program(), folder, "http://chat.example.org"), /without TLS/);
    await assert.rejects(OwnPage.start(await program(), folder, "https://chat.example.org", "0.0.0.0:0"), /other machines can reach/);
    assert.equal(heard, 0);
  } finally {
    tls.closeAllConnections();
    tls.close();
  }
  await rm(folder, { recursive: true, force: true });
});
