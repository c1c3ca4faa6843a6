// What is read out of exports and archives: dates, fields, memories and embeds; what is broken is counted; hostile archives are refused.
import assert from "node:assert/strict";
import { test } from "node:test";
import { deflateRawSync } from "node:zlib";
import { readExport, readFile } from "../src/ui/settings/imports";
import { BadArchive, unzip } from "../src/ui/settings/unzip";

interface Part {
  name: string;
  bytes: Uint8Array;
  method?: number;
  /** What the list says of it, where that is not true. */
  claims?: { packed?: number; size?: number; at?: number; flags?: number };
}

/** An archive of these files. */
function archive(parts: Part[], { count, comment = "" }: { count?: number; comment?: string } = {}): Uint8Array<ArrayBuffer> {
  const pieces: Buffer[] = [];
  const list: Buffer[] = [];
  let at = 0;
  for (const { name, bytes, method = 8, claims = {} } of parts) {
    const body = method === 8 ? deflateRawSync(bytes) : Buffer.from(bytes);
    const path = Buffer.from(name);
    const head = Buffer.alloc(30);
    head.writeUInt32LE(0x04034b50, 0);
    head.writeUInt16LE(method, 8);
    head.writeUInt16LE(path.length, 26);
    const line = Buffer.alloc(46);
    line.writeUInt32LE(0x02014b50, 0);
    line.writeUInt16LE(claims.flags ?? 0, 8);
    line.writeUInt16LE(method, 10);
    line.writeUInt32LE(claims.packed ?? body.length, 20);
    line.writeUInt32LE(claims.size ?? bytes.length, 24);
    line.writeUInt16LE(path.length, 28);
    line.writeUInt32LE(claims.at ?? at, 42);
    pieces.push(head, path, body);
    list.push(line, path);
    at += head.length + path.length + body.length;
  }
  const listed = Buffer.concat(list);
  const end = Buffer.alloc(22);
  end.writeUInt32LE(0x06054b50, 0);
  end.writeUInt16LE(count ?? parts.length, 10);
  end.writeUInt32LE(listed.length, 12);
  end.writeUInt32LE(at, 16);
  end.writeUInt16LE(comment.length, 20);
  return new Uint8Array(Buffer.concat([...pieces, listed, end, Buffer.from(comment)]));
}

const utf8 = (text: string) => new TextEncoder().encode(text);
const json = (value: unknown) => utf8(JSON.stringify(value));
const CHATS = [{ name: "From an archive", chat_messages: [{ sender: "human", text: "q", created_at: "2025-03-01T10:00:00Z" }, { sender: "assistant", text: "r" }] }];
const SMALL = { bytes: 1_000_000, files: 3, entries: 10 };

test("dates are kept, whether in seconds, milliseconds or words", () => {
  const at = Date.parse("2025-03-01T10:00:00Z");
  assert.equal(readExport("a.json", JSON.stringify(CHATS)).chats[0]?.messages[0]?.createdAt, at);
  const tree = [{ title: "T", current_node: "a", mapping: { a: { message: { author: { role: "user" }, create_time: at / 1000 + 0.25, content: { parts: ["q"] } } } } }];
  assert.equal(readExport("b.json", JSON.stringify(tree)).chats[0]?.messages[0]?.createdAt, at + 250);
  for (const bad of [-1, 0, "no date", null, {}, Number.MAX_VALUE * 2]) {
    const list = [{ name: "L", messages: [{ role: "user", text: "q", created_at: bad }] }];
    assert.equal(readExport("c.json", JSON.stringify(list)).chats[0]?.messages[0]?.createdAt, undefined);
  }
});

test("our own export has fields, embeds and memories; the JSON of one chat its fields", () => {
  const own = { v: 1, chats: [{ id: "c", fields: { title: "T", tags: '["a"]', summary: "S", icon: "car", pinned: "1" }, embeds: { embed_1: "code" }, messages: [
    { id: "m1", role: "user", parent: null, body: "hi", created_at: 1_700_000_000_000, refs: ["embed_1"] }, { id: "m2", role: "summary", parent: "m1", body: "so far", created_at: 1_700_000_000_001 },
  ] }], data: [{ kind: "memory", name: "home_town", body: "Cork" }, { kind: "settings", name: "off", body: "[]" }] };
  const read = readExport("confidant-export.json", JSON.stringify(own));
  assert.deepEqual(read, {
    chats: [{ title: "T", fields: { tags: '["a"]', summary: "S", icon: "car", pinned: "1" }, embeds: { embed_1: "code" }, messages: [
      { role: "user", body: "hi", createdAt: 1_700_000_000_000, refs: ["embed_1"] }, { role: "summary", body: "so far", createdAt: 1_700_000_000_001 },
    ] }],
    memories: [{ name: "home_town", body: "Cork" }],
    skipped: 0,
  });
  const one = { v: 1, id: "c", title: "T", fields: { title: "T", icon: "car" }, messages: [{ id: "m1", role: "user", parent: null, body: "hi", created_at: 1_700_000_000_000 }] };
  assert.deepEqual(readExport("chat.json", JSON.stringify(one)).chats, [{ title: "T", fields: { icon: "car" }, messages: [{ role: "user", body: "hi", createdAt: 1_700_000_000_000 }] }]);
});

