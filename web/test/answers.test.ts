// Answers at a real server with a real socket: asked, heard word by word, given the history only for an open question of this device,
// resumed, cancelled, stored, and found again by another device.
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { ask, askInstead, awaited, cancel, decide, parts, retry, setSwitch, unanswered, words } from "../src/client/asks";
import { fitted } from "../src/client/answers";
import { chat, newChat, setData } from "../src/client/chats";
import { type Device, connect, disconnect, openDevice } from "../src/client/device";
import { isRefused, nameOf } from "../src/client/error";
import { MemoryFiles } from "../src/client/files";
import { listen } from "../src/client/live";
import { logIn } from "../src/client/account";
import { flush } from "../src/client/send";
import { sync } from "../src/client/sync";
import type { Telling } from "../src/client/turns";
import { type ChatId, MessageId, TurnId, utf8 } from "../src/format/index";
import { type Heard, MAX_HISTORY, type ServerFrame } from "../src/protocol/index";
import { World, bodies } from "./world/index";
import { Model } from "./world/model";
import { Through } from "./world/ways";

let world: World;
let model: Model;

before(async () => {
  model = await Model.start();
  const tool = [process.execPath, join(process.env["WEB_DIR"] ?? ".", "test/world/tool.mjs")];
  world = await World.start({ ...model.settings, CONFIDANT_TOOLS__SERVERS__WORLD__COMMAND: JSON.stringify(tool) });
});
after(async () => {
  await world.stop();
  await model.stop();
});

/** Listens until something is told that ends a turn, and stores it; everything that was told. */
async function heard(device: Device, until: Telling["told"] = "ended"): Promise<Telling[]> {
  const told: Telling[] = [];
  for (;;) {
    const news = await listen(device);
    if (news?.news !== "turn") continue;
    told.push(news.told.what);
    if (news.told.what.told === "failed" && until !== "failed") throw new Error(`the turn failed: ${news.told.what.error}`);
    if (news.told.what.told === until) return told;
  }
}

async function answered(device: Device, id: ChatId, question: string): Promise<Telling[]> {
  await ask(device, id, question);
  await flush(device);
  const told = await heard(device);
  await flush(device);
  return told;
}

test("a question is answered word by word, and stored sealed", async () => {
  const { person, device } = await world.person();
  const id = await newChat(device, null);
  model.answers.set("What is the capital?", ["Grü", "ße aus ", "Wien 😀"]);
  model.hold();
  await ask(device, id, "What is the capital?");
  await flush(device);
  const first = await heard(device, "words");
  assert.deepEqual(first.at(-1), { told: "words", at: 0, text: "Grü" }, "words come as they are said");
  model.letGo();
  const told = [...first, ...(await heard(device))];
  await flush(device);
  let text = "";
  for (const one of told) if (one.told === "words") text = text.slice(0, one.at) + one.text;
  assert.equal(text, "Grüße aus Wien 😀");
  assert.deepEqual(bodies(device, id), ["What is the capital?", "Grüße aus Wien 😀"]);
  const [, reply] = chat(device, id).branch;
  assert.equal(reply?.role, "assistant");
  assert.ok(!reply?.isWaiting && (reply?.rev ?? 0) > 0, "it is stored");
  assert.deepEqual(awaited(device), []);
  assert.deepEqual(device.state.asks, []);
  const other = await world.synced(person);
  assert.deepEqual(bodies(other, id), ["What is the capital?", "Grüße aus Wien 😀"]);
});

test("the history is given once when another device asks, and the model is shown it", async () => {
  const { person, device } = await world.person();
  const id = await newChat(device, "Trip");
  await answered(device, id, "first question");
  await answered(device, id, "second question");
  assert.ok(model.last.includes("first question"), "the server has the branch in its cache");
  const other = await world.synced(person);
  // Another branch than the server has: it asks for the words.
  const first = chat(other, id).branch[0];
  assert.ok(first !== undefined);
  await askInstead(other, id, first.id, "another first question");
  await flush(other);
  await heard(other);
  await flush(other);
  assert.ok(!model.last.includes("second question"), "nothing of the other branch");
  await setSwitch(other, "suggestions", false);
  const told = await answered(other, id, "behind it");
  assert.ok(model.last.includes("another first question"));
  assert.ok(!told.some((one) => one.told === "history" && one.messages > 2));
});

