// A chat that does not exist yet: what it could begin with.
import { useEffect, useState } from "preact/hooks";
import { t } from "../i18n";
import { Wax } from "../icons";
import { Icon } from "../icons";
import { readable } from "../markdown/links";
import { type } from "../state/draft";
import { core } from "../state/core";
import { isTemporary, switchedOff } from "../state/options";

export function NewChat() {
  const [ideas, setIdeas] = useState<string[]>([]);
  useEffect(() => {
    if (!switchedOff.value.includes("suggestions")) core().suggestions().then(setIdeas, () => undefined);
  }, []);
  const begin = (text: string) => {
    type(text);
    document.getElementById("composer")?.focus();
  };
  return (
    <div class="scroll">
      <div class="welcome">
        {isTemporary.value ? <Icon name="ghost" size={36} /> : <Wax size={44} />}
        <h2>{t(isTemporary.value ? "temporaryTitle" : "welcomeTitle")}</h2>
        <p>{t(isTemporary.value ? "temporaryExplained" : "welcomeText")}</p>
        {ideas.length > 0 ? (
          <div class="next" role="group" aria-label={t("ideas")}>
            {ideas.slice(0, 4).map((text) => <button key={text} type="button" dir="auto" onClick={() => begin(text)}>{readable(text)}</button>)}
          </div>
        ) : null}
      </div>
    </div>
  );
}
