// What the server saw for one answer, in one honest paragraph, with the switch right there.
//
// It says what this device knows: what it sent itself. An answer that another device heard, or that was heard before the page was loaded
// again, says only what is always true.
import { Fragment } from "preact";
import type { MessageLine } from "../../client/core";
import { t } from "../i18n";
import { page } from "../state/chat";
import { neverCached, setNeverCached } from "../state/options";

export function Saw({ message }: { message: MessageLine }) {
  const heard = message.heard;
  const chat = page.value?.chat;
  const asked = page.value?.messages.find((one) => one.id === message.parent);
  const shared = asked?.shared ?? [];
  if (heard === undefined) {
    return (
      <aside class="saw">
        <b>{t("sawTitle")}</b> {t("sawUnknown")} {shared.length > 0 ? t("sawShared", { n: shared.length, kinds: kinds(shared) }) : null} {t("sawAlways")}
      </aside>
    );
  }
  const isNever = chat !== undefined && neverCached.value.has(chat.id);
  return (
    <aside class="saw">
      <b>{t("sawTitle")}</b> {t("sawQuestion")} {heard.historySent > 0 ? t("sawHistory", { n: heard.historySent }) : t("sawHadHistory")}{" "}
      {shared.length > 0 ? <Fragment>{t("sawShared", { n: shared.length, kinds: kinds(shared) })} </Fragment> : null}
      {heard.tools.length > 0 ? <Fragment>{t("sawTools", { tools: heard.tools.join(", ") })} </Fragment> : null}
      {heard.kept ? t("sawKept") : t("sawNotKept")}{" "}
      {chat && !chat.isTemporary ? <button type="button" class="text" onClick={() => setNeverCached(chat.id, !isNever)}>{t(isNever ? "sawSwitchOn" : "sawSwitchOff")}</button> : null}{" "}
      {t("sawAlways")}
    </aside>
  );
}

function kinds(shared: MessageLine["shared"]): string {
  return [...new Set(shared.map((one) => t(`given.${one.what}`)))].join(", ");
}
