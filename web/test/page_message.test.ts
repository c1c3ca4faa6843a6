// Messages as nodes: small, found again by their references, shortened by words and lines; what is copied comes back.
import assert from "node:assert/strict";
import { test } from "node:test";
import { embedJson, embedMarkdown } from "../src/ui/message/clipboard";
import { contentHash, ContentStore, parseRef } from "../src/ui/message/content";
import { parseMessage } from "../src/ui/message/parse";
import { shorten } from "../src/ui/message/shorten";
import { Stream } from "../src/ui/markdown/lex";
import { exactCall } from "../src/ui/screens/turn";
import { sends } from "../src/ui/screens/enter";

const BODY = "Look at this:\n\n```js\nlet a = 1;\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\nhttps://example.org/x\n\nEnd.\n";

test("a message is text and embeds, each small, with its words in the store", () => {
  const store = new ContentStore();
  const nodes = parseMessage("msg_a", BODY, store);
  assert.deepEqual(nodes.map((node) => node.type), ["text", "code", "table", "link", "text"]);
  assert.deepEqual(nodes[1]?.meta.lang, "js");
  assert.deepEqual([nodes[2]?.meta.rows, nodes[2]?.meta.columns], [1, 2]);
  assert.equal(nodes[3]?.meta.host, "example.org");
  for (const node of nodes) {
    assert.ok(JSON.stringify(node).length < 300, "a node is small");
    const place = parseRef(node.contentRef);
    assert.ok(place);
    assert.equal(BODY.slice(place.from, place.to), store.get(node.contentRef)?.raw);
  }
});

test("a node stays small whatever it stands for, and its words come back when they were dropped", async () => {
  const store = new ContentStore(10);
  const body = `${"A long paste. ".repeat(2_000)}\n\nEnd.`;
  const nodes = parseMessage("msg_b", body, store);
  assert.equal(nodes[0]?.type, "paste");
  assert.ok(JSON.stringify(nodes).length < 700);
  const ref = nodes[0]?.contentRef ?? "";
  assert.equal(store.get(ref), undefined, "dropped under pressure");
  assert.equal(await store.load(ref, async () => body), body.slice(0, body.indexOf("\n\nEnd.")));
  assert.equal(await store.load(ref, async () => null), null, "the message is gone");
  assert.equal(await store.load("nonsense", async () => body), null);
});

test("while words come, only the last node changes", () => {
  const store = new ContentStore();
  const stream = new Stream();
  let before = parseMessage("msg_c", BODY.slice(0, 40), store, { isStreaming: true, stream });
  assert.equal(before.at(-1)?.status, "processing");
  for (let end = 41; end < BODY.length; end += 1) {
    const now = parseMessage("msg_c", BODY.slice(0, end), store, { isStreaming: true, stream });
    const changed = now.filter((node, at) => before[at] !== undefined && before[at]?.contentHash !== node.contentHash);
    assert.ok(changed.length <= 1, `at ${end}: ${changed.length} nodes`);
    before = now;
  }
  assert.notEqual(contentHash("a"), contentHash("b"));
});

function short(body: string, words: number, lines: number) {
  return shorten(body, parseMessage("msg_d", body, new ContentStore()), words, lines);
}

test("a message is shortened by words, by lines, and by embeds that count as several lines", () => {
  assert.deepEqual(short("one two three", 3, 9), { body: "one two three", isShortened: false });
  assert.deepEqual(short("one two three four", 3, 9), { body: "one two three…", isShortened: true });
  assert.deepEqual(short("a  \nb  \nc  \nd", 90, 2).body.split("\n").length, 2);
  const code = "```\nx\n```\n";
  const many = short(`hello\n\n${code}\n${code}\n${code}\nend`, 90, 14);
  assert.equal(many.isShortened, true);
  assert.equal(many.body.match(/```/g)?.length, 4, "two blocks of five lines fit beside a line");
  const alone = short(`\`\`\`\n${"x\n".repeat(500)}\`\`\``, 90, 3);
  assert.equal(alone.isShortened, false, "one embed is shown: it folds itself");
  assert.ok(short("ペ".repeat(3_000), 90, 14).body.length < 1_500, "scripts without spaces are shortened too");
  assert.ok(!/[\ud800-\udbff]…?$/.test(short("😀".repeat(1_500), 90, 14).body), "not inside a character");
});

test("what is copied comes back as the same embed; what is not ours is none", () => {
  const code = "let a = `x`;\n```\n";
  const back = embedMarkdown(embedJson({ type: "code", lang: "js", text: code })) ?? "";
  const nodes = parseMessage("msg_e", back, new ContentStore());
  assert.deepEqual(nodes.map((node) => node.type), ["code"]);
  assert.equal(JSON.parse(embedJson({ type: "code", text: "x" })).inlineContent, "x");
  for (const bad of ["", "{", "[]", "null", '{"version":2,"type":"code","inlineContent":"x"}', '{"version":1,"type":"script","inlineContent":"x"}', '{"version":1,"type":"code"}']) assert.equal(embedMarkdown(bad), null);
  assert.equal(embedMarkdown('{"version":1,"type":"code","language":"js\\n# x","inlineContent":"y"}'), "```\ny\n```\n", "a language is one word");
});

test("a call is shown exactly: duplicate keys stay, and what does not print is spelled out", () => {
  assert.equal(exactCall('{"a":1}'), '{\n  "a": 1\n}');
  assert.equal(exactCall('{"to":"bob","to":"eve"}'), '{"to":"bob","to":"eve"}');
  assert.equal(exactCall('{"n":1e2}'), '{"n":1e2}');
  assert.equal(exactCall("not json"), "not json");
  assert.equal(exactCall('{"a":"\u202ex"}'), '{\n  "a": "\\u202ex"\n}');
});

test("Enter sends, but never in the middle of a composition", () => {
  const key = { key: "Enter", shiftKey: false, ctrlKey: false, metaKey: false, altKey: false, isComposing: false, keyCode: 13 };
  assert.equal(sends(key, true), true);
  assert.equal(sends({ ...key, isComposing: true }, true), false);
  assert.equal(sends({ ...key, keyCode: 229 }, true), false);
  assert.equal(sends({ ...key, shiftKey: true }, true), false);
  assert.equal(sends(key, false), false);
  assert.equal(sends({ ...key, ctrlKey: true }, false), true);
  assert.equal(sends({ ...key, key: "a" }, true), false);
});
