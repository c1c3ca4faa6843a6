// What comes after an answer: what could be asked next, and what would have helped. Nothing is given unless the person ticks it.
import { useState } from "preact/hooks";
import { t } from "../i18n";
import { Icon } from "../icons";
import { readable } from "../markdown/links";
import { canWrite } from "../state/account";
import { ask, askInstead, page, turns, wholeBody } from "../state/chat";
import { memoryLabel } from "../message/names";
import { MAX_GIVEN, memories, optionsFor, switchedOff, type GivenItem } from "../state/options";

/** Follow-up questions. A click asks. */
export function FollowUps() {
  const shown = page.value;
  if (shown === null || shown.followUps.length === 0 || turns.value.length > 0 || !canWrite.value || switchedOff.value.includes("suggestions")) return null;
  return (
    <div class="next" role="group" aria-label={t("followUps")}>
      {shown.followUps.slice(0, 3).map((text) => (
        <button key={text} type="button" dir="auto" onClick={() => void ask(text, optionsFor(shown.chat.id), { chat: shown.chat.id, temporary: false })}>{readable(text)}</button>
      ))}
    </div>
  );
}

/** Settings and memories that the server says would have helped. Each is ticked by itself; then the question is asked again with them. */
export function Wanted() {
  const shown = page.value;
  const last = shown?.messages.at(-1);
  const wanted = last?.heard?.wanted ?? [];
  const [ticked, setTicked] = useState<ReadonlySet<string>>(new Set());
  // What went while the answer was made is not asked for again.
  const isGiven = last?.shared.some(({ what }) => what === "settings") ?? false;
  if (isGiven || switchedOff.value.includes("settings")) return null;
  const items = memories.value.filter((one) => wanted.includes(one.name)).map(({ name, body }): GivenItem => ({ what: "settings", name, text: body }));
  if (!shown || !last || last.parent === null || wanted.length === 0 || turns.value.length > 0 || !canWrite.value) return null;
  const asked = shown.messages.find((message) => message.id === last.parent);
  const chosen = items.filter((item) => ticked.has(item.name)).slice(0, MAX_GIVEN);
  const toggle = (name: string) => setTicked(new Set(ticked.has(name) ? [...ticked].filter((one) => one !== name) : [...ticked, name]));
  return (
    <section class="card" aria-label={t("wantedTitle")}>
      <h3><Icon name="key" />{t("wantedTitle")}</h3>
      <p>{items.length > 0 ? t("wantedNote") : t("wantedNone", { names: wanted.map(memoryLabel).join(", ") })}</p>
      {items.map((item) => (
        <label key={item.name} class="tick">
          <input type="checkbox" checked={ticked.has(item.name)} onChange={() => toggle(item.name)} />
          <span><b>{memoryLabel(item.name)}</b><small dir="auto">{readable(item.text)}</small></span>
        </label>
      ))}
      {asked && chosen.length > 0 ? (
        <div class="row"><button type="button" class="button go" onClick={() => void wholeBody(asked).then((body) => askInstead(asked.id, body, { ...optionsFor(shown.chat.id), given: chosen }))}>{t("wantedGive", { n: chosen.length })}</button></div>
      ) : null}
    </section>
  );
}
