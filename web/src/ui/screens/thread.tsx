// The messages of a chat, the newest at the foot. It follows the words only while the person is at the foot; otherwise nothing moves, and a
// button leads there.
//
// A long chat draws its last messages first, and earlier ones when they come near. Easy to get wrong: the place of what is being read
// when earlier messages are put before it. The browser anchors the scroll; where it does not, the height that was added is added.
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { ChatPage, MessageLine } from "../../client/core";
import { t } from "../i18n";
import { Icon } from "../icons";
import { isPageLoading, page, pageError, showBranch, turns } from "../state/chat";
import { jumpTo, ledTo, type Shown, wayTo } from "../state/jump";
import { After, Spinner } from "../parts/basics";
import { FollowUps, Wanted } from "./after";
import { Message } from "./message";
import { CannotOpen } from "./refused";
import { Turn } from "./turn";

const FIRST = 30;
const MORE = 12;

/** The open chat. */
export function Thread() {
  const shown = page.value;
  if (pageError.value !== null) return <div class="scroll"><div class="thread"><CannotOpen name={pageError.value} /></div></div>;
  if (shown === null) return <div class="scroll"><After>{isPageLoading.value ? <p class="loading"><Spinner />{t("opening")}</p> : null}</After></div>;
  return <Messages key={shown.chat.id} shown={shown} />;
}

function Messages({ shown }: { shown: ChatPage }) {
  const [limit, setLimit] = useState(FIRST);
  const [isWhole, setWhole] = useState(false);
  const scroll = useRef<HTMLDivElement>(null);
  const { isAtFoot, toFoot } = useFoot(scroll);
  const summary = shown.messages.findLastIndex((message) => message.role === "summary");
  const isCompressed = summary > 0 && !isWhole;
  const messages = isCompressed ? shown.messages.slice(summary) : shown.messages;
  const first = Math.max(0, messages.length - limit);
  useJump({ chat: shown.chat.id, messages: shown.messages, from: isCompressed ? summary : 0, limit }, setLimit, () => setWhole(true));
  useEarlier(scroll, first > 0, () => setLimit(limit + MORE));
  return (
    <div class="scroll" ref={scroll} tabIndex={-1}>
      <div class="thread" role="log" aria-label={t("conversation")}>
        {first > 0 ? <button type="button" class="text earlier" onClick={() => setLimit(limit + MORE)}>{t("earlier", { n: first })}</button> : null}
        {isCompressed ? <Compressed n={summary} onShow={() => setWhole(true)} /> : null}
        {isWhole && summary > 0 ? <p class="divider">{t("notUsedAnyMore")}</p> : null}
        {messages.slice(first).map((message) => (
          <Message key={message.id} message={message} />
        ))}
        <Live messages={shown.messages} />
        <Wanted />
        <FollowUps />
      </div>
      {isAtFoot ? null : <button type="button" class="to-foot" onClick={() => toFoot("smooth")} aria-label={t("toNewest")} title={t("toNewest")}><Icon name="down" /></button>}
    </div>
  );
}

/** Answers that are coming on the branch that is shown. */
function Live({ messages }: { messages: MessageLine[] }) {
  const onBranch = new Set(messages.map((message) => message.id));
  return <>{turns.value.filter((turn) => onBranch.has(turn.message)).map((turn) => <Turn key={turn.turn} turn={turn} />)}</>;
}

/** Everything before a summary: the model reads the summary, not the words before it. */
function Compressed({ n, onShow }: { n: number; onShow: () => void }) {
  return (
    <div class="card compressed">
      <h3><Icon name="branch" />{t("compressedTitle", { n })}</h3>
      <p>{t("compressedNote")}</p>
      <div class="row"><button type="button" class="button" onClick={onShow}>{t("showConversation")}</button></div>
    </div>
  );
}

/** Stays at the foot while the person is there, and only then. */
function useFoot(scroll: { current: HTMLDivElement | null }) {
  const [isAtFoot, setAtFoot] = useState(true);
  const follows = useRef(true);
  const toFoot = (behavior: ScrollBehavior) => {
    const element = scroll.current;
    follows.current = true;
    const isCalm = matchMedia("(prefers-reduced-motion: reduce)").matches;
    element?.scrollTo({ top: element.scrollHeight, behavior: isCalm ? "auto" : behavior });
  };
  useLayoutEffect(() => toFoot("auto"), []);
  useEffect(() => {
    const element = scroll.current;
    const inner = element?.firstElementChild;
    if (!element || !inner) return;
    let lastTop = element.scrollTop;
    const look = () => {
      const isThere = element.scrollHeight - element.scrollTop - element.clientHeight < 48;
      // Scrolling up is the person's doing; growing is not.
      if (isThere) follows.current = true;
      else if (element.scrollTop < lastTop - 2) follows.current = false;
      lastTop = element.scrollTop;
      setAtFoot(isThere || follows.current);
    };
    const grown = new ResizeObserver(() => {
      if (follows.current) element.scrollTop = element.scrollHeight;
      look();
    });
    grown.observe(inner);
    grown.observe(element);
    element.addEventListener("scroll", look, { passive: true });
    return () => {
      grown.disconnect();
      element.removeEventListener("scroll", look);
    };
  }, []);
  return { isAtFoot, toFoot };
}

/** Shows the message that was searched for, wherever it is in the chat. */
function useJump(shown: Shown, draw: (last: number) => void, unfold: () => void): void {
  const jump = jumpTo.value;
  useEffect(() => {
    const way = wayTo(jump, shown);
    if (jump === null || way.is === "wait") return;
    if (way.is === "unfold") return unfold();
    if (way.is === "draw") return draw(way.last);
    jumpTo.value = null;
    if (way.is === "branch") {
      // Its messages are here once this is done; until then nobody looks for it.
      void showBranch(jump.message).then((isDone) => {
        if (isDone && page.peek()?.chat.id === jump.chat) jumpTo.value = { ...jump, isBranchAsked: true };
      });
    }
    if (way.is === "there") {
      ledTo.value = jump.message;
      lookAt(jump.message);
    }
  }, [jump, shown.messages, shown.from, shown.limit]);
}

function lookAt(message: string): void {
  const element = document.getElementById(message);
  // What a tool said is folded.
  if (element instanceof HTMLDetailsElement) element.open = true;
  element?.scrollIntoView({ block: "center" });
  element?.classList.add("found");
  setTimeout(() => element?.classList.remove("found"), 2_500);
}

/** Draws earlier messages before the person reaches them. */
function useEarlier(scroll: { current: HTMLDivElement | null }, hasEarlier: boolean, more: () => void): void {
  useEffect(() => {
    const element = scroll.current;
    if (!element || !hasEarlier) return;
    const look = () => {
      if (element.scrollTop < 800) {
        const below = element.scrollHeight - element.scrollTop;
        more();
        requestAnimationFrame(() => {
          // Without scroll anchoring, what was read would have moved down by what was put before it.
          if (element.scrollTop < 800) element.scrollTop = element.scrollHeight - below;
        });
      }
    };
    element.addEventListener("scroll", look, { passive: true });
    return () => element.removeEventListener("scroll", look);
  }, [hasEarlier, more]);
}
