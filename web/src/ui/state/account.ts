// Whose page this is, and how it stands with the server: the account, the connection, the outbox, what is full or old.
//
// Everything comes from the worker's events. Easy to get wrong: what is shown after locking. Every module that holds words of chats
// empties itself when the account is not open any more (`onLocked`).
import { computed, signal } from "@preact/signals";
import type { Account, Connection, CoreEvent } from "../../client/core";
import { core } from "./core";
import { sayProblem } from "./notes";
import { CommandError, nameOf } from "./core";

export const account = signal<Account | null>(null);
export const connection = signal<Connection>({ state: "offline" });
export const outbox = signal({ waiting: 0, copies: 0 });
export const isQuotaFull = signal(false);
/** Why the page could not begin, by name: a part of it did not load, or the browser's storage cannot be used. */
export const startProblem = signal<string | null>(null);
/** Whether what is written may be in this tab only. */
let isTabOnly = false;
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
  // What is only in this tab would go with it: the browser asks first.
  addEventListener("beforeunload", (event) => {
    if (isTabOnly && outbox.value.waiting > 0) event.preventDefault();
  });
  try {
    setAccount(await core().account());
    connection.value = await core().connection();
  } catch (error) {
    startProblem.value = nameOf(error);
    return;
  }
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
      isQuotaFull.value = isTabOnly = event.isFull;
      break;
    case "error":
      if (event.error.name === "stale-client") isStale.value = true;
      else sayProblem(new CommandError(event.error));
      break;
    default:
  }
}

function setAccount(next: Account): void {
  account.value = next;
  startProblem.value = null;
  if (next.state === "open") return;
  freshCode.value = next.state === "none" ? null : freshCode.value;
  outbox.value = { waiting: 0, copies: 0 };
  for (const forget of emptied) forget();
}
