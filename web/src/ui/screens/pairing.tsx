// A new device, let in by one that is logged in: this browser shows a secret, as a QR code and as 26 digits, and waits.
//
// The secret is behind `#` in the code's address, so that no server sees it when a phone opens it. It is good once, for two minutes. After
// pairing, this browser needs a password of its own account to open its files.
import { useEffect, useState } from "preact/hooks";
import { t } from "../i18n";
import { Field, Spinner } from "../parts/basics";
import { Qr } from "../parts/qr";
import { core, nameOf, serverOrigin } from "../state/core";
import { problemText } from "../state/notes";
import { Form, Frame, Go, useWork } from "./door";

export function NewDevice() {
  const [offer, setOffer] = useState<{ text: string; expiresAt: number } | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const [isPaired, setPaired] = useState(false);
  useEffect(() => {
    let isOn = true;
    const wait = async () => {
      try {
        const made = await core().pairOffer();
        if (isOn) setOffer(made);
        while (isOn && Date.now() < made.expiresAt) {
          if ((await core().pairFetch()) === "paired") return isOn && setPaired(true);
          await new Promise((resolve) => setTimeout(resolve, 1_500));
        }
        if (isOn) setProblem("pair-refused");
      } catch (error) {
        if (isOn) setProblem(nameOf(error));
      }
      return undefined;
    };
    if (problem === null) void wait();
    return () => {
      isOn = false;
    };
  }, [problem === null]);
  if (isPaired) return <SetUnlock />;
  if (problem !== null) return <div role="alert"><p class="problem">{problemText(problem)}</p><button type="button" class="button wide" onClick={() => { setOffer(null); setProblem(null); }}>{t("pairAnew")}</button></div>;
  if (offer === null) return <p class="loading"><Spinner />{t("loading")}</p>;
  return (
    <div class="pairing">
      <p>{t("pairNote")}</p>
      <Qr text={`${serverOrigin()}/#/pair/${offer.text}`} label={t("qrLabel")} />
      <p class="code-shown" dir="ltr" aria-label={t("pairText")}>{inGroups(offer.text)}</p>
      <p class="state" role="status"><Spinner />{t("pairWaiting")}</p>
    </div>
  );
}

/** After pairing, before anything else: what opens this browser's files from now on. */
export function Paired() {
  return <Frame title={t("pairTitle")}><SetUnlock /></Frame>;
}

function SetUnlock() {
  const [login, setLogin] = useState("");
  const [password, setPassword] = useState("");
  const work = useWork();
  const submit = () => {
    const typed = password;
    setPassword("");
    return work.run(() => core().setUnlock(login.trim(), { kind: "password", password: typed }));
  };
  return (
    <Form onSubmit={submit}>
      <p>{t("pairUnlock")}</p>
      <Field label={t("login")} value={login} onInput={setLogin} autoComplete="username" isRequired autoFocus />
      <Field label={t("password")} type="password" value={password} onInput={setPassword} autoComplete="current-password" isRequired error={work.problem} />
      <Go isBusy={work.isBusy} label={t("goOn")} busy={t("stretching")} icon="check" />
    </Form>
  );
}

/** Four characters and a space: easier to type. */
export function inGroups(text: string): string {
  return text.replace(/(.{4})(?=.)/g, "$1 ");
}
