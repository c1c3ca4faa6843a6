// What a chat has beside its answers: what tools said and the beginning in few words, from a real server, stored by whichever client heard the
// answer, shown, and sent again with its proof by the page and by the Rust client alike.
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { ask } from "../src/client/asks";
import { chat, edit, newChat } from "../src/client/chats";
import type { Device } from "../src/client/device";
import { listen } from "../src/client/live";
import { flush } from "../src/client/send";
import { sync } from "../src/client/sync";
import type { Telling } from "../src/client/turns";
import { Notes, chatPage, leafUnder } from "../src/client/views";
import type { ChatId } from "../src/format/index";
import { World, bodies } from "./world/index";
import { Model } from "./world/model";

const SUMMED = "They settled on heliotrope.";
let world: World;
let model: Model;

before(async () => {
  model = await Model.start();
  const tool = [process.execPath, join(process.env["WEB_DIR"] ?? ".", "test/world/tool.mjs")];
  model.forms.set("sum_up", () => ({ summary: SUMMED }));
  world = await World.start({
    ...model.filling,
    CONFIDANT_TOOLS__SERVERS__WORLD__COMMAND: JSON.stringify(tool),
    CONFIDANT_WEB__AI_CACHE_CHATS: "1",
    CONFIDANT_HISTORY__MAX_MESSAGES: "16",
  });
});
after(async () => {
  await world.stop();
  await model.stop();
});

/** Asks and stores the answer; how many messages were sent again for it. */
async function answered(device: Device, id: ChatId, question: string): Promise<number | null> {
  await ask(device, id, question);
  await flush(device);
  let resent: number | null = null;
  for (;;) {
    const news = await listen(device);
    if (news?.news !== "turn") continue;
    const told: Telling = news.told.what;
    if (told.told === "failed") throw new Error(`the turn failed: ${told.error}`);
    if (told.told === "history") resent = told.messages;
    if (told.told === "ended") break;
  }
  await flush(device);
  return resent;
}

/** The server keeps one chat: this is another one. */
async function pushOut(device: Device): Promise<void> {
  await answered(device, await newChat(device, null), "somewhere else");
}

/** What the page shows. */
const shown = (device: Device, id: ChatId) => chatPage(device, new Notes(), id).messages;
const roles = (device: Device, id: ChatId) => shown(device, id).map(({ role }) => role);

test("what a tool said stands before its answer, and goes with the history", async () => {
  const { person, device } = await world.person();
  const id = await newChat(device, "Tides");
  assert.equal(await answered(device, id, 'call look {"name":"high water"}'), null);
  assert.deepEqual(roles(device, id), ["user", "tool", "assistant"]);
  const [, tool, reply] = shown(device, id);
  assert.match(tool?.body ?? "", /^world\.look\nfound high water$/);
  assert.equal(bodies(device, id).length, 2, "the branch is as it was");
  assert.deepEqual(reply?.alternatives?.ids, [reply?.id], "it is no other answer");
  assert.equal(leafUnder(device, id, tool!.id as never), reply?.id, "whoever looks for it finds the answer");
  assert.equal(await answered(device, id, "from the cache"), null);
  // The Rust client has it as well, and gives it when the server has forgotten the chat.
  const rust = world.rust(person);
  assert.ok((await rust.do(`/open ${id}`)).some((line) => line["tool"] === "world.look"));
  await pushOut(device);
  const before = model.prompts.length;
  await rust.do(`/open ${id}`, "/ask by the other client");
  const prompts = model.prompts.slice(before).map((prompt) => prompt.map(({ role, content }) => `${role}: ${String(content)}`).join("\n"));
  const prompt = prompts.find((one) => one.includes("by the other client")) ?? "";
  assert.match(prompt, /world\.look: found high water/);
  assert.match(prompt, /assistant: noted: from the cache/, "what came after it is proved");
  // And back: the page sends what it has.
  await sync(device, "all");
  await pushOut(device);
  assert.equal(await answered(device, id, "by the page again"), 7);
  assert.match(model.last, /world\.look: found high water/);
  assert.match(model.last, /assistant: noted: from the cache/);
});

test("the beginning of a long chat is shown in few words, and sent so", async () => {
  const { person, device } = await world.person();
  const id = await newChat(device, "Curtains");
  let asked = 0;
  while (!roles(device, id).includes("summary")) {
    assert.ok(asked < 40, "nothing was summed up");
    assert.equal(await answered(device, id, `question ${asked}`), null, "the server's words agree all the time");
    asked += 1;
  }
  const at = roles(device, id).indexOf("summary");
  assert.equal(shown(device, id)[at]?.body, SUMMED);
  assert.ok(at > 0 && at % 2 === 0 && at < 2 * asked, "behind an answer, before the next question");
  const summaries = (await world.rust(person).do(`/open ${id}`)).filter((line) => "summary" in line);
  assert.deepEqual(summaries.map(({ messages, body }) => [messages, body]), [[at, SUMMED]]);
  await pushOut(device);
  assert.equal(await answered(device, id, "sent again"), 1 + 2 * asked - at);
  assert.ok(model.last.includes(`summary: ${SUMMED}`) && !model.last.includes("question 0"), model.last);
  assert.ok(model.last.includes(`assistant: noted: question ${asked - 1}`), "what follows it is proved from there on");
  // A change of what it tells of: it goes.
  await edit(device, id, chat(device, id).branch[0]!.id, "question nought");
  await flush(device);
  assert.ok(!roles(device, id).includes("summary"));
});
