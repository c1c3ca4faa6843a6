// What the server asks this device for in the middle of an answer. What would go is shown before it goes; each piece can be left out, and
// without a word nothing goes: the answer goes on without it after a few seconds.
import { useEffect, useState } from "preact/hooks";
import type { WishLine } from "../../client/core";
import { t } from "../i18n";
import { Icon } from "../icons";
import { connection } from "../state/account";
import { answerWish, type LiveTurn } from "../state/chat";
import { memoryLabel } from "../message/names";

/** How long a server waits, unless its operator chose otherwise. */
const WAIT_MS = 10_000;

export function Wish({ turn, wish }: { turn: LiveTurn; wish: WishLine }) {
  const [left, setLeft] = useState<ReadonlySet<number>>(new Set());
  const [isAlways, setAlways] = useState(false);
  const [isBusy, setBusy] = useState(false);
  const chosen = wish.pieces.map((_, at) => at).filter((at) => !left.has(at));
  const answer = async (pieces: number[]) => {
    setBusy(true);
    await answerWish(turn, wish, pieces, isAlways && pieces.length > 0);
    setBusy(false);
  };
  const toggle = (at: number) => setLeft(new Set(left.has(at) ? [...left].filter((one) => one !== at) : [...left, at]));
  const isThere = connection.value.state === "online" || connection.value.state === "syncing";
  const about = wish.query ?? wish.names.map((name) => (wish.what === "settings" ? memoryLabel(name) : name)).join(", ");
  return (
    <section class="card ask wish" aria-label={t(`wish.${wish.what}`)}>
      <h3><Icon name="key" />{t(`wish.${wish.what}`)}</h3>
      <p dir="auto">{t(`wishAbout.${wish.what}`, { about })}</p>
      {wish.pieces.length === 0 ? <p class="small">{t("wishNothing")}</p> : <p class="small">{t("wishNote")}</p>}
      {wish.pieces.map((piece, at) => (
        <label key={at} class="tick">
          <input type="checkbox" checked={!left.has(at)} disabled={isBusy} onChange={() => toggle(at)} />
          <span><b dir="auto">{wish.what === "settings" ? memoryLabel(piece.name) : piece.name}</b><small dir="auto">{piece.text}</small></span>
        </label>
      ))}
      {wish.pieces.length > 0 ? (
        <label class="tick">
          <input type="checkbox" checked={isAlways} disabled={isBusy} onChange={() => setAlways(!isAlways)} />
          <span>{t(`shareChat.${wish.what}`)}</span>
        </label>
      ) : null}
      <div class="row">
        {wish.pieces.length > 0 ? <button type="button" class="button go" disabled={isBusy || !isThere || chosen.length === 0} onClick={() => void answer(chosen)}>{t("wishGive", { n: chosen.length })}</button> : null}
        <button type="button" class="button" disabled={isBusy || !isThere} onClick={() => void answer([])}>{t(wish.pieces.length > 0 ? "wishDeny" : "wishSayNone")}</button>
        <TimeLeft since={wish.at} />
      </div>
    </section>
  );
}

/** How long the answer still waits, as far as that is known here. */
function TimeLeft({ since }: { since: number }) {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 500);
    return () => clearInterval(timer);
  }, []);
  const seconds = Math.ceil((since + WAIT_MS - now) / 1000);
  return <small role="timer" aria-live="off">{seconds > 0 ? t("wishLeft", { n: seconds }) : t("wishSoon")}</small>;
}
