// The client in a real browser, on a page of the server's own.  browser.mjs BUNDLE CHROMIUM PLAYWRIGHT
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const [bundle, executablePath, library] = process.argv.slice(2);
const { chromium } = createRequire(import.meta.url)(library);
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
try {
  const page = await browser.newPage();
  await page.goto(`${process.env.MEMORY_URL}/healthz`);
  await page.addScriptTag({ content: readFileSync(bundle, "utf8") });
  const token = readFileSync(process.env.MEMORY_TOKEN_FILE, "utf8").trim();
  const said = await page.evaluate(async (token) => {
    const { Confidant, ConfidantError } = globalThis.memory;
    const session = new Confidant({ token }).session("http:browser:main:alice");
    await session.ask("my name is Alice");
    let words = "";
    for await (const piece of session.stream("hello").text()) words += piece;
    const error = await new Confidant({ token: "nobody" }).session("http:b:m:a").ask("x").catch((reason) => reason);
    const { sessions } = await new Confidant({ token }).person("alice").erase();
    return [words, error instanceof ConfidantError && error.kind, sessions > 0];
  }, token);
  console.log(JSON.stringify(said));
} finally {
  await browser.close();
}
