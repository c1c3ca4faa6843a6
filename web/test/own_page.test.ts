// A page that comes from another program than its server: requests go there, and proofs are the server's.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Http, type SocketLike } from "../src/client/http";
import { readName } from "../src/client/name";
import { Origin } from "../src/format/index";

test("a worker's name says its release, and its server where that is another one", () => {
  assert.deepEqual(readName("0123abcd"), { release: "0123abcd", server: null });
  assert.deepEqual(readName("0123abcd https://chat.example"), { release: "0123abcd", server: "https://chat.example" });
  assert.deepEqual(readName(""), { release: "", server: null });
});

test("requests and sockets go through the program, and the origin is the server's", async () => {
  const asked: string[] = [];
  const http = new Http(Origin.parse("https://chat.example"), {
    fetch: async (input) => {
      asked.push(String(input));
      return new Response("{}", { status: 200 });
    },
    socket: (url) => {
      asked.push(url);
      const socket: SocketLike = { binaryType: "", protocol: "", onopen: null, onmessage: null, onclose: null, onerror: null, send: () => {}, close: () => {} };
      setTimeout(() => socket.onopen?.(), 0);
      return socket;
    },
    hasCookies: true,
    through: "http://127.0.0.1:7368",
  });
  await http.post("/account/prelogin", null, "{}");
  (await http.connect({ id: null, secret: new Uint8Array(32) })).close();
  assert.deepEqual(asked, ["http://127.0.0.1:7368/account/prelogin", "ws://127.0.0.1:7368/ws"]);
  assert.equal(http.origin, "https://chat.example");
  const direct = new Http(Origin.parse("https://chat.example"), { fetch: async (input) => { asked.push(String(input)); return new Response("{}"); }, socket: () => { throw new Error("none"); }, hasCookies: true });
  await direct.post("/account/prelogin", null, "{}");
  assert.equal(asked.at(-1), "https://chat.example/account/prelogin");
});