test("what cannot be read is left out and counted, and the rest is read", () => {
  const list = [null, 7, { name: "L", messages: [{ role: "user", text: "q" }, "?", { role: "assistant", text: { odd: 1 } }, { role: "system", text: "x" }, { role: "assistant", text: "r" }] }];
  const { chats, skipped } = readExport("a.json", JSON.stringify(list));
  assert.deepEqual(chats.map(({ messages }) => messages.map(({ body }) => body)), [["q", "r"]]);
  assert.equal(skipped, 4);
});

test("an archive is read: packed or not, in folders, behind a comment; pictures are not looked at", async () => {
  for (const method of [0, 8]) {
    const bytes = archive([{ name: "export/conversations.json", bytes: json(CHATS), method }, { name: "image.png", bytes: utf8("x"), method: 99 }], { comment: "made by somebody" });
    const { chats } = await readFile("export.zip", bytes);
    assert.equal(chats[0]?.title, "From an archive");
  }
  const { chats } = await readFile("x.zip", archive([{ name: "a.md", bytes: utf8("# A\n\n**You:** hello") }]));
  assert.equal(chats[0]?.messages[0]?.body, "hello");
});

test("hostile archives are refused, and none of their names leads anywhere", async () => {
  const wanted = (name: string) => name.endsWith(".json");
  const refused = (bytes: Uint8Array<ArrayBuffer>) => assert.rejects(unzip(bytes, wanted, SMALL), BadArchive);
  const good = json(CHATS);
  await refused(archive([{ name: "bomb.json", bytes: new Uint8Array(50_000_000) }]));
  await refused(archive([{ name: "bomb.json", bytes: new Uint8Array(50_000_000), claims: { size: 10 } }]));
  await refused(archive([{ name: "stored.json", bytes: new Uint8Array(2_000_000), method: 0 }]));
  // The same bytes again and again: what comes out counts together.
  await refused(archive(Array.from({ length: 3 }, (_, n) => ({ name: `${n}.json`, bytes: new Uint8Array(400_000) }))));
  await refused(archive(Array.from({ length: 4 }, (_, n) => ({ name: `${n}.json`, bytes: good }))));
  await refused(archive(Array.from({ length: 11 }, (_, n) => ({ name: `${n}.txt`, bytes: good }))));
  await refused(archive([{ name: "a.json", bytes: good }], { count: 0xffff }));
  await refused(archive([{ name: "a.json", bytes: good }], { count: 5 }));
  await refused(archive([{ name: "a.json", bytes: good, claims: { packed: 0xffffffff } }]));
  await refused(archive([{ name: "a.json", bytes: good, claims: { at: 0xfffffff0 } }]));
  await refused(archive([{ name: "a.json", bytes: good, claims: { at: 3 } }]));
  await refused(archive([{ name: "a.json", bytes: good, method: 14 }]));
  await refused(archive([{ name: "a.json", bytes: utf8("not deflated"), method: 8, claims: { packed: 3 } }]));
  const whole = archive([{ name: "a.json", bytes: good }]);
  for (const cut of [1, 10, 21, 30, whole.length - 25]) await refused(whole.slice(0, whole.length - cut));
  await refused(new Uint8Array(100));
  // Encrypted entries are passed over; an archive in an archive is no text that is wanted.
  assert.deepEqual(await unzip(archive([{ name: "a.json", bytes: good, claims: { flags: 1 } }]), wanted, SMALL), []);
  assert.deepEqual(await unzip(archive([{ name: "inner.zip", bytes: whole }]), wanted, SMALL), []);
  for (const name of ["../../etc/a.json", "C:\\windows\\a.json", "/a.json"]) {
    assert.deepEqual((await unzip(archive([{ name, bytes: good }]), wanted, SMALL)).map((one) => one.name), ["a.json"]);
  }
  // Bytes at random, and every byte of a good one changed: an answer or a refusal, never anything else.
  for (let at = 0; at < whole.length; at++) {
    const spoilt = whole.slice();
    spoilt[at] = (spoilt[at] ?? 0) ^ 0xff;
    await unzip(spoilt, wanted, SMALL).catch((error: unknown) => assert.ok(error instanceof BadArchive, String(error)));
  }
});
