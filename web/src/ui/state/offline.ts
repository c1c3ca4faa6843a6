// The page itself in this browser: kept for starts without a server, found to be old, loaded anew.
//
//   somebody is in, and wants it ─▶ keep: the service worker fetches this release
//   nobody is here any more, or it is switched off ─▶ drop: nothing of the page stays behind
//   the server has another release ─▶ isStale ─▶ renew: what was typed is kept, the new release takes over, the page loads again
//
// A visitor who only sees the door keeps nothing. Easy to get wrong: loading again into the same old page. If the new release cannot be
// kept (no room, no such file), the old one is dropped, and the page comes from the server.
import { effect } from "@preact/signals";
import { build } from "../../build";
import { account, isOpen, isStale } from "./account";
import { OFFLINE, elsewhere, release, trusted } from "./core";
import { flushDraft } from "./draft";
import { startsOffline } from "./prefs";

const PREFIX = "confidant-page-";

/** Follows the account, the switch and the server from now on. */
export function startOffline(): void {
  const workers = container();
  if (workers !== null && release() !== "" && elsewhere() === null) {
    let work = Promise.resolve();
    effect(() => {
      const [isWanted, isLeft] = [isOpen.value && startsOffline.value, account.value?.state === "none" || !startsOffline.value];
      if (isWanted || isLeft) work = work.then(() => (isWanted ? keep(workers) : drop(workers))).catch(() => undefined);
    });
    // Another tab has loaded a new release.
    let isKept = workers.controller !== null;
    workers.addEventListener("controllerchange", () => {
      if (isKept) void look();
      isKept = true;
    });
    workers.controller?.postMessage("tidy");
  }
  document.addEventListener("visibilitychange", () => void look());
  setInterval(() => void look(), 10 * 60_000);
  void look();
}

/** Looks whether the server has another release than this one. */
export async function look(): Promise<void> {
  const mine = release();
  if (mine === "" || elsewhere() !== null || isStale.value || document.visibilityState !== "visible" || !navigator.onLine) return;
  try {
    const answer = await fetch("/", { cache: "no-cache", credentials: "omit" });
    const theirs = /name="release" content="([0-9a-f]{32})"/.exec(answer.ok ? await answer.text() : "")?.[1];
    if (theirs === undefined || theirs === mine) return;
    isStale.value = true;
    // Nobody is in and nothing was typed: nothing is lost by loading it at once. Once only, for a server that cannot make up its mind.
    const isIdle = !isOpen.value && [...document.querySelectorAll("input")].every((field) => field.value === "");
    if (isIdle && sessionStorage.getItem("renewed") !== theirs) {
      sessionStorage.setItem("renewed", theirs);
      await renew();
    }
  } catch {
    // Nobody there: that is said elsewhere.
  }
}

/** Loads the release that the server has now. What was typed is kept first. */
export async function renew(): Promise<void> {
  await Promise.race([flushDraft(), pause(2_000)]);
  const workers = container();
  if (workers !== null) await Promise.race([replace(workers), pause(15_000)]).catch(() => undefined);
  location.reload();
}

async function replace(workers: ServiceWorkerContainer): Promise<void> {
  const kept = await workers.getRegistration();
  if (kept === undefined) return;
  try {
    await kept.update();
    await settled(kept.installing);
  } catch {
    // As below.
  }
  if (kept.waiting === null) {
    // Another tab may have done it; an old one that cannot be replaced would only bring this page again.
    if (kept.active === null || (await buildOf(kept.active)) === build) await drop(workers);
    return;
  }
  const taken = new Promise((resolve) => workers.addEventListener("controllerchange", resolve, { once: true }));
  kept.waiting.postMessage("take-over");
  await taken;
}

async function buildOf(worker: ServiceWorker): Promise<string> {
  const { port1, port2 } = new MessageChannel();
  const said = new Promise<string>((resolve) => {
    port1.onmessage = ({ data }) => resolve(String(data));
  });
  worker.postMessage("which", [port2]);
  return Promise.race([said, pause(3_000).then(() => build)]);
}

/** When a new service worker has fetched its files, or has given up. */
function settled(worker: ServiceWorker | null): Promise<void> {
  return new Promise((resolve) => {
    const look = () => {
      if (worker === null || worker.state !== "installing") resolve();
    };
    worker?.addEventListener("statechange", look);
    look();
  });
}

async function keep(workers: ServiceWorkerContainer): Promise<void> {
  await workers.register(trusted(OFFLINE), { scope: "/", updateViaCache: "none" });
}

async function drop(workers: ServiceWorkerContainer): Promise<void> {
  await (await workers.getRegistration())?.unregister();
  for (const name of await caches.keys()) if (name.startsWith(PREFIX)) await caches.delete(name);
}

/** Whether the page comes from this browser: then its parts do, too. */
export function isKeptHere(): boolean {
  return (container()?.controller ?? null) !== null;
}

/** Null where browsers have none, or do not let this page have one. */
function container(): ServiceWorkerContainer | null {
  return isSecureContext && "serviceWorker" in navigator ? navigator.serviceWorker : null;
}

const pause = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));
