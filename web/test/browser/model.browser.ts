// A real language model, small but real, behind the real program: one question in a browser, the answer, and what the model makes of
// the chat. The model is the one of the Python tests (tests/llm_server.py), found as they find it; without it these tests fail.
// About the protocol and not about layout: run once, with a phone where a second browser is needed.
import assert from "node:assert/strict";
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { createServer } from "node:net";
import { dirname, join } from "node:path";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import { openChat, logIn, register, stored } from "./steps";
import { BrowserWorld, PHONE, type Tab } from "./world";

const ROOT = dirname(process.env["WEB_DIR"] ?? process.cwd());
// However slow the machine is: this is about what a real model says, not about when.
const PATIENCE = 500_000;
const QUESTION = "We chose PostgreSQL as our database, because it is ACID compliant. Which database did we choose? Answer in one sentence.";

let world: BrowserWorld;
let tab: Tab;
let model: ChildProcess;

before(async () => {
  const { stdout } = await promisify(execFile)(join(ROOT, "scripts/services"), ["venv"], { maxBuffer: 1 << 24 });
  const python = join(stdout.trimEnd().split("\n").at(-1) ?? "", "bin/python");
  const port = await freePort();
  model = spawn(python, [join(ROOT, "tests/llm_server.py"), "--port", String(port)], { stdio: ["ignore", "pipe", "pipe"] });
  await ready(model);
  const settings = {
    CONFIDANT_MODEL__PROVIDER: "openai",
    CONFIDANT_MODEL__BASE_URL: `http://127.0.0.1:${port}/v1`,
    CONFIDANT_MODEL__MODEL: "smollm2",
    CONFIDANT_MODEL__TEMPERATURE: "0",
    CONFIDANT_MODEL__TIMEOUT_SECONDS: "500",
    CONFIDANT_TURN__ANSWER_TIMEOUT_SECONDS: "550",
    CONFIDANT_SERVER__REQUEST_TIMEOUT_SECONDS: "600",
    // The same model prepares the turn and sums it up. So small a one does not fill every form: then rules do it.
    CONFIDANT_PROCESSING__MODEL: "default",
    CONFIDANT_PROCESSING__FORMS: "json_schema",
    CONFIDANT_PROCESSING__TIMEOUT_SECONDS: "60",
    // And now and then it sees harm where there is none: what is done then is shown elsewhere.
    ...Object.fromEntries(["DIRECT_SELF_HARM", "INDIRECT_SELF_HARM", "GRADUAL_ESCALATION_PATTERNS", "EMOTIONAL_DISTRESS_INDICATORS", "ILLEGAL"].map((kind) => [`CONFIDANT_PROCESSING__SAFETY__${kind}`, "[]"])),
  };
  world = await BrowserWorld.start(true, { settings });
  tab = await world.tab();
  tab.page.setDefaultTimeout(PATIENCE);
});
after(async () => {
  await world?.stop();
  model?.kill("SIGTERM");
});

/** Waits until the model says that it serves; what it says else is the reason why not. */
function ready(child: ChildProcess): Promise<void> {
  return new Promise((resolve, reject) => {
    let said = "";
    child.stderr?.on("data", (part) => (said += String(part)));
    child.stdout?.on("data", (part) => {
      if (String(part).includes("ready")) resolve();
    });
    child.once("error", reject);
    child.once("exit", () => reject(new Error(`the language model did not start: ${said}`)));
  });
}

function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const address = server.address();
      server.close(() => resolve(typeof address === "object" && address !== null ? address.port : 0));
    });
  });
}

/**
 * Asks, and gives the answer as it was stored. An answer is begun while the turn is prepared, and may be whole before it may be heard; words
 * one by one are shown elsewhere, with a model that is slow on purpose. What so small a model says is its own affair, as long as it says something.
 */
async function answered({ page }: Tab, question: string): Promise<string> {
  const before = await page.locator("article.answer:not(.live)").count();
  await page.fill("#composer", question);
  await page.press("#composer", "Enter");
  const answer = page.locator("article.answer:not(.live)").nth(before);
  await answer.waitFor({ timeout: PATIENCE });
  const words = (await answer.locator(".words").textContent()) ?? "";
  assert.notEqual(words.trim(), "");
  return words;
}

test("a question is answered by a real model, and sealed", async (t) => {
  await register(world, tab, "alice", world.server?.firstCode);
  const answer = await answered(tab, QUESTION);
  t.diagnostic(`answer: ${answer}`);
  await tab.page.locator("article.answer .status.good").last().waitFor();
  await tab.page.locator("article.answer .model", { hasText: "smollm2" }).last().waitFor();
  // A title is made, by the model or by rules; suggestions only by the model, if it can.
  await tab.page.waitForFunction(() => !["Untitled chat", "Opening…", ""].includes(document.querySelector("header.head h1")?.textContent ?? ""));
  await stored(tab.page);
  await tab.shot("model-desktop");
  t.diagnostic(`title: ${await tab.page.locator("header.head h1").textContent()}; suggestions: ${(await tab.page.locator(".next button").allTextContents()).join(" | ")}`);
});

test("on a phone the chat goes on, with what was said before", async () => {
  const title = (await tab.page.locator("header.head h1").textContent()) ?? "";
  const phone = await world.tab({ viewport: PHONE, colorScheme: "dark" });
  phone.page.setDefaultTimeout(PATIENCE);
  await logIn(world, phone, "alice");
  await openChat(phone.page, title);
  // In the chat: the list behind it may have the word, too, in what the model made of it.
  await phone.page.locator("article", { hasText: /PostgreSQL/i }).first().waitFor();
  const answer = await answered(phone, "Say its name once more.");
  await phone.page.locator("article.answer .status.good").last().waitFor();
  await phone.shot("model-phone");
  // The first browser sees the same.
  await tab.page.locator("article.answer:not(.live)").nth(1).waitFor();
  assert.equal((await tab.page.locator("article.answer:not(.live) .words").last().textContent()) ?? "", answer);
  await phone.close();
  await tab.close();
});
