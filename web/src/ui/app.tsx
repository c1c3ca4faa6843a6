// The page: which screen it is, by the state of the account.
//
//   none ─▶ the door      locked ─▶ unlock      elsewhere ─▶ another tab has it      open ─▶ a new recovery code, if there is one ─▶ chats
import { useEffect } from "preact/hooks";
import { t } from "./i18n";
import { After, Spinner } from "./parts/basics";
import { lazy } from "./parts/lazy";
import { Notes } from "./parts/notes";
import { account, freshCode } from "./state/account";
import { RecoveryCode } from "./screens/code";
import { Door, Elsewhere, Unlock } from "./screens/door";

/** Chats are a part of their own, so that the door opens at once; it is loaded while the person types. */
const loadShell = async () => (await import("./screens/shell")).Shell;
const Shell = lazy(loadShell);

export function App() {
  useEffect(() => {
    const timer = setTimeout(() => void loadShell().catch(() => undefined), 300);
    return () => clearTimeout(timer);
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
  if (who === null) return <main class="door"><After><p class="loading"><Spinner />{t("loading")}</p></After></main>;
  if (freshCode.value !== null) return <RecoveryCode code={freshCode.value} />;
  if (who.state === "none") return <Door />;
  if (who.state === "elsewhere") return <Elsewhere />;
  if (who.state === "locked") return <Unlock login={who.login} />;
  return <Shell />;
}
