// The device's files: whole, sealed, bound to their names; and the way to the server: packed frames, refusals, sockets.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { test } from "node:test";
import { deflateRawSync } from "node:zlib";

import { ClientError, nameOf } from "../src/client/error";
import { Cabinet, type Files, MemoryFiles } from "../src/client/files";
import { Http, type SocketLike, unpacked } from "../src/client/http";
import { TransportError } from "../src/client/transport";
import { Key, Origin, base64url, utf8 } from "../src/format/index";
import { MAX_FRAME } from "../src/protocol/index";

const text = (bytes: Uint8Array | null) => (bytes === null ? null : new TextDecoder().decode(bytes));

test("files are whole, sealed and bound to their names", async () => {
  const files = new MemoryFiles();
  const cabinet = await Cabinet.open(files, null);
  await cabinet.write("state", utf8("one"));
  await cabinet.write("state", utf8("two"));
  assert.equal(text(await cabinet.read("state")), "two");
  assert.equal(await cabinet.read("other"), null);
  const bytes = await files.read("state");
  assert.ok(bytes !== null && !Buffer.from(bytes).includes("two"), "nothing is in clear");
  await files.write("room-x", bytes);
  await assert.rejects(cabinet.read("room-x"), { name: "damaged" }, "the bytes of one file are not another's");
  assert.equal(text(await (await Cabinet.open(files, null)).read("state")), "two", "the same key opens it again");
  const other = await Cabinet.open(files, await Key.random());
  await assert.rejects(other.read("state"), { name: "damaged" });
  await cabinet.writeAll([["a", utf8("1")], ["b", utf8("2")]]);
  assert.deepEqual((await cabinet.names("")).sort(), ["a", "b", "device.key", "room-x", "state"]);
  await cabinet.clear();
  assert.deepEqual(await files.names(), []);
});

test("with a key of the caller's, none lies beside the files", async () => {
  const files = new MemoryFiles();
  await (await Cabinet.open(files, await Key.random())).write("state", utf8("x"));
  assert.deepEqual(await files.names(), ["state"]);
});

test("what is kept is a copy: whoever changes bytes later changes no file", async () => {
  const files: Files = new MemoryFiles();
  const bytes = utf8("words");
  await files.write("a", bytes);
  bytes.fill(0);
  assert.equal(text(await files.read("a")), "words");
  (await files.read("a"))?.fill(0);
  assert.equal(text(await files.read("a")), "words");
});

test("packed frames are unpacked up to the limit of a frame", async () => {
  const pack = (bytes: Uint8Array) => new Uint8Array(deflateRawSync(bytes));
  assert.equal(text(await unpacked(pack(utf8('{"hello":1}')))), '{"hello":1}');
  const bomb = pack(new Uint8Array(MAX_FRAME + 1).fill(0x20));
  assert.ok(bomb.length < MAX_FRAME);
  await assert.rejects(unpacked(bomb), TransportError);
  await assert.rejects(unpacked(utf8("neither")), TransportError);
  const whole = pack(new Uint8Array(1000).fill(0x31));
  await assert.rejects(unpacked(whole.subarray(0, whole.length - 2)), TransportError);
});

