// What a turn is doing, and why it asks, in the person's language. The server says both in English; what it is known to say is said anew here.
//
// Easy to get wrong: leaving something out. Words that this page does not know are shown as they came.
import type { Approval, Progress } from "../../client/core";
import { t } from "../i18n";

/** What a turn is doing. */
export function stepText({ step, text }: Progress): string {
  const tool = /^\u{1f527}\ufe0f?\s*(.+)$/u.exec(text)?.[1];
  if (tool !== undefined) return t("stepTool", { tool });
  const said = plain(text);
  if (/^Analyzing\W*$/i.test(said)) return t("step.preparing");
  if (/^Thinking\W*$/i.test(said)) return t("step.answering");
  return said === "" ? t(`step.${step}`) : said;
}

/** Why a call needs the person's word. How to answer in words is for channels without buttons, and the call is shown in full below. */
export function whyText({ why, tool }: Pick<Approval, "why" | "tool">): string {
  if (why.startsWith("May I call ")) return t("allowWhy", { tool });
  return why.replace(/\s*Answer `approve [^`]*` or `deny [^`]*`\.?/, "").trim();
}

/** Without the little pictures that the server puts before it: not every machine has them, and the page has its own. */
function plain(text: string): string {
  return text.replace(/[\p{Extended_Pictographic}\u{fe0f}\u{200d}]/gu, "").trim();
}
