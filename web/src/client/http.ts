// The way to a server over HTTP and WebSocket.
//
//   POST origin/path   header Confidant-Session: SECRET, and the cookie, which scripts do not see ─▶ body
//   GET  origin/ws     one message per frame: text, or packed (raw DEFLATE) if the server agreed to that; the first one has the ticket
//
// A page shows its session by cookie and header; a program, as in tests, by two headers and never by a cookie. No redirect is followed:
// proofs and sessions go to the server that the person named, or nowhere. Easy to get wrong: an answer that is not the server's. A proxy's
// error page is no refusal; it counts as no answer. And the order of frames: unpacking takes a while, and a frame behind must wait for it.

import { type Bytes, base64url, concat, fromBase64url } from "../format/bytes";
import type { Origin } from "../format/ids";
import { MAX_BODY, MAX_FRAME, RefusedSent, readBody } from "../protocol/index";
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
}

/** A page's own fetch and WebSocket. */
export function browser(): How {
  return {
    fetch: (input, init) => fetch(input, init),
    socket: (url, protocols) => new WebSocket(url, protocols) as SocketLike,
    hasCookies: true,
    // The page names its worker by its release.
    release: (globalThis as { name?: string }).name ?? "",
  };
}

/** A server, by its origin. */
export class Http implements Transport {
  constructor(
    readonly origin: Origin,
    private readonly how: How = browser(),
  ) {}

  get hasCookies(): boolean {
    return this.how.hasCookies;
  }

  async post(path: string, session: SessionKeys | null, body: string): Promise<Posted> {
    const headers: Record<string, string> = { "content-type": "application/json" };
    if (this.how.release) headers[RELEASE] = this.how.release;
    if (session !== null) {
      headers[SESSION] = base64url(session.secret);
      if (session.id !== null) headers["authorization"] = `Confidant-Session ${base64url(session.id)}`;
    }
    let response: Response;
    try {
      response = await this.how.fetch(this.origin + path, {
        method: "POST",
        headers,
        body,
        credentials: this.how.hasCookies ? "same-origin" : "omit",
        redirect: "error",
        cache: "no-store",
        signal: AbortSignal.timeout(LINES.includes(path) ? ANSWER_OF_LINES : ANSWER),
      });
      if (response.status !== 200) throw await refusal(response);
      const bytes = await read(response, LINES.includes(path) ? MAX_LINES : MAX_FRAME);
      return { body: bytes, session: sessionId(response) };
    } catch (error) {
      throw error instanceof TransportError ? error : TransportError.offline();
    }
  }

  async connect(): Promise<Connection> {
    // ws: for http:, wss: for https:.
    const url = `${this.origin.replace(/^http/, "ws")}/ws`;
    let socket: SocketLike;
    try {
      socket = this.how.socket(url, [PACKED]);
    } catch {
      throw TransportError.offline();
    }
    const connection = new Socket(socket);
    await connection.opened();
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
  #waiting: unknown[] = [];
  /** Why it ended, once everything that came before was taken. */
  #ended: TransportError | null = null;
  #wake: (() => void) | null = null;
  #isOpen = false;

  constructor(private readonly socket: SocketLike) {
    socket.binaryType = "arraybuffer";
    socket.onopen = () => {
      this.#isOpen = true;
      this.#ring();
    };
    socket.onmessage = ({ data }) => {
      this.#waiting.push(data);
      this.#ring();
    };
    socket.onclose = ({ code }) => this.#end(new TransportError({ closed: code }));
    // Browsers do not say what it was, and `onclose` follows.
    socket.onerror = () => {};
  }

  /** Waits until the socket is open; the whole handshake has a limit, since an open socket has none. */
  async opened(): Promise<void> {
    const late = setTimeout(() => this.#end(TransportError.offline()), CONNECT);
    while (!this.#isOpen && this.#ended === null) await this.#rings();
    clearTimeout(late);
    // One that nobody offered is a server that does not speak this.
    if (this.#ended !== null || !["", PACKED].includes(this.socket.protocol)) {
      this.close();
      throw TransportError.offline();
    }
  }

  async send(frame: string): Promise<void> {
    if (this.#ended !== null) throw this.#ended;
    try {
      this.socket.send(frame);
    } catch {
      throw TransportError.offline();
    }
  }

  async next(stop?: AbortSignal): Promise<Bytes | string | null> {
    for (;;) {
      // What came waits until it was taken: stopping loses nothing.
      if (stop?.aborted === true) return null;
      const data = this.#waiting.shift();
      if (data !== undefined) return this.#frame(data);
      if (this.#ended !== null) throw this.#ended;
      await this.#rings(stop);
    }
  }

  close(): void {
    this.#end(TransportError.offline());
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

  #end(why: TransportError): void {
    this.#ended ??= why;
    this.#ring();
  }

  #ring(): void {
    this.#wake?.();
    this.#wake = null;
  }

  /** Until something happens. One waits at a time. */
  async #rings(stop?: AbortSignal): Promise<void> {
    const rung = new Promise<void>((resolve) => {
      this.#wake = resolve;
    });
    const ring = () => this.#ring();
    stop?.addEventListener("abort", ring);
    try {
      await rung;
    } finally {
      stop?.removeEventListener("abort", ring);
    }
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
/** Answers of many frames, one per line. */
const LINES: readonly string[] = ["/account/export", "/chats/events"];
/** How many bytes such an answer may have. */
const MAX_LINES = 2 ** 31 - 1;
const CONNECT = 10_000;
/** Nobody waits longer for an answer. */
const ANSWER = 60_000;
/** An export of a large account takes a while. */
const ANSWER_OF_LINES = 300_000;
