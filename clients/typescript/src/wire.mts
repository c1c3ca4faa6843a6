// How requests and replies look on the wire. Nothing here does I/O.

import { ConfidantError, invalid, kindOf, refused, unexpected } from "./errors.mjs";
import type {
  Answer,
  Approval,
  Card,
  Decision,
  Delta,
  Ending,
  Enriched,
  Estimate,
  Forgotten,
  Hit,
  Json,
  Memory,
  Message,
  PageOptions,
  PersonExport,
  Preview,
  Progress,
  Receipt,
  RoomLine,
  SessionExport,
  SettingsRequest,
  Stored,
  StoreOptions,
  TurnEvent,
  TurnOptions,
  WouldErase,
} from "./types.mjs";

export const VERSION = "0.1.0";
const MCP_REVISION = "2026-07-28";
const EVENTS = { Accept: "text/event-stream" };
/** Who is told to wait for longer decides for themselves. */
const LONGEST_PAUSE_S = 60;

export interface Request {
  method: "GET" | "POST" | "DELETE";
  path: string;
  body?: Json;
  headers?: Record<string, string>;
  /** Whether doing it twice is the same as doing it once. */
  idempotent: boolean;
  /** The turn that it is about. */
  requestId?: string | undefined;
  signal?: AbortSignal | undefined;
}

/** Milliseconds to wait before another try; undefined if there must not be one. */
export function pause(request: Request, failure: ConfidantError, tries: number, retries: number): number | undefined {
  if (tries >= retries || failure.code === "model_failed") return undefined;
  // What the server refused before it did anything may be sent again in any case.
  const refusedAtOnce = failure.status === 429 || failure.code === "starting";
  const passing =
    refusedAtOnce ||
    failure.kind === "unreachable" ||
    failure.kind === "timed_out" ||
    [502, 503, 504].includes(failure.status ?? 0) ||
    failure.retryAfter !== undefined ||
    ["stopping", "no_worker", "bus_unreachable", "busy", "timeout"].includes(failure.code);
  if (!passing || !(request.idempotent || refusedAtOnce) || (failure.retryAfter ?? 0) > LONGEST_PAUSE_S) return undefined;
  const backoff = Math.min(250 * 2 ** tries, 8000) * (0.5 + Math.random() / 2);
  return Math.max(backoff, 1000 * (failure.retryAfter ?? 0));
}

export function origin(url: string): string {
  let parsed: URL;
  try {
    parsed = new URL(url);
  } catch {
    throw invalid("the server's address is not a URL", "give it like http://127.0.0.1:7367");
  }
  if (!/^https?:$/.test(parsed.protocol)) throw invalid("the server's address is not an http or https URL", "give it like http://127.0.0.1:7367");
  if (parsed.username || parsed.password) throw invalid("the server's address has a user name or password in it", "give the token as `token`");
  return url.replace(/\/+$/, "");
}

export function bearer(token: string): string {
  const plain = token.trim();
  if (!/^[\x21-\x7e]+$/.test(plain)) {
    throw invalid("the token is empty or has characters that no token has", "give what `confidant token new` printed");
  }
  return plain;
}

export function sessionPath(sessionId: string, ...rest: string[]): string {
  return ["/api/v1/session", ...[sessionId, ...rest].map(encodeURIComponent)].join("/");
}

export function personPath(userId: string, ...rest: string[]): string {
  return ["/api/v1/person", ...[userId, ...rest].map(encodeURIComponent)].join("/");
}

export function get(path: string): Request {
  return { method: "GET", path, idempotent: true };
}

/** A turn. Its id makes it safe to send again. */
export function turn(sessionId: string, query: string, options: TurnOptions): Request {
  const requestId = options.requestId ?? `js-${uuid()}`;
  const body = without({
    query,
    request_id: requestId,
    room_context: options.room?.map(line),
    audience: options.audience,
    focus: options.focus,
    profile: options.profile,
    past_chats: options.pastChats,
    settings: options.settings,
    available_settings: options.availableSettings,
    current_chat_title: options.title,
    enrich: options.enrich || undefined,
  });
  const path = sessionPath(sessionId, "turns");
  return { method: "POST", path, body, headers: EVENTS, idempotent: true, requestId, signal: options.signal };
}

