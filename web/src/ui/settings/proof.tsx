// Asks for the password before something that a stolen session must not do: devices, credentials, export, erasure.
import { useState } from "preact/hooks";
import type { Proof } from "../../client/core";
import { t } from "../i18n";
import { Field } from "../parts/basics";
import { Dialog } from "../parts/dialog";
import { canUsePasskeys, usePasskey } from "../passkey";
import { Form, Go, useWork } from "../screens/door";
import { account } from "../state/account";

interface Props {
  title: string;
  text: string;
  /** What is done with the proof. The dialog closes when it is done. */
  run: (proof: Proof) => Promise<void>;
  onClose: () => void;
  isDanger?: boolean;
}

export function ProofDialog({ title, text, run, onClose }: Props) {
  const [password, setPassword] = useState("");
  const [totp, setTotp] = useState("");
  const [hasTotp, setHasTotp] = useState(false);
  const work = useWork();
  const doIt = (proof: Proof | (() => Promise<Proof>)) =>
    work.run(async () => {
      await run(typeof proof === "function" ? await proof() : proof);
      onClose();
    });
  const submit = () => {
    const typed = password;
    setPassword("");
    return doIt({ kind: "password", password: typed, ...(hasTotp && totp.trim() !== "" ? { totp: totp.trim() } : {}) });
  };
  return (
    <Dialog title={title} onClose={onClose}>
      <Form onSubmit={submit}>
        <p>{text}</p>
        <Field label={t("password")} type="password" value={password} onInput={setPassword} autoComplete="current-password" isRequired autoFocus error={work.problem} />
        {hasTotp ? <Field label={t("totp")} value={totp} onInput={setTotp} autoComplete="one-time-code" inputMode="numeric" isMono /> : <button type="button" class="text start" onClick={() => setHasTotp(true)}>{t("haveTotp")}</button>}
        <Go isBusy={work.isBusy} label={t("goOn")} busy={t("stretching")} icon="check" />
        {canUsePasskeys() ? <button type="button" class="button wide" disabled={work.isBusy} onClick={() => void doIt(() => usePasskey(account.value?.state === "open" ? account.value.login : null))}>{t("loginPasskey")}</button> : null}
      </Form>
    </Dialog>
  );
}
