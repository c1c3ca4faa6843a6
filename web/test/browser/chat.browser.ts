// What a chat is made of, in a real browser against the real program and a model that fills in forms: title, icon and category, follow-ups
// and ideas, the model and why, copying, links, tools that need a word, refusals, a chat that was ended, and one that is never cached.
import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, afterEach, before, test } from "node:test";
import type { Locator, Page } from "playwright-core";
import { atEachSize, fits, hideList, lock, logIn, more, newChat as begin, PASSWORD, showList, stored, unlock } from "./steps";
import { BrowserWorld, type Tab } from "./world";

atEachSize((size, other) => {
  let world: BrowserWorld;
  let tab: Tab;
  let page: Page;
  let instructions = "";
  const shot = (name: string) => tab.shot(`${name}-${size.name}`);

  before(async () => {
    instructions = await mkdtemp(join(tmpdir(), "confidant-instructions-"));
    const mode = (id: string, name: string, about: string) => `---\nslot: focus\nfocus: ${id}\nname: ${name}\ndescription: ${about}\n---\nCANARY-INSTRUCTION`;
    await writeFile(join(instructions, "study.md"), mode("web.study", "Study", "Explains in small steps."));
    await writeFile(join(instructions, "plan.md"), mode("code.plan", "Plan", "Asks before it writes."));
    const tool = [process.execPath, join(process.env["WEB_DIR"] ?? ".", "test/world/tool.mjs")];
    world = await BrowserWorld.start(true, {
      isFilling: true,
      settings: {
        CONFIDANT_TOOLS__SERVERS__WORLD__COMMAND: JSON.stringify(tool),
        CONFIDANT_TOOLS__RULES: '[{ tool = "*act", when = { name = "soon" }, then = "approve", expires_seconds = 5 }]',
        CONFIDANT_ASPECTS__INSTRUCTIONS: instructions,
        CONFIDANT_PROCESSING__SAFETY__INDIRECT_SELF_HARM: '[{ at = 9, then = ["terminate_conversation"] }]',
      },
    });
    world.model.forms.set("prepare_turn", (material) => ({
      language_code: "en",
      category: material.includes("ferry") ? "travel" : "general",
      title: material.includes("ferry") ? "The ferry in March" : "Something else",
      icon_names: material.includes("ferry") ? ["plane"] : ["not-an-icon"],
      tags: [],
      relevant_app_skills: material.includes("call act") ? ["world.act", "act"] : [],
      harm: { direct_self_harm: material.includes("dark thought") ? 9 : 0, indirect_self_harm: material.includes("the very end") ? 9 : 0 },
    }));
    world.model.forms.set("enrich_turn", (material) =>
      material.includes("ferry")
        ? { follow_up_suggestions: ["Is it calm in March?", "Which port?"], new_chat_suggestions: ["Plan a week in Galway"], chat_summary: "About a ferry", chat_tags: ["travel", "sea"] }
        : {},
    );
    world.model.answers.set("When is the ferry?", ["At **noon**, see [the plan](https://example.org/plan).\n\n```js\nconst noon = 12;\n```\n"]);
    tab = await world.registered("chatter", PASSWORD, size.options);
    page = tab.page;
    await tab.context.grantPermissions(["clipboard-read", "clipboard-write"], { origin: world.origin });
  });

  after(async () => {
    await world?.stop();
    await rm(instructions, { recursive: true, force: true });
  });

  let steps = 0;
  afterEach(async () => {
    steps += 1;
    if (page === undefined || page.isClosed()) return;
    await shot(`chat-${steps}`);
    await fits(page);
  });

  async function ask(text: string, on: Page = page): Promise<void> {
    await on.fill("#composer", text);
    await on.press("#composer", "Enter");
  }

  const answers = (on: Page = page): Locator => on.locator("article.answer:not(.live)");

  async function answered(text: string, on: Page = page): Promise<Locator> {
    const answer = answers(on).filter({ hasText: text }).last();
    await answer.locator(".status.good").waitFor();
    return answer;
  }

  async function newChat(): Promise<void> {
    await begin(page);
    tab.sent.length = 0;
  }

  /** The last question that left the page. */
  function asked(): Record<string, unknown> {
    const frame = tab.sent.findLast((one) => one.includes('"chat_message_added"'));
    return (JSON.parse(frame ?? "{}") as { event: Record<string, unknown> }).event;
  }

  const clipboard = () => page.evaluate(() => navigator.clipboard.readText());

  test("a first question gives the chat a title, an icon and a category; the answer names its model and why", async () => {
    await ask("When is the ferry?");
    const answer = await answered("At noon");
    await page.getByRole("heading", { name: "The ferry in March" }).waitFor();
    await showList(page);
    await page.locator("a.chat", { hasText: "The ferry in March" }).locator(".ic svg").waitFor();
    await page.locator("a.chat small", { hasText: "About a ferry" }).waitFor();
    await hideList(page);
    assert.match((await page.locator(".head .tags").textContent()) ?? "", /travel/);
    assert.match((await answer.locator(".model").textContent()) ?? "", /recorder · chosen for travel/);
    const why = answer.getByRole("button", { name: "why this model?" });
    assert.equal(await answer.locator("p.why").count(), 0);
    await why.click();
    assert.match((await answer.locator("p.why").textContent()) ?? "", /model/);
    await shot("why-this-model");
    await why.click();
    // Where there is no room for tags beside the title, it tells them.
    await page.getByRole("button", { name: "The ferry in March" }).click();
    for (const told of ["travel", "travel · sea", "About a ferry"]) await page.getByRole("dialog").getByText(told, { exact: true }).waitFor();
    await shot("about-chat-real");
    await page.keyboard.press("Escape");
  });

  test("a link is marked as not checked, and the message and its code are copied", async () => {
    const answer = await answered("At noon");
    const link = answer.getByRole("link", { name: /the plan/ });
    assert.match((await link.getAttribute("title")) ?? "", /Leads to example\.org\. Nobody has checked this link\./);
    assert.match((await link.getAttribute("rel")) ?? "", /noopener/);
    await answer.getByRole("button", { name: "Copy the code" }).click();
    assert.equal((await clipboard()).trim(), "const noon = 12;");
    await answer.getByRole("button", { name: "Copy", exact: true }).click();
    assert.match(await clipboard(), /At \*\*noon\*\*[\s\S]*```js/);
    await page.locator("article.said").first().hover();
    await page.getByRole("button", { name: "Copy the message" }).click();
    assert.equal(await clipboard(), "When is the ferry?");
  });

  test("follow-ups ask with one click; ideas are offered for a new chat", async () => {
    tab.sent.length = 0;
    await page.getByRole("group", { name: "What you could ask next" }).getByRole("button", { name: "Which port?" }).click();
    await answered("noted: Which port?");
    assert.equal(asked()["text"], "Which port?");
    await newChat();
    await page.getByRole("group", { name: "Ideas" }).getByRole("button", { name: "Plan a week in Galway" }).click();
    assert.equal(await page.inputValue("#composer"), "Plan a week in Galway");
    await page.fill("#composer", "");
  });

  test("a tool that destroys something is a card with the exact call; denied it is not done, approved it is, and the answer says so", async () => {
    await newChat();
    await ask("call act");
    const card = page.locator("section.ask");
    await card.waitFor();
    assert.match((await card.locator("pre").textContent()) ?? "", /act[\s\S]*"name": "everything"/);
    assert.match((await card.textContent()) ?? "", /for chatter\. Waits until .*\d/, "for whom it runs, and until when it can be decided");
    assert.match(await page.title(), /^●/);
    await shot("approval-real");
    await page.waitForTimeout(300);
    await card.getByRole("button", { name: "Deny" }).click();
    await card.waitFor({ state: "detached" });
    await answers().first().locator(".status.good").waitFor();
    assert.ok(!((await answers().last().textContent()) ?? "").includes("removed everything"));
    await ask("call act");
    await card.waitFor();
    await page.waitForTimeout(300);
    await card.getByRole("button", { name: "Approve once" }).click();
    const answer = await answered("removed everything");
    await answer.getByText(/Tools used: .*act/).waitFor();
  });

  test("a call that nobody decides in time is not made: the card says so, and an answer closes it", async () => {
    await newChat();
    await ask('call act {"name":"soon"}');
    const card = page.locator("section.ask");
    await card.getByText("Waits for 1 more minute.").waitFor();
    // The card says that the time is over, or the answer has taken its place already: it can be approved no more.
    await card.getByRole("button", { name: "Approve once" }).waitFor({ state: "detached" });
    const answer = await answered("Nothing was done.");
    await card.waitFor({ state: "detached" });
    assert.ok(!((await answer.textContent()) ?? "").includes("removed soon"));
  });

  test("each focus mode and each tool of the server has a switch; what is off is not offered, and is in no question", async () => {
    await page.goto(`${world.origin}/#/settings/privacy`);
    await page.getByText("code.plan · Asks before it writes.").waitFor();
    await page.locator(".tool-row", { hasText: "Removes something." }).waitFor();
    await page.getByRole("switch", { name: "Study" }).click();
    await shot("settings-focus");
    await newChat();
    const give = page.getByRole("button", { name: /goes along|go along|nothing else is sent/ });
    await give.click();
    const modes = page.getByLabel("Focus mode");
    await modes.waitFor();
    assert.deepEqual(await modes.locator("option").allTextContents(), ["None", "Plan"]);
    await modes.selectOption({ label: "Plan" });
    await page.getByText("Asks before it writes.").waitFor();
    await shot("give-focus");
    await page.getByRole("button", { name: "Close" }).last().click();
    await ask("With a plan");
    await answered("noted: With a plan");
    assert.deepEqual([asked()["focus"], (asked()["off"] as string[]).includes("focus:web.study")], ["code.plan", true]);
    assert.ok(world.model.last.includes("CANARY-INSTRUCTION"), "the server answered in it");
    // Switched off, it is chosen no more, and the other one can be.
    await page.goto(`${world.origin}/#/settings/privacy`);
    await page.getByRole("switch", { name: "Plan" }).click();
    await page.getByRole("switch", { name: "Study" }).click();
    await page.locator(".tool-row", { hasText: "Study" }).locator('[aria-checked="true"]').waitFor();
    await newChat();
    await ask("Without a plan");
    await answered("noted: Without a plan");
    assert.equal(asked()["focus"], undefined);
    assert.ok(!tab.sent.some((frame) => frame.includes("CANARY-INSTRUCTION")));
  });

  test("one tool is switched off by its name, and focus and concepts are in the request as they are switched", async () => {
    await page.goto(`${world.origin}/#/settings/privacy`);
    await page.locator(".tool-row", { hasText: "act" }).getByRole("switch").click();
    await page.getByRole("switch", { name: "Shared concepts" }).click();
    await page.getByLabel("Another tool, by name").fill("web.*");
    await page.getByRole("button", { name: "Switch off", exact: true }).click();
    await page.locator(".tool-row", { hasText: "web.*" }).waitFor();
    await shot("settings-tools");
    await newChat();
    await page.getByRole("button", { name: /goes along|go along|nothing else is sent/ }).click();
    await page.getByLabel("Focus mode").selectOption({ label: "Study" });
    await page.getByRole("button", { name: "Close" }).last().click();
    await ask("With a focus");
    const answer = await answered("noted: With a focus");
    assert.equal(asked()["focus"], "web.study");
    const off = asked()["off"] as string[];
    assert.ok(off.includes("memory.concepts") && off.includes("web.*") && off.some((name) => name.endsWith("act")), off.join());
    await answer.getByRole("button", { name: "What the server saw" }).click();
    await page.getByText("You chose the focus web.study.").waitFor();
    await page.goto(`${world.origin}/#/settings/privacy`);
    await page.getByRole("switch", { name: "Focus modes" }).click();
    await page.getByText("all are switched off above").first().waitFor();
    await newChat();
    await ask("Without a focus");
    await answered("noted: Without a focus");
    assert.equal(asked()["focus"], undefined);
    assert.ok((asked()["off"] as string[]).includes("focus"));
  });

  test("learning style and interests go only where that is switched on, and of the interests only those that are ticked", async () => {
    await page.goto(`${world.origin}/#/settings/memories`);
    const style = page.locator(".memory", { hasText: "Learning style" });
    await style.locator("textarea").fill("CANARY-SHORT");
    await style.getByRole("button", { name: "Save" }).click();
    await page.getByLabel("Add an interest").fill("CANARY-SAILING, CANARY-CHESS");
    await page.getByRole("button", { name: "Add an interest" }).click();
    await page.getByLabel("CANARY-SAILING", { exact: true }).check();
    await newChat();
    await ask("Nothing along");
    await answered("noted: Nothing along");
    assert.ok(!tab.sent.some((frame) => frame.includes("CANARY-")), "nothing is switched on");
    assert.deepEqual(asked()["available"], ["profile-interests", "profile-learning-style"]);
    await page.goto(`${world.origin}/#/settings/memories`);
    await page.getByRole("switch", { name: "Ticked interests go with every question" }).click();
    await shot("settings-memories");
    await newChat();
    await page.getByRole("button", { name: "1 thing goes along" }).waitFor();
    await ask("Interests along");
    const answer = await answered("noted: Interests along");
    assert.deepEqual(asked()["given"], [{ what: "settings", name: "profile-interests", text: "CANARY-SAILING" }]);
    assert.ok(!tab.sent.some((frame) => frame.includes("CANARY-CHESS") || frame.includes("CANARY-SHORT")), "never what is not ticked");
    assert.ok(world.model.last.includes("CANARY-SAILING"));
    await answer.getByRole("button", { name: "What the server saw" }).click();
    await page.getByText("With the question you gave it: memories (14 bytes).").waitFor();
    await page.goto(`${world.origin}/#/settings/privacy`);
    await page.getByRole("switch", { name: "Offer memories by name" }).click();
    await newChat();
    await ask("Memories off");
    await answered("noted: Memories off");
    assert.deepEqual([asked()["given"], asked()["available"]], [[], []]);
    assert.ok(!tab.sent.some((frame) => frame.includes("CANARY-") || frame.includes("profile-")));
  });

  test("suggestions that are switched off are neither asked for nor shown", async () => {
    await page.goto(`${world.origin}/#/settings/privacy`);
    await page.getByRole("switch", { name: "Suggestions, summaries and tags" }).click();
    await newChat();
    assert.equal(await page.getByRole("group", { name: "Ideas" }).count(), 0);
    await ask("Another ferry");
    await answered("noted: Another ferry");
    assert.ok((asked()["off"] as string[]).includes("suggestions"));
    await page.waitForTimeout(1500);
    assert.equal(await page.getByRole("group", { name: "What you could ask next" }).count(), 0);
  });

  test("one chat is never cached: every question says so, on a second device too, and other chats are as before", async () => {
    await newChat();
    await page.getByRole("button", { name: "kept a day, to go on" }).click();
    await page.getByRole("button", { name: "not kept after the answer" }).waitFor();
    await ask("Keep nothing of this");
    const answer = await answered("noted: Keep nothing of this");
    assert.equal(asked()["keep"], "turn");
    await answer.getByRole("button", { name: "What the server saw" }).click();
    await page.getByText("It keeps none of it after the answer.").waitFor();
    await ask("Nor of this");
    await answered("noted: Nor of this");
    assert.equal(asked()["keep"], "turn");
    assert.ok(tab.sent.some((frame) => frame.includes('"chat_history"')), "so the history goes along");
    const second = await world.tab(other.options);
    await logIn(world, second, "chatter");
    await showList(second.page);
    await second.page.locator("a.chat").first().click();
    await second.page.getByText("noted: Nor of this").waitFor();
    await ask("From the other", second.page);
    await answered("noted: From the other", second.page);
    const frame = second.sent.findLast((one) => one.includes('"chat_message_added"')) ?? "";
    assert.match(frame, /"keep":"turn"/);
    await second.shot(`never-cached-${other.name}`);
    await second.close();
    await newChat();
    await ask("Keep this");
    await answered("noted: Keep this");
    assert.equal(asked()["keep"], "cache");
    // And for all chats at once.
    const keeps = page.getByRole("switch", { name: "Server may keep a sealed copy" });
    await page.goto(`${world.origin}/#/settings/privacy`);
    await keeps.click();
    await newChat();
    await ask("Keep nothing anywhere");
    await answered("noted: Keep nothing anywhere");
    assert.equal(asked()["keep"], "turn");
    await page.goto(`${world.origin}/#/settings/privacy`);
    await keeps.click();
    await showList(page);
    await page.locator("a.chat").first().click();
    await answered("noted: Keep nothing anywhere");
  });

  test("a draft outlives a reload", async () => {
    await page.fill("#composer", "half a thought");
    await page.waitForTimeout(2_500);
    await page.reload();
    await unlock(page);
    await page.waitForFunction(() => (document.getElementById("composer") as HTMLTextAreaElement | null)?.value === "half a thought");
    await page.fill("#composer", "");
  });

  test("an edit that was begun outlives a lock and a reload, and is sent as another branch", async () => {
    const said = page.locator("article.said").last();
    await said.getByRole("button", { name: "Edit and send again" }).click();
    await page.fill("form.edit-box textarea", "Keep nothing, said better");
    await lock(page);
    await unlock(page);
    await page.locator("form.edit-box textarea").waitFor();
    assert.equal(await page.inputValue("form.edit-box textarea"), "Keep nothing, said better");
    await page.fill("form.edit-box textarea", "Keep nothing, said best");
    await page.waitForTimeout(1_000);
    await page.reload();
    await unlock(page);
    await page.locator("form.edit-box textarea").waitFor();
    assert.equal(await page.inputValue("form.edit-box textarea"), "Keep nothing, said best");
    await shot("edit-kept");
    await page.locator("form.edit-box button[type=submit]").click();
    await answered("noted: Keep nothing, said best");
    assert.equal(await page.locator("form.edit-box").count(), 0);
    await page.reload();
    await unlock(page);
    await answered("noted: Keep nothing, said best");
    assert.equal(await page.locator("form.edit-box").count(), 0, "it was sent");
  });

  test("a request that was declined is a state of its own, with where help is", async () => {
    await newChat();
    await ask("a dark thought");
    await page.getByText("This request was declined.").first().waitFor();
    await page.getByRole("complementary", { name: "You are not alone" }).first().waitFor();
    await page.locator("article.answer.declined .status.good").waitFor();
    await shot("declined-real");
  });

  test("a chat that was ended is closed, and stays so after a reload", async () => {
    await newChat();
    await ask("this is the very end");
    await page.getByText("This chat was ended for safety.").first().waitFor();
    await page.getByText("This chat is closed.").waitFor();
    assert.equal(await page.locator("#composer").count(), 0);
    assert.equal(await page.getByRole("button", { name: "Retry" }).count(), 0);
    await page.locator("article.answer .status.good").waitFor();
    await stored(page);
    await page.reload();
    await unlock(page);
    await page.getByText("This chat is closed.").waitFor();
    await page.getByText("This chat was ended for safety.").first().waitFor();
    await begin(page);
    await page.locator("#composer").waitFor();
  });

  test("a chat that is deleted can be taken back for a while, and is gone after it", async () => {
    const line = page.locator("a.chat", { hasText: "About a ferry" });
    // By its summary: another chat has the same title.
    await showList(page);
    await line.click();
    await page.getByRole("heading", { name: "The ferry in March" }).waitFor();
    const remove = () => more(page, "Delete");
    await remove();
    await page.getByRole("button", { name: "Undo" }).click();
    await page.getByRole("heading", { name: "The ferry in March" }).waitFor();
    tab.sent.length = 0;
    await remove();
    await line.waitFor({ state: "detached" });
    assert.ok(!tab.sent.some((frame) => frame.includes('"delete_chat"')), "not before its time");
    for (let tries = 0; !tab.sent.some((frame) => frame.includes('"delete_chat"')); tries++) {
      assert.ok(tries < 480, "it goes after its time");
      await page.waitForTimeout(250);
    }
  });

  test("nothing went wrong in the console on the way", async () => {
    await tab.close();
  });
});
