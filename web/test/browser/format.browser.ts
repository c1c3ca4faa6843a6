// The format in Chromium's own WebCrypto: every vector, random cases against the Rust side, and how long it takes.
//
//   CONFIDANT_OPPOSITE=…/debug/examples/opposite node test/browser/run.mjs format
//
// The code runs in a page of its own, from a script that is bundled here, under a policy as strict as the page's.
// About bytes and not about layout: run once.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { build } from "esbuild";
import { chromium, type Browser, type Page } from "playwright-core";
import { Opposite } from "../differential/opposite";

const WEB = process.env["WEB_DIR"] ?? ".";
const OPPOSITE = process.env["CONFIDANT_OPPOSITE"] ?? "";
const HOW = "CONFIDANT_OPPOSITE is not set: build `cargo build -p confidant-chat-format --example opposite` and give its path";
const POLICY = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; connect-src 'self'";
const ROUNDS = Number(process.env["DIFFERENTIAL_ROUNDS"] ?? 60);
const SEED = Number(process.env["DIFFERENTIAL_SEED"] ?? Date.now() % 1_000_000);

let browser: Browser;
let page: Page;
let stop = (): void => {};
const problems: string[] = [];

before(async () => {
  const { outputFiles } = await build({
    absWorkingDir: join(WEB, "test/browser"), entryPoints: ["format.page.ts"], bundle: true, write: false, format: "esm", target: "es2023",
  });
  const script = outputFiles[0]?.text ?? "";
  const server = createServer((request, response) => {
    const isScript = request.url === "/format.js";
    response.setHeader("content-type", isScript ? "text/javascript" : "text/html");
    response.setHeader("content-security-policy", POLICY);
    response.end(isScript ? script : '<!doctype html><link rel="icon" href="data:,"><script type="module" src="/format.js"></script>');
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  browser = await chromium.launch({ executablePath: process.env["CHROMIUM"] ?? "/usr/bin/chromium", args: ["--no-sandbox"] });
  page = await browser.newPage();
  page.on("pageerror", (error) => problems.push(error.message));
  page.on("console", (message) => {
    if (message.type() === "error" && !message.text().includes("data:,")) problems.push(message.text());
  });
  await page.goto(`http://localhost:${(server.address() as AddressInfo).port}/`);
  await page.waitForFunction("window.format !== undefined");
  stop = () => server.close();
});

after(async () => {
  await browser?.close();
  stop();
});

for (const name of ["seal-v1", "chats-v1"] as const) {
  test(`every case of vectors/${name}.json in the browser`, async (t) => {
    const file = await readFile(join(WEB, `../vectors/${name}.json`), "utf8");
    const counts = await page.evaluate(([name, file]) => window.format.vectors(name, file), [name, file] as const);
    t.diagnostic(JSON.stringify(counts));
    assert.ok(counts.length > 10);
    assert.deepEqual(problems, []);
  });
}

test(`random cases against the Rust side, seed ${SEED}`, { skip: OPPOSITE === "" && !process.env["CI"] ? HOW : false, timeout: 480_000 }, async (t) => {
  assert.notEqual(OPPOSITE, "", HOW);
  const rust = new Opposite(OPPOSITE);
  await page.exposeFunction("askRust", (line: string) => rust.ask(JSON.parse(line) as { do: string }).then((answer) => JSON.stringify(answer)));
  const verdicts = await page.evaluate(([seed, rounds]) => window.format.differential(seed, rounds), [SEED, ROUNDS] as const);
  rust.end();
  t.diagnostic(JSON.stringify(verdicts));
  assert.deepEqual(problems, []);
});

test("how long it takes in the browser", { timeout: 120_000 }, async (t) => {
  for (const line of await page.evaluate(() => window.format.speed())) t.diagnostic(line);
});