/** Not crypto.randomUUID, which browsers have on pages with TLS only. */
function uuid(): string {
  const bytes = globalThis.crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function line(said: RoomLine): Json {
  const at = said.timestamp ?? 0;
  return without({
    sender: said.sender,
    content: said.content,
    timestamp: Math.floor(at instanceof Date ? at.getTime() / 1000 : at),
    is_bot: said.isBot,
    event_id: said.eventId,
    replaces: said.replaces,
    redacted: said.redacted,
  });
}

/** A decision: about exactly the call that was shown, if the approval is given and not only its id. */
export function decision(sessionId: string | undefined, approval: Approval | string, what: Decision, userId?: string, signal?: AbortSignal): Request {
  const shown = typeof approval === "string" ? undefined : approval;
  const body = without({ approval_id: shown?.approvalId ?? approval, decision: what, hash: shown?.hash, user_id: userId });
  const path = sessionId === undefined ? "/api/v1/decisions" : sessionPath(sessionId, "decisions");
  // Only the first decision counts, so repeating one is safe.
  return { method: "POST", path, body, headers: EVENTS, idempotent: true, requestId: shown?.requestId, signal };
}

/** A call of one of the memory's tools, in the revision of MCP that needs no session. */
export function tool(name: string, args: Json, userId: string | undefined, idempotent: boolean): Request {
  const prefix = "io.modelcontextprotocol";
  const meta = {
    [`${prefix}/protocolVersion`]: MCP_REVISION,
    [`${prefix}/clientInfo`]: { name: "confidant-memory", version: VERSION },
    [`${prefix}/clientCapabilities`]: {},
  };
  const headers: Record<string, string> = {
    Accept: "application/json, text/event-stream",
    "MCP-Protocol-Version": MCP_REVISION,
    "Mcp-Method": "tools/call",
    "Mcp-Name": name,
  };
  if (userId !== undefined) {
    if (!/^[\x20-\x7e]+$/.test(userId)) {
      throw invalid("the person's id cannot be sent in a header", "memories are kept under ids in ASCII, without line breaks");
    }
    headers["X-Confidant-User"] = userId;
  }
  const body = { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name, arguments: without(args), _meta: meta } };
  return { method: "POST", path: "/mcp", body, headers, idempotent };
}

export function toStore(sessionId: string, session: Json, options: StoreOptions, dryRun: boolean): Json {
  const { tags, metadata, expectSha256 } = options;
  return { session_id: sessionId, session, tags, metadata, expect_sha256: expectSha256, dry_run: dryRun || undefined };
}

export function page(options: PageOptions): Json {
  const { tags, limit, offset, start, end } = options;
  const range = start || end ? without({ start: start?.toISOString(), end: end?.toISOString() }) : undefined;
  return { tags, limit, offset, time_range: range };
}

function without(fields: Json): Json {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}

/** Takes server-sent events apart. Text may be cut anywhere. */
export class EventParser {
  #rest = "";
  #name = "message";
  #data: string[] = [];

