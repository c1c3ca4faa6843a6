// The page: which screen it is, by the state of the account.
//
//   none ─▶ the door      locked ─▶ unlock      open ─▶ a new recovery code, if there is one ─▶ chats
import { t } from "./i18n";
import { After, Spinner } from "./parts/basics";
import { Notes } from "./parts/notes";
import { account, freshCode } from "./state/account";
import { RecoveryCode } from "./screens/code";
import { Door, Unlock } from "./screens/door";
import { KeysDialog, useKeys } from "./screens/keys";
import { Shell } from "./screens/shell";

export function App() {
  useKeys();
  return (
    <>
      <Screen />
      <KeysDialog />
      <Notes />
    </>
  );
}

function Screen() {
  const who = account.value;
  if (who === null) return <main class="door"><After><p class="loading"><Spinner />{t("loading")}</p></After></main>;
  if (freshCode.value !== null) return <RecoveryCode code={freshCode.value} />;
  if (who.state === "none") return <Door />;
  if (who.state === "locked") return <Unlock login={who.login} />;
  return <Shell />;
}
