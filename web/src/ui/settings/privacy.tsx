// What may be in a question. A switch that is off is in the request itself (`off`), on every device of the account.
import { useState } from "preact/hooks";
import { t } from "../i18n";
import { Field, IconButton, Switch } from "../parts/basics";
import { Form } from "../screens/door";
import { seenTools } from "../state/chat";
import { core } from "../state/core";
import { attempt } from "../state/notes";
import { switchedOff } from "../state/options";

const SWITCHES = ["cache", "settings", "similar", "search", "tools", "concepts", "focus", "suggestions"] as const;
/** What a switch is called in a request, where that is not its own name: a tool's. */
const NAMES: Partial<Record<(typeof SWITCHES)[number], string>> = { concepts: "memory.concepts" };
const nameOf = (name: (typeof SWITCHES)[number]): string => NAMES[name] ?? name;

async function set(name: string, isOn: boolean): Promise<void> {
  await attempt(async () => {
    await core().setSwitch(name, isOn);
    switchedOff.value = await core().switchedOff();
  });
}

export function Privacy() {
  return (
    <>
      <section>
        <h2>{t("settings.privacy")}</h2>
        <p>{t("privacyNote")}</p>
        {SWITCHES.map((name) => (
          <Switch key={name} label={t(`switch.${name}`)} hint={t(`switchNote.${name}`)} isOn={!switchedOff.value.includes(nameOf(name))} onChange={(isOn) => void set(nameOf(name), isOn)} />
        ))}
      </section>
      <Tools />
    </>
  );
}

/** Tools by name: those that answers used since the page was loaded, and those that are off. */
function Tools() {
  const [name, setName] = useState("");
  const known = new Set<string>(SWITCHES.map(nameOf));
  const off = switchedOff.value.filter((one) => !known.has(one));
  const tools = [...new Set([...off, ...seenTools.value])].sort();
  const add = () => {
    void set(name.trim(), false);
    setName("");
  };
  return (
    <section>
      <h2>{t("toolsTitle")}</h2>
      <p>{t("toolsNote")}</p>
      {tools.map((tool) => (
        <div key={tool} class="tool-row">
          <Switch label={tool} isOn={!off.includes(tool)} onChange={(isOn) => void set(tool, isOn)} />
          {off.includes(tool) && !seenTools.value.includes(tool) ? <IconButton icon="close" label={t("toolForget", { name: tool })} onClick={() => void set(tool, true)} /> : null}
        </div>
      ))}
      <Form onSubmit={add}>
        <Field label={t("toolName")} hint={t("toolNameNote")} value={name} onInput={setName} isMono />
        <div class="row end"><button type="submit" class="button" disabled={name.trim() === "" || known.has(name.trim())}>{t("toolSwitchOff")}</button></div>
      </Form>
    </section>
  );
}
