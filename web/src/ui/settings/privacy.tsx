// What may be in a question. A switch that is off is in the request itself (`off`), on every device of the account.
import { t } from "../i18n";
import { Switch } from "../parts/basics";
import { core } from "../state/core";
import { attempt } from "../state/notes";
import { switchedOff } from "../state/options";

const SWITCHES = ["cache", "settings", "similar", "search", "tools", "focus", "suggestions"] as const;

export function Privacy() {
  const set = (name: string, isOn: boolean) =>
    attempt(async () => {
      await core().setSwitch(name, isOn);
      switchedOff.value = await core().switchedOff();
    });
  return (
    <section>
      <h2>{t("settings.privacy")}</h2>
      <p>{t("privacyNote")}</p>
      {SWITCHES.map((name) => (
        <Switch key={name} label={t(`switch.${name}`)} hint={t(`switchNote.${name}`)} isOn={!switchedOff.value.includes(name)} onChange={(isOn) => void set(name, isOn)} />
      ))}
    </section>
  );
}
