// What the server tells its administrator, as `GET /api/v1/console` and `GET /api/v1/audit` send it: counts, and nothing that anybody said.
// Read field by field: another version may send less, and what is missing is shown as missing.

export interface Check {
  part: string;
  ok: boolean;
  trouble: string | null;
}

export interface Channel {
  platform: string;
  label: string;
  condition: string;
  since: number;
  trouble: string | null;
  backlog: number;
  received: number;
  answered: number;
  undelivered: number;
  reconnects: number;
}

export const TURNS = ["running", "accepted", "answered", "failed", "paused", "cancelled", "replayed", "resumed", "degraded", "tool_calls"] as const;
export type Turns = Record<(typeof TURNS)[number], number>;

export interface Times {
  bounds: number[];
  counts: number[];
  total: number;
}

export interface Cache {
  warm: number;
  cold: number;
  historyKnown: number;
  historyAsked: number;
}

export interface Sessions {
  countedAt: number;
  byChannel: { channel: string; kept: string; sessions: number }[];
  unreadable: number;
}

export interface Keys {
  countedAt: number;
  masters: number;
  keys: number;
  underOthers: number;
  rotatedAt: number | null;
}

export interface Told {
  version: string;
  at: number;
  startedAt: number;
  stores: { data: string; keyring: string } | null;
  checks: Check[];
  damaged: Check[];
  channels: Channel[];
  turns: Turns | null;
  times: Times | null;
  cache: Cache | null;
  failedOpenings: number | null;
  conflicts: number | null;
  erased: number | null;
  sessions: Sessions | null;
  keys: Keys | null;
  notCounted: string | null;
  gauges: { name: string; help: string; value: number }[];
}

export interface AuditLine {
  at: number;
  actor: string;
  action: string;
  count: number | null;
  reason: string | null;
}

type Fields = Record<string, unknown>;

const fields = (value: unknown): Fields | null => (typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : null);
const list = (value: unknown): Fields[] => (Array.isArray(value) ? value.map(fields).filter((one) => one !== null) : []);
const text = (value: unknown): string => (typeof value === "string" ? value : "");
const words = (value: unknown): string | null => (typeof value === "string" && value !== "" ? value : null);
const count = (value: unknown): number | null => (typeof value === "number" && Number.isFinite(value) && value >= 0 ? value : null);
const known = (value: unknown): number => count(value) ?? 0;
const counts = (value: unknown): number[] => (Array.isArray(value) ? value.map(known) : []);

/** Reads what the server says of itself; `null` for something else. */
export function readConsole(value: unknown): Told | null {
  const told = fields(value);
  if (told === null || count(told["at"]) === null) return null;
  const stores = fields(told["stores"]);
  const turns = fields(told["turns"]);
  const cache = fields(told["cache"]);
  return {
    version: text(told["version"]),
    at: known(told["at"]),
    startedAt: known(told["started_at"]),
    stores: stores === null ? null : { data: text(stores["data"]), keyring: text(stores["keyring"]) },
    checks: list(told["checks"]).map((one) => ({ part: text(one["part"]), ok: one["ok"] === true, trouble: words(one["trouble"]) })),
    damaged: list(told["damaged"]).map((one) => ({ part: text(one["part"]), ok: false, trouble: words(one["trouble"]) })),
    channels: list(told["channels"]).map(readChannel),
    turns: turns === null ? null : (Object.fromEntries(TURNS.map((name) => [name, known(turns[name])])) as Turns),
    times: readTimes(told["turn_times"]),
    cache: cache === null ? null : { warm: known(cache["warm"]), cold: known(cache["cold"]), historyKnown: known(cache["history_known"]), historyAsked: known(cache["history_asked"]) },
    failedOpenings: count(told["failed_openings"]),
    conflicts: count(told["store_conflicts"]),
    erased: count(told["sessions_erased"]),
    sessions: readSessions(told["sessions"]),
    keys: readKeys(told["keys"]),
    notCounted: words(told["not_counted"]),
    gauges: list(told["gauges"]).map((one) => ({ name: text(one["name"]), help: text(one["help"]), value: known(one["value"]) })),
  };
}

/** Reads the newest records of the audit log, newest first. */
export function readAudit(value: unknown): AuditLine[] | null {
  const page = fields(value);
  if (page === null || !Array.isArray(page["records"])) return null;
  const lines = list(page["records"]).map((one) => ({ at: known(one["at"]), actor: text(one["actor"]), action: text(one["action"]), count: count(one["count"]), reason: words(one["reason"]) }));
  return lines.reverse();
}

function readChannel(one: Fields): Channel {
  return {
    platform: text(one["platform"]), label: text(one["label"]), condition: text(one["condition"]), since: known(one["since"]), trouble: words(one["trouble"]),
    backlog: known(one["backlog"]), received: known(one["received"]), answered: known(one["answered"]), undelivered: known(one["undelivered"]), reconnects: known(one["reconnects"]),
  };
}

function readTimes(value: unknown): Times | null {
  const times = fields(value);
  if (times === null) return null;
  const read = { bounds: counts(times["bounds_ms"]), counts: counts(times["counts"]), total: known(times["total_ms"]) };
  return read.bounds.length > 0 && read.counts.length === read.bounds.length + 1 ? read : null;
}

function readSessions(value: unknown): Sessions | null {
  const sessions = fields(value);
  if (sessions === null) return null;
  const byChannel = list(sessions["by_channel"]).map((one) => ({ channel: text(one["channel"]), kept: text(one["kept"]), sessions: known(one["sessions"]) }));
  return { countedAt: known(sessions["counted_at"]), byChannel, unreadable: known(sessions["unreadable"]) };
}

function readKeys(value: unknown): Keys | null {
  const keys = fields(value);
  if (keys === null) return null;
  return { countedAt: known(keys["counted_at"]), masters: known(keys["masters"]), keys: known(keys["keys"]), underOthers: known(keys["under_others"]), rotatedAt: count(keys["rotated_at"]) };
}
