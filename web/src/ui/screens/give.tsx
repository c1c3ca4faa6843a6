// What the person gives with the next question: memories of this account, and past chats that are like it; and what this chat gives by
// itself when the server asks for it. Everything is looked up on this device; nothing of it leaves before it is ticked here and the question
// is sent. Three at most, 4 KiB together.
import type { TargetedEvent } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { ChatLine, GivenKind } from "../../client/core";
import { t } from "../i18n";
import { IconButton, Switch } from "../parts/basics";
import { isFocusOff } from "../../client/switches";
import { readable } from "../markdown/links";
import { memoryLabel } from "../message/names";
import { page } from "../state/chat";
import { core } from "../state/core";
import { draft } from "../state/draft";
import { attempt, say } from "../state/notes";
import { loadOffers, offers, offersProblem } from "../state/offers";
import { along, focus, given, givenBytes, givenFor, isOff, MAX_GIVEN, MAX_GIVEN_BYTES, memories, switchedOff, toggleGiven, type GivenItem } from "../state/options";

export function Give({ chat, onClose }: { chat: string | null; onClose: () => void }) {
  const [similar, setSimilar] = useState<GivenItem[]>([]);
  useEffect(() => {
    if (isOff("similar")) return;
    void attempt(async () => {
      const found = await core().similar(chat, draft.peek());
      setSimilar(found.map(({ name, text }) => ({ what: "summary", name, text })));
    });
  }, [chat]);
  const items = memories.value.map((one): GivenItem => ({ what: "settings", name: one.name, text: one.body }));
  const line = page.value?.chat.id === chat ? page.value?.chat : undefined;
  return (
    <section class="give" aria-label={t("giveTitle")}>
      <header>
        <b>{t("giveTitle")}</b>
        <IconButton icon="close" label={t("close")} onClick={onClose} />
      </header>
      <p class="small">{t("giveNote", { n: MAX_GIVEN })}</p>
      {isOff("settings") ? <p class="small">{t("giveOff", { what: t("giveMemories") })}</p> : <Ticks chat={chat} title={t("giveMemories")} none={t("giveNoMemories")} items={items} />}
      {isOff("similar") ? <p class="small">{t("giveOff", { what: t("giveSimilar") })}</p> : <Ticks chat={chat} title={t("giveSimilar")} none={t("giveNoSimilar")} items={similar} />}
      {isOff("focus") ? null : <Focus />}
      <p class="small">{t("giveBytes", { n: givenBytes.value, max: MAX_GIVEN_BYTES })}</p>
      {line && !line.isTemporary ? <Shares line={line} /> : null}
    </section>
  );
}

function Ticks({ chat, title, none, items }: { chat: string | null; title: string; none: string; items: GivenItem[] }) {
  const goes = givenFor(chat);
  return (
    <fieldset>
      <legend>{title}</legend>
      {items.length === 0 ? <p class="small">{none}</p> : null}
      {items.map((item) => {
        const isAlong = item.what === "settings" && along.value.includes(item.name);
        const isTicked = given.value.some((one) => one.what === item.what && one.name === item.name);
        return (
          <label key={`${item.what}:${item.name}`} class="tick">
            <input
              type="checkbox"
              checked={isTicked || goes.some((one) => one.what === item.what && one.name === item.name)}
              disabled={isAlong}
              onChange={() => {
                if (!toggleGiven(item)) say(t("giveTooMuch"));
              }}
            />
            <span><b dir="auto">{item.what === "settings" ? memoryLabel(item.name) : item.name}</b><small dir="auto">{isAlong ? `${t("goesAlong")} ` : null}{item.text}</small></span>
          </label>
        );
      })}
    </fieldset>
  );
}

/** The focus mode of the next questions: one of the server's, or where they are not known, one by its name. */
function Focus() {
  useEffect(() => void loadOffers(), []);
  const modes = (offers.value?.focusModes ?? []).filter(({ name }) => !isFocusOff(switchedOff.value, name));
  const chosen = focus.value;
  const choose = (text: string) => {
    const name = text.trim();
    focus.value = name === "" ? null : name;
  };
  if (offers.value === null && offersProblem.value === null) return null;
  if (offers.value?.isWhole === true && modes.length === 0 && chosen === null) return null;
  if (modes.length === 0) {
    return (
      <label class="focus">
        {t("focusLabel")}
        <input value={chosen ?? ""} maxLength={64} dir="ltr" placeholder={t("focusHint")} onChange={(event: TargetedEvent<HTMLInputElement>) => choose(event.currentTarget.value)} />
      </label>
    );
  }
  return (
    <label class="focus">
      {t("focusLabel")}
      <select value={chosen ?? ""} onChange={(event: TargetedEvent<HTMLSelectElement>) => choose(event.currentTarget.value)}>
        <option value="">{t("focusNothing")}</option>
        {chosen !== null && !modes.some(({ name }) => name === chosen) ? <option value={chosen}>{readable(chosen)}</option> : null}
        {modes.map(({ name, title }) => <option key={name} value={name}>{readable(title ?? name)}</option>)}
      </select>
      {modes.find(({ name }) => name === chosen)?.about ? <small dir="auto">{readable(modes.find(({ name }) => name === chosen)?.about ?? "")}</small> : null}
    </label>
  );
}

/** What this chat gives without asking each time, on all devices. Nothing at first. */
function Shares({ line }: { line: ChatLine }) {
  const kinds: GivenKind[] = ["settings", "summary", "search"];
  return (
    <fieldset>
      <legend>{t("shareTitle")}</legend>
      <p class="small">{t("shareNote")}</p>
      {kinds.map((kind) => (
        <Switch key={kind} label={t(`given.${kind}`)} isOn={line.shares.includes(kind)} disabled={isOff(kind === "summary" ? "similar" : kind)} onChange={(isOn) => void attempt(() => core().share(line.id, kind, isOn))} />
      ))}
    </fieldset>
  );
}
