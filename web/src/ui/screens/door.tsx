// The door: log in, register, a new device by pairing; or, where this browser has an account, unlock it.
//
// A password is stretched with Argon2id before it is used, which takes a second or two on purpose: the button says so. What is typed
// here goes to the worker and nowhere else. Easy to get wrong: a password that stays in a field. It is emptied as soon as it is handed over.
import type { ComponentChildren } from "preact";
import { lazy } from "../parts/lazy";
import { useState } from "preact/hooks";
import { t } from "../i18n";
import { Icon, Wax } from "../icons";
import { Field, Spinner } from "../parts/basics";
import { canUsePasskeys, makePasskey, usePasskey } from "../passkey";
import { freshCode, isStale, receipt } from "../state/account";
import { core, elsewhere, nameOf, serverOrigin } from "../state/core";
import { problemText } from "../state/notes";
import { renew } from "../state/offline";

const Pairing = lazy(async () => (await import("./pairing")).NewDevice);

type Way = "login" | "register" | "recover" | "pair";

/** Nobody is logged in here. */
export function Door() {
  const [way, setWay] = useState<Way>("login");
  return (
    <Frame title={t(way === "register" ? "registerTitle" : way === "pair" ? "pairTitle" : way === "recover" ? "recoverTitle" : "loginTitle")}>
      {receipt.value !== null ? <Receipt text={receipt.value} /> : null}
      {way === "login" ? <LogIn /> : null}
      {way === "register" ? <Register /> : null}
      {way === "recover" ? <Recover /> : null}
      {way === "pair" ? <Pairing /> : null}
      <nav class="ways" aria-label={t("otherWays")}>
        {way !== "login" ? <button type="button" class="text" onClick={() => setWay("login")}>{t("loginTitle")}</button> : null}
        {way !== "register" ? <button type="button" class="text" onClick={() => setWay("register")}>{t("registerTitle")}</button> : null}
        {way !== "pair" ? <button type="button" class="text" onClick={() => setWay("pair")}>{t("pairTitle")}</button> : null}
        {way !== "recover" ? <button type="button" class="text" onClick={() => setWay("recover")}>{t("lostPassword")}</button> : null}
      </nav>
    </Frame>
  );
}

/** The account of this browser is locked. */
export function Unlock({ login }: { login: string | null }) {
  const [password, setPassword] = useState("");
  const [isForgetting, setForgetting] = useState(false);
  const work = useWork();
  const submit = () => {
    const typed = password;
    setPassword("");
    return work.run(() => core().unlock({ kind: "password", password: typed }));
  };
  return (
    <Frame title={t("lockedTitle")}>
      <p class="lead">{login === null ? t("lockedSomebody") : t("lockedAs", { login })}</p>
      <Form onSubmit={submit}>
        <Field label={t("password")} type="password" value={password} onInput={setPassword} autoComplete="current-password" isRequired autoFocus error={work.problem} />
        <Go isBusy={work.isBusy} label={t("unlock")} busy={t("stretching")} icon="unlocked" />
      </Form>
      {canUsePasskeys() ? <button type="button" class="button wide" disabled={work.isBusy} onClick={() => work.run(async () => core().unlock(await usePasskey(login)))}>{t("unlockPasskey")}</button> : null}
      <p class="small">{t("lockedNote")}</p>
      {isForgetting ? (
        <div class="card ask" role="alert">
          <p>{t("forgetWarning")}</p>
          <div class="row">
            <button type="button" class="button danger" onClick={() => work.run(() => core().forget())}>{t("forgetYes")}</button>
            <button type="button" class="button" onClick={() => setForgetting(false)}>{t("cancel")}</button>
          </div>
        </div>
      ) : (
        <nav class="ways"><button type="button" class="text" onClick={() => setForgetting(true)}>{t("otherAccount")}</button></nav>
      )}
    </Frame>
  );
}

/** Another tab of this browser has the account: only one may have its files. */
export function Elsewhere() {
  const work = useWork();
  return (
    <Frame title={t("elsewhereTitle")}>
      <p>{t("elsewhereNote")}</p>
      {work.problem ? <p class="problem" role="alert">{work.problem}</p> : null}
      <button type="button" class="button go wide" disabled={work.isBusy} onClick={() => void work.run(() => core().takeOver())}>{t("takeOver")}</button>
    </Frame>
  );
}

/** The session ended: the same person logs in again, and nothing unsent is lost. */
export function LogInAgain({ login }: { login: string | null }) {
  return (
    <div class="card">
      <h3>{t("sessionEnded")}</h3>
      <p>{t("sessionEndedNote")}</p>
      <LogIn known={login} />
    </div>
  );
}

function LogIn({ known = null }: { known?: string | null }) {
  const [login, setLogin] = useState(known ?? "");
  const [password, setPassword] = useState("");
  const [totp, setTotp] = useState("");
  const [hasTotp, setHasTotp] = useState(false);
  const work = useWork();
  const submit = () => {
    const typed = password;
    setPassword("");
    return work.run(() => core().logIn(login.trim(), { kind: "password", password: typed, ...(hasTotp && totp ? { totp: totp.trim() } : {}) }));
  };
  return (
    <Form onSubmit={submit}>
      <Field label={t("login")} value={login} onInput={setLogin} autoComplete="username" isRequired autoFocus={known === null} />
      <Field label={t("password")} type="password" value={password} onInput={setPassword} autoComplete="current-password" isRequired error={work.problem} />
      {hasTotp ? <Field label={t("totp")} value={totp} onInput={setTotp} autoComplete="one-time-code" inputMode="numeric" isMono autoFocus /> : <button type="button" class="text start" onClick={() => setHasTotp(true)}>{t("haveTotp")}</button>}
      <Go isBusy={work.isBusy} label={t("logIn")} busy={t("stretching")} icon="right" />
      {canUsePasskeys() ? (
        <button type="button" class="button wide" disabled={work.isBusy || login.trim() === ""} onClick={() => work.run(async () => core().logIn(login.trim(), await usePasskey(login.trim())))}>
          <Icon name="key" />
          {t("loginPasskey")}
        </button>
      ) : null}
    </Form>
  );
}

