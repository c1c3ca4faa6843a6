// Small parts of the page: addresses, groups of the list, imports, names of memories.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { ChatLine } from "../src/client/core";
import { memoryName } from "../src/ui/message/names";
import { readExport } from "../src/ui/settings/imports";
import { grouped } from "../src/ui/state/list";
import { hrefOf, parseRoute } from "../src/ui/state/route";

const CHAT = `chat_${"a".repeat(26)}`;

test("an address is read back, and what is not known is a new chat", () => {
  for (const route of [{ page: "new" }, { page: "chat", chat: CHAT }, { page: "settings", part: "devices" }, { page: "outbox" }] as const) assert.deepEqual(parseRoute(hrefOf(route)), route);
  for (const hash of ["", "#", "#/", "#/chat_short", "#/<script>", `#/${CHAT}x`]) assert.deepEqual(parseRoute(hash), { page: "new" });
  assert.deepEqual(parseRoute("#/settings/../x"), { page: "settings", part: "general" });
});

test("chats stand by day, pinned ones first, the newest first", () => {
  const now = new Date(2027, 2, 10, 12).getTime();
  const line = (id: string, daysAgo: number, pinned = false) => ({ id, updatedAt: now - daysAgo * 86_400_000, pinned }) as ChatLine;
  const groups = grouped([line("old", 40), line("today", 0), line("pinned", 90, true), line("yesterday", 1), line("week", 5), line("today2", 0.1)], now);
  assert.deepEqual(groups.map(({ name, chats }) => [name, chats.map(({ id }) => id)]), [
    ["pinned", ["pinned"]], ["today", ["today", "today2"]], ["yesterday", ["yesterday"]], ["week", ["week"]], ["older", ["old"]],
  ]);
});

test("exports of this program and of others are read; what is broken is left out", () => {
  const own = { chats: [{ id: "c", fields: { title: "T" }, messages: [
    { id: "m1", role: "user", parent: null, body: "hi", created_at: 1 }, { id: "m2", role: "assistant", parent: "m1", body: "yes", model: "x", created_at: 2 }, { id: "m3", role: "assistant", parent: "m1", body: "no", created_at: 3 },
  ] }] };
  assert.deepEqual(readExport("a.json", JSON.stringify(own)).chats, [{ title: "T", messages: [{ role: "user", body: "hi", createdAt: 1_000 }, { role: "assistant", body: "no", createdAt: 3_000 }] }]);
  const tree = [{ title: "Tree", current_node: "b", mapping: {
    a: { parent: null, message: { author: { role: "user" }, content: { parts: ["q"] } } }, b: { parent: "a", message: { author: { role: "assistant" }, content: { parts: ["r", { image: 1 }] }, metadata: { model_slug: "big" } } },
  } }];
  assert.deepEqual(readExport("b.json", JSON.stringify(tree)).chats, [{ title: "Tree", messages: [{ role: "user", body: "q" }, { role: "assistant", body: "r", model: "big" }] }]);
  const list = [{ name: "List", chat_messages: [{ sender: "human", text: "q" }, { sender: "assistant", content: [{ type: "text", text: "r" }] }] }];
  assert.deepEqual(readExport("c.json", JSON.stringify(list)).chats, [{ title: "List", messages: [{ role: "user", body: "q" }, { role: "assistant", body: "r" }] }]);
  assert.deepEqual(readExport("d.md", "# Head\n\n**You:** hello\nthere\n\n**Assistant:** hi").chats, [{ title: "Head", messages: [{ role: "user", body: "hello\nthere" }, { role: "assistant", body: "hi" }] }]);
  const loop = [{ title: "Loop", current_node: "a", mapping: { a: { parent: "a", message: { author: { role: "user" }, content: { parts: ["q"] } } } } }];
  assert.equal(readExport("e.json", JSON.stringify(loop)).chats[0]?.messages.length, 1);
  for (const bad of ["", "{", "null", "[1]", '[{"mapping":{}}]', '{"chats":[{"messages":[{"id":1}]}]}']) assert.deepEqual(readExport("f.json", bad).chats, []);
});

test("a memory's name is spelled as the format wants it", () => {
  assert.equal(memoryName("Home town"), "home_town");
  assert.equal(memoryName("  Größe: Übergang! "), "gro_e_ubergang");
  assert.equal(memoryName("1st car"), "st_car");
  assert.equal(memoryName("日本"), null);
});
