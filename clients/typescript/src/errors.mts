// What can go wrong, with what happened and what to do next. No error repeats what was said.

export type ErrorKind =
  | "unreachable" // no connection, or it was lost before the answer was whole
  | "timed_out" // the server was silent for longer than timeoutMs
  | "unexpected_reply" // something answered that is not Confidant, or another version of it
  | "invalid_request"
  | "unauthenticated"
  | "forbidden"
  | "not_found"
  | "conflict" // it contradicts something that was done before: `code` says what
  | "cancelled" // the turn was cancelled
  | "rate_limited"
  | "unavailable" // the server starts, stops, or has no worker or store
  | "server_failed" // the server or the model failed
  | "blocked" // a secret blocks storing; `places` has rule and place of each
  | "program_failed"; // the program confidant is missing, or ended, or did not answer

/** A secret that blocks storing: which rule found it where. */
export interface Place {
  rule: string;
  path: string;
}

export interface ErrorDetails {
  kind: ErrorKind;
  /** A word for programs. */
  code: string;
  /** What to do next. */
  hint: string;
  /** The HTTP status, if the server refused the request with one. */
  status?: number | undefined;
  /** The turn whose answer can still be fetched with this id. */
  requestId?: string | undefined;
  /** Seconds after which the server suggests to try again. */
  retryAfter?: number | undefined;
  places?: readonly Place[] | undefined;
}

/** Why there is no answer. `message` says what happened and, after `hint:`, what to do. */
export class ConfidantError extends Error {
  override readonly name = "ConfidantError";
  readonly kind: ErrorKind;
  readonly code: string;
  readonly hint: string;
  readonly status: number | undefined;
  readonly requestId: string | undefined;
  readonly retryAfter: number | undefined;
  readonly places: readonly Place[];

  constructor(what: string, details: ErrorDetails) {
    super(`${what}; hint: ${details.hint}`);
    this.kind = details.kind;
    this.code = details.code;
    this.hint = details.hint;
    this.status = details.status;
    this.requestId = details.requestId;
    this.retryAfter = details.retryAfter;
    this.places = details.places ?? [];
  }
}

const BY_STATUS: Record<number, ErrorKind> = {
  401: "unauthenticated",
  403: "forbidden",
  404: "not_found",
  409: "conflict",
  429: "rate_limited",
  503: "unavailable",
};

// An error inside of a stream or of a tool's result has a code and no status.
const BY_CODE = new Map<string, ErrorKind>([
  ["cancelled", "cancelled"],
  ["rate_limited", "rate_limited"],
  ...(["not_your_approval", "not_allowed", "forbidden"] as const).map((code) => [code, "forbidden"] as const),
  ...(["not_found", "no_such_approval"] as const).map((code) => [code, "not_found"] as const),
  ...(["invalid", "invalid_request", "invalid_session_id"] as const).map((code) => [code, "invalid_request"] as const),
  ...(["internal", "tampered"] as const).map((code) => [code, "server_failed"] as const),
  ...(["blocked", "unclean"] as const).map((code) => [code, "blocked"] as const),
  ...(["bus_unreachable", "no_worker", "starting", "stopping", "storage_failed", "timeout", "unavailable"] as const).map(
    (code) => [code, "unavailable"] as const,
  ),
  ...(
    ["already_decided", "answer_gone", "approval_expired", "awaits_approval", "busy", "changed", "erased", "hash_mismatch", "interrupted", "request_id_reused"] as const
  ).map((code) => [code, "conflict"] as const),
]);

/** The kind of an error that the server names. */
export function kindOf(code: string, status?: number): ErrorKind {
  const named = BY_CODE.get(code);
  if (named) return named;
  if (status === undefined || status >= 500) return BY_STATUS[status ?? 500] ?? "server_failed";
  return BY_STATUS[status] ?? "invalid_request";
}

/** The error of a reply that is not a success: in our own form, or in JSON-RPC's. */
export function refused(status: number | undefined, retryAfter: string | null, body: unknown, requestId?: string): ConfidantError {
  const detail = record(record(body)?.["error"]);
  const wait = retryAfter !== null && /^\d+$/.test(retryAfter) ? Number(retryAfter) : undefined;
  const said = detail?.["message"];
  if (!detail || typeof said !== "string") {
    const hint = "check the address, and what stands between: this is not how Confidant answers";
    const details: ErrorDetails = { kind: "unexpected_reply", code: "unexpected_reply", hint, status, requestId, retryAfter: wait };
    return new ConfidantError(`the server answered with status ${status} and without a reason`, details);
  }
  const data = record(detail["data"]) ?? detail;
  const [what = "", inline] = said.split("; hint: ", 2);
  const code = typeof data["code"] === "string" ? data["code"] : "error";
  const hint = typeof data["hint"] === "string" ? data["hint"] : (inline ?? "see the server's log");
  const named = typeof detail["request_id"] === "string" ? detail["request_id"] : requestId;
  return new ConfidantError(what, { kind: kindOf(code, status), code, hint, status, requestId: named, retryAfter: wait });
}

export function unexpected(what: string): ConfidantError {
  const hint = "check the address; if it is right, install the client of the server's version";
  return new ConfidantError(what, { kind: "unexpected_reply", code: "unexpected_reply", hint });
}

export function invalid(what: string, hint: string): ConfidantError {
  return new ConfidantError(what, { kind: "invalid_request", code: "invalid_request", hint });
}

function record(value: unknown): Record<string, unknown> | undefined {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : undefined;
}
