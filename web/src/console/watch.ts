// Looks at the server every few seconds while somebody looks at the page, and says what came of it.
//
//   signed out ──token──▶ looking ──▶ told   ──┐  again after 3 s, only while the page is visible
//        ▲                   │ 401, 403        │  not reached: after 3, 6, 12 … 60 s; what was told last stays, marked as old
//        └───────────────────┘ ◀───────────────┘
//
// The token is in memory; in this tab's storage only where the person ticks it. Easy to get wrong: two looks at once. Each has a number, and
// an answer to an older one is let go.
import { signal } from "@preact/signals";
import { remember, type Sample } from "./numbers";
import { readAudit, readConsole, type AuditLine, type Told } from "./told";

export const EVERY_MS = 3000;
const LONGEST_MS = 60_000;
const PATIENCE_MS = 15_000;
const KEPT = "confidant.console.token";

/** Why there is no answer: `refused` has the server's own words. */
export type Trouble =
  | { kind: "unreachable"; since: number }
  | { kind: "refused"; since: number; message: string; hint: string | null }
  | { kind: "unreadable"; since: number };

/** Why somebody has to sign in again. */
export type Turned = "token" | "role" | null;

export type Storage = Pick<globalThis.Storage, "getItem" | "setItem" | "removeItem">;

export class Watch {
  readonly isIn = signal(false);
  readonly turned = signal<Turned>(null);
  readonly told = signal<Told | null>(null);
  readonly samples = signal<Sample[]>([]);
  readonly trouble = signal<Trouble | null>(null);
  readonly isPaused = signal(false);
  readonly audit = signal<{ lines: AuditLine[]; readAt: number } | null>(null);
  readonly auditTrouble = signal<string | null>(null);
  readonly isReading = signal(false);

  #token: string | null = null;
  #timer: ReturnType<typeof setTimeout> | null = null;
  #look = 0;
  #failures = 0;
  #isVisible = true;

  constructor(private readonly base = "", private readonly storage: Storage | null = null, private readonly clock: () => number = Date.now) {}

  /** Goes on with the token that this tab kept, if it did. */
  resume(): void {
    const kept = this.storage?.getItem(KEPT) ?? null;
    if (kept !== null) void this.signIn(kept, true);
  }

  async signIn(token: string, isKept: boolean): Promise<void> {
    this.#token = token;
    this.turned.value = null;
    if (isKept) this.storage?.setItem(KEPT, token);
    this.isIn.value = true;
    await this.#lookNow();
    if (this.isIn.value) await this.readAudit();
  }

  signOut(turned: Turned = null): void {
    this.#stopTimer();
    this.#look += 1;
    this.#token = null;
    this.#failures = 0;
    this.storage?.removeItem(KEPT);
    this.told.value = this.trouble.value = this.audit.value = this.auditTrouble.value = null;
    this.samples.value = [];
    this.isPaused.value = false;
    this.turned.value = turned;
    this.isIn.value = false;
  }

  pause(isPaused: boolean): void {
    this.isPaused.value = isPaused;
    if (isPaused) this.#stopTimer();
    else void this.#lookNow();
  }

  /** Whether anybody sees the page: nothing is asked while nobody does. */
  seen(isVisible: boolean): void {
    this.#isVisible = isVisible;
    if (!isVisible) this.#stopTimer();
    else if (this.isIn.value && !this.isPaused.value && this.#timer === null) void this.#lookNow();
  }

  /** Looks at once, as when somebody presses a button. */
  again(): void {
    if (this.isIn.value) void this.#lookNow();
  }

  /** Reads the newest records of the audit log. The server records that, so it is done when somebody asks for it. */
  async readAudit(): Promise<void> {
    const look = this.#look;
    this.isReading.value = true;
    this.auditTrouble.value = null;
    try {
      const answer = await this.#ask("/api/v1/audit?newest=true&limit=50");
      const lines = answer.ok ? readAudit(await answer.json()) : null;
      if (!this.isIn.value || this.#token === null) return;
      if (lines !== null) this.audit.value = { lines, readAt: this.clock() };
      else this.auditTrouble.value = answer.ok ? "" : (await words(answer)).message;
    } catch {
      if (this.isIn.value && look <= this.#look) this.auditTrouble.value = "";
    } finally {
      this.isReading.value = false;
    }
  }

  async #lookNow(): Promise<void> {
    this.#stopTimer();
    this.#look += 1;
    const look = this.#look;
    let wait = EVERY_MS;
    try {
      const answer = await this.#ask("/api/v1/console");
      const told = answer.ok ? readConsole(await answer.json().catch(() => null)) : null;
      if (look !== this.#look) return;
      if (answer.status === 401) return this.signOut("token");
      if (answer.status === 403) return this.signOut("role");
      if (told !== null) {
        this.samples.value = remember(this.samples.value, told, this.told.value);
        this.told.value = told;
        this.trouble.value = null;
        this.#failures = 0;
      } else {
        const refused = answer.ok ? null : await words(answer);
        this.#failed(refused === null ? { kind: "unreadable", since: this.#since() } : { kind: "refused", since: this.#since(), ...refused });
        wait = Math.max(this.#backoff(), 1000 * (Number(answer.headers.get("retry-after")) || 0));
      }
    } catch {
      if (look !== this.#look) return;
      this.#failed({ kind: "unreachable", since: this.#since() });
      wait = this.#backoff();
    }
    if (look === this.#look && this.isIn.value && this.#isVisible && !this.isPaused.value) this.#timer = setTimeout(() => void this.#lookNow(), wait);
  }

  #ask(path: string): Promise<Response> {
    const headers = { authorization: `Bearer ${this.#token ?? ""}`, accept: "application/json" };
    return fetch(this.base + path, { headers, credentials: "omit", cache: "no-store", redirect: "error", signal: AbortSignal.timeout(PATIENCE_MS) });
  }

  #failed(trouble: Trouble): void {
    this.#failures += 1;
    this.trouble.value = trouble;
  }

  #since(): number {
    return this.trouble.value?.since ?? this.clock();
  }

  #backoff(): number {
    return Math.min(LONGEST_MS, EVERY_MS * 2 ** Math.min(5, Math.max(0, this.#failures - 1)));
  }

  #stopTimer(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
  }
}

/** What the server says of a refusal, in its own words. */
async function words(answer: Response): Promise<{ message: string; hint: string | null }> {
  const body = (await answer.json().catch(() => null)) as { error?: { message?: unknown; hint?: unknown } } | null;
  const { message, hint } = body?.error ?? {};
  return { message: typeof message === "string" ? message : `HTTP ${answer.status}`, hint: typeof hint === "string" ? hint : null };
}
