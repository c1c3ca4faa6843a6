// What a page names its worker by. It imports nothing: the worker needs it before anything else is loaded.

/** The page's release, and the server that it is for where that is not the one it comes from. */
export function readName(name: string): { release: string; server: string | null } {
  const [release, server] = name.split(" ");
  return { release: release ?? "", server: server === undefined || server === "" ? null : server };
}

/** What this worker is called. */
export function ownName(): { release: string; server: string | null } {
  return readName((globalThis as { name?: string }).name ?? "");
}
