// The service worker: the page starts without a server, from the files of one build.
//
//   install   every file of this build, by its hash ─▶ a cache of this build; all of them, or none
//   fetch     "/" and FILE?b=BUILD ─▶ the cache of that build; anything else (every question to the server) goes by untouched
//   message   "take-over": this build from now on · "which": which build this is · "tidy": caches of others go, if no tab may need them
//
// build.mjs puts in which files there are. A new build is new bytes of this file, which is how a browser finds out. It waits until the
// person loads the page again: a tab keeps the build that it began with. Easy to get wrong: a file of another build. A server that changes
// while files are fetched gives others than those whose hashes are here, and then nothing is installed.

declare const BUILD: string;
declare const FILES: Record<string, string>;

const PREFIX = "confidant-page-";

// This file runs as a service worker only; the compiler is told of pages as well.
const scope = globalThis as unknown as ServiceWorkerGlobalScope;

scope.addEventListener("install", (event) => event.waitUntil(install()));
scope.addEventListener("activate", (event) => event.waitUntil(scope.clients.claim()));

scope.addEventListener("message", (event) => {
  if (event.data === "take-over") event.waitUntil(scope.skipWaiting());
  if (event.data === "which") event.ports[0]?.postMessage(BUILD);
  if (event.data === "tidy") event.waitUntil(tidy());
});

scope.addEventListener("fetch", (event) => {
  const { request } = event;
  const url = new URL(request.url);
  if (request.method !== "GET" || url.origin !== scope.location.origin) return;
  if (request.mode === "navigate") {
    if (url.pathname === "/") event.respondWith(kept(BUILD, "/", request));
    return;
  }
  const build = url.searchParams.get("b");
  if (build !== null) event.respondWith(kept(build, url.pathname, request));
});

/** A file of a build; from the server if it is not here, which has it only if it is the same build. */
async function kept(build: string, path: string, request: Request): Promise<Response> {
  try {
    const name = PREFIX + build;
    const found = (await caches.has(name)) ? await (await caches.open(name)).match(path) : undefined;
    if (found !== undefined) return found;
  } catch {
    // The browser does not let us at it: then from the server.
  }
  return fetch(request);
}

async function install(): Promise<void> {
  const name = PREFIX + BUILD;
  await caches.delete(name);
  try {
    const cache = await caches.open(name);
    await Promise.all(Object.entries(FILES).map(([file, hash]) => take(cache, `/${file}`, hash)));
    await takePage(cache);
  } catch (error) {
    await caches.delete(name);
    throw error;
  }
}

/** Fetches a file; it must be the one that this build has. */
async function take(cache: Cache, path: string, hash: string): Promise<void> {
  const response = await fetched(`${path}?b=${BUILD}`);
  if (hex(await digest(await response.clone().arrayBuffer())) !== hash) throw new TypeError("a file of another build");
  await cache.put(path, response);
}

/** The page itself, last: it names the release, which is made of all other files. */
async function takePage(cache: Cache): Promise<void> {
  const own = await fetched("/sw.js");
  const hashes = new Map(Object.entries(FILES));
  hashes.set("sw.js", hex(await digest(await own.arrayBuffer())));
  const response = await fetched("/");
  if (!(await response.clone().text()).includes(`name="release" content="${await release(hashes)}"`)) throw new TypeError("a page of another build");
  await cache.put("/", response);
}

async function fetched(path: string): Promise<Response> {
  // Asks the server whether it changed; what the page has loaded already does not come again.
  const response = await fetch(path, { cache: "no-cache", credentials: "omit", redirect: "error" });
  if (response.status !== 200) throw new TypeError("not there");
  return response;
}

/** What all files together are called: as build.mjs and the program do it. */
async function release(hashes: ReadonlyMap<string, string>): Promise<string> {
  const parts = [...hashes].sort(([one], [two]) => (one < two ? -1 : 1)).map(([file, hash]) => [...new TextEncoder().encode(`${file}\0`), ...unhex(hash)]);
  return hex(await digest(new Uint8Array(parts.flat()))).slice(0, 32);
}

async function tidy(): Promise<void> {
  // Another tab may still be of another build.
  if ((await scope.clients.matchAll({ type: "window", includeUncontrolled: true })).length > 1) return;
  for (const name of await caches.keys()) if (name.startsWith(PREFIX) && name !== PREFIX + BUILD) await caches.delete(name);
}

const digest = async (bytes: BufferSource) => new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
const hex = (bytes: Uint8Array) => [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
const unhex = (text: string) => (text.match(/../g) ?? []).map((two) => Number.parseInt(two, 16));
