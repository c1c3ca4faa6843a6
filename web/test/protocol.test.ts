// The types of the protocol are those of docs/PROTOCOL.md: every route, event, type, field, word and error there is here, and nothing else;
// every sample there is read and written again as it was.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { Refused } from "../src/format/error";
import * as protocol from "../src/protocol/index";
import { type ObjectShape, type Shape, type WordsShape, readBody, snake, thousands, writeBody } from "../src/protocol/shapes";
import { cutText, text, utf8Length } from "../src/protocol/values";
import { At } from "../src/protocol/shapes";

const page = readFileSync(join(process.env["WEB_DIR"] ?? ".", "../docs/PROTOCOL.md"), "utf8");

/** The parts under headings of this depth, by heading. */
function parts(of: string, depth: number): Map<string, string> {
  const found = new Map<string, string>();
  for (const part of of.split(new RegExp(`^${"#".repeat(depth)} `, "m")).slice(1)) {
    const end = part.indexOf("\n");
    found.set(part.slice(0, end), part.slice(end + 1));
  }
  return found;
}

function part(of: Map<string, string>, name: string): string {
  const found = of.get(name);
  assert.ok(found !== undefined, `docs/PROTOCOL.md has no part "${name}"`);
  return found;
}

/** The rows of the first table with this head: cells without their backticks. */
function rows(of: string, head: string): string[][] {
  const at = of.indexOf(`| ${head} |`);
  if (at < 0) return [];
  const lines = of.slice(at).split("\n").slice(2);
  const end = lines.findIndex((line) => !line.startsWith("|"));
  return lines.slice(0, end < 0 ? undefined : end).map((line) => line.slice(1, -1).split(" | ").map((cell) => cell.trim()));
}

const bare = (cell: string | undefined) => (cell ?? "").replaceAll("`", "");

/** A field as the page has it: its name, type, and whether it may be left out. */
function fieldsOfPage(of: string): string[] {
  return rows(of, "field | type | meaning").map(([name, type, meaning]) => line(bare(name), type ?? "", /\*Optional\.\*/.test(meaning ?? "")));
}

function fieldsOfShape(shape: ObjectShape<object>): string[] {
  return Object.entries(shape.fields()).map(([name, field]) => line(snake(name), field.what, field.isOptional === true));
}

const line = (name: string, type: string, isOptional: boolean) => `${name}: ${type}${isOptional ? ", optional" : ""}`;

const chapters = parts(page, 2);
const shapes = new Map<string, ObjectShape<object> | WordsShape<string>>();
for (const value of Object.values(protocol)) {
  if (typeof value === "object" && value !== null && "title" in value) {
    const shape = value as ObjectShape<object> | WordsShape<string>;
    shapes.set(shape.title, shape);
  }
}

/** The JSON samples of a part. */
function samples(of: string): unknown[] {
  return [...of.matchAll(/```json\n([^]*?)\n```/g)].map(([, json]) => JSON.parse(json ?? "") as unknown);
}

function readAndWritten<T extends object>(shape: ObjectShape<T>, sample: unknown): void {
  const written = writeBody(shape, readBody(shape, JSON.stringify(sample)));
  assert.deepEqual(JSON.parse(written), sample, shape.title);
}

for (const [chapter, events, frame] of [
  ["Events from client to server", protocol.ClientEvent.all(), protocol.ClientFrame],
  ["Events from server to client", protocol.ServerEvent.all(), protocol.ServerFrame],
] as const) {
  test(chapter, () => {
    const there = parts(part(chapters, chapter), 3);
    assert.deepEqual(Object.keys(events), [...there.keys()].map(bare));
    for (const [name, shape] of Object.entries(events) as [string, ObjectShape<object>][]) {
      const described = part(there, `\`${name}\``);
      assert.deepEqual(fieldsOfShape(shape), fieldsOfPage(described), name);
      const [sample] = samples(described);
      assert.ok(sample !== undefined, `${name} has a sample`);
      readAndWritten(frame as ObjectShape<object>, sample);
    }
  });
}

test("every type of the page is here, with its fields and words", () => {
  const there = parts(part(chapters, "Types"), 3);
  for (const [name, described] of there) {
    const shape = shapes.get(name);
    assert.ok(shape !== undefined, `${name} is a type`);
    if (shape.kind === "words") {
      assert.deepEqual(shape.words, rows(described, "word | meaning").map(([word]) => bare(word)), name);
    } else {
      assert.deepEqual(fieldsOfShape(shape), fieldsOfPage(described), name);
      assert.equal(shape.kind === "choice", described.includes("exactly one of these fields"), name);
    }
  }
  const events = new Set([...Object.values(protocol.ClientEvent.all()), ...Object.values(protocol.ServerEvent.all())].map((one) => one.title));
  const apart = ["ClientFrame", "ServerFrame", "Signed"];
  const more = [...shapes.keys()].filter((name) => !there.has(name) && !events.has(name) && !apart.includes(name));
  assert.deepEqual(more, [], "types that the page does not have");
});

test("frames, closing codes and signed requests are those of the page", () => {
  const frames = parts(part(chapters, "Frames"), 3);
  assert.deepEqual(fieldsOfShape(protocol.ClientFrame), fieldsOfPage(part(frames, "Client to server")));
  assert.deepEqual(fieldsOfShape(protocol.ServerFrame), fieldsOfPage(part(frames, "Server to client")));
  assert.ok(part(chapters, "Frames").includes(`A frame has at most ${thousands(protocol.MAX_FRAME)} bytes.`));
  const codes = rows(part(frames, "Closing"), "code | meaning").flatMap(([code]) => (code ?? "").split(", ").map(Number));
  assert.deepEqual([...Object.values(protocol.CLOSE), 1002, 1007].sort(), codes.sort());
  const accounts = parts(part(chapters, "Accounts, over HTTP"), 3);
  const signed = part(accounts, "Signed");
  assert.deepEqual(fieldsOfShape(protocol.Signed), fieldsOfPage(signed));
  readAndWritten(protocol.Signed, samples(signed)[0]);
});

