// What the server saw for one answer, in one honest paragraph, with the switch right there.
//
// It says what this device knows: what it sent itself, and what the sealed messages note. For an answer that another device received it says
// only that and what is always true.
import { Fragment } from "preact";
import type { AnswerNote, MessageLine, SentNote } from "../../client/core";
import { t } from "../i18n";
import { page } from "../state/chat";
import { core } from "../state/core";
import { attempt } from "../state/notes";

export function Saw({ message }: { message: MessageLine }) {
  const heard = message.heard;
  const asked = page.value?.messages.find((one) => one.id === message.parent);
  const withQuestion = asked?.shared ?? [];
  return (
    <aside class="saw">
      <b>{t("sawTitle")}</b>{" "}
      {heard === undefined ? t("sawUnknown") : <>{t("sawQuestion")} {historyOf(heard, asked)}</>}{" "}
      {withQuestion.length > 0 ? <Fragment>{t("sawShared", { n: withQuestion.length, kinds: kinds(withQuestion) })} </Fragment> : null}
      {message.shared.length > 0 ? <Fragment>{t("sawGave", { kinds: kinds(message.shared) })} </Fragment> : null}
      {heard && heard.tools.length > 0 ? <Fragment>{t("sawTools", { tools: heard.tools.join(", ") })} </Fragment> : null}
      {heard?.sent ? <Sent sent={heard.sent} /> : heard ? <Fragment>{t("sawNotAsked")} </Fragment> : null}
      {t("sawAlways")}
    </aside>
  );
}

/** What it had of the conversation before: nothing is said where this device does not know. */
function historyOf(heard: AnswerNote, asked: MessageLine | undefined): string | null {
  if (heard.historySent > 0) return t("sawHistory", { n: heard.historySent });
  return heard.sent && asked?.parent ? t("sawHadHistory") : null;
}

/** What went with the question besides: names, focus, switches. */
function Sent({ sent }: { sent: SentNote }) {
  const chat = page.value?.chat;
  return (
    <>
      {sent.names > 0 ? <Fragment>{t("sawNames", { n: sent.names })} </Fragment> : null}
      {sent.focus ? <Fragment>{t("sawFocus", { focus: sent.focus })} </Fragment> : null}
      {sent.asks.length > 0 ? <Fragment>{t("sawAsks", { kinds: sent.asks.map((one) => t(`given.${one}`)).join(", ") })} </Fragment> : null}
      {sent.off.length > 0 ? <Fragment>{t("sawOff", { names: sent.off.join(", ") })} </Fragment> : null}
      {t(sent.isKept ? "sawKept" : "sawNotKept")}{" "}
      {chat && !chat.isTemporary ? <button type="button" class="text" onClick={() => void attempt(() => core().setCached(chat.id, !chat.isCached))}>{t(chat.isCached ? "sawSwitchOff" : "sawSwitchOn")}</button> : null}{" "}
    </>
  );
}

/** Kinds, each with how much of it there was. */
function kinds(shared: MessageLine["shared"]): string {
  const sums = new Map<string, number>();
  for (const { what, bytes } of shared) sums.set(t(`given.${what}`), (sums.get(t(`given.${what}`)) ?? 0) + bytes);
  return [...sums].map(([kind, bytes]) => t("sawBytes", { kind, bytes })).join(", ");
}
