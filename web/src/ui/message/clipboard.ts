// Copying and pasting. A copied embed carries its words twice: as plain text for other programs, and as JSON that another chat turns
// back into the same embed, even on a device that does not have what it refers to.
//
// Easy to get wrong: the type. The asynchronous clipboard takes no types of our own, but a `copy` event does; so one is caused.

export const EMBED_TYPE = "application/x-openmates-embed+json";

export interface CopiedEmbed {
  type: "code" | "table" | "link" | "paste" | "text";
  lang?: string;
  text: string;
}

/** The JSON beside the text. */
export function embedJson(embed: CopiedEmbed): string {
  return JSON.stringify({ version: 1, type: embed.type, ...(embed.lang ? { language: embed.lang } : {}), inlineContent: embed.text });
}

/** An embed of the clipboard as Markdown, or null if it is none. Strict: what is not as written above is none. */
export function embedMarkdown(json: string): string | null {
  if (json.length > 2_000_000) return null;
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch {
    return null;
  }
  if (typeof value !== "object" || value === null) return null;
  const { version, type, language, inlineContent } = value as Record<string, unknown>;
  if (version !== 1 || typeof inlineContent !== "string") return null;
  if (type !== "code") return type === "table" || type === "link" || type === "paste" || type === "text" ? inlineContent : null;
  const longest = Math.max(2, ...(inlineContent.match(/`+/g) ?? []).map((run) => run.length));
  const fence = "`".repeat(longest + 1);
  const lang = typeof language === "string" && /^[\w+#.-]{1,24}$/.test(language) ? language : "";
  return `${fence}${lang}\n${inlineContent.replace(/\n$/, "")}\n${fence}\n`;
}

/** Copies an embed in both forms. */
export async function copyEmbed(embed: CopiedEmbed): Promise<void> {
  if (!copyByEvent(embed.text, embedJson(embed))) await copyText(embed.text);
}

/** Copies words. */
export async function copyText(text: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    copyByEvent(text, null);
  }
}

function copyByEvent(text: string, json: string | null): boolean {
  let isDone = false;
  const listen = (event: ClipboardEvent) => {
    if (event.clipboardData === null) return;
    event.clipboardData.setData("text/plain", text);
    if (json !== null) event.clipboardData.setData(EMBED_TYPE, json);
    event.preventDefault();
    event.stopImmediatePropagation();
    isDone = true;
  };
  document.addEventListener("copy", listen, { capture: true });
  const undo = selectSomething();
  try {
    document.execCommand("copy");
  } catch {
    isDone = false;
  } finally {
    undo();
    document.removeEventListener("copy", listen, { capture: true });
  }
  return isDone;
}

/** Browsers copy only where something is selected. What was selected before is selected again. */
function selectSomething(): () => void {
  const selection = getSelection();
  if (selection === null) return () => undefined;
  const before = selection.rangeCount > 0 ? selection.getRangeAt(0) : null;
  const focused = document.activeElement;
  const mark = document.createElement("span");
  mark.textContent = "\u00a0";
  mark.style.position = "fixed";
  mark.style.opacity = "0";
  document.body.append(mark);
  selection.removeAllRanges();
  const range = document.createRange();
  range.selectNodeContents(mark);
  selection.addRange(range);
  return () => {
    selection.removeAllRanges();
    if (before !== null) selection.addRange(before);
    mark.remove();
    if (focused instanceof HTMLElement) focused.focus({ preventScroll: true });
  };
}