  *feed(piece: string): Generator<{ name: string; data: string }> {
    const lines = (this.#rest + piece).split("\n");
    this.#rest = lines.pop() ?? "";
    for (const raw of lines) {
      const text = raw.replace(/\r$/, "");
      const colon = text.indexOf(":");
      const field = colon < 0 ? text : text.slice(0, colon);
      const value = colon < 0 ? "" : text.slice(colon + 1).replace(/^ /, "");
      if (field === "event") this.#name = value;
      else if (field === "data") this.#data.push(value);
      else if (text === "") {
        const [name, data] = [this.#name, this.#data];
        [this.#name, this.#data] = ["message", []];
        if (data.length > 0) yield { name, data: data.join("\n") };
      }
    }
  }
}

// What the server sends is read field by field here, and typed from here on.
type Told = any;

/** Says so if a reply has another form than this version knows. */
function reader<T>(read: (body: Told) => T): (body: Told) => T {
  return (body) => {
    try {
      return read(body);
    } catch (error) {
      throw error instanceof ConfidantError ? error : unexpected("the reply has another form than this client knows");
    }
  };
}

/** What an event says; undefined if it is of a kind that this version does not know. */
export function event(name: string, data: string, request: Request): TurnEvent | ConfidantError | undefined {
  try {
    const body: Told = JSON.parse(data);
    const told = body.metadata;
    switch (name) {
      case "progress":
        return quiet<Progress>({ type: "progress", text: String(body.content) }, []);
      case "delta":
        return quiet<Delta>({ type: "delta", text: String(body.content), seq: Number(told.seq) }, ["seq"]);
      case "settings_request":
        return quiet<SettingsRequest>({ type: "settings_request", names: [...told.settings] }, []);
      case "enriched":
        return quiet<Enriched>({ type: "enriched", raw: told }, []);
      case "final_response":
      case "hitl_request":
        return ending(body);
      case "error": {
        const requestId = body.request_id ?? request.requestId;
        return new ConfidantError(String(body.content), { kind: kindOf(told.code), code: told.code, hint: told.hint, requestId });
      }
      default:
        return undefined;
    }
  } catch {
    throw unexpected("an event of the stream has another form than this client knows");
  }
}

/** How a turn ended, for now. */
export const ending = reader((body: Told): Ending => {
  const told = body.metadata;
  if (body.message_type === "final_response") {
    const answer: Answer = {
      type: "answer",
      requestId: body.request_id,
      text: body.content,
      memory: told.memory,
      model: told.model,
      recalled: told.recalled ?? 0,
      replayed: told.replayed ?? false,
      pendingApprovals: told.pending_approvals ?? 0,
      raw: told,
    };
    return quiet(answer, ["memory", "model", "recalled", "replayed", "pendingApprovals"]);
  }
  if ("approval_id" in told) return approval(told);
  return quiet({ type: "question", requestId: body.request_id, text: body.content, options: [...(told.options ?? [])] }, []);
});

export const approval = reader((told: Told): Approval => {
  const read: Approval = {
    type: "approval",
    approvalId: told.approval_id,
    requestId: told.request_id,
    question: told.question,
    tool: told.tool,
    arguments: told.arguments,
    hash: told.hash,
    code: told.code,
    expiresAt: new Date(told.expires_at),
    audience: told.audience,
  };
  return quiet(read, ["approvalId", "tool", "expiresAt", "audience"]);
});

export const approvals = reader((body: Told): Approval[] => {
  return body.approvals.map(approval);
});

export const sessionExport = reader((body: Told): SessionExport => {
  const messages = body.messages.map((one: Told): Message => {
    const { type, content, timestamp, audience, request_id, unanswered } = one;
    return quiet({ kind: type, text: content, at: new Date(timestamp), audience, requestId: request_id, unanswered, raw: one }, ["kind", "at", "audience"]);
  });
  return quiet({ sessionId: body.session_id, exportedAt: new Date(body.exported_at), messages, raw: body }, ["exportedAt"]);
});

export const personExport = reader((body: Told): PersonExport => {
  const { user_id, exported_at, sessions, unreadable = [] } = body;
  const read: PersonExport = { userId: user_id, exportedAt: new Date(exported_at), sessions: sessions.map(sessionExport), unreadable, raw: body };
  return quiet(read, ["exportedAt", "unreadable"]);
});

export const receipt = reader((body: Told): Receipt => {
  if (body.dry_run) throw unexpected("the server did not erase");
  const { erased, at, sessions, records, tokens, derived = {} } = body;
  return quiet({ erased, at: new Date(at), sessions, records, tokens, derived, raw: body }, ["erased", "at", "sessions", "records", "tokens", "derived"]);
});

export const wouldErase = reader((body: Told): WouldErase => {
  if (body.dry_run !== true) throw unexpected("the server erased instead of looking");
  const { erased, sessions, messages, derived = {} } = body;
  return { erased, sessions, messages, derived };
});

/** What a tool gives back, as JSON or in a stream of events; throws what it refuses with. */
export function toolResult(body: string, media: string): Told {
  let message: Told;
  if (media.startsWith("text/event-stream")) {
    for (const { data } of new EventParser().feed(`${body}\n\n`)) {
      const one = parsed(data);
      // Progress is told before.
      if ("result" in one || "error" in one) message = one;
    }
  } else {
    message = parsed(body);
  }
  if (message === undefined) throw unexpected("the memory's reply has no result");
  if ("error" in message) throw refused(400, null, message);
  const result = message.result?.structuredContent;
  if (typeof result !== "object" || result === null) throw unexpected("the memory's reply has no structured result");
  if (result.ok !== true) {
    const { code, message: what, hint, places } = result.error;
    throw new ConfidantError(what, { kind: kindOf(code, 400), code, hint, places });
  }
  return result;
}

export function parsed(body: string): Told {
  try {
    const value: unknown = JSON.parse(body);
    if (typeof value === "object" && value !== null) return value;
  } catch {
    // Said below.
  }
  throw unexpected("the reply is not a JSON object");
}

function fired(told: Told): Record<string, number> {
  return Object.fromEntries(told.rules_fired.map((rule: Told) => [rule.rule, rule.count]));
}

function card(told: Told): Card {
  return quiet(told, []);
}

export const stored = reader((told: Told): Stored => {
  const { session_id, cascade_uri, indexed, already_stored = false, memory_card, redaction } = told;
  const read: Stored = {
    sessionId: session_id,
    uri: cascade_uri,
    indexed,
    alreadyStored: already_stored,
    card: card(memory_card),
    redactions: fired(redaction),
    raw: told,
  };
  return quiet(read, ["uri", "indexed", "alreadyStored", "redactions"]);
});

export const preview = reader((told: Told): Preview => {
  const { sha256, bytes, payload_json } = told.preview;
  const read: Preview = { sha256, size: bytes, payload: payload_json, card: card(told.memory_card), redactions: fired(told.redaction), raw: told };
  return quiet(read, ["sha256", "size", "redactions"]);
});

export const hits = reader((told: Told): Hit[] => {
  return told.hits.map((one: Told): Hit => {
    const { cass_session_id, cascade_uri, title, snippet, tags, created_at, score } = one;
    return quiet({ sessionId: cass_session_id, uri: cascade_uri, title, snippet, tags, createdAt: created_at, score }, ["uri", "createdAt", "score"]);
  });
});

export const memory = reader((told: Told): Memory => {
  const { session_id, timestamp, memory_card, tags, raw_session } = told.artifact;
  const read: Memory = {
    uri: told.cascade_uri,
    sessionId: session_id,
    timestamp: timestamp ?? undefined,
    card: card(memory_card),
    tags,
    transcript: raw_session,
    raw: told,
  };
  return quiet(read, ["uri", "timestamp"]);
});

export const forgotten = reader((told: Told): Forgotten => {
  const { forgotten: count, dry_run, permanent = 0, pending = 0, cascade_uris } = told;
  return { forgotten: count, dryRun: dry_run, permanent, pending, uris: cascade_uris };
});

export const estimate = reader((told: Told): Estimate => {
  const { bytes, monthly_storage_usd, estimated_request_usd, total_estimated_usd, assumptions = {} } = told;
  return { size: bytes, monthlyStorageUsd: monthly_storage_usd, requestUsd: estimated_request_usd, totalUsd: total_estimated_usd, assumptions };
});

/** The value, which Node prints with these fields only: what people said does not belong into logs. */
export function quiet<T extends object>(value: T, shown: readonly (keyof T)[]): T {
  const print = (): unknown => Object.fromEntries([...("type" in value ? (["type"] as (keyof T)[]) : []), ...shown].map((name) => [name, value[name]]));
  return Object.defineProperty(value, Symbol.for("nodejs.util.inspect.custom"), { value: print, enumerable: false });
}
