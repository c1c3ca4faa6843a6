// The server's focus modes and tools, with a switch each. What is off is named in every question, so that the server leaves it out, and a
// focus mode that is off is in no question otherwise.
import { useEffect, useState } from "preact/hooks";
import type { Offer } from "../../client/core";
import { FOCUS_MODE, offBy } from "../../client/switches";
import { t } from "../i18n";
import { Icon } from "../icons";
import { readable } from "../markdown/links";
import { After, Field, IconButton, Spinner, Switch } from "../parts/basics";
import { Form } from "../screens/door";
import { seenTools } from "../state/chat";
import { problemText } from "../state/notes";
import { loadOffers, offers, offersProblem } from "../state/offers";
import { isOff, switchedOff } from "../state/options";

/** `own`: names that have a switch elsewhere. */
export function Offers({ own, set }: { own: ReadonlySet<string>; set: (name: string, isOn: boolean) => void }) {
  useEffect(() => void loadOffers(), []);
  const { tools, focusModes } = offers.value ?? { tools: [], focusModes: [] };
  const listed = new Set([...tools.map(({ name }) => name), ...focusModes.map(({ name }) => FOCUS_MODE + name)]);
  // Switched off or used, but not in the server's list, as without a server.
  const others = [...new Set([...switchedOff.value, ...seenTools.value])].filter((name) => !own.has(name) && !listed.has(name)).sort();
  const isFocus = (name: string) => name.startsWith(FOCUS_MODE);
  const unlisted = (name: string): Offer => ({ name: isFocus(name) ? name.slice(FOCUS_MODE.length) : name, title: null, about: "" });
  const rows = (list: readonly Offer[], prefix: string, all: string, areListed: boolean) =>
    list.map((offer) => <Row key={prefix + offer.name} offer={offer} name={prefix + offer.name} isAllOff={isOff(all)} isListed={areListed} set={set} />);
  return (
    <>
      <section>
        <h2>{t("focusTitle")}</h2>
        <p>{t("focusNote")}</p>
        <Loading />
        {offers.value !== null && focusModes.length === 0 ? <p class="small">{t("focusNone")}</p> : null}
        {rows(focusModes, FOCUS_MODE, "focus", true)}
        {rows(others.filter(isFocus).map(unlisted), FOCUS_MODE, "focus", false)}
      </section>
      <section>
        <h2>{t("toolsTitle")}</h2>
        <p>{t("toolsNote")}</p>
        <Loading />
        {offers.value !== null && tools.length === 0 ? <p class="small">{t("toolsNone")}</p> : null}
        {rows(tools, "", "tools", true)}
        {rows(others.filter((name) => !isFocus(name)).map(unlisted), "", "tools", false)}
        {offers.value?.isWhole === false ? <p class="small">{t("toolsMore")}</p> : null}
        <Add own={own} set={set} />
      </section>
    </>
  );
}

function Row({ offer, name, isAllOff, isListed, set }: { offer: Offer; name: string; isAllOff: boolean; isListed: boolean; set: (name: string, isOn: boolean) => void }) {
  const by = offBy(switchedOff.value, name);
  const isOther = by !== null && by !== name;
  const title = readable(offer.title ?? offer.name);
  const hint = [offer.title === null ? "" : readable(offer.name), readable(offer.about), isAllOff ? t("offAll") : isOther ? t("offBy", { name: by }) : ""].filter((one) => one !== "").join(" · ");
  return (
    <div class="tool-row">
      <Switch label={title} {...(hint === "" ? {} : { hint })} isOn={by === null && !isAllOff} disabled={isAllOff || isOther} onChange={(isOn) => set(name, isOn)} />
      {!isListed && by === name ? <IconButton icon="close" label={t("toolForget", { name: offer.name })} onClick={() => set(name, true)} /> : null}
    </div>
  );
}

/** That the list is on its way, or why there is none. */
function Loading() {
  const problem = offersProblem.value;
  if (problem !== null) {
    return (
      <div class="row">
        <small class="grow"><Icon name="wait" size={13} /> {t("offersMissing")} {problemText(problem)}</small>
        <button type="button" class="button small" onClick={() => void loadOffers()}>{t("tryAgain")}</button>
      </div>
    );
  }
  return offers.value === null ? <After><p class="state"><Spinner />{t("loading")}</p></After> : null;
}

/** Something that is not in the list, by its name. */
function Add({ own, set }: { own: ReadonlySet<string>; set: (name: string, isOn: boolean) => void }) {
  const [text, setText] = useState("");
  const name = text.trim();
  const add = () => {
    set(name, false);
    setText("");
  };
  return (
    <Form onSubmit={add}>
      <Field label={t("toolName")} hint={t("toolNameNote")} value={text} onInput={setText} isMono />
      <div class="row end"><button type="submit" class="button" disabled={name === "" || own.has(name)}>{t("toolSwitchOff")}</button></div>
    </Form>
  );
}