/** A server that puts frames of its own before those it sends. */
async function through(forged: () => ServerFrame[]): Promise<{ device: Device; id: ChatId; sent: string[] }> {
  const sent: string[] = [];
  const between = {
    sends: (frame: string) => {
      sent.push(frame);
      return "on" as const;
    },
    receives: (frame: ServerFrame) => [...(frame.event.type === "ai_message_update" ? forged() : []), frame],
  };
  const { device } = await world.person(world.setup(new MemoryFiles(), new Through(world.transport(), between)));
  return { device, id: await newChat(device, null), sent };
}

test("words are given for nothing but an open question: everything else is unasked, and nothing leaves", async () => {
  let forged: ServerFrame[] = [];
  const { device, id, sent } = await through(() => forged.splice(0));
  await answered(device, id, "told before");
  model.answers.set("asked now", ["a", "b", "c", "d", "e", "f"]);
  const { turn, message } = await ask(device, id, "asked now");
  const request = { type: "request_chat_history" as const, reason: "cache_miss" as const, have: 0 };
  // While words come, the question is answered already; and other turns and messages were never asked.
  forged = [
    { event: { ...request, chat: id, turn, message } },
    { event: { ...request, chat: id, turn: TurnId.random(), message } },
    { event: { ...request, chat: id, turn, message: MessageId.random() } },
  ];
  await flush(device);
  const before = sent.length;
  const refused: string[] = [];
  for (let isOver = false; !isOver; ) {
    try {
      const news = await listen(device);
      isOver = news?.news === "turn" && news.told.what.told === "ended";
    } catch (error) {
      assert.ok(isRefused(error));
      refused.push(error.name);
    }
  }
  assert.ok(refused.includes("unasked") && refused.every((name) => name === "unasked"), refused.join());
  assert.ok(!sent.slice(before).some((frame) => frame.includes("chat_history")), "nothing left the device");
  await flush(device);
  assert.deepEqual(bodies(device, id).at(-1), "abcdef");
});

test("words of a turn that nobody asked for are refused", async () => {
  const forged: ServerFrame[] = [{ event: { type: "ai_message_update", chat: "" as ChatId, turn: TurnId.random(), at: 0, text: "lies", pad: "" } }];
  const { device, id } = await through(() => forged.splice(0).map((frame) => ({ event: { ...frame.event, chat: id } }) as ServerFrame));
  await ask(device, id, "a question");
  await flush(device);
  const names: string[] = [];
  for (let isOver = false; !isOver; ) {
    try {
      const news = await listen(device);
      isOver = news?.news === "turn" && news.told.what.told === "ended";
    } catch (error) {
      names.push(nameOf(error));
    }
  }
  assert.deepEqual(names, ["unasked"]);
  await flush(device);
  assert.ok(bodies(device, id).every((body) => !body.includes("lies")));
});

test("an answer goes on after the connection was lost", async () => {
  const { device } = await world.person();
  const id = await newChat(device, null);
  model.answers.set("a long one", ["begun, ", "gone on, ", "ended"]);
  model.hold();
  const { turn } = await ask(device, id, "a long one");
  await flush(device);
  await heard(device, "words");
  disconnect(device);
  assert.equal(awaited(device)[0]?.state.is, "unknown");
  model.letGo();
  await sync(device, "all");
  await heard(device);
  assert.equal(words(device, turn), "begun, gone on, ended");
  await flush(device);
  assert.deepEqual(bodies(device, id), ["a long one", "begun, gone on, ended"]);
});

test("a device that was closed while it waited finds the answer; a question that was never sent is asked once it is opened", async () => {
  const { person } = await world.person();
  const setup = world.setup(new MemoryFiles());
  const device = await logIn(setup, person.recovery);
  const id = await newChat(device, null);
  await flush(device);
  await ask(device, id, "written offline");
  disconnect(device);
  const again = await openDevice(setup);
  assert.ok(again !== null);
  await sync(again, "all");
  await flush(again);
  await heard(again);
  disconnect(again);
  const third = await openDevice(setup);
  assert.ok(third !== null);
  assert.deepEqual(bodies(third, id), ["written offline", "noted: written offline"]);
  await flush(third);
  assert.ok(!chat(third, id).branch.some((message) => message.isWaiting));
});

test("a turn is cancelled, and what was said counts", async () => {
  const { device } = await world.person();
  const id = await newChat(device, null);
  model.answers.set("too long", ["said so far", " and never this"]);
  model.hold();
  const { turn } = await ask(device, id, "too long");
  await flush(device);
  await heard(device, "words");
  await cancel(device, id, turn);
  const told = await heard(device).finally(() => model.letGo());
  assert.ok(told.some((one) => one.told === "ended" && one.finish === "cancelled"));
  await flush(device);
  assert.deepEqual(awaited(device), []);
  assert.deepEqual(bodies(device, id), ["too long", "said so far"]);
});

