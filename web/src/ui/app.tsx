// The page: which screen it is, by the state of the account.
//
//   a browser that cannot seal here ─▶ why not
//   none ─▶ the door      locked ─▶ unlock      elsewhere ─▶ another tab has it      open ─▶ a new recovery code, or a password after pairing ─▶ chats
import { useEffect } from "preact/hooks";
import { t } from "./i18n";
import { After, Spinner } from "./parts/basics";
import { lazy } from "./parts/lazy";
import { Notes } from "./parts/notes";
import { account, freshCode, startProblem } from "./state/account";
import { lack, type Lack } from "./state/browser";
import { core } from "./state/core";
import { problemText } from "./state/notes";
import { renew } from "./state/offline";
import { RecoveryCode } from "./screens/code";
import { Door, Elsewhere, Frame, Unlock } from "./screens/door";

/** Chats are a part of their own, so that the door opens at once, and so is the device in the worker; both are loaded while the person types. */
const loadShell = async () => (await import("./screens/shell")).Shell;
const Shell = lazy(loadShell);
const Paired = lazy(async () => (await import("./screens/pairing")).Paired);

/** Loads what comes behind the door. What does not come is asked for again, and said, when it is needed. */
function loadNext(): void {
  if (lack.peek() !== null) return;
  void loadShell().catch(() => undefined);
  void core().warm().catch(() => undefined);
}

export function App() {
  useEffect(() => {
    for (const sign of ["keydown", "pointerdown", "input"]) addEventListener(sign, loadNext, { once: true, passive: true });
  }, []);
  return (
    <>
      <Screen />
      <Notes />
    </>
  );
}

function Screen() {
  const who = account.value;
  if (lack.value !== null) return <Lacking lack={lack.value} />;
  if (startProblem.value !== null) return <NotStarted name={startProblem.value} />;
  if (who === null) return <main class="door"><After><p class="loading"><Spinner />{t("loading")}</p></After></main>;
  if (freshCode.value !== null) return <RecoveryCode code={freshCode.value} />;
  if (who.state === "none") return <Door />;
  if (who.state === "elsewhere") return <Elsewhere />;
  if (who.state === "locked") return <Unlock login={who.login} />;
  // A device that was let in by another one: nothing here knows yet what opens its files the next time.
  if (who.login === null) return <Paired />;
  return <Shell />;
}

/** Nothing would work here, and a person should not type a password to find that out. */
function Lacking({ lack }: { lack: Lack }) {
  return <Frame title={t(lack === "secure" ? "needsTls" : "needsKeys")}><p>{t(lack === "secure" ? "needsTlsWhy" : "needsKeysWhy")}</p></Frame>;
}

function NotStarted({ name }: { name: string }) {
  return (
    <Frame title={t("notStarted")}>
      <p class="problem" role="alert">{problemText(name)}</p>
      <button type="button" class="button go wide" onClick={() => void renew()}>{t("reload")}</button>
    </Frame>
  );
}
