// How an answer ended, where that needs words: cut, stopped, declined, ended for safety, asked to forget; and where help is, for somebody who may
// need it.
//
// Not every request that is declined is a cry for help. The server decides whom it is about, says so beside the answer, and names help in it; the
// page shows that as a card, also where the operator's own words name it. Easy to get wrong: an answer that is whole. It may end with help, too.
import type { Finish } from "../../client/core";
import { t } from "../i18n";
import { Icon } from "../icons";

/** `words` are those of the answer; `isHelp` is the server's word. An answer of which nobody knows how it ended is taken for whole. */
export function Ending({ finish = "whole", words, isHelp = false }: { finish?: Finish | undefined; words: string; isHelp?: boolean | undefined }) {
  return (
    <>
      <How finish={finish} />
      {isHelp || needsHelp(finish, words) ? <Crisis /> : null}
    </>
  );
}

function How({ finish }: { finish: Finish }) {
  switch (finish) {
    case "whole":
      return null;
    case "cut":
      return <p class="ending"><Icon name="warn" size={13} />{t("endCut")}</p>;
    case "cancelled":
      return <p class="ending"><Icon name="stop" size={13} />{t("endStopped")}</p>;
    case "asked_to_forget":
      return <p class="ending"><Icon name="trash" size={13} />{t("endForget")}</p>;
    case "declined":
      return <p class="ending"><Icon name="warn" size={13} />{t("endDeclined")}</p>;
    case "ended":
      return <p class="ending"><Icon name="lock" size={13} />{t("endEnded")}</p>;
  }
}

/**
 * Whether a card says where help is, by the words alone, as of answers from before the server said so: for a chat that was closed, and where the
 * server named help, in place of an answer or at its end.
 */
export function needsHelp(finish: Finish, words: string): boolean {
  if (finish === "ended") return true;
  if (finish === "declined") return words.includes(HELP);
  return words.slice(words.trimEnd().lastIndexOf("\n\n") + 1).includes(HELP);
}

/** Where a person finds people. */
function Crisis() {
  return (
    <aside class="card crisis" aria-label={t("crisisTitle")}>
      <h3><Icon name="heart" />{t("crisisTitle")}</h3>
      <p>{t("crisisText")}</p>
      <ul>
        <li>{t("crisisEmergency")}</li>
        <li>{t("crisisLine")}</li>
        <li><a class="link" href={`https://${HELP}/`} target="_blank" rel="noopener noreferrer">{HELP}</a></li>
      </ul>
    </aside>
  );
}

/** In the server's own words, in each of its languages. An operator's own words say themselves where help is. */
const HELP = "findahelpline.com";