/** A word that comes faster than any person's may come before the server waits for it: then it is said again. */
async function said(say: () => Promise<void>): Promise<void> {
  for (let tries = 0; ; tries++) {
    try {
      return await say();
    } catch (error) {
      if (nameOf(error) !== "not-found" || tries > 1200) throw error;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
}

test("a tool that destroys something waits for the person's word, which shows the exact call", async () => {
  const { device } = await world.person();
  const id = await newChat(device, null);
  for (const [allow, expected] of [[true, /removed everything/], [false, /^(?!.*removed)/]] as const) {
    const { turn } = await ask(device, id, "call act");
    await flush(device);
    const told = await heard(device, "approval");
    const wish = told.at(-1);
    assert.ok(wish?.told === "approval");
    assert.match(wish.approval.tool, /act/);
    assert.deepEqual(JSON.parse(wish.approval.input), { name: "everything" });
    assert.notEqual(wish.approval.why, "");
    await said(() => decide(device, id, turn, wish.approval.id, allow));
    await heard(device);
    await flush(device);
    assert.match(bodies(device, id).at(-1) ?? "", expected);
  }
});

test("retry keeps the other answer", async () => {
  const { device } = await world.person();
  const id = await newChat(device, null);
  await answered(device, id, "again please");
  const [question, reply] = chat(device, id).branch;
  assert.ok(question !== undefined && reply !== undefined);
  await retry(device, id, question.id);
  await flush(device);
  await heard(device);
  await flush(device);
  const view = chat(device, id);
  const replies = [...view.messages.values()].filter((message) => message.parent === question.id);
  assert.equal(replies.length, 2);
  assert.notEqual(view.branch.at(-1)?.id, reply.id, "the new one is shown");
  assert.deepEqual(unanswered(device), []);
});

test("what is switched off, and what is given, is in the request and noted in the message", async () => {
  const sent: string[] = [];
  const between = {
    sends: (frame: string) => {
      sent.push(frame);
      return "on" as const;
    },
  };
  const { device } = await world.person(world.setup(new MemoryFiles(), new Through(world.transport(), between)));
  const id = await newChat(device, null);
  await setSwitch(device, "tools", false);
  await setData(device, "settings", "style", "short words");
  const given = [{ what: "settings" as const, name: "style", text: "short words" }];
  await ask(device, id, "with a setting", { keep: "turn", focus: null, off: ["similar"], available: ["diet"], given, isPerson: false });
  await flush(device);
  await heard(device);
  await flush(device);
  const added = sent.map((frame) => JSON.parse(frame) as { event: Record<string, unknown> }).find(({ event }) => event["type"] === "chat_message_added");
  assert.deepEqual(added?.event["off"], ["tools", "similar"]);
  assert.deepEqual(added?.event["available"], ["diet"]);
  assert.equal(added?.event["keep"], "turn");
  assert.deepEqual(added?.event["given"], [{ what: "settings", name: "style", text: "short words" }]);
  assert.deepEqual(chat(device, id).branch[0]?.shared, [{ what: "settings", bytes: 11 }]);
  const large = { what: "search" as const, name: "x", text: "x".repeat(4097) };
  assert.equal(await ask(device, id, "x", { keep: "cache", focus: null, off: [], available: [], given: [large], isPerson: false }).catch(nameOf), "too-large");
  await connect(device);
});

test("a history goes in parts that fit", () => {
  const one = (bytes: number): Heard => ({ id: MessageId.random(), by: "user", text: "\u0001".repeat(bytes) });
  assert.deepEqual(parts([]), [[[], false]], "an empty branch is one part");
  const all = Array.from({ length: 12 }, () => one(150_000));
  const split = parts(all);
  assert.ok(split.length > 1);
  assert.deepEqual(split.map(([, more]) => more), split.map((_, at) => at + 1 < split.length));
  assert.deepEqual(split.flatMap(([part]) => part), all, "in order, and whole");
  assert.equal(parts(Array.from({ length: 2 * MAX_HISTORY + 1 }, () => one(1))).length, 3);
});

test("an answer is cut where a message ends", () => {
  assert.deepEqual(fitted("short"), ["short", false]);
  const long = "\u0001ü".repeat(40_000);
  const [cut, isCut] = fitted(long);
  assert.ok(isCut && long.startsWith(cut));
  assert.ok(utf8(JSON.stringify(cut)).length <= 256 * 1024 - 4096 + 2);
  const [whole] = fitted("😀".repeat(60_000));
  assert.equal(whole.length, 120_000);
});
