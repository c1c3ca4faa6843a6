// Where a proxy lets no WebSocket pass, in a real browser against the real program: the page does everything that it does on one.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { answered, ask, atEachSize, logIn, openChat, register, rename, stored, tryNow } from "./steps";
import { BrowserWorld, type Tab } from "./world";

atEachSize((size, opposite) => {
  let world: BrowserWorld;
  let tab: Tab;
  /** What a browser logs by itself about a socket that does not open, and a server that is away. */
  const NOBODY = /WebSocket|ERR_EMPTY_RESPONSE|ERR_INCOMPLETE_CHUNKED_ENCODING|ERR_CONNECTION/;

  before(async () => {
    world = await BrowserWorld.start(true, { sockets: false });
    tab = await world.tab(size.options);
  });
  after(() => world?.stop());

  test("a question is answered word by word, stopped, and stored", async () => {
    const { page } = tab;
    await register(world, tab, "alice", world.server?.firstCode);
    await stored(page);
    world.model.answers.set("What is two and two?", ["Two and two ", "make **four**."]);
    world.model.hold();
    await ask(page, "What is two and two?");
    await page.locator("article.live", { hasText: "Two and two" }).waitFor();
    world.model.letGo();
    await answered(page, "make four");
    await page.locator("article.answer .status.good").waitFor();
    world.model.answers.set("Say something long", ["Once upon ", "a time"]);
    world.model.hold();
    await ask(page, "Say something long");
    await page.locator("article.live", { hasText: "Once upon" }).waitFor();
    await page.locator("article.live").getByRole("button", { name: "Stop" }).click();
    await page.getByText("You stopped this answer.").first().waitFor();
    world.model.letGo();
    await answered(page, "Once upon");
    await rename(page, "Sums");
    await stored(page);
    assert.ok(world.log.some((line) => line === "GET /chats/events") && world.log.some((line) => line === "POST /chats/events"));
  });

  test("a second browser hears what the first one writes; cut off, it comes back by itself", async () => {
    const { page } = tab;
    const other = await world.tab(opposite.options);
    await logIn(world, other, "alice");
    await openChat(other.page, "Sums");
    await ask(page, "From the desk");
    await answered(other.page, "noted: From the desk");
    world.reach(false);
    await page.getByText("The server cannot be reached.").waitFor();
    await ask(page, "Written offline");
    await page.getByText("The question is kept here").waitFor();
    world.reach(true);
    await tryNow(page);
    await answered(page, "noted: Written offline");
    await tryNow(other.page);
    await answered(other.page, "noted: Written offline");
    await other.shot(`stream-${opposite.name}`);
    for (const one of [tab, other]) {
      assert.deepEqual(one.problems.filter((line) => !NOBODY.test(line)), []);
      one.forgive();
      await one.close();
    }
  });
});