function Register() {
  const [login, setLogin] = useState("");
  const [password, setPassword] = useState("");
  const [again, setAgain] = useState("");
  const [code, setCode] = useState("");
  const work = useWork();
  const [problem, setProblem] = useState<string | null>(null);
  const made = async (work: Promise<{ recoveryCode: string }>) => {
    freshCode.value = (await work).recoveryCode;
  };
  const submit = () => {
    if (password.length < 10) return setProblem(t("passwordShort"));
    if (password !== again) return setProblem(t("passwordsDiffer"));
    setProblem(null);
    const typed = password;
    setPassword("");
    setAgain("");
    return work.run(() => made(core().register(login.trim(), typed, code.trim() || undefined)));
  };
  return (
    <Form onSubmit={submit}>
      <Field label={t("login")} hint={t("loginHint")} value={login} onInput={setLogin} autoComplete="username" isRequired autoFocus />
      <Field label={t("password")} hint={t("passwordHint")} type="password" value={password} onInput={setPassword} autoComplete="new-password" isRequired error={problem} />
      <Field label={t("passwordAgain")} type="password" value={again} onInput={setAgain} autoComplete="new-password" isRequired />
      <Field label={t("inviteCode")} hint={t("inviteHint")} value={code} onInput={setCode} isMono error={work.problem} />
      <Go isBusy={work.isBusy} label={t("register")} busy={t("stretching")} icon="seal" />
      {canUsePasskeys() ? (
        <button type="button" class="button wide" disabled={work.isBusy || login.trim() === ""} onClick={() => work.run(async () => made(core().registerWithPasskey(login.trim(), await makePasskey(login.trim()), code.trim() || undefined)))}>
          <Icon name="key" />
          {t("registerPasskey")}
        </button>
      ) : null}
    </Form>
  );
}

function Recover() {
  const [login, setLogin] = useState("");
  const [code, setCode] = useState("");
  const [password, setPassword] = useState("");
  const work = useWork();
  const submit = () => {
    const typed = password;
    setPassword("");
    return work.run(async () => {
      await core().logIn(login.trim(), { kind: "recovery", code: code.trim() });
      freshCode.value = (await core().recover(code.trim(), typed)).recoveryCode;
    });
  };
  return (
    <Form onSubmit={submit}>
      <p>{t("recoverNote")}</p>
      <Field label={t("login")} value={login} onInput={setLogin} autoComplete="username" isRequired autoFocus />
      <Field label={t("recoveryCode")} value={code} onInput={setCode} isRequired isMono />
      <Field label={t("newPassword")} hint={t("passwordHint")} type="password" value={password} onInput={setPassword} autoComplete="new-password" isRequired error={work.problem} />
      <Go isBusy={work.isBusy} label={t("recover")} busy={t("stretching")} icon="key" />
    </Form>
  );
}

function Receipt({ text }: { text: string }) {
  return (
    <div class="card" role="status">
      <h3>{t("erased")}</h3>
      <p>{t("erasedNote")}</p>
      <pre class="receipt" tabIndex={0}>{text}</pre>
    </div>
  );
}

/** The page around the door. */
export function Frame({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <main class="door">
      <div class="door-box">
        <p class="brand"><Wax size={30} />Confidant</p>
        <h1>{title}</h1>
        {isStale.value ? <p class="problem" role="alert">{t("staleDoor")} <button type="button" class="text" onClick={() => void renew()}>{t("reload")}</button></p> : null}
        {children}
      </div>
      <p class="promise">{t("promise")}</p>
      {elsewhere() !== null && <p class="promise">{t("ownPage", { server: serverOrigin() })}</p>}
    </main>
  );
}

export function Form({ onSubmit, children }: { onSubmit: () => unknown; children: ComponentChildren }) {
  return (
    <form
      onSubmit={(event: Event) => {
        event.preventDefault();
        void onSubmit();
      }}
    >
      {children}
    </form>
  );
}

export function Go({ isBusy, label, busy, icon }: { isBusy: boolean; label: string; busy: string; icon: "right" | "seal" | "key" | "unlocked" | "check" }) {
  return (
    <button type="submit" class="button go wide" disabled={isBusy} aria-live="polite">
      {isBusy ? <Spinner /> : <Icon name={icon} />}
      {isBusy ? busy : label}
    </button>
  );
}

/** One piece of work at a time, with what went wrong in words. */
export function useWork(): { isBusy: boolean; problem: string | null; run: (work: () => Promise<unknown>) => Promise<void> } {
  const [isBusy, setBusy] = useState(false);
  const [problem, setProblem] = useState<string | null>(null);
  const run = async (work: () => Promise<unknown>) => {
    setBusy(true);
    setProblem(null);
    try {
      await work();
    } catch (error) {
      const name = error instanceof Error && (error.name.startsWith("passkey-") || error.name === "NotAllowedError") ? error.name : nameOf(error);
      setProblem(problemText(name === "NotAllowedError" ? "passkey-cancelled" : name));
    } finally {
      setBusy(false);
    }
  };
  return { isBusy, problem, run };
}
