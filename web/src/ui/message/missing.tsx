// A message whose words went to make room: a place for each of its parts, with the first words where the browser still has them. A click
// loads the words, from the server if need be.
import type { MessageLine, MissingPart } from "../../client/core";
import { t } from "../i18n";
import { Icon } from "../icons";
import { readable } from "../markdown/links";
import { loadWords, previews } from "../state/chat";

export function MissingBody({ message, parts }: { message: MessageLine; parts: MissingPart[] }) {
  return (
    <div class="words away">
      {parts.map((part, index) => <Part key={index} part={part} message={message} />)}
    </div>
  );
}

function Part({ part, message }: { part: MissingPart; message: MessageLine }) {
  const first = previews.value.get(part.cid);
  const label = part.words === 0 ? t("contentLoadAll") : t("contentLoad", { n: part.lines });
  return (
    <div class="part">
      {first === undefined ? null : <p class={part.type === "code" || part.type === "table" ? "raw mono" : "raw"} dir="auto">{readable(first)}…</p>}
      <button type="button" class="embed missing" onClick={() => void loadWords(message.id)}>
        <Icon name="download" />
        {part.type === "text" ? label : `${kindOf(part)} · ${label}`}
      </button>
    </div>
  );
}

function kindOf(part: MissingPart): string {
  if (part.type === "code") return part.lang ? part.lang : t("code");
  if (part.type === "table") return t("table");
  return part.type === "link" ? t("link") : t("longText", { n: part.words });
}
