// The administrator's page: how the server is, in counts. It has a bundle of its own, and shares only colours and icons with the chats.
import { render } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Icon, Wax } from "../ui/icons";
import "./console.css";
import { Audit, Cache, Health, Keys, Latency, Others, Queue, Sessions, Turns } from "./cards";
import { EVERY_MS, Watch, type Trouble } from "./watch";
import { language, LANGUAGES, speak, t, when, type Language } from "./words";

function Languages() {
  return (
    <select aria-label={t("language")} value={language.value} onChange={(event) => speak(event.currentTarget.value as Language)}>
      {LANGUAGES.map(({ code, name }) => <option key={code} value={code}>{name}</option>)}
    </select>
  );
}

function Door({ watch }: { watch: Watch }) {
  const [token, setToken] = useState("");
  const [isKept, setKept] = useState(false);
  const [isMissing, setMissing] = useState(false);
  const enter = (event: Event) => {
    event.preventDefault();
    const given = token.trim();
    setMissing(given === "");
    // Else it could not even be sent.
    if (given !== "" && !/^[\x21-\x7e]+$/.test(given)) watch.turned.value = "token";
    else if (given !== "") void watch.signIn(given, isKept);
  };
  const problem = isMissing ? t("tokenMissing") : watch.turned.value === "token" ? t("turnedToken") : watch.turned.value === "role" ? t("turnedRole") : null;
  return (
    <main class="door">
      <div class="door-box">
        <div class="brand"><Wax /> Confidant · {t("title")}</div>
        <h1>{t("signInTitle")}</h1>
        <p class="lead">{t("signInLead")}</p>
        <form onSubmit={enter}>
          <div class="field">
            <label for="token">{t("token")}</label>
            <div class="input"><input id="token" type="password" class="mono" autocomplete="off" spellcheck={false} value={token} aria-describedby="token-hint" aria-invalid={problem !== null} onInput={(event) => setToken(event.currentTarget.value)} /></div>
            <small id="token-hint">{t("tokenHint")}</small>
            {problem !== null && <p class="problem" role="alert">{problem}</p>}
          </div>
          <label class="tick"><input type="checkbox" checked={isKept} onChange={(event) => setKept(event.currentTarget.checked)} /><span>{t("keep")}<small>{t("keepHint")}</small></span></label>
          <button type="submit" class="button go wide">{t("signIn")}</button>
        </form>
      </div>
      <div class="row"><Languages /> <a class="text" href="/">{t("chats")}</a></div>
    </main>
  );
}

function said(trouble: Trouble): string {
  const at = when(trouble.since);
  if (trouble.kind === "refused") return t("refused", { at, why: [trouble.message, trouble.hint].filter((part) => part !== null).join("; ") });
  return t(trouble.kind, { at });
}

function Inside({ watch }: { watch: Watch }) {
  const [told, samples, trouble, isPaused] = [watch.told.value, watch.samples.value, watch.trouble.value, watch.isPaused.value];
  return (
    <div class="console">
      <header>
        <div class="brand"><Wax /> Confidant · {t("title")}</div>
        <p class="small state-line">{isPaused ? t("paused") : told !== null && trouble === null ? t("updated", { at: when(told.at), n: EVERY_MS / 1000 }) : ""}</p>
        <Languages />
        <button type="button" class="button small" aria-pressed={isPaused} onClick={() => watch.pause(!isPaused)}><Icon name={isPaused ? "right" : "stop"} />{isPaused ? t("resume") : t("pause")}</button>
        <button type="button" class="button small" onClick={() => watch.signOut()}>{t("signOut")}</button>
      </header>
      <main>
        <h1 class="unseen">{t("title")}</h1>
        <div role="status">{trouble !== null && <p class="banner grave"><Icon name="warn" /> <span>{said(trouble)} {told !== null && t("stale", { at: when(told.at) })}</span></p>}</div>
        {told === null && trouble === null && <p class="loading"><span class="spinner" /> {t("loading")}</p>}
        {told !== null && (
          <div class={trouble === null ? "panels" : "panels stale"}>
            <div class="column"><Health told={told} /><Sessions told={told} /><Cache told={told} /></div>
            <div class="column"><Turns told={told} samples={samples} /><Queue told={told} samples={samples} /></div>
            <div class="column"><Latency told={told} samples={samples} /><Keys told={told} /><Others told={told} /></div>
            <Audit audit={watch.audit.value} trouble={watch.auditTrouble.value} isReading={watch.isReading.value} onRead={() => void watch.readAudit()} />
          </div>
        )}
      </main>
    </div>
  );
}

function Console({ watch }: { watch: Watch }) {
  useEffect(() => {
    const look = () => watch.seen(document.visibilityState === "visible");
    document.addEventListener("visibilitychange", look);
    look();
    watch.resume();
    return () => document.removeEventListener("visibilitychange", look);
  }, [watch]);
  return watch.isIn.value ? <Inside watch={watch} /> : <Door watch={watch} />;
}

/** This tab's storage, where the browser gives any. */
function tabStorage(): globalThis.Storage | null {
  try {
    return globalThis.sessionStorage;
  } catch {
    return null;
  }
}

const root = document.getElementById("app");
if (root !== null) {
  speak();
  render(<Console watch={new Watch("", tabStorage())} />, root);
}
