// The client for TypeScript against a real server. Compiled strictly first: what it uses has these types.
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { inspect } from "node:util";
import { Confidant, ConfidantError, type Answer, type Approval, type Ending, type ErrorKind, type TurnEvent } from "confidant-memory";
import { Redactor } from "confidant-memory/redact";

const env = (name: string): string => process.env[name] ?? assert.fail(`${name} is not set`);
const url = env("MEMORY_URL");
const token = readFileSync(env("MEMORY_TOKEN_FILE"), "utf8").trim();
const client = new Confidant({ url, token });
const MARKER = "zanzibar-marker";

function answered(ending: Ending): Answer {
  assert.equal(ending.type, "answer");
  return ending as Answer;
}

function asked(ending: Ending): Approval {
  assert.equal(ending.type, "approval");
  return ending as Approval;
}

async function refused(work: Promise<unknown>): Promise<ConfidantError> {
  const error: unknown = await work.then(
    () => assert.fail("it was not refused"),
    (reason: unknown) => reason,
  );
  assert(error instanceof ConfidantError, inspect(error));
  assert(error.hint && error.message.includes(error.hint) && !inspect(error).includes(MARKER));
  return error;
}

test("a turn streams, is remembered, and is one turn by its id", async () => {
  const session = client.session("http:team:main:alice");
  assert.equal(answered(await session.ask("my name is Alice", { requestId: "r-1" })).memory, "kept");
  const seen: TurnEvent[] = [];
  for await (const event of session.stream("second", { room: [{ sender: "bob", content: "hi", timestamp: new Date() }], audience: "room" })) seen.push(event);
  const answer = answered(seen.at(-1) as Ending);
  const pieces = seen.flatMap((event) => (event.type === "delta" ? [event.text] : []));
  assert.equal(pieces.join(""), answer.text);
  assert.equal(answer.text, "noted: second");
  assert(pieces.length > 1 && answer.recalled >= 2);
  let words = "";
  for await (const piece of session.stream("third").text()) words += piece;
  assert.equal(words, "noted: third");
  assert.equal(answered(await session.ask("my name is Alice", { requestId: "r-1" })).replayed, true);
  const error = await refused(session.ask(MARKER, { requestId: "r-1" }));
  assert.deepEqual([error.kind, error.code, error.requestId], ["conflict", "request_id_reused", "r-1"]);
});

test("an approval is in the stream and in the list, and decided", async () => {
  const session = client.session("http:team:main:bob");
  const waiting = asked(await session.ask('call world.act {"name": "one"}'));
  assert.deepEqual([waiting.tool, waiting.arguments], ["world.act", { name: "one" }]);
  assert.deepEqual(await session.approvals(), [waiting]);
  assert.deepEqual(await client.approval(waiting.approvalId), waiting);
  assert.equal((await refused(session.decide({ ...waiting, hash: "0" }, "approve", { userId: "bob" }))).code, "hash_mismatch");
  assert(answered(await session.decide(waiting, "approve", { userId: "bob" })).text.includes("did one"));
  const other = asked(await session.ask('call world.act {"name": "two"}'));
  assert(answered(await client.decide(other, "deny", { userId: "bob" })).text.includes("denied"));
  assert.deepEqual(await session.approvals(), []);
});

test("a turn is cancelled by the server, and left by a signal", async () => {
  const session = client.session("http:team:main:carol");
  const stream = session.stream("wait", { requestId: "r-w" });
  for await (const event of stream) {
    if (event.type === "delta") break;
  }
  assert.equal(await session.cancel("r-w"), true);
  assert.equal((await refused(session.ask("wait", { requestId: "r-w" }))).kind, "cancelled");
  const controller = new AbortController();
  const left = session.stream("wait", { requestId: "r-l", signal: controller.signal });
  await assert.rejects(
    async () => {
      for await (const event of left) if (event.type === "delta") controller.abort();
    },
    { name: "AbortError" },
  );
  assert.equal(await left.cancel(), true, "the turn went on");
});

test("export, and erasure with a receipt", async () => {
  const session = client.session("http:one:main:dave");
  await session.ask(`I like ${MARKER}`);
  await client.session("http:two:main:dave").ask("hello");
  const whole = await session.export();
  assert.deepEqual(whole.messages.map((message) => message.kind), ["human", "ai"]);
  assert(whole.messages[0]?.text.includes(MARKER));
  assert.deepEqual(await session.wouldErase(), { erased: "session", sessions: 1, messages: 2, derived: {} });
  const person = client.person("dave");
  assert.equal((await person.export()).sessions.length, 2);
  assert.equal((await person.wouldErase()).sessions, 2);
  assert.equal((await session.erase()).records, 2);
  const receipt = await person.erase();
  assert.deepEqual([receipt.erased, receipt.sessions], ["person", 1]);
  writeFileSync(env("RECEIPT"), JSON.stringify(receipt.raw));
  assert.equal((await refused(session.export())).kind, "not_found");
});

