// The client: turns with streaming, approvals, export, erasure and memory, over fetch.

import { ConfidantError, refused } from "./errors.mjs";
import type {
  Approval,
  Decision,
  Ending,
  Estimate,
  Forgotten,
  Hit,
  Json,
  Memory,
  PageOptions,
  PersonExport,
  Preview,
  Receipt,
  SessionExport,
  Stored,
  StoreOptions,
  TurnEvent,
  TurnOptions,
  WouldErase,
} from "./types.mjs";
import * as wire from "./wire.mjs";
import type { Request } from "./wire.mjs";

export interface ConfidantOptions {
  /** The server. In a browser, the page's own if missing. */
  url?: string;
  /** A token, or what gives one for each request. */
  token: string | (() => string | Promise<string>);
  /**
   * How long the server may be silent, in milliseconds (60 000). While a turn runs it gives a sign of life every 15 seconds, so this does not
   * limit how long an answer takes.
   */
  timeoutMs?: number;
  /** How often something is tried again that may safely be done twice (4). */
  retries?: number;
  fetch?: typeof globalThis.fetch;
}

/** A response that is being read, with the watch over it. */
interface Opened {
  response: Response;
  pieces(): AsyncGenerator<string>;
  done(): void;
}

/** A Confidant server. */
export class Confidant {
  readonly #url: string;
  readonly #token: ConfidantOptions["token"];
  readonly #timeoutMs: number;
  readonly #retries: number;
  readonly #fetch: typeof globalThis.fetch;

  constructor(options: ConfidantOptions) {
    const own = (globalThis as { location?: { origin?: string } }).location?.origin;
    this.#url = wire.origin(options.url ?? own ?? "http://127.0.0.1:7367");
    this.#token = typeof options.token === "string" ? wire.bearer(options.token) : options.token;
    this.#timeoutMs = options.timeoutMs ?? 60_000;
    this.#retries = options.retries ?? 4;
    this.#fetch = options.fetch ?? ((...given) => globalThis.fetch(...given));
  }

  /** One conversation of one person, such as `http:team:main:alice`. */
  session(sessionId: string): Session {
    return new Session(this, sessionId);
  }

  /** A person, with everything that is kept about them. */
  person(userId: string): Person {
    return new Person(this, userId);
  }

  /** A person's memories of earlier sessions of work. A `user:` token has only its own, and needs no id. */
  memory(userId?: string): Memories {
    return new Memories(this, userId);
  }

  /** An approval that this token's bearer may decide, in anybody's conversation. */
  async approval(approvalId: string): Promise<Approval> {
    return wire.approval(await this.ask(wire.get(`/api/v1/approvals/${encodeURIComponent(approvalId)}`)));
  }

  /** Decides in anybody's conversation. Who may not read it hears only that the decision counts. */
  decide(approval: Approval | string, decision: Decision, options: { userId?: string; signal?: AbortSignal } = {}): Promise<Ending> {
    return new TurnStream(this, wire.decision(undefined, approval, decision, options.userId, options.signal)).ending();
  }

  /** @internal The JSON that a request is answered with. */
  async ask(request: Request): Promise<Json> {
    return this.#reply(request, (body) => wire.parsed(body));
  }

  /** @internal What a tool of the memory gives back. */
  async call(request: Request): Promise<Json> {
    return this.#reply(request, wire.toolResult);
  }