/** A server that answers each request with the next of these. */
async function answering(answers: { status: number; headers?: Record<string, string>; body: string }[]) {
  const seen: { headers: Record<string, unknown>; url: string; body: string }[] = [];
  const server = createServer((request, response) => {
    const pieces: Buffer[] = [];
    request.on("data", (piece: Buffer) => pieces.push(piece));
    request.on("end", () => {
      seen.push({ headers: request.headers, url: request.url ?? "", body: Buffer.concat(pieces).toString() });
      const next = answers.shift() ?? { status: 500, body: "" };
      response.writeHead(next.status, next.headers).end(next.body);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  const port = typeof address === "object" ? address?.port : 0;
  const end = () => new Promise((resolve) => (server.closeAllConnections(), server.close(resolve)));
  return { origin: Origin.parse(`http://127.0.0.1:${port}`), seen, end };
}

const noSocket = (): SocketLike => {
  throw new Error("there is none");
};

test("a program shows its session in two headers; a page never names its id; a proxy's page is no refusal", async () => {
  const id = new Uint8Array(32).fill(1);
  const refused = JSON.stringify({ error: "login-refused", what: "no", hint: "no", retry_ms: 7 });
  const server = await answering([
    { status: 200, headers: { "confidant-session-id": base64url(id) }, body: "{}" },
    { status: 401, body: refused },
    { status: 502, body: "<html>" },
    { status: 302, headers: { location: "/elsewhere" }, body: "" },
    { status: 200, body: "{}" },
  ]);
  const http = new Http(server.origin, { fetch, socket: noSocket, hasCookies: false });
  const posted = await http.post("/account/login", null, '{"a":1}');
  assert.deepEqual([text(posted.body), posted.session], ["{}", id]);
  const secret = new Uint8Array(32).fill(2);
  const failure = (act: Promise<unknown>) => act.then(() => null, (error: unknown) => (error as TransportError).failure);
  assert.deepEqual(await failure(http.post("/chats/ticket", { id, secret }, "{}")), {
    refused: { error: "login-refused", what: "no", hint: "no", retryMs: 7 },
  });
  assert.deepEqual(await failure(http.post("/chats/ticket", { id, secret }, "{}")), { offline: true });
  assert.deepEqual(await failure(http.post("/chats/ticket", { id, secret }, "{}")), { offline: true }, "no redirect is followed");
  await http.post("/chats/ticket", { id: null, secret }, "{}");
  const [first, second, , , fifth] = server.seen;
  assert.equal(first?.body, '{"a":1}');
  for (const absent of ["authorization", "cookie", "origin", "confidant-session"]) assert.ok(!(absent in (first?.headers ?? {})), absent);
  assert.equal(second?.headers["authorization"], `Confidant-Session ${base64url(id)}`);
  assert.equal(second?.headers["confidant-session"], base64url(secret));
  assert.ok(!("authorization" in (fifth?.headers ?? {})));
  await server.end();
  assert.deepEqual(await failure(http.post("/account/prelogin", null, "{}")), { offline: true });
  assert.deepEqual(await failure(http.connect({ id, secret })), { offline: true });
});

/** A socket whose other end is the test. */
class Puppet implements SocketLike {
  binaryType = "";
  protocol = "confidant.deflate";
  onopen: (() => void) | null = null;
  onmessage: ((event: { data: unknown }) => void) | null = null;
  onclose: ((event: { code: number }) => void) | null = null;
  onerror: (() => void) | null = null;
  sent: string[] = [];
  send(frame: string): void {
    this.sent.push(frame);
  }
  close(): void {}
}

async function puppet(): Promise<{ socket: Puppet; connection: Awaited<ReturnType<Http["connect"]>> }> {
  const socket = new Puppet();
  const http = new Http(Origin.parse("https://chat.example"), { fetch, socket: () => socket, hasCookies: true });
  const opening = http.connect({ id: null, secret: new Uint8Array(32) });
  socket.onopen?.();
  return { socket, connection: await opening };
}

test("frames come in order, packed or not; stopping loses none; a socket says why it closed", async () => {
  const { socket, connection } = await puppet();
  const packed = deflateRawSync('{"n":1}');
  socket.onmessage?.({ data: packed.buffer.slice(packed.byteOffset, packed.byteOffset + packed.byteLength) });
  socket.onmessage?.({ data: '{"n":2}' });
  assert.equal(text((await connection.next()) as Uint8Array), '{"n":1}');
  const stop = new AbortController();
  stop.abort();
  assert.equal(await connection.next(stop.signal), null);
  assert.equal(await connection.next(), '{"n":2}');
  const later = new AbortController();
  const waiting = connection.next(later.signal);
  later.abort();
  assert.equal(await waiting, null);
  socket.onmessage?.({ data: '{"n":3}' });
  socket.onclose?.({ code: 4403 });
  assert.equal(await connection.next(), '{"n":3}', "what came before it closed is heard");
  await assert.rejects(connection.next(), (error) => error instanceof TransportError && "closed" in error.failure && error.failure.closed === 4403);
  await assert.rejects(connection.send("x"), TransportError);
});

test("a name is all that an error says", () => {
  const error = ClientError.denied({ error: "rate", retryMs: 5 });
  assert.deepEqual([nameOf(error), error.message, error.kind, error.retryMs], ["rate", "rate", "denied", 5]);
  assert.equal(nameOf(new TypeError("secret words")), "unexpected");
});
