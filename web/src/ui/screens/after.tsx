// What comes after an answer: what could be asked next, and what would have helped. Nothing is given unless the person ticks it.
import { useEffect, useState } from "preact/hooks";
import { t } from "../i18n";
import { Icon } from "../icons";
import { canWrite } from "../state/account";
import { ask, askInstead, page, turns } from "../state/chat";
import { core } from "../state/core";
import { attempt } from "../state/notes";
import { MAX_GIVEN, optionsFor, switchedOff, type GivenItem } from "../state/options";

/** Follow-up questions. A click asks. */
export function FollowUps() {
  const shown = page.value;
  if (shown === null || shown.followUps.length === 0 || turns.value.length > 0 || !canWrite.value || switchedOff.value.includes("suggestions")) return null;
  return (
    <div class="next" role="group" aria-label={t("followUps")}>
      {shown.followUps.slice(0, 3).map((text) => (
        <button key={text} type="button" dir="auto" onClick={() => void ask(text, optionsFor(shown.chat.id), { chat: shown.chat.id, temporary: false })}>{text}</button>
      ))}
    </div>
  );
}

/** Settings and memories that the server says would have helped. Each is ticked by itself; then the question is asked again with them. */
export function Wanted() {
  const shown = page.value;
  const last = shown?.messages.at(-1);
  const wanted = last?.heard?.wanted ?? [];
  const [items, setItems] = useState<GivenItem[]>([]);
  const [ticked, setTicked] = useState<ReadonlySet<string>>(new Set());
  useEffect(() => {
    if (wanted.length === 0) return;
    void attempt(async () => {
      const data = await core().dataOf("memories");
      setItems(data.filter((one) => wanted.includes(one.name)).map((one) => ({ what: "settings", name: one.name, text: one.body })));
    });
  }, [last?.id, wanted.length]);
  if (!shown || !last || last.parent === null || wanted.length === 0 || turns.value.length > 0 || !canWrite.value) return null;
  const asked = shown.messages.find((message) => message.id === last.parent);
  const chosen = items.filter((item) => ticked.has(item.name)).slice(0, MAX_GIVEN);
  const toggle = (name: string) => setTicked(new Set(ticked.has(name) ? [...ticked].filter((one) => one !== name) : [...ticked, name]));
  return (
    <section class="card" aria-label={t("wantedTitle")}>
      <h3><Icon name="key" />{t("wantedTitle")}</h3>
      <p>{items.length > 0 ? t("wantedNote") : t("wantedNone", { names: wanted.join(", ") })}</p>
      {items.map((item) => (
        <label key={item.name} class="tick">
          <input type="checkbox" checked={ticked.has(item.name)} onChange={() => toggle(item.name)} />
          <span><b>{item.name}</b><small dir="auto">{item.text}</small></span>
        </label>
      ))}
      {asked && chosen.length > 0 ? (
        <div class="row"><button type="button" class="button go" onClick={() => void askInstead(asked.id, asked.body, { ...optionsFor(shown.chat.id), given: chosen })}>{t("wantedGive", { n: chosen.length })}</button></div>
      ) : null}
    </section>
  );
}
