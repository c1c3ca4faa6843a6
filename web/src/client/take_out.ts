// One chat, taken out: as Markdown for people, as JSON for programs. What it shows is the branch that is shown.

import type { ChatView } from "./chats";

export function exportChat(view: ChatView, as: "markdown" | "json"): string {
  const title = view.fields.get("title") ?? null;
  if (as === "json") {
    const messages = view.branch.map(({ id, role, parent, body, model, createdAt }) => ({ id, role, parent, body, model, created_at: createdAt }));
    return `${JSON.stringify({ v: 1, id: view.id, title, fields: Object.fromEntries(view.fields), messages }, null, 2)}\n`;
  }
  const parts = view.branch.map(({ role, body, model, createdAt }) => {
    const who = model === null ? role : `${role} (${model})`;
    return `## ${who}, ${new Date(createdAt).toISOString()}\n\n${body}\n`;
  });
  return [`# ${title ?? "Untitled"}\n`, ...parts].join("\n");
}
