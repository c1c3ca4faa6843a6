// Where the person is: in the address behind `#`, so that back and forward work and nothing of it is sent to the server.
//
//   #/            a new chat        #/chat_…      a chat        #/settings/devices     a page of the settings
import { signal } from "@preact/signals";

export type Route = { page: "new" } | { page: "chat"; chat: string } | { page: "settings"; part: string } | { page: "outbox" };

export const route = signal<Route>({ page: "new" });
/** What a QR code of a new device said: it opened this page with `#/pair/…`. It is taken out of the address at once. */
export const pairText = signal("");

/** Reads an address. What is not known is a new chat. */
export function parseRoute(hash: string): Route {
  const parts = hash.replace(/^#\/?/, "").split("/");
  const first = parts[0] ?? "";
  if (/^chat_[a-z2-7]{26}$/.test(first)) return { page: "chat", chat: first };
  if (first === "settings") return { page: "settings", part: /^[a-z]{1,20}$/.test(parts[1] ?? "") ? (parts[1] ?? "") : "general" };
  if (first === "outbox") return { page: "outbox" };
  if (first === "pair") return { page: "settings", part: "devices" };
  return { page: "new" };
}

/** The address of a route. */
export function hrefOf(to: Route): string {
  if (to.page === "chat") return `#/${to.chat}`;
  if (to.page === "settings") return `#/settings/${to.part}`;
  return to.page === "outbox" ? "#/outbox" : "#/";
}

/** Goes there. */
export function go(to: Route): void {
  const hash = hrefOf(to);
  if (location.hash === hash || (hash === "#/" && location.hash === "")) route.value = to;
  else location.hash = hash;
}

/** Follows the address from now on. */
export function startRoute(): void {
  const read = () => {
    const shown = /^#\/pair\/([a-z2-7]{26})$/.exec(location.hash)?.[1];
    if (shown !== undefined) {
      pairText.value = shown;
      history.replaceState(null, "", hrefOf({ page: "settings", part: "devices" }));
    }
    route.value = parseRoute(location.hash);
  };
  addEventListener("hashchange", read);
  read();
}
