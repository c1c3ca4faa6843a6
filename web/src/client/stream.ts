// The way for frames where no socket passes: news come as server-sent events, and what is asked is posted.
//
//   GET  /chats/events ─▶ `ready`, then news; its header Confidant-Stream has a number
//   POST /chats/events, with that number ─▶ frames of the answer, one per line
//
// To whoever sends and waits it is a socket: `hello` is answered by the stream's `ready`, and frames are answered in their order. Easy to
// get wrong: news that come while a frame is under way. They wait behind its answer, as on a socket: what comes of a question comes after the
// server has taken it.

import { type Bytes, fromUtf8 } from "../format/bytes";
import { CLOSE, MAX_FRAME, ServerFrame, writeBody } from "../protocol/index";
import { Inbox } from "./inbox";
import { type Connection, TransportError } from "./transport";

/** How requests of a stream travel. */
export interface Poster {
  /** Opens it. What the server refuses is thrown. */
  open(stop: AbortSignal): Promise<Response>;
  /** Posts a frame on the stream of this number; its answer, one frame per line. */
  post(number: string, frame: string): Promise<Bytes>;
}

export class Stream implements Connection {
  readonly #inbox = new Inbox<string>();
  /** The frame that is under way, and those behind it. */
  #work: Promise<void> = Promise.resolve();
  #isAsking = false;
  /** News that came meanwhile. */
  #held: string[] = [];
  #quiet: ReturnType<typeof setTimeout> | undefined;

  private constructor(
    private readonly poster: Poster,
    private readonly number: string,
    private readonly ready: string,
    private readonly stop: AbortController,
  ) {}

  /** Opens a stream. One that a proxy keeps for itself is none: its first event has to come soon. */
  static async open(poster: Poster, patience: number): Promise<Stream> {
    const stop = new AbortController();
    const late = setTimeout(() => stop.abort(), patience);
    try {
      const response = await poster.open(stop.signal);
      const number = response.headers.get(STREAM);
      if (number === null || response.body === null) throw TransportError.offline();
      const events = eventsOf(response.body);
      const { value: ready } = await events.next();
      if (ready === undefined) throw TransportError.offline();
      const stream = new Stream(poster, number, ready, stop);
      void stream.#listen(events);
      return stream;
    } catch (error) {
      stop.abort();
      throw error instanceof TransportError ? error : TransportError.offline();
    } finally {
      clearTimeout(late);
    }
  }

  async send(frame: string): Promise<void> {
    if (this.#inbox.ended !== null) throw this.#inbox.ended;
    const { id, event } = JSON.parse(frame) as { id: number; event: { type: string } };
    if (event.type === "hello") this.#inbox.put(JSON.stringify({ re: id, ...(JSON.parse(this.ready) as object) }));
    else this.#work = this.#work.then(() => this.#post(id, frame));
  }

  next(stop?: AbortSignal): Promise<string | null> {
    return this.#inbox.take(stop);
  }

  close(): void {
    this.#end(TransportError.offline());
  }

  async #post(id: number, frame: string): Promise<void> {
    if (this.#inbox.ended !== null) return;
    this.#isAsking = true;
    try {
      const answer = fromUtf8(await this.poster.post(this.number, frame)) ?? "";
      this.#inbox.put(...answer.split("\n").filter((line) => line !== ""));
    } catch (error) {
      const failure = error instanceof TransportError ? error.failure : { offline: true };
      if (!("refused" in failure)) this.#end(TransportError.offline());
      else if (failure.refused.error === "unauthorised") this.#end(new TransportError({ closed: CLOSE.unauthorised }));
      else this.#inbox.put(writeBody(ServerFrame, { re: id, event: { type: "refused", ...failure.refused } }));
    } finally {
      this.#isAsking = false;
      this.#inbox.put(...this.#held.splice(0));
    }
  }

  async #listen(events: AsyncGenerator<string>): Promise<void> {
    try {
      for await (const news of events) {
        this.#heard();
        if (news === "") continue;
        if (this.#isAsking) this.#held.push(news);
        else this.#inbox.put(news);
      }
    } catch {
      // It is over, as at its end.
    }
    this.#end(TransportError.offline());
  }

  /** The server says something now and then, if only that it is there. */
  #heard(): void {
    clearTimeout(this.#quiet);
    this.#quiet = setTimeout(() => this.#end(TransportError.offline()), SILENCE);
  }

  #end(why: TransportError): void {
    clearTimeout(this.#quiet);
    // What came before is heard.
    this.#inbox.put(...this.#held.splice(0));
    this.#inbox.end(why);
    this.stop.abort();
  }
}

/** The data of each event; of a comment, nothing. */
async function* eventsOf(body: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const reader = body.getReader();
  const decoder = new TextDecoder("utf-8", { fatal: true });
  let text = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    text += decoder.decode(value, { stream: true });
    // Its size is looked at while it grows.
    if (text.length > 2 * MAX_FRAME) throw TransportError.offline();
    const events = text.split("\n\n");
    text = events.pop() ?? "";
    for (const event of events) yield event.split("\n").flatMap((line) => (line.startsWith(DATA) ? [line.slice(DATA.length)] : [])).join("\n");
  }
}

/** The header with the number of a stream. */
export const STREAM = "confidant-stream";
const DATA = "data: ";
/** After so much silence nobody is there: the server says something every half minute. */
const SILENCE = 100_000;
