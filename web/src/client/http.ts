// The way to a server over HTTP and WebSocket.
//
//   POST origin/path   header Confidant-Session: SECRET, and the cookie, which scripts do not see ─▶ body
//   GET  origin/ws     one message per frame: text, or packed (raw DEFLATE) if the server agreed to that; the first one has the ticket
//        no such way?  ─▶ stream.ts: the same frames as events and requests
//
// A page shows its session by cookie and header; a program, as in tests, by two headers and never by a cookie. No redirect is followed:
// proofs and sessions go to the server that the person named, or nowhere. Easy to get wrong: an answer that is not the server's. A proxy's
// error page is no refusal; it counts as no answer. And the order of frames: unpacking takes a while, and a frame behind must wait for it.

import { type Bytes, base64url, concat, fromBase64url } from "../format/bytes";
import type { Origin } from "../format/ids";
import { MAX_BODY, MAX_FRAME, RefusedSent, readBody } from "../protocol/index";
import { ownName } from "./name";
import { Inbox } from "./inbox";
import { STREAM, Stream } from "./stream";
import { type Connection, type Posted, type SessionKeys, type Transport, TransportError } from "./transport";

/** What of a browser's WebSocket is used. */
export interface SocketLike {
  binaryType: string;
  readonly protocol: string;
  onopen: (() => void) | null;
  onmessage: ((event: { data: unknown }) => void) | null;
  onclose: ((event: { code: number }) => void) | null;
  onerror: (() => void) | null;
  send(text: string): void;
  close(): void;
}

/** What a transport is made of; tests bring their own. */
export interface How {
  fetch: typeof fetch;
  socket: (url: string, protocols: string[]) => SocketLike;
  /** Whether this is a page, whose session's id is in a cookie. */
  hasCookies: boolean;
  /** Which release of the page this is; a server with another one refuses it. */
  release?: string;
  /** Where requests go if not to the server itself: a program on the person's own machine, which hands them on. */
  through?: string;
}

/** A page's own fetch and WebSocket. */
export function browser(): How {
  return {
    fetch: (input, init) => fetch(input, init),
    socket: (url, protocols) => new WebSocket(url, protocols) as SocketLike,
    hasCookies: true,
    release: ownName().release,
  };
}

/** A server, by its origin. */
export class Http implements Transport {
  /** How long a socket may take to open. Shorter where none did: a proxy that swallows handshakes does so each time. */
  #patience = CONNECT;

  constructor(
    readonly origin: Origin,
    private readonly how: How = browser(),
  ) {}

  get hasCookies(): boolean {
    return this.how.hasCookies;
  }

  get #base(): string {
    return this.how.through ?? this.origin;
  }

  post(path: string, session: SessionKeys | null, body: string): Promise<Posted> {
    return this.#post(path, this.#headers(session), body);
  }

  async #post(path: string, headers: Record<string, string>, body: string): Promise<Posted> {
    const isLines = LINES.includes(path);
    try {
      const response = await this.#fetch(path, { method: "POST", headers, body, signal: AbortSignal.timeout(isLines ? ANSWER_OF_LINES : ANSWER) });
      const bytes = await read(response, isLines ? MAX_LINES : MAX_FRAME);
      return { body: bytes, session: sessionId(response) };
    } catch (error) {
      throw error instanceof TransportError ? error : TransportError.offline();
    }
  }

  /** An answer that is none of success is thrown. */
  async #fetch(path: string, how: RequestInit): Promise<Response> {
    const response = await this.how.fetch(this.#base + path, { credentials: this.how.hasCookies ? "same-origin" : "omit", redirect: "error", cache: "no-store", ...how });
    if (response.status !== 200) throw await refusal(response);
    return response;
  }

  #headers(session: SessionKeys | null): Record<string, string> {
    const headers: Record<string, string> = { "content-type": "application/json" };
    if (this.how.release) headers[RELEASE] = this.how.release;
    if (session !== null) {
      headers[SESSION] = base64url(session.secret);
      if (session.id !== null) headers["authorization"] = `Confidant-Session ${base64url(session.id)}`;
    }
    return headers;
  }

  async connect(session: SessionKeys): Promise<Connection> {
    try {
      const socket = await this.#socket();
      this.#patience = CONNECT;
      return socket;
    } catch {
      this.#patience = AGAIN;
    }
    const headers = this.#headers(session);
    const poster = {
      open: (stop: AbortSignal) => this.#fetch(EVENTS, { headers, signal: stop }),
      post: async (number: string, frame: string) => (await this.#post(EVENTS, { ...headers, [STREAM]: number }, frame)).body,
    };
    return Stream.open(poster, CONNECT);
  }

  async #socket(): Promise<Connection> {
    // ws: for http:, wss: for https:.
    const url = `${this.#base.replace(/^http/, "ws")}/ws`;
    const connection = new Socket(this.how.socket(url, [PACKED]));
    await connection.opened(this.#patience);
    return connection;
  }
}