  async #reply(request: Request, read: (body: string, media: string) => Json): Promise<Json> {
    for (let tries = 0; ; tries++) {
      let failure: ConfidantError;
      try {
        const opened = await this.open(request);
        let body = "";
        try {
          for await (const piece of opened.pieces()) body += piece;
        } finally {
          opened.done();
        }
        if (opened.response.ok) return read(body, opened.response.headers.get("content-type") ?? "");
        failure = refusal(opened.response, body, request);
      } catch (error) {
        if (!(error instanceof ConfidantError) || wire.pause(request, error, tries, this.#retries) === undefined) throw error;
        failure = error;
      }
      await this.wait(request, failure, tries);
    }
  }

  /** @internal Waits before the next try; throws if there is none. */
  async wait(request: Request, failure: ConfidantError, tries: number): Promise<void> {
    const pause = wire.pause(request, failure, tries, this.#retries);
    if (pause === undefined) throw failure;
    const { signal } = request;
    await new Promise<void>((resolve, reject) => {
      const stop = () => {
        clearTimeout(timer);
        reject(signal?.reason);
      };
      const timer = setTimeout(() => {
        signal?.removeEventListener("abort", stop);
        resolve();
      }, pause);
      if (signal?.aborted) stop();
      else signal?.addEventListener("abort", stop, { once: true });
    });
  }

  /** @internal Sends a request, and gives the response as soon as its head is there. */
  async open(request: Request): Promise<Opened> {
    request.signal?.throwIfAborted();
    const controller = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const watch = () => {
      clearTimeout(timer);
      timer = setTimeout(() => controller.abort(SILENT), this.#timeoutMs);
    };
    const stop = () => controller.abort(request.signal?.reason);
    const done = () => {
      clearTimeout(timer);
      request.signal?.removeEventListener("abort", stop);
      controller.abort();
    };
    const failed = (error: unknown): unknown => {
      done();
      if (request.signal?.aborted) return request.signal.reason;
      return error instanceof ConfidantError ? error : unreachable(error, controller.signal, request, this.#timeoutMs);
    };
    request.signal?.addEventListener("abort", stop, { once: true });
    try {
      const token = typeof this.#token === "string" ? this.#token : wire.bearer(await this.#token());
      const headers: Record<string, string> = { Authorization: `Bearer ${token}`, ...request.headers };
      const init: RequestInit = { method: request.method, headers, signal: controller.signal, cache: "no-store", redirect: "error" };
      if (request.body) {
        headers["Content-Type"] = "application/json";
        init.body = JSON.stringify(request.body);
      }
      watch();
      const response = await this.#fetch(this.#url + request.path, init);
      async function* pieces(): AsyncGenerator<string> {
        const reader = response.body?.getReader();
        const decoder = new TextDecoder();
        try {
          while (reader) {
            watch();
            const { done: ended, value } = await reader.read();
            if (ended) break;
            yield decoder.decode(value, { stream: true });
          }
        } catch (error) {
          throw failed(error);
        }
      }
      return { response, pieces, done };
    } catch (error) {
      throw failed(error);
    }
  }
}

const SILENT = Symbol("silent");

function refusal(response: Response, body: string, request: Request): ConfidantError {
  let json: unknown;
  try {
    json = JSON.parse(body);
  } catch {
    // Without a reason, then.
  }
  return refused(response.status, response.headers.get("retry-after"), json, request.requestId);
}

function unreachable(error: unknown, signal: AbortSignal, request: Request, timeoutMs: number): ConfidantError {
  const { requestId } = request;
  if (signal.reason === SILENT) {
    const hint = requestId ? "raise timeoutMs, or ask again with the same requestId to get the answer" : "raise timeoutMs, or check that the server runs";
    return new ConfidantError(`the server was silent for ${timeoutMs} ms`, { kind: "timed_out", code: "timed_out", hint, requestId });
  }
  // The platform's word for it, such as ECONNREFUSED; its message may have the address with ids in it.
  const cause = (error as { cause?: { code?: unknown } } | undefined)?.cause?.code;
  const why = typeof cause === "string" ? ` (${cause})` : "";
  const hint = requestId ? "ask again: the same requestId gets the answer" : "check that `confidant serve` runs, and the address";
  return new ConfidantError(`the server cannot be reached${why}`, { kind: "unreachable", code: "unreachable", hint, requestId });
}

/**
 * A turn as it happens. Iterate over its events; the last is an answer, an approval or a question.
 *
 * If the connection is lost, the stream asks again with the same request id: the turn is not run twice. From then on there are no more pieces,
 * and the answer comes whole. Leaving the loop does not stop the turn; `cancel` does.
 */
export class TurnStream implements AsyncIterableIterator<TurnEvent, undefined> {
  readonly #client: Confidant;
  readonly #request: Request;
  readonly #cancel: ((requestId: string) => Promise<boolean>) | undefined;
  readonly #events: AsyncGenerator<TurnEvent, undefined>;
  #ending: Ending | undefined;

  /** @internal */
  constructor(client: Confidant, request: Request, cancel?: (requestId: string) => Promise<boolean>) {
    this.#client = client;
    this.#request = request;
    this.#cancel = cancel;
    this.#events = this.#run();
  }

  /** The turn's id. */
  get requestId(): string | undefined {
    return this.#request.requestId;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<IteratorResult<TurnEvent, undefined>> {
    const step = await this.#events.next();
    if (!step.done && isEnding(step.value)) this.#ending = step.value;
    return step;
  }

  /** Stops listening. The turn goes on. */
  async return(): Promise<IteratorResult<TurnEvent, undefined>> {
    return this.#events.return(undefined);
  }

  /** Only the words of the answer, as they come. */
  async *text(): AsyncGenerator<string> {
    let said = false;
    for await (const event of this) {
      if (event.type === "delta") {
        said = true;
        yield event.text;
      } else if (event.type === "answer" && !said) yield event.text;
    }
  }

  /** How the turn ended; waits for it. */
  async ending(): Promise<Ending> {
    for await (const _ of this);
    if (!this.#ending) throw cutOff(this.#request);
    return this.#ending;
  }

  /** Ends the turn. Whether it was still running or waiting. */
  async cancel(): Promise<boolean> {
    return this.#cancel !== undefined && this.requestId !== undefined && this.#cancel(this.requestId);
  }

  async *#run(): AsyncGenerator<TurnEvent, undefined> {
    const [client, request] = [this.#client, this.#request];
    let [heard, answered] = [false, false];
    for (let tries = 0; ; tries++) {
      const lost = heard;
      let failure = cutOff(request);
      let opened: Opened | undefined;
      try {
        opened = await client.open(request);
        if (!opened.response.ok) {
          let body = "";
          for await (const piece of opened.pieces()) body += piece;
          failure = refusal(opened.response, body, request);
        } else {
          for await (const event of events(opened, request)) {
            if (event instanceof ConfidantError) {
              failure = event;
              break;
            }
            answered ||= event.type === "answer";
            if (!lost || (event.type !== "delta" && event.type !== "progress")) {
              heard = true;
              yield event;
            }
            const waits = event.type === "answer" && request.body?.["enrich"] === true;
            if (event.type === "enriched" || (isEnding(event) && !waits)) return undefined;
          }
        }
      } catch (error) {
        if (!(error instanceof ConfidantError)) throw error;
        failure = error;
      } finally {
        opened?.done();
      }
      // What is made of an answer may be missing; the answer is whole.
      if (answered) return undefined;
      await client.wait(request, failure, tries);
    }
  }
}

async function* events(opened: Opened, request: Request): AsyncGenerator<TurnEvent | ConfidantError> {
  const parser = new wire.EventParser();
  for await (const piece of opened.pieces()) {
    for (const { name, data } of parser.feed(piece)) {
      const event = wire.event(name, data, request);
      if (event) yield event;
    }
  }
}

function isEnding(event: TurnEvent): event is Ending {
  return event.type === "answer" || event.type === "approval" || event.type === "question";
}

function cutOff(request: Request): ConfidantError {
  const hint = "ask again; the same requestId gets the answer";
  const details = { kind: "unreachable", code: "unreachable", hint, requestId: request.requestId } as const;
  return new ConfidantError("the connection was lost before the answer was whole", details);
}

/** One conversation of one person. */
export class Session {
  readonly #client: Confidant;
  readonly #id: string;

  /** @internal */
  constructor(client: Confidant, sessionId: string) {
    this.#client = client;
    this.#id = sessionId;
  }

  /** Says something, and gives the answer as it is made. */
  stream(query: string, options: TurnOptions = {}): TurnStream {
    return new TurnStream(this.#client, wire.turn(this.#id, query, options), (requestId) => this.cancel(requestId));
  }

  /** Says something, and gives the answer, or the approval that it waits for. */
  ask(query: string, options: TurnOptions = {}): Promise<Ending> {
    return this.stream(query, options).ending();
  }

  /** Ends a turn. Whether it was still running or waiting. */
  async cancel(requestId: string): Promise<boolean> {
    const path = wire.sessionPath(this.#id, "turns", requestId);
    return (await this.#client.ask({ method: "DELETE", path, idempotent: true }))["cancelled"] !== 0;
  }

  /** Tool calls that wait for somebody's approval, oldest first. */
  async approvals(): Promise<Approval[]> {
    return wire.approvals(await this.#client.ask(wire.get(wire.sessionPath(this.#id, "approvals"))));
  }

  /** Approves or denies; gives the answer of the turn that waited, or the next approval. */
  decide(approval: Approval | string, decision: Decision, options: { userId?: string; signal?: AbortSignal } = {}): Promise<Ending> {
    return this.streamDecision(approval, decision, options).ending();
  }

  /** Approves or denies; gives the rest of the turn as it happens. */
  streamDecision(approval: Approval | string, decision: Decision, options: { userId?: string; signal?: AbortSignal } = {}): TurnStream {
    const request = wire.decision(this.#id, approval, decision, options.userId, options.signal);
    return new TurnStream(this.#client, request, (requestId) => this.cancel(requestId));
  }

  /** Title, summary, tags and suggestions, as far as they are known. */
  about(): Promise<Json> {
    return this.#client.ask(wire.get(wire.sessionPath(this.#id, "about")));
  }

  /** Everything that is kept of it. */
  async export(): Promise<SessionExport> {
    return wire.sessionExport(await this.#client.ask(wire.get(wire.sessionPath(this.#id, "export"))));
  }

  /** Destroys its key and its log. Not tried again if the reply is lost: a second receipt would say that nothing was there. */
  async erase(): Promise<Receipt> {
    return wire.receipt(await this.#client.ask({ method: "DELETE", path: wire.sessionPath(this.#id), idempotent: false }));
  }

  /** What `erase` would erase. */
  async wouldErase(): Promise<WouldErase> {
    return wire.wouldErase(await this.#client.ask({ method: "DELETE", path: `${wire.sessionPath(this.#id)}?dry_run=true`, idempotent: true }));
  }
}

/** A person, with everything that is kept about them. */
export class Person {
  readonly #client: Confidant;
  readonly #id: string;

  /** @internal */
  constructor(client: Confidant, userId: string) {
    this.#client = client;
    this.#id = userId;
  }

  /** Everything that is kept about them. */
  async export(): Promise<PersonExport> {
    return wire.personExport(await this.#client.ask(wire.get(wire.personPath(this.#id, "export"))));
  }

  /** Erases them everywhere. Not tried again if the reply is lost: a second receipt would say that nothing was there. */
  async erase(): Promise<Receipt> {
    return wire.receipt(await this.#client.ask({ method: "DELETE", path: wire.personPath(this.#id), idempotent: false }));
  }

  /** What `erase` would erase. */
  async wouldErase(): Promise<WouldErase> {
    return wire.wouldErase(await this.#client.ask({ method: "DELETE", path: `${wire.personPath(this.#id)}?dry_run=true`, idempotent: true }));
  }
}

/** A person's memories of earlier sessions of work: redacted cards, and transcripts only if somebody asked twice. */
export class Memories {
  readonly #client: Confidant;
  readonly #user: string | undefined;

  /** @internal */
  constructor(client: Confidant, userId: string | undefined) {
    this.#client = client;
    this.#user = userId;
  }

  /** Redacts a session and keeps its card. Fails as `blocked` if there is a secret in it that must not be stored. */
  async store(sessionId: string, session: Json, options: StoreOptions = {}): Promise<Stored> {
    return wire.stored(await this.#tool("store_session_to_cascade", wire.toStore(sessionId, session, options, false)));
  }

  /** What `store` would keep, byte for byte. Give its `sha256` as `expectSha256` to keep exactly that. */
  async preview(sessionId: string, session: Json, options: Omit<StoreOptions, "expectSha256"> = {}): Promise<Preview> {
    return wire.preview(await this.#tool("store_session_to_cascade", wire.toStore(sessionId, session, options, true)));
  }

  /** Searches in plain words; the best first. */
  async query(query: string, options: PageOptions = {}): Promise<Hit[]> {
    return wire.hits(await this.#tool("query_memories", { query, ...wire.page(options) }));
  }

  /** The newest first, a page at a time. */
  async list(options: PageOptions = {}): Promise<Hit[]> {
    return wire.hits(await this.#tool("list_memories", wire.page(options)));
  }

  /** Opens one that was found. */
  async retrieve(uri: string): Promise<Memory> {
    return wire.memory(await this.#tool("retrieve_session_from_cascade", { cascade_uri: uri }));
  }

  /** Destroys the keys of one memory, or of all of a session. For good. */
  async forget(what: { uri: string } | { sessionId: string }, options: { dryRun?: boolean } = {}): Promise<Forgotten> {
    const named = "uri" in what ? { cascade_uri: what.uri } : { session_id: what.sessionId };
    return wire.forgotten(await this.#tool("forget_memory", { ...named, dry_run: options.dryRun }, options.dryRun === true));
  }

  /** What storing so many bytes costs. */
  async estimate(size: number, options: { provider?: string; redundancy?: number } = {}): Promise<Estimate> {
    return wire.estimate(await this.#tool("estimate_storage_cost", { bytes: size, ...options }));
  }

  #tool(name: string, args: Json, idempotent = true): Promise<Json> {
    return this.#client.call(wire.tool(name, args, this.#user, idempotent));
  }
}
