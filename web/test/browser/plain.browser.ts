// The page over plain HTTP at a name that is not localhost: no browser gives it keys there. It says so and what to do, in the person's
// language, and nothing else happens: nothing to type into, nothing kept, nothing sent.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { atEachSize, fits } from "./steps";
import { BrowserWorld } from "./world";

const WORDS = [
  { locale: "en-US", title: "This page needs a secure connection", hint: "Ask the operator for the https address." },
  { locale: "de-DE", title: "Diese Seite braucht eine sichere Verbindung", hint: "Frag den Betreiber nach der https-Adresse." },
];

atEachSize((size) => {
  let world: BrowserWorld;

  before(async () => {
    world = await BrowserWorld.start(true, { plainName: "chats.test" });
  });
  after(async () => {
    await world?.stop();
  });

  for (const { locale, title, hint } of WORDS) {
    test(`without TLS the page says what is missing, and does nothing else: ${locale}`, async () => {
      const tab = await world.tab({ ...size.options, locale });
      const { page } = tab;
      await page.goto(world.origin);
      await page.getByRole("heading", { name: title }).waitFor();
      await page.getByText(hint).waitFor();
      assert.deepEqual(await page.evaluate(() => [isSecureContext, location.protocol]), [false, "http:"], "it is what it should be");
      assert.equal(await page.locator("input, textarea, form").count(), 0, "nobody types a password here");
      await fits(page);
      // Nor does anything begin behind it.
      await page.keyboard.press("a");
      await page.mouse.click(20, 20);
      await page.waitForTimeout(1_000);
      assert.deepEqual(await page.evaluate(async () => (await indexedDB.databases()).map(({ name }) => name)), []);
      assert.deepEqual(await tab.context.cookies(), []);
      assert.deepEqual(tab.sent, []);
      assert.deepEqual(world.log.filter((line) => !line.startsWith("GET /")), []);
      await tab.shot(`plain-http-${locale}-${size.name}`);
      // The browser notes that it ignores a header which counts over TLS only. Anything else is an error.
      tab.problems.splice(0, tab.problems.length, ...tab.problems.filter((one) => !/Cross-Origin-Opener-Policy header has been ignored/.test(one)));
      await tab.close();
    });
  }
});
