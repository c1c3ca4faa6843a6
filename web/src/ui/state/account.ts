// Whose page this is, and how it stands with the server: the account, the connection, the outbox, what is full or old.
//
// Everything comes from the worker's events. Easy to get wrong: what is shown after locking. Every module that holds words of chats
// empties itself when the account is not open any more (`onLocked`).
import { computed, signal } from "@preact/signals";
import type { Account, Connection, CoreEvent } from "../../client/core";
import { core } from "./core";
import { sayProblem } from "./notes";
import { CommandError } from "./core";

export const account = signal<Account | null>(null);
export const connection = signal<Connection>({ state: "offline" });
export const outbox = signal({ waiting: 0, copies: 0 });
export const isQuotaFull = signal(false);
/** A newer page is on the server: this one must be loaded again. */
export const isStale = signal(false);
/** A recovery code that was just made. It is shown once, before anything else, and is nowhere else. */
export const freshCode = signal<string | null>(null);
/** The receipt of an account that was erased here. */
export const receipt = signal<string | null>(null);

export const isOpen = computed(() => account.value?.state === "open");
export const canWrite = computed(() => isOpen.value && !isStale.value);

const emptied: (() => void)[] = [];

/** Runs when the account is not open any more: whatever holds words lets go of them. */
export function onLocked(forget: () => void): void {
  emptied.push(forget);
}

/** Asks how things stand, and hears what changes. */
export async function startAccount(): Promise<void> {
  core().on(hear);
  setAccount(await core().account());
  connection.value = await core().connection();
  if (isOpen.value) {
    const [waiting, copies] = await Promise.all([core().waiting(), core().copies()]);
    outbox.value = { waiting: waiting.length, copies: copies.length };
  }
}

function hear(event: CoreEvent): void {
  switch (event.type) {
    case "account":
      setAccount(event.account);
      break;
    case "connection":
      connection.value = event.connection;
      if (event.connection.error?.name === "stale-client") isStale.value = true;
      break;
    case "outbox":
      outbox.value = { waiting: event.waiting, copies: event.copies };
      break;
    case "quota":
      isQuotaFull.value = true;
      break;
    case "error":
      sayProblem(new CommandError(event.error));
      break;
    default:
  }
}

function setAccount(next: Account): void {
  account.value = next;
  if (next.state === "open") return;
  freshCode.value = next.state === "none" ? null : freshCode.value;
  outbox.value = { waiting: 0, copies: 0 };
  for (const forget of emptied) forget();
}

/** Looks whether the server has another page than this one, when the person comes back to it. */
export function watchForNewPage(): void {
  const path = document.querySelector<HTMLScriptElement>("script[type=module]")?.src;
  if (path === undefined) return;
  let first: string | null = null;
  const look = async () => {
    if (document.visibilityState !== "visible" || isStale.value) return;
    try {
      const answer = await fetch(path, { method: "HEAD", cache: "no-cache" });
      const tag = answer.ok ? answer.headers.get("etag") : null;
      if (tag === null) return;
      if (first === null) first = tag;
      else if (first !== tag) isStale.value = true;
    } catch {
      // Nobody there: that is said elsewhere.
    }
  };
  document.addEventListener("visibilitychange", () => void look());
  setInterval(() => void look(), 10 * 60_000);
  void look();
}