function sessionId(response: Response): Bytes | null {
  const bytes = fromBase64url(response.headers.get(SESSION_ID) ?? "");
  return bytes?.length === 32 ? bytes : null;
}

/** What an answer other than success says. One that is not of the protocol is not the server's. */
async function refusal(response: Response): Promise<TransportError> {
  try {
    return new TransportError({ refused: readBody(RefusedSent, await read(response, MAX_BODY)) });
  } catch {
    return TransportError.offline();
  }
}

/** The body, of at most so many bytes. */
async function read(response: Response, most: number): Promise<Bytes> {
  return response.body === null ? new Uint8Array(0) : gather(response.body, most);
}

/** All of a stream. Its size is looked at while it grows. */
async function gather(stream: ReadableStream<Uint8Array>, most: number): Promise<Bytes> {
  const reader = stream.getReader();
  const pieces: Bytes[] = [];
  let size = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return concat(...pieces);
    size += value.length;
    if (size > most) {
      await reader.cancel();
      throw TransportError.offline();
    }
    // A stream of a response or of DecompressionStream is never backed by shared memory.
    pieces.push(value as Bytes);
  }
}

class Socket implements Connection {
  readonly #inbox = new Inbox<unknown>();
  #isOpen = false;

  constructor(private readonly socket: SocketLike) {
    socket.binaryType = "arraybuffer";
    socket.onopen = () => {
      this.#isOpen = true;
      this.#inbox.ring();
    };
    socket.onmessage = ({ data }) => this.#inbox.put(data);
    socket.onclose = ({ code }) => this.#inbox.end(new TransportError({ closed: code }));
    // Browsers do not say what it was, and `onclose` follows.
    socket.onerror = () => {};
  }

  /** Waits until the socket is open; the whole handshake has a limit, since an open socket has none. */
  async opened(patience: number): Promise<void> {
    const late = setTimeout(() => this.#inbox.end(TransportError.offline()), patience);
    while (!this.#isOpen && this.#inbox.ended === null) await this.#inbox.rings();
    clearTimeout(late);
    // One that nobody offered is a server that does not speak this.
    if (this.#inbox.ended !== null || !["", PACKED].includes(this.socket.protocol)) {
      this.close();
      throw TransportError.offline();
    }
  }

  async send(frame: string): Promise<void> {
    if (this.#inbox.ended !== null) throw this.#inbox.ended;
    try {
      this.socket.send(frame);
    } catch {
      throw TransportError.offline();
    }
  }

  async next(stop?: AbortSignal): Promise<Bytes | string | null> {
    const data = await this.#inbox.take(stop);
    return data === null ? null : this.#frame(data);
  }

  close(): void {
    this.#inbox.end(TransportError.offline());
    try {
      this.socket.close();
    } catch {
      // It never was open.
    }
  }

  async #frame(data: unknown): Promise<Bytes | string> {
    if (typeof data === "string") return data;
    if (!(data instanceof ArrayBuffer) || this.socket.protocol !== PACKED) throw TransportError.offline();
    return unpacked(new Uint8Array(data));
  }
}

/** A packed frame. Its size is looked at while it grows. */
export async function unpacked(packed: Bytes): Promise<Bytes> {
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  try {
    return await gather(stream, MAX_FRAME);
  } catch {
    throw TransportError.offline();
  }
}

/** The subprotocol of those who take packed frames. */
const PACKED = "confidant.deflate";
const SESSION = "confidant-session";
const RELEASE = "confidant-page";
const SESSION_ID = "confidant-session-id";
/** Where events and requests go in place of a socket. */
const EVENTS = "/chats/events";
/** Answers of many frames, one per line. */
const LINES: readonly string[] = ["/account/export", EVENTS];
/** How many bytes such an answer may have. */
const MAX_LINES = 2 ** 31 - 1;
const CONNECT = 10_000;
const AGAIN = 3_000;
/** Nobody waits longer for an answer. */
const ANSWER = 60_000;
/** An export of a large account takes a while. */
const ANSWER_OF_LINES = 300_000;
