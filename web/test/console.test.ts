// The administrator's page without a browser: what it makes of counts, what it does when the server is away, and that both languages are whole.
import assert from "node:assert/strict";
import { createServer, type Server as HttpServer } from "node:http";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { ceiling, lately, perMinute, quantile, remember, share, SPAN_MS, type Sample } from "../src/console/numbers";
import { readAudit, readConsole, type Told } from "../src/console/told";
import { EVERY_MS, Watch } from "../src/console/watch";
import { LANGUAGES, type Key, wordsOf } from "../src/console/words";

const told = (at: number, more: Record<string, unknown> = {}): Told => {
  const read = readConsole({ at, started_at: 1, version: "1", checks: [], turns: { running: 2, answered: 5 }, turn_times: { bounds_ms: [100, 200], counts: [1, 1, 0], total_ms: 200 }, ...more });
  assert.ok(read);
  return read;
};

test("how long turns took is read between the bounds", () => {
  const times = { bounds: [100, 200, 400], counts: [2, 0, 2, 0], total: 0 };
  assert.deepEqual(quantile(times, 0.5), { ms: 100, isOver: false });
  assert.deepEqual(quantile(times, 0.75), { ms: 300, isOver: false });
  assert.deepEqual(quantile(times, 1), { ms: 400, isOver: false });
  assert.deepEqual(quantile({ ...times, counts: [0, 0, 0, 3] }, 0.5), { ms: 400, isOver: true });
  assert.equal(quantile({ ...times, counts: [0, 0, 0, 0] }, 0.5), null);
});

test("the lines go back ten minutes, and begin again with the server", () => {
  let samples: Sample[] = [];
  let last: Told | null = null;
  for (let at = 0; at <= SPAN_MS + 60_000; at += 30_000) {
    const now = told(at + 1, { turns: { running: 1, answered: at / 1000 } });
    samples = remember(samples, now, last);
    last = now;
  }
  assert.equal(samples.length, SPAN_MS / 30_000);
  assert.deepEqual(new Set(perMinute(samples, ({ answered }) => answered).map(({ value }) => value)), new Set([60]));
  const anew = remember(samples, told(SPAN_MS * 2, { started_at: 99, turns: { answered: 0 } }), last);
  assert.equal(anew.length, 1, "a server that starts again counts from zero");
  const before = told(10);
  const after = told(20, { turn_times: { bounds_ms: [100, 200], counts: [1, 4, 0], total_ms: 0 } });
  const both = remember(remember([], before, null), after, before);
  assert.ok(after.times !== null);
  assert.deepEqual(lately(both, after.times)?.counts, [0, 3, 0]);
  assert.equal(share(0, 0), null);
  assert.deepEqual([0, 1, 1.5, 3, 7, 11, 320].map(ceiling), [1, 1, 2, 5, 10, 20, 500]);
});

test("what is missing or nonsense is missing, and never thrown", () => {
  for (const nonsense of [null, 3, "x", [], {}, { at: "x" }, { at: -1 }]) assert.equal(readConsole(nonsense), null);
  const bare = readConsole({ at: 1 });
  assert.ok(bare !== null && bare.turns === null && bare.keys === null && bare.sessions === null && bare.times === null && bare.failedOpenings === null);
  assert.equal(readConsole({ at: 1, turn_times: { bounds_ms: [1], counts: [1] } })?.times, null, "bounds and counts do not fit");
  assert.equal(readAudit({}), null);
  assert.deepEqual(readAudit({ records: [{ at: 1, action: "a", actor: "cli", subject: "tag" }, { at: 2, action: "b" }] }), [
    { at: 2, actor: "", action: "b", count: null, reason: null }, { at: 1, actor: "cli", action: "a", count: null, reason: null },
  ]);
});

test("all languages have the same words and the same places to fill in, and every word is used", async () => {
  const places = (text: string) => [...text.matchAll(/\{(\w+)\}/g)].map(([, name]) => name).sort();
  const en = wordsOf("en");
  for (const { code, words } of LANGUAGES) {
    assert.deepEqual(Object.keys(words).sort(), Object.keys(en).sort(), code);
    for (const key of Object.keys(en) as Key[]) {
      assert.deepEqual(places(words[key]), places(en[key]), `${code}: ${key}`);
      assert.ok(words[key] !== "", `${code}: ${key}`);
    }
  }
  const folder = join(process.env["WEB_DIR"] ?? ".", "src/console");
  const names = (await readdir(folder)).filter((name) => /\.tsx?$/.test(name) && name !== "words.ts");
  const code = (await Promise.all(names.map((name) => readFile(join(folder, name), "utf8")))).join("\n");
  const isUsed = (key: string) => code.includes(`"${key}"`) || (key.includes(".") && (code.includes(`"${key.split(".")[0]}"`) || code.includes(`\`${key.split(".")[0]}.\${`)));
  assert.deepEqual(Object.keys(en).filter((key) => !isUsed(key) && !["unreachable", "unreadable"].includes(key)), []);
});

