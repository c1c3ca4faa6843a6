// The way to the worker: a Core whose commands are messages. Keys are over there and never come here.
//
// `new Worker` takes a script's address, which Trusted Types guard: one policy, `app`, that knows the addresses of the worker and of the
// service worker, and no others.
import { address } from "../../build";
import type { Core, CoreError, CoreEvent, FromWorker, ToWorker } from "../../client/core";

/** A command that failed. Its name is one of docs/CHATS.md; it has no words of a chat. */
export class CommandError extends Error {
  override readonly name: string;
  readonly retryMs: number | undefined;
  readonly reason: string | undefined;

  constructor(error: CoreError) {
    super(error.name);
    this.name = error.name;
    this.retryMs = error.retryMs;
    this.reason = error.reason;
  }
}

/** The name of what went wrong. */
export function nameOf(error: unknown): string {
  return error instanceof CommandError ? error.name : "unexpected";
}

let current: Core | null = null;

/** The core that the page talks to. */
export function core(): Core {
  if (current === null) throw new Error("the page was not started");
  return current;
}

/** Sets the core: the worker's, or a double in tests. */
export function setCore(one: Core): void {
  current = one;
}

interface ScriptPolicy {
  createScriptURL(input: string): unknown;
}
interface PolicyFactory {
  createPolicy(name: string, rules: { createScriptURL: (input: string) => string }): ScriptPolicy;
}

function meta(name: string): string {
  return document.querySelector<HTMLMetaElement>(`meta[name="${name}"]`)?.content ?? "";
}

/** The server that this page is for, where it comes from the person's own machine; else null. */
export function elsewhere(): string | null {
  return meta("server") || null;
}

/** The origin of the server. */
export function serverOrigin(): string {
  return elsewhere() ?? location.origin;
}

const WORKER = address("client.worker.js");
/** It has no build in its address: it is how a browser finds out about another one. */
export const OFFLINE = "/sw.js";

let policy: ScriptPolicy | null | undefined;

/** The address of a script of this page, as Trusted Types want it. The constructors take it; its type is not known to TypeScript. */
export function trusted(path: string): string {
  const factory = (globalThis as { trustedTypes?: PolicyFactory }).trustedTypes;
  policy ??= factory?.createPolicy("app", {
    createScriptURL: (input) => {
      if (input !== WORKER && input !== OFFLINE) throw new TypeError("not a script of this page");
      return input;
    },
  }) ?? null;
  return policy === null ? path : (policy.createScriptURL(path) as string);
}

/** Which release this page is: it goes with every request, and a server with another one refuses it. */
export function release(): string {
  return meta("release");
}

/** Starts the worker. */
export function startWorker(): Core {
  const name = [release(), elsewhere() ?? ""].join(" ").trimEnd();
  return overWorker(new Worker(trusted(WORKER), { type: "module", name }));
}

/** A core behind a worker. */
export function overWorker(worker: Pick<Worker, "postMessage" | "addEventListener">): Core {
  const waiting = new Map<number, { resolve: (value: unknown) => void; reject: (error: unknown) => void }>();
  const listeners = new Set<(event: CoreEvent) => void>();
  let next = 1;
  worker.addEventListener("message", (message) => {
    const data = (message as MessageEvent<FromWorker>).data;
    if ("event" in data) {
      for (const hear of listeners) hear(data.event);
      return;
    }
    const one = waiting.get(data.id);
    waiting.delete(data.id);
    if ("error" in data) {
      // An old page is the state of the whole page, not of one command.
      if (data.error.name === "stale-client") for (const hear of listeners) hear({ type: "error", error: data.error });
      one?.reject(new CommandError(data.error));
    } else one?.resolve(data.value);
  });
  worker.addEventListener("error", () => {
    for (const one of waiting.values()) one.reject(new CommandError({ name: "worker" }));
    waiting.clear();
    for (const hear of listeners) hear({ type: "error", error: { name: "worker" } });
  });
  const call = (name: ToWorker["name"], args: unknown[]) =>
    new Promise((resolve, reject) => {
      const id = next++;
      waiting.set(id, { resolve, reject });
      worker.postMessage({ id, name, args } satisfies ToWorker);
    });
  const on: Core["on"] = (hear) => {
    listeners.add(hear);
    return () => listeners.delete(hear);
  };
  // Every command of the interface is a message of the same name; `on` is the one that is not.
  return new Proxy({} as Core, {
    get: (_, name) => (name === "on" ? on : typeof name === "string" && name !== "then" ? (...args: unknown[]) => call(name as ToWorker["name"], args) : undefined),
  });
}
