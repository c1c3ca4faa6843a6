// A device where no socket passes, at a real server: news come as events, what it asks is posted, and it is the same device.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { after, before, test } from "node:test";

import { NO_OPTIONS, ask, awaited, cancel } from "../src/client/asks";
import { chat, newChat, rename, say } from "../src/client/chats";
import { logOut } from "../src/client/account";
import { type Device, connect, disconnect } from "../src/client/device";
import { nameOf } from "../src/client/error";
import { Http, type SocketLike } from "../src/client/http";
import { listen } from "../src/client/live";
import { flush } from "../src/client/send";
import { type Connection, type SessionKeys, TransportError } from "../src/client/transport";
import { sync } from "../src/client/sync";
import type { Telling } from "../src/client/turns";
import { Origin } from "../src/format/index";
import { World, bodies } from "./world/index";
import { Model } from "./world/model";
import { withoutSockets } from "./world/ways";

let world: World;
let model: Model;

before(async () => {
  model = await Model.start();
  world = await World.start(model.settings);
});
after(async () => {
  await world.stop();
  await model.stop();
});

const setup = () => world.setup(undefined, withoutSockets(world.server.origin));

async function heard(device: Device, until: Telling["told"] = "ended"): Promise<Telling[]> {
  const told: Telling[] = [];
  for (;;) {
    const news = await listen(device);
    if (news?.news !== "turn") continue;
    told.push(news.told.what);
    if (news.told.what.told === until) return told;
  }
}

test("a question is answered word by word, with its history; another device on a socket has it, and is heard", { timeout: 120_000 }, async () => {
  const { person, device } = await world.person(setup());
  const id = await newChat(device, "Without sockets");
  model.answers.set("What is the capital?", ["Grü", "ße aus ", "Wien 😀"]);
  model.hold();
  await ask(device, id, "What is the capital?");
  await flush(device);
  const first = await heard(device, "words");
  assert.deepEqual(first.at(-1), { told: "words", at: 0, text: "Grü" }, "words come as they are said");
  model.letGo();
  await heard(device);
  await flush(device);
  const other = await world.synced(person);
  assert.deepEqual(bodies(other, id), ["What is the capital?", "Grüße aus Wien 😀"]);
  // And the other way round: what the other says is news, which it takes in without asking.
  await rename(other, id, "With one");
  await flush(other);
  let news = await listen(device);
  while (news?.news !== "chat") news = await listen(device);
  assert.equal(news.chat, id);
  assert.equal(chat(device, id).fields.get("title"), "With one");
  await ask(device, id, "And of what?", { ...NO_OPTIONS, keep: "turn" });
  await flush(device);
  const told = await heard(device);
  await flush(device);
  assert.ok(told.some(({ told: what }) => what === "ended"));
  assert.ok(model.last.includes("What is the capital?"), "the history was asked for, and given");
  assert.deepEqual(awaited(device), []);
});

test("an answer is cancelled; offline, what was written waits, and goes when the stream is there again", { timeout: 120_000 }, async () => {
  const { person, device } = await world.person(setup());
  const id = await newChat(device, null);
  model.answers.set("Say something long", ["Once upon ", "a time"]);
  model.hold();
  const { turn } = await ask(device, id, "Say something long");
  await flush(device);
  await heard(device, "words");
  await cancel(device, id, turn);
  model.letGo();
  await heard(device);
  await flush(device);
  disconnect(device);
  await say(device, id, "said without anybody");
  await connect(device);
  await flush(device);
  await sync(device, "all");
  const other = await world.synced(person);
  assert.ok(bodies(other, id).includes("said without anybody"));
});

test("what ends the session ends the stream, and says why; so does a server that stops", { timeout: 120_000 }, async () => {
  const { person, device } = await world.person(setup());
  await sync(device, "all");
  const other = await world.synced(person);
  await logOut(other, true);
  const ended = async () => {
    for (;;) await listen(device);
  };
  await assert.rejects(ended(), (error) => nameOf(error) === "logged-out");
  const again = await world.device(person, setup());
  await sync(again, "all");
  await world.server.restart();
  await assert.rejects(async () => {
    for (;;) await listen(again);
  }, (error) => nameOf(error) === "offline");
});

/** A server of events, which the test writes. */
async function events(write: (say: (text: string) => void, end: () => void) => void, headers: Record<string, string> = { "confidant-stream": "7" }) {
  const posted: string[] = [];
  const server = createServer((request, response) => {
    if (request.method === "GET") {
      response.writeHead(200, { "content-type": "text/event-stream", ...headers });
      response.flushHeaders();
      return write((text) => response.write(text), () => response.end());
    }
    let body = "";
    request.on("data", (piece) => (body += String(piece)));
    request.on("end", () => {
      posted.push(`${String(request.headers["confidant-stream"])} ${body}`);
      response.writeHead(200).end('{"re":2,"event":{"type":"pong"}}\n');
    });
    return undefined;
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  const origin = Origin.parse(`http://127.0.0.1:${typeof address === "object" ? address?.port : 0}`);
  return { origin, posted, end: () => new Promise((resolve) => (server.closeAllConnections(), server.close(resolve))) };
}

const SESSION: SessionKeys = { id: new Uint8Array(32), secret: new Uint8Array(32) };
const none = (): SocketLike => {
  throw new TypeError("none");
};
const through = (origin: Origin): Promise<Connection> => new Http(origin, { fetch, socket: none, hasCookies: false }).connect(SESSION);

test("the first event answers hello; news wait behind the answer; cut in pieces they are whole; comments are nothing", { timeout: 120_000 }, async () => {
  let say: (text: string) => void = () => {};
  let end: () => void = () => {};
  const server = await events((says, ends) => {
    [say, end] = [says, ends];
    says('data: {"event":{"type":"ready"}}\n\n:\n\n');
  });
  const stream = await through(server.origin);
  await stream.send('{"id":1,"event":{"type":"hello"}}');
  assert.equal(await stream.next(), '{"re":1,"event":{"type":"ready"}}');
  say('id: 5\ndata: {"seq":5,"event":');
  await stream.send('{"id":2,"event":{"type":"ping"}}');
  assert.equal(await stream.next(), '{"re":2,"event":{"type":"pong"}}');
  say('{"n":"ü"}}\n\n');
  assert.equal(await stream.next(), '{"seq":5,"event":{"n":"ü"}}');
  assert.deepEqual(server.posted, ['7 {"id":2,"event":{"type":"ping"}}']);
  const stop = new AbortController();
  stop.abort();
  assert.equal(await stream.next(stop.signal), null);
  end();
  await assert.rejects(stream.next(), TransportError);
  await assert.rejects(stream.send("{}"), TransportError);
  await server.end();
});

test("what is none of our streams is nobody", { timeout: 120_000 }, async () => {
  for (const [headers, text] of [[{}, 'data: {"event":{"type":"ready"}}\n\n'], [{ "confidant-stream": "7" }, ""]] as const) {
    const server = await events((say, end) => {
      say(text === "" ? ":" : text);
      end();
    }, headers);
    await assert.rejects(through(server.origin), (error) => error instanceof TransportError && "offline" in error.failure);
    await server.end();
  }
});
