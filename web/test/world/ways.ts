// Ways to a server for tests: as a program goes it, with patience, with losses, and with a liar in between.
//
//   device ─▶ Through(between) ─▶ Patient ─▶ Http ─▶ server
//
// Easy to get wrong: a test that waits for a limit of the server. `Patient` waits where the server says `rate`: such a request was not
// carried out, so that it may be repeated.

import { type SessionKeys, type Transport, type Connection, type Posted, TransportError } from "../../src/client/transport";
import { Http, type SocketLike } from "../../src/client/http";
import type { Bytes, Origin } from "../../src/format/index";
import { ServerFrame, readBody, writeBody } from "../../src/protocol/index";

/** As a program: the session in two headers, no cookie, no origin. */
export function program(origin: Origin): Transport {
  const socket = (url: string, protocols: string[]) => new WebSocket(url, protocols) as unknown as SocketLike;
  return new Patient(new Http(origin, { fetch, socket, hasCookies: false }));
}

/** The same where a proxy lets no socket pass. */
export function withoutSockets(origin: Origin): Transport {
  const socket = (): SocketLike => {
    throw new TypeError("no socket passes");
  };
  return new Patient(new Http(origin, { fetch, socket, hasCookies: false }));
}

class Patient implements Transport {
  constructor(private readonly inner: Transport) {}

  get origin(): Origin {
    return this.inner.origin;
  }

  get hasCookies(): boolean {
    return this.inner.hasCookies;
  }

  async post(path: string, session: SessionKeys | null, body: string): Promise<Posted> {
    for (let tries = 0; ; tries++) {
      try {
        return await this.inner.post(path, session, body);
      } catch (error) {
        const wait = error instanceof TransportError && "refused" in error.failure ? error.failure.refused : null;
        if (wait?.error !== "rate" || tries > 100) throw error;
        await new Promise((resolve) => setTimeout(resolve, Math.max(50, wait.retryMs ?? 0)));
      }
    }
  }

  async connect(session: SessionKeys): Promise<Connection> {
    return new Paced(await this.inner.connect(session));
  }
}

/** A socket that is not faster than the server allows: 240 frames at once, and 40 a second. */
class Paced implements Connection {
  #left = 200;
  #at = Date.now();

  constructor(private readonly inner: Connection) {}

  async send(frame: string): Promise<void> {
    const now = Date.now();
    this.#left = Math.min(200, this.#left + ((now - this.#at) / 1000) * 35) - 1;
    this.#at = now;
    if (this.#left < 0) await new Promise((resolve) => setTimeout(resolve, (-this.#left / 35) * 1000));
    return this.inner.send(frame);
  }

  next(stop?: AbortSignal): Promise<Bytes | string | null> {
    return this.inner.next(stop);
  }

  close(): void {
    this.inner.close();
  }
}

/** What becomes of a frame of the client: it arrives; it is lost, with the connection; it arrives, and the connection is lost. */
export type Passes = "on" | "lost" | "unanswered";

/** What comes between a device and the server. */
export interface Between {
  /** A frame of the client: whether it arrives. */
  sends?(frame: string): Passes;
  /** A frame of the server: what arrives in its place. */
  receives?(frame: ServerFrame): ServerFrame[];
  /** Whether the next frame of the server arrives; if not, the connection is gone. */
  hears?(): boolean;
  /** Whether a POST, or a socket, arrives. */
  reaches?(path: string): boolean;
  /** The answer to a POST. */
  posted?(path: string, posted: Posted): Posted;
}

/** A way to the server with something in between. */
export class Through implements Transport {
  constructor(
    private readonly inner: Transport,
    private readonly between: Between,
  ) {}

  get origin(): Origin {
    return this.inner.origin;
  }

  get hasCookies(): boolean {
    return this.inner.hasCookies;
  }

  async post(path: string, session: SessionKeys | null, body: string): Promise<Posted> {
    if (this.between.reaches?.(path) === false) throw TransportError.offline();
    const posted = await this.inner.post(path, session, body);
    return this.between.posted?.(path, posted) ?? posted;
  }

  async connect(session: SessionKeys): Promise<Connection> {
    if (this.between.reaches?.("socket") === false) throw TransportError.offline();
    return new ThroughConnection(await this.inner.connect(session), this.between);
  }
}

class ThroughConnection implements Connection {
  #ready: string[] = [];
  #isCut = false;

  constructor(
    private readonly inner: Connection,
    private readonly between: Between,
  ) {}

  async send(frame: string): Promise<void> {
    const passes = this.#isCut ? "lost" : (this.between.sends?.(frame) ?? "on");
    if (passes === "lost") {
      this.#cut();
      throw TransportError.offline();
    }
    await this.inner.send(frame);
    if (passes === "unanswered") this.#cut();
  }

  async next(stop?: AbortSignal): Promise<Bytes | string | null> {
    for (;;) {
      const ready = this.#ready.shift();
      if (ready !== undefined) return ready;
      if (this.#isCut) throw TransportError.offline();
      const bytes = await this.inner.next(stop);
      if (bytes === null) return null;
      if (this.between.hears?.() === false) {
        this.#cut();
        continue;
      }
      if (this.between.receives === undefined) return bytes;
      const instead = this.between.receives(readBody(ServerFrame, bytes));
      this.#ready.push(...instead.map((frame) => writeBody(ServerFrame, frame)));
    }
  }

  close(): void {
    this.inner.close();
  }

  /** The server may still have read what was sent. */
  #cut(): void {
    this.#isCut = true;
    setTimeout(() => this.inner.close(), 20).unref();
  }
}
