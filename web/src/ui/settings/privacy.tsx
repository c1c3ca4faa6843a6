// What may be in a question. A switch that is off is in the request itself (`off`), on every device of the account.
import { t } from "../i18n";
import { Switch } from "../parts/basics";
import { core } from "../state/core";
import { attempt } from "../state/notes";
import { switchedOff } from "../state/options";
import { Offers } from "./offers";

const SWITCHES = ["cache", "settings", "similar", "search", "tools", "concepts", "focus", "suggestions"] as const;
/** What a switch is called in a request, where that is not its own name: a tool's. */
const NAMES: Partial<Record<(typeof SWITCHES)[number], string>> = { concepts: "memory.concepts" };
const OWN: ReadonlySet<string> = new Set(SWITCHES.map((name) => NAMES[name] ?? name));
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
      <Offers own={OWN} set={(name, isOn) => void set(name, isOn)} />
    </>
  );
}
