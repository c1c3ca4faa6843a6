// What the person gives with the next question: memories of this account, and past chats that are like it. Everything is looked up on this
// device; nothing of it leaves before it is ticked here and the question is sent. Three at most, 4 KiB together.
import type { TargetedEvent } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { DataLine } from "../../client/core";
import { t } from "../i18n";
import { IconButton } from "../parts/basics";
import { memoryName } from "../message/names";
import { core } from "../state/core";
import { draft } from "../state/draft";
import { lineOf } from "../state/list";
import { attempt, say } from "../state/notes";
import { focus, given, givenBytes, MAX_GIVEN, MAX_GIVEN_BYTES, switchedOff, toggleGiven, type GivenItem } from "../state/options";

export function Give({ onClose }: { onClose: () => void }) {
  const [memories, setMemories] = useState<DataLine[]>([]);
  const [similar, setSimilar] = useState<GivenItem[]>([]);
  useEffect(() => {
    void attempt(async () => {
      if (!switchedOff.value.includes("settings")) setMemories(await core().dataOf("memories"));
      if (!switchedOff.value.includes("similar")) setSimilar(await similarTo(draft.peek()));
    });
  }, []);
  const items: GivenItem[] = memories.map((one) => ({ what: "settings", name: one.name, text: one.body }));
  return (
    <section class="give" aria-label={t("giveTitle")}>
      <header>
        <b>{t("giveTitle")}</b>
        <IconButton icon="close" label={t("close")} onClick={onClose} />
      </header>
      <p class="small">{t("giveNote", { n: MAX_GIVEN })}</p>
      <Ticks title={t("giveMemories")} none={t("giveNoMemories")} items={items} />
      <Ticks title={t("giveSimilar")} none={t("giveNoSimilar")} items={similar} />
      {switchedOff.value.includes("focus") ? null : (
        <label class="focus">
          {t("focusLabel")}
          <input value={focus.value ?? ""} maxLength={64} dir="ltr" placeholder={t("focusHint")} onChange={(event: TargetedEvent<HTMLInputElement>) => { focus.value = memoryName(event.currentTarget.value); }} />
        </label>
      )}
      <p class="small">{t("giveBytes", { n: givenBytes.value, max: MAX_GIVEN_BYTES })}</p>
    </section>
  );
}

function Ticks({ title, none, items }: { title: string; none: string; items: GivenItem[] }) {
  return (
    <fieldset>
      <legend>{title}</legend>
      {items.length === 0 ? <p class="small">{none}</p> : null}
      {items.map((item) => (
        <label key={`${item.what}:${item.name}`} class="tick">
          <input
            type="checkbox"
            checked={given.value.some((one) => one.what === item.what && one.name === item.name)}
            onChange={() => {
              if (!toggleGiven(item)) say(t("giveTooMuch"));
            }}
          />
          <span><b dir="auto">{item.name}</b><small dir="auto">{item.text}</small></span>
        </label>
      ))}
    </fieldset>
  );
}

/** Chats with the longest words of the question in them, by their summaries. */
async function similarTo(question: string): Promise<GivenItem[]> {
  const words = [...new Set(question.toLowerCase().match(/[\p{L}\p{N}]{4,}/gu) ?? [])].sort((one, two) => two.length - one.length).slice(0, 5);
  const items = new Map<string, GivenItem>();
  for (const word of words) {
    for (const hit of await core().search(word)) {
      const line = lineOf(hit.chat);
      const text = line?.summary ?? hit.excerpt;
      if (!items.has(hit.chat) && text) items.set(hit.chat, { what: "summary", name: (hit.title ?? t("untitled")).slice(0, 60), text: text.slice(0, 1200) });
    }
  }
  return [...items.values()].slice(0, 6);
}