/** A server that answers as it is told to, at this end of a real socket. */
let server: HttpServer;
let base = "";
let answer: { status: number; body: unknown; headers?: Record<string, string> } = { status: 200, body: {} };
const asked: { url: string; authorization: string | undefined }[] = [];

before(async () => {
  server = createServer((request, response) => {
    asked.push({ url: request.url ?? "", authorization: request.headers.authorization });
    const isAudit = (request.url ?? "").startsWith("/api/v1/audit");
    const { status, body, headers } = isAudit && answer.status === 200 ? { status: 200, body: { records: [] }, headers: {} } : answer;
    response.writeHead(status, { "content-type": "application/json", ...headers }).end(JSON.stringify(body));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  base = `http://127.0.0.1:${typeof address === "object" && address !== null ? address.port : 0}`;
});

after(() => {
  server.closeAllConnections();
  server.close();
});

class TabStorage {
  readonly kept = new Map<string, string>();
  getItem = (key: string) => this.kept.get(key) ?? null;
  setItem = (key: string, value: string) => void this.kept.set(key, value);
  removeItem = (key: string) => void this.kept.delete(key);
}

test("the token is kept only where that is ticked, and a refused one nowhere", async () => {
  const storage = new TabStorage();
  const watch = new Watch(base, storage);
  answer = { status: 200, body: { at: 5, started_at: 1 } };
  await watch.signIn("secret-token", false);
  assert.equal(storage.kept.size, 0);
  assert.deepEqual(asked.map(({ url }) => url), ["/api/v1/console", "/api/v1/audit?newest=true&limit=50"], "the token is in no address");
  assert.ok(asked.every(({ authorization }) => authorization === "Bearer secret-token"));
  watch.signOut();
  assert.ok(watch.told.value === null && !watch.isIn.value);
  await watch.signIn("secret-token", true);
  assert.deepEqual([...storage.kept.values()], ["secret-token"]);
  for (const [status, why] of [[401, "token"], [403, "role"]] as const) {
    answer = { status, body: { error: { code: "x", message: "no", hint: "h" } } };
    await watch.signIn("secret-token", true);
    assert.deepEqual([watch.isIn.value, watch.turned.value, storage.kept.size, watch.told.value], [false, why, 0, null]);
  }
});

test("a server that refuses or is away is said to be, and what was told last stays", async () => {
  let now = 1000;
  const watch = new Watch(base, null, () => now);
  answer = { status: 200, body: { at: 5, started_at: 1 } };
  await watch.signIn("t", false);
  answer = { status: 503, body: { error: { code: "storage_failed", message: "the store does not answer", hint: "check it" } } };
  await watch.readAudit();
  assert.equal(watch.auditTrouble.value, "the store does not answer");
  now = 2000;
  await look(watch);
  now = 3000;
  await look(watch);
  assert.deepEqual(watch.trouble.value, { kind: "refused", since: 2000, message: "the store does not answer", hint: "check it" });
  assert.equal(watch.told.value?.at, 5);
  answer = { status: 200, body: "not a state" };
  await look(watch);
  assert.equal(watch.trouble.value?.kind, "unreadable");
  answer = { status: 200, body: { at: 6, started_at: 1 } };
  await look(watch);
  assert.deepEqual([watch.trouble.value, watch.told.value?.at], [null, 6]);
  watch.signOut();
  const away = new Watch("http://127.0.0.1:9", null, () => now);
  await away.signIn("t", false);
  assert.deepEqual([away.trouble.value, away.isIn.value], [{ kind: "unreachable", since: 3000 }, true]);
  away.signOut();
});

test("nothing is asked while nobody looks", async () => {
  const watch = new Watch(base);
  answer = { status: 200, body: { at: 5, started_at: 1 } };
  await watch.signIn("t", false);
  watch.seen(false);
  asked.length = 0;
  await new Promise((resolve) => setTimeout(resolve, EVERY_MS + 300));
  assert.equal(asked.length, 0, "hidden");
  watch.seen(true);
  await until(() => asked.length === 1);
  watch.pause(true);
  asked.length = 0;
  await new Promise((resolve) => setTimeout(resolve, EVERY_MS + 300));
  watch.seen(true);
  assert.equal(asked.length, 0, "paused");
  watch.pause(false);
  await until(() => asked.length > 0);
  watch.signOut();
});

async function look(watch: Watch): Promise<void> {
  const count = asked.length;
  watch.again();
  await until(() => asked.length > count);
  // The answer is on its way.
  await new Promise((resolve) => setTimeout(resolve, 300));
}

async function until(is: () => boolean): Promise<void> {
  for (let tries = 0; tries < 3000 && !is(); tries++) await new Promise((resolve) => setTimeout(resolve, 20));
  assert.ok(is());
}
