// What opens the account: password, recovery code, passkey, second factor; the key behind them; and whether this browser stays unlocked.
import { useState } from "preact/hooks";
import type { Proof } from "../../client/core";
import { t } from "../i18n";
import { Field, Switch } from "../parts/basics";
import { Qr } from "../parts/qr";
import { Form } from "../screens/door";
import { account, freshCode } from "../state/account";
import { core } from "../state/core";
import { attempt, say } from "../state/notes";
import { Passkeys } from "./passkeys";
import { ProofDialog } from "./proof";

interface Step {
  title: string;
  text: string;
  run: (proof: Proof) => Promise<void>;
}

export function Security() {
  const [step, setStep] = useState<Step | null>(null);
  const who = account.value;
  const staysUnlocked = who?.state === "open" && who.staysUnlocked;
  const shown = (work: Promise<{ recoveryCode: string }>) =>
    work.then(({ recoveryCode }) => {
      freshCode.value = recoveryCode;
    });
  return (
    <>
      <section>
        <h2>{t("settings.security")}</h2>
        <Switch label={t("stayUnlocked")} hint={t("stayUnlockedNote")} isOn={staysUnlocked} onChange={(isOn) => void attempt(() => core().stayUnlocked(isOn))} />
      </section>
      <NewPassword onStep={setStep} />
      <section>
        <h2>{t("recoveryCode")}</h2>
        <p>{t("newCodeNote")}</p>
        <div class="row"><button type="button" class="button" onClick={() => setStep({ title: t("newCode"), text: t("newCodeNote"), run: (proof) => shown(core().newRecoveryCode(proof)) })}>{t("newCode")}</button></div>
      </section>
      <Passkeys />
      <Totp onStep={setStep} />
      <section>
        <h2>{t("rotate")}</h2>
        <p>{t("rotateNote")}</p>
        <div class="row"><button type="button" class="button danger" onClick={() => setStep({ title: t("rotate"), text: t("rotateNote"), run: (proof) => shown(core().rotate(proof, [])) })}>{t("rotate")}</button></div>
      </section>
      {step ? <ProofDialog {...step} onClose={() => setStep(null)} /> : null}
    </>
  );
}

function NewPassword({ onStep }: { onStep: (step: Step) => void }) {
  const [password, setPassword] = useState("");
  const [again, setAgain] = useState("");
  const problem = again !== "" && password !== again ? t("passwordsDiffer") : password !== "" && password.length < 10 ? t("passwordShort") : null;
  const change = async (proof: Proof) => {
    await core().changePassword(proof, password);
    setPassword("");
    setAgain("");
    say(t("passwordChanged"));
  };
  return (
    <section>
      <h2>{t("newPassword")}</h2>
      <p>{t("newPasswordNote")}</p>
      <Form onSubmit={() => onStep({ title: t("newPassword"), text: t("oldPasswordAsk"), run: change })}>
        <Field label={t("newPassword")} type="password" value={password} onInput={setPassword} autoComplete="new-password" isRequired error={problem} />
        <Field label={t("passwordAgain")} type="password" value={again} onInput={setAgain} autoComplete="new-password" isRequired />
        <div class="row end"><button type="submit" class="button" disabled={password === "" || problem !== null || password !== again}>{t("change")}</button></div>
      </Form>
    </section>
  );
}

function Totp({ onStep }: { onStep: (step: Step) => void }) {
  const [secret, setSecret] = useState<{ secret: string; uri: string } | null>(null);
  const [code, setCode] = useState("");
  const on = async (proof: Proof) => {
    if (secret === null) return;
    await core().totpOn(proof, secret.secret, code.trim());
    setSecret(null);
    setCode("");
    say(t("totpIsOn"));
  };
  const off = async (proof: Proof) => {
    await core().totpOff(proof);
    say(t("totpIsOff"));
  };
  return (
    <section>
      <h2>{t("totpTitle")}</h2>
      <p>{t("totpNote")}</p>
      {secret === null ? (
        <div class="row">
          <button type="button" class="button" onClick={() => void attempt(async () => setSecret(await core().totpSecret()))}>{t("totpOn")}</button>
          <button type="button" class="button" onClick={() => onStep({ title: t("totpOff"), text: t("totpOffNote"), run: off })}>{t("totpOff")}</button>
        </div>
      ) : (
        <Form onSubmit={() => onStep({ title: t("totpOn"), text: t("totpProof"), run: on })}>
          <p>{t("totpSecret")}</p>
          <Qr text={secret.uri} label={t("totpQr")} />
          <p class="code-shown" dir="ltr">{secret.secret}</p>
          <Field label={t("totp")} value={code} onInput={setCode} autoComplete="one-time-code" inputMode="numeric" isMono isRequired />
          <div class="row end"><button type="submit" class="button go" disabled={code.trim().length < 6}>{t("totpOn")}</button></div>
        </Form>
      )}
    </section>
  );
}
