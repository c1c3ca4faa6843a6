// A recovery code, shown once. It goes away only when the person says that it is kept, and it is nowhere else.
import { useState } from "preact/hooks";
import { t } from "../i18n";
import { Icon } from "../icons";
import { CopyButton } from "../parts/basics";
import { freshCode } from "../state/account";
import { serverOrigin } from "../state/core";
import { Frame } from "./door";
import { download } from "./download";

export function RecoveryCode({ code }: { code: string }) {
  const [isKept, setKept] = useState(false);
  return (
    <Frame title={t("codeTitle")}>
      <p>{t("codeNote")}</p>
      <p class="code-shown" dir="ltr" aria-label={t("recoveryCode")}>{code}</p>
      <div class="row">
        <CopyButton text={() => code} label={t("copy")} />
        <button type="button" class="quiet" onClick={() => download("recovery-code.txt", `${t("codeFile")}\n\n${serverOrigin()}\n${code}\n`, "text/plain")}><Icon name="download" />{t("save")}</button>
        <button type="button" class="quiet" onClick={() => print()}><Icon name="copy" />{t("print")}</button>
      </div>
      <label class="tick"><input type="checkbox" checked={isKept} onChange={() => setKept(!isKept)} /><span>{t("codeKept")}</span></label>
      <button type="button" class="button go wide" disabled={!isKept} onClick={() => { freshCode.value = null; }}>{t("goOn")}</button>
    </Frame>
  );
}
