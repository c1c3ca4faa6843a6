// How an answer ended, where that needs words: cut, stopped, declined, ended for safety, asked to forget. Help is named beside the last ones.
import type { Finish } from "../../client/core";
import { t } from "../i18n";
import { Icon } from "../icons";

export function Ending({ finish }: { finish: Finish }) {
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
      return (
        <>
          <p class="ending"><Icon name="warn" size={13} />{t("endDeclined")}</p>
          <Crisis />
        </>
      );
    case "ended":
      return (
        <>
          <p class="ending"><Icon name="lock" size={13} />{t("endEnded")}</p>
          <Crisis />
        </>
      );
  }
}

/** Where a person finds people. Shown by the page itself: it does not depend on what a model says. */
export function Crisis() {
  return (
    <aside class="card crisis" aria-label={t("crisisTitle")}>
      <h3><Icon name="heart" />{t("crisisTitle")}</h3>
      <p>{t("crisisText")}</p>
      <ul>
        <li>{t("crisisEmergency")}</li>
        <li>{t("crisisLine")}</li>
        <li><a class="link" href="https://findahelpline.com/" target="_blank" rel="noopener noreferrer">findahelpline.com</a></li>
      </ul>
    </aside>
  );
}
