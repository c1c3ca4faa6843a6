// States of the whole page, one line each, the gravest first: an old page, refused data, an ended session, no network, a full disk.
import { useState } from "preact/hooks";
import { t, when } from "../i18n";
import { Icon, type IconName } from "../icons";
import type { ComponentChildren } from "preact";
import { account, connection, isQuotaFull, isStale } from "../state/account";
import { core } from "../state/core";
import { attempt, problemText } from "../state/notes";
import { renew } from "../state/offline";
import { Dialog } from "../parts/dialog";
import { LogInAgain } from "./door";
import { PutBack } from "./refused";

export function Banners() {
  const state = connection.value;
  if (isStale.value) return <Banner icon="retry" kind="grave" text={t("stale")}><button type="button" class="button" onClick={() => void renew()}>{t("reload")}</button></Banner>;
  if (state.state === "refused") return <Refused name={state.error?.name ?? "unexpected"} />;
  if (state.state === "ended") return <Ended reason={state.error?.reason ?? "expired"} />;
  return (
    <>
      {isQuotaFull.value ? <Banner icon="warn" kind="warn" text={t("quotaFull")}><button type="button" class="text" onClick={() => { isQuotaFull.value = false; }}>{t("close")}</button></Banner> : null}
      {state.state === "offline" || (state.state === "connecting" && state.nextTryAt !== undefined) ? <Offline nextTryAt={state.nextTryAt} /> : null}
    </>
  );
}

function Banner({ icon, kind, text, children }: { icon: IconName; kind: "quiet" | "warn" | "grave"; text: string; children?: ComponentChildren }) {
  return (
    <div class={`banner ${kind}`} role={kind === "grave" ? "alert" : "status"}>
      <Icon name={icon} />
      <span>{text}</span>
      {children}
    </div>
  );
}

function Offline({ nextTryAt }: { nextTryAt: number | undefined }) {
  return (
    <Banner icon="offline" kind="quiet" text={nextTryAt === undefined ? t("offline") : t("offlineUntil", { when: when(nextTryAt) })}>
      <button type="button" class="text" onClick={() => void attempt(() => core().retryNow())}>{t("tryNow")}</button>
    </Banner>
  );
}

function Refused({ name }: { name: string }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <Banner icon="warn" kind="grave" text={t("refusedBanner")}>
      <button type="button" class="button" onClick={() => setOpen(true)}>{t("whatNow")}</button>
      {isOpen ? (
        <Dialog title={t("refusedTitle")} onClose={() => setOpen(false)}>
          <p>{problemText(name)}</p>
          <p class="small">{t("refusedName", { name })}</p>
          <p>{t("refusedNote")}</p>
          <PutBack />
        </Dialog>
      ) : null}
    </Banner>
  );
}

function Ended({ reason }: { reason: string }) {
  const [isOpen, setOpen] = useState(false);
  const who = account.value;
  const known = ["revoked", "changed", "rotated", "expired", "erased"] as const;
  const why = known.find((one) => one === reason) ?? "expired";
  return (
    <Banner icon="lock" kind="warn" text={t(`ended.${why}`)}>
      <button type="button" class="button" onClick={() => setOpen(true)}>{t("logIn")}</button>
      {isOpen ? <Dialog title={t("logIn")} onClose={() => setOpen(false)}><LogInAgain login={who?.state === "open" ? who.login : null} /></Dialog> : null}
    </Banner>
  );
}
