// An answer that is coming: what is being done, the words as they come, a tool that asks, or why there is none.
import { useEffect, useState } from "preact/hooks";
import type { Approval } from "../../client/core";
import { exactly, t } from "../i18n";
import { Icon } from "../icons";
import { readable, spelled } from "../markdown/links";
import { GrowingBody } from "../message/body";
import { stepText, whyText } from "../message/steps";
import { After, Spinner } from "../parts/basics";
import { lazy } from "../parts/lazy";
import { account, connection } from "../state/account";
import { decide, giveUp, hearAgain, page, retry, stop, type LiveTurn } from "../state/chat";
import { problemText } from "../state/notes";
import { optionsFor } from "../state/options";
import { Ending } from "./ending";

const Wish = lazy(async () => (await import("./wish")).Wish);

/** An answer that is waited for. */
export function Turn({ turn }: { turn: LiveTurn }) {
  return (
    <article class="answer live" aria-label={t("answerComing")} aria-busy={turn.state.value === "running"}>
      <Steps turn={turn} />
      <GrowingBody id={turn.reply} words={turn.words} />
      {turn.approvals.value.map((approval) => (
        <Ask key={approval.id} turn={turn} approval={approval} />
      ))}
      {turn.wishes.value.map((wish) => (
        <Wish key={wish.what} turn={turn} wish={wish} />
      ))}
      <State turn={turn} />
      {turn.finish.value ? <Ending finish={turn.finish.value} words={turn.words.value} /> : null}
    </article>
  );
}

/** What was done before the words: tools and steps, folded into a line. */
function Steps({ turn }: { turn: LiveTurn }) {
  const steps = turn.steps.value;
  const sent = turn.historySent.value;
  if (steps.length === 0 && sent === 0) return null;
  return (
    <ul class="steps" aria-live="polite">
      {sent > 0 ? <li><Icon name="upload" size={13} />{t("historySent", { n: sent })}</li> : null}
      {steps.slice(-3).map((step, index) => (
        <li key={index}><Icon name="tool" size={13} />{readable(step)}</li>
      ))}
    </ul>
  );
}

function State({ turn }: { turn: LiveTurn }) {
  const state = turn.state.value;
  if (state === "unanswered") return <Unanswered turn={turn} />;
  if (state === "heard") return <p class="state"><Icon name="seal" size={13} />{t("sealing")}</p>;
  if (state === "unsent") {
    const isOnline = connection.value.state === "online";
    return isOnline ? <After><p class="state"><Spinner />{t("sending")}</p></After> : <p class="state warn"><Icon name="wait" size={13} />{t("askWaits")}</p>;
  }
  if (state === "unknown") return <p class="state"><Icon name="wait" size={13} />{t("askUnknown")}</p>;
  if (turn.ahead.value > 0) return <p class="state"><Icon name="wait" size={13} />{t("askAhead", { n: turn.ahead.value })}</p>;
  const isWaitingForPerson = turn.approvals.value.length > 0 || turn.wishes.value.length > 0;
  return (
    <p class="state">
      {turn.words.value === "" && !isWaitingForPerson ? <span class="thinking"><Spinner />{turn.progress.value === null ? t("thinking") : readable(stepText(turn.progress.value))}</span> : null}
      <button type="button" class="button small" disabled={turn.isStopping.value} onClick={() => void stop(turn)}>
        <Icon name="stop" size={12} />
        {t(turn.isStopping.value ? "stopping" : "stop")}
      </button>
    </p>
  );
}

function Unanswered({ turn }: { turn: LiveTurn }) {
  return (
    <div class="card" role="alert">
      <h3><Icon name="warn" />{t("noAnswer")}</h3>
      <p>{problemText(turn.error.value ?? "not-found")}</p>
      <div class="row">
        <button type="button" class="button go" onClick={() => void retry(turn.message, optionsFor(page.value?.chat.id ?? null))}><Icon name="retry" />{t("askAgain")}</button>
        <button type="button" class="button" onClick={() => void giveUp(turn.turn)}>{t("giveUp")}</button>
      </div>
    </div>
  );
}

/** A tool may only work if the person allows it: the exact call, and nothing that could look like another one. */
function Ask({ turn, approval }: { turn: LiveTurn; approval: Approval }) {
  const [isBusy, setBusy] = useState(false);
  const left = useLeft(approval.expiresAt);
  const isOver = left <= 0;
  const isThere = connection.value.state === "online" || connection.value.state === "syncing";
  // The server closes what ran out, and says so in an answer.
  useEffect(() => {
    if (isOver) void hearAgain(turn);
  }, [isOver]);
  const answer = async (allow: boolean) => {
    setBusy(true);
    await decide(turn, approval, allow);
    setBusy(false);
  };
  return (
    <section class="card ask" aria-label={t("allowTitle")}>
      <h3><Icon name={isOver ? "wait" : "tool"} />{t(isOver ? "allowOver" : "allowTitle")}</h3>
      {whyText(approval) ? <p dir="auto">{readable(whyText(approval))}</p> : null}
      <pre class="call" tabIndex={0} dir="ltr"><b>{exactCall(approval.tool)}</b>{"\n"}{exactCall(approval.input)}</pre>
      {isOver ? (
        <div class="row" role="status">
          <small>{t("allowOverNote")}</small>
          <button type="button" class="button" onClick={() => void hearAgain(turn, true)}>{t("allowWhat")}</button>
        </div>
      ) : (
        <div class="row">
          <button type="button" class="button go" disabled={isBusy || !isThere} onClick={() => void answer(true)}>{t("allowOnce")}</button>
          <button type="button" class="button" disabled={isBusy || !isThere} onClick={() => void answer(false)}>{t("deny")}</button>
          <small>{t("allowNote", { login: loginName() })} {left < SOON ? t("allowSoon", { n: Math.ceil(left / 60_000) }) : t("allowUntil", { when: exactly(approval.expiresAt) })}</small>
        </div>
      )}
    </section>
  );
}

/** Whose account it is, as far as this browser knows. */
function loginName(): string {
  const now = account.value;
  return (now?.state === "open" ? now.login : null) ?? t("allowNobody");
}

/** How many milliseconds are left until then; it draws again when a minute has passed, and when they are over. */
function useLeft(until: number): number {
  const [now, setNow] = useState(Date.now());
  const left = until - now;
  useEffect(() => {
    if (left <= 0) return;
    const timer = setTimeout(() => setNow(Date.now()), Math.min(left, left % 60_000 || 60_000, LONGEST));
    return () => clearTimeout(timer);
  }, [until, now]);
  return left;
}

/** From here on minutes are counted. */
const SOON = 3_600_000;
/** A pause that browsers can count. */
const LONGEST = 3_600_000;

/** The call as it will be made: never shortened. Indented only where that changes nothing but spaces; what does not print is spelled out. */
export function exactCall(input: string): string {
  let text = input;
  try {
    const value: unknown = JSON.parse(input);
    // Keys that stand twice, and odd numbers, would vanish: then it is shown as it came.
    if (JSON.stringify(value) === input) text = JSON.stringify(value, null, 2);
  } catch {
    text = input;
  }
  return spelled(text, (hex) => (hex.length > 4 ? `\\u{${hex}}` : `\\u${hex}`));
}