test("requests are those of the page, with who may ask and what is answered", () => {
  const accounts = parts(part(chapters, "Accounts, over HTTP"), 3);
  const table = rows(part(accounts, "Signed"), "path | who | request | answer | limit");
  const routes = Object.entries(protocol.ROUTES) as [string, { who: string; request: ObjectShape<object>; answer: ObjectShape<object> }][];
  const here = routes.map(([path, { who, request, answer }]) => {
    const said = who === "anybody" || who === "session" ? who : `proof for \`${who}\``;
    return [`\`${path}\``, said, request.what, answer.what, thousands(limitOf(who, request.limit))];
  });
  assert.deepEqual(here, table);
  for (const [path, { request, answer }] of routes) {
    const [asked, answered] = samples(part(accounts, `\`POST ${path}\``));
    readAndWritten(request, asked);
    readAndWritten(answer, answered);
  }
});

/** A signed request is a text inside the body: in the worst case, every byte of it is escaped. */
function limitOf(who: string, limit: number): number {
  return who === "anybody" || who === "session" ? limit : Math.min(2 * limit + 4096, protocol.MAX_FRAME);
}

test("errors and names that are kept free are those of the page", () => {
  const there = rows(part(chapters, "Errors"), "status | errors").flatMap(([status, names]) =>
    [...(names ?? "").matchAll(/`([a-z-]+)`/g)].map(([, name]) => `${name}: ${status}`),
  );
  const names = [...Refused.ALL, ...protocol.Failure.words];
  assert.deepEqual(names.map((name) => `${name}: ${protocol.statusOf(name)}`).sort(), there.sort());
  const free = [...part(chapters, "Names kept free").matchAll(/`(\w+)`/g)].map(([, name]) => name);
  assert.deepEqual([...protocol.RESERVED], free);
});

test("what is not of the protocol is refused, with its place and without what was sent", () => {
  const read = (json: unknown) => readBody(protocol.ServerFrame, JSON.stringify(json));
  const ready = { type: "ready", v: 1, account: "acct_aeaqcaibaeaqcaibaeaqcaibae", device: "dev_aibaeaqcaibaeaqcaibaeaqcai", seq: 1 };
  assert.deepEqual(read({ event: ready }), { event: ready });
  const cases: [unknown, string][] = [
    [{ event: { ...ready, secret: "word" } }, "event"],
    [{ event: { ...ready, v: undefined } }, "event.v"],
    [{ event: { ...ready, v: 1.5 } }, "event.v"],
    [{ event: { ...ready, v: -1 } }, "event.v"],
    [{ event: { ...ready, seq: 2 ** 53 } }, "event.seq"],
    [{ event: { ...ready, account: "acct_AEAQCAIBAEAQCAIBAEAQCAIBAE" } }, "event.account"],
    [{ event: { ...ready, device: "acct_aeaqcaibaeaqcaibaeaqcaibae" } }, "event.device"],
    [{ re: null, event: ready }, "re"],
    [{ event: { type: "secret-word" } }, "event.type"],
    [{ event: { type: "toString" } }, "event.type"],
    [{ event: {} }, "event.type"],
    [{ event: ready, toString: 1 }, ""],
    [{ event: { type: "refused", error: "secret-word", what: "", hint: "" } }, "event.error"],
    [{ event: { type: "refused", error: "rate", what: "x".repeat(513), hint: "" } }, "event.what"],
    [{ event: { type: "refused", error: "rate", what: "\ud800", hint: "" } }, "event.what"],
    [{ event: { type: "data_records", records: [{ kind: "a", name: "b", data: "AAAA" }], more: false } }, "event.records[0].data"],
    [[], ""],
    ["secret-word", ""],
  ];
  for (const [json, path] of cases) {
    assert.throws(
      () => read(json),
      (error) => error instanceof protocol.Malformed && error.path === path && !error.message.includes("word"),
      JSON.stringify(json),
    );
  }
  assert.throws(() => readBody(protocol.ServerFrame, "{"), protocol.Malformed);
  assert.throws(() => readBody(protocol.ServerFrame, new Uint8Array([0xff])), protocol.Malformed);
  assert.throws(() => readBody(protocol.Done, " ".repeat(70_000)), protocol.Malformed);
});

test("what is written is within the limits of whoever reads it", () => {
  const draft = { chat: protocol_chat, expected: 0, draft: new Uint8Array(200_000) };
  assert.throws(() => protocol.UpdateDraft.write(draft, At.root), protocol.Malformed);
  const words = text(4) as Shape<string>;
  assert.equal(words.write("üü", At.root), "üü");
  assert.throws(() => words.write("üüa", At.root), protocol.Malformed);
});

const protocol_chat = "chat_aeaqcaibaeaqcaibaeaqcaibae" as protocol.UpdateDraft["chat"];

test("lengths are those of UTF-8, and a text is cut where a character ends", () => {
  for (const one of ["", "a", "ü", "€", "😀", "a😀ü€", "\ud800", "\udc00x", "e\u0301"]) {
    assert.equal(utf8Length(one), new TextEncoder().encode(one).length, JSON.stringify(one));
  }
  assert.equal(cutText("a😀b", 4), "a");
  assert.equal(cutText("a😀b", 5), "a😀");
  assert.equal(cutText("a😀b", 6), "a😀b");
});
