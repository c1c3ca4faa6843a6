// How the page looks and behaves, in this browser only.
import { LANGUAGES, t, type Language } from "../i18n";
import { Choice, Switch } from "../parts/basics";
import { chooseLanguage, chosenLanguage, enterSends, startsOffline, theme, type Theme } from "../state/prefs";
import { areKeysShown } from "../screens/keys";

export function General() {
  const themes: Theme[] = ["system", "light", "dark"];
  const languages: { value: Language | "browser"; label: string }[] = [{ value: "browser", label: t("languageBrowser") }, ...LANGUAGES.map(({ code, name }) => ({ value: code, label: name }))];
  return (
    <section>
      <h2>{t("settings.general")}</h2>
      <Choice label={t("theme")} value={theme.value} options={themes.map((value) => ({ value, label: t(`theme.${value}`) }))} onChange={(value) => { theme.value = value; }} />
      <Choice label={t("language")} value={chosenLanguage.value ?? "browser"} options={languages} onChange={(value) => void chooseLanguage(value === "browser" ? null : value)} />
      <Switch label={t("enterSends")} hint={t("enterSendsNote")} isOn={enterSends.value} onChange={(isOn) => { enterSends.value = isOn; }} />
      <Switch label={t("startsOffline")} hint={t("startsOfflineNote")} isOn={startsOffline.value} onChange={(isOn) => { startsOffline.value = isOn; }} />
      <div class="row"><button type="button" class="button" onClick={() => { areKeysShown.value = true; }}>{t("keysTitle")}</button></div>
    </section>
  );
}