test("memories are kept, found, opened and forgotten", async () => {
  const memory = client.memory("alice");
  const work = { summary: "The login failed for jane@example.org. We decided to roll back to v2.3.1." };
  const preview = await memory.preview("w-1", work, { tags: ["bug"] });
  assert(!preview.payload.includes("jane@example.org") && preview.redactions["email"] === 1);
  const stored = await memory.store("w-1", work, { tags: ["bug"], expectSha256: preview.sha256 });
  assert(stored.indexed && !stored.alreadyStored);
  const [hit] = await memory.query("why did we roll back?", { tags: ["bug"], limit: 3 });
  assert(hit && hit.uri === stored.uri);
  assert.deepEqual((await memory.retrieve(hit.uri)).card, stored.card);
  assert.equal((await memory.list({ end: new Date(0) })).length, 0);
  assert((await memory.estimate(1e9)).monthlyStorageUsd > 0);
  assert((await memory.forget({ uri: hit.uri }, { dryRun: true })).dryRun);
  assert.equal((await memory.forget({ sessionId: "w-1" })).forgotten, 1);
  const blocked = await refused(memory.store("w-2", { output: `Authorization: Bearer ${MARKER}0123456789abcdef` }));
  assert.deepEqual([blocked.kind, blocked.places.map((place) => place.path)], ["blocked", ["/session/output"]]);
});

test("errors have a kind and say what to do", async () => {
  const cases: [() => Promise<unknown>, ErrorKind][] = [
    [() => new Confidant({ url, token: "nobody" }).session("http:t:m:a").ask(MARKER), "unauthenticated"],
    [() => client.session(MARKER).ask("hello"), "invalid_request"],
    [() => client.memory().list(), "invalid_request"],
    [() => client.approval("apr-none"), "not_found"],
    [() => new Confidant({ url: "http://127.0.0.1:9", token, retries: 0 }).session("http:t:m:a").export(), "unreachable"],
    [() => new Confidant({ url: env("SILENT_URL"), token, retries: 0, timeoutMs: 300 }).session("http:t:m:a").ask("x"), "timed_out"],
    [() => new Confidant({ url: env("STRANGE_URL"), token, retries: 0 }).session("http:t:m:a").approvals(), "unexpected_reply"],
    [() => new Confidant({ url: env("STRANGE_URL"), token, retries: 0 }).memory("a").list(), "unexpected_reply"],
  ];
  for (const [work, kind] of cases) assert.equal((await refused(work())).kind, kind);
  for (const bad of ["", "a\nb", "tökén"]) assert.throws(() => new Confidant({ url, token: bad }), ConfidantError);
  for (const bad of ["127.0.0.1:7367", "ftp://x", "http://me:pass@x"]) assert.throws(() => new Confidant({ url: bad, token }), ConfidantError);
  let given = 0;
  const supplied = new Confidant({ url, token: async () => (given++, token) });
  assert.deepEqual(await supplied.session("http:t:m:new").approvals(), []);
  assert.equal(given, 1);
});

test("a lost connection costs no answer, and no piece twice", async () => {
  const cut = new Confidant({ url: env("CUTTER_URL"), token, retries: 20 });
  const seen: TurnEvent[] = [];
  for await (const event of cut.session("http:team:main:erin").stream("cut")) seen.push(event);
  assert.deepEqual(seen.flatMap((event) => (event.type === "delta" ? [event.text] : [])), ["noted: "]);
  assert.equal(answered(seen.at(-1) as Ending).text, "noted: cut");
});

test("what was said is not in what Node prints", async () => {
  const session = client.session(`http:${MARKER}:main:${MARKER}`);
  const shown: unknown[] = [client, session];
  for await (const event of session.stream(MARKER, { requestId: MARKER })) shown.push(event);
  const memory = client.memory(MARKER);
  const stored = await memory.store(MARKER, { summary: `We decided on ${MARKER}.` }, { tags: [MARKER] });
  shown.push(memory, stored, stored.card, await memory.query(MARKER), await memory.retrieve(stored.uri), await memory.preview("x", { summary: MARKER }));
  shown.push(await session.export(), await client.person(MARKER).export(), session.stream(MARKER), await client.person(MARKER).erase());
  for (const one of shown) assert(!inspect(one, { depth: 9 }).includes(MARKER), Object.keys(one as object).join());
  assert(JSON.stringify(shown).includes(MARKER), "who wants it written down can have it");
});

test("redaction, by one program that is asked line by line", async () => {
  const redactor = new Redactor();
  const told = await redactor.redact("write to jane@example.org");
  assert.deepEqual([told.value, told.blocked, told.findings[0]?.rule], ["write to <REDACTED:EMAIL>", false, "email"]);
  assert.equal((await redactor.redact("Authorization: Basic amFuZTpodW50ZXIy")).blocked, true);
  assert.deepEqual((await redactor.redactJson({ to: ["a@x.org", 7] })).value, { to: ["<REDACTED:EMAIL>", 7] });
  const many = await Promise.all(Array.from({ length: 200 }, (_, n) => redactor.redact(`${n} jane${n}@example.org`)));
  assert.deepEqual(many.map(({ value }) => value), Array.from({ length: 200 }, (_, n) => `${n} <REDACTED:EMAIL>`));
  for (const odd of ["", "\n", "\ud83d", "two\nlines\u2028", "x".repeat(300_000)]) assert.equal((await redactor.redact(odd)).blocked, false);
  assert(!inspect(told).includes("write to"));
  assert.equal((await refused(redactor.redactJson(undefined))).code, "not_json");
  await redactor.close();
  assert.equal((await refused(redactor.redact("x"))).code, "closed");
  const failures: [string, string][] = [
    ["/nonexistent/confidant", "program_ended"],
    [env("FAILING_PROGRAM"), "program_ended"],
    [env("SILENT_PROGRAM"), "timed_out"],
  ];
  for (const [program, code] of failures) {
    const broken = new Redactor({ program, timeoutMs: code === "timed_out" ? 300 : 60_000 });
    const error = await refused(broken.redact("jane@example.org"));
    assert.deepEqual([error.kind, error.code], ["program_failed", code]);
    assert(!error.message.includes("jane"));
    await broken.close();
  }
});
