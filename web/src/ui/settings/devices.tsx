// The devices of the account: which there are, what they are called, and how one is let in or put out.
import { useEffect, useState } from "preact/hooks";
import type { DeviceLine, Proof } from "../../client/core";
import { onDay, t } from "../i18n";
import { Icon } from "../icons";
import { Field } from "../parts/basics";
import { Form } from "../screens/door";
import { core } from "../state/core";
import { attempt, say } from "../state/notes";
import { pairText } from "../state/route";
import { ProofDialog } from "./proof";

export function Devices() {
  const [devices, setDevices] = useState<DeviceLine[] | null>(null);
  const [revoking, setRevoking] = useState<DeviceLine | null>(null);
  const load = () => attempt(async () => setDevices(await core().devices()));
  useEffect(() => {
    void load();
    return core().on((event) => {
      if (event.type === "devices") void load();
    });
  }, []);
  const revoke = async (proof: Proof) => {
    if (revoking === null) return;
    await core().revokeDevice(proof, revoking.device);
    say(t("deviceRevoked"));
    await load();
  };
  return (
    <>
      <section>
        <h2>{t("settings.devices")}</h2>
        <ul class="lines">
          {devices?.map((device) => (
            <li key={device.device}>
              <Icon name="device" />
              <span>
                <b dir="auto">{device.label ?? t("deviceUnnamed")}{device.isThis ? ` · ${t("deviceThis")}` : ""}</b>
                <small>{t("deviceSeen", { when: onDay(device.lastSeenDay * 86_400_000) })}</small>
              </span>
              {device.isThis ? null : <button type="button" class="button" onClick={() => setRevoking(device)}>{t("revoke")}</button>}
            </li>
          ))}
        </ul>
        <Label onSaved={load} />
      </section>
      <PairOther />
      {revoking ? <ProofDialog title={t("revoke")} text={t("revokeNote")} run={revoke} onClose={() => setRevoking(null)} /> : null}
    </>
  );
}

function Label({ onSaved }: { onSaved: () => Promise<unknown> }) {
  const [label, setLabel] = useState("");
  const save = () =>
    attempt(async () => {
      await core().labelDevice(label.trim());
      setLabel("");
      await onSaved();
    });
  return (
    <Form onSubmit={save}>
      <Field label={t("deviceLabel")} hint={t("deviceLabelNote")} value={label} onInput={setLabel} />
      <div class="row end"><button type="submit" class="button" disabled={label.trim() === ""}>{t("save")}</button></div>
    </Form>
  );
}

/** Lets a new device in: it shows 26 characters, which are typed here. */
function PairOther() {
  const [text, setText] = useState(pairText.value);
  const [isAsking, setAsking] = useState(false);
  const send = async (proof: Proof) => {
    await core().pairSend(proof, text.trim());
    setText("");
    pairText.value = "";
    say(t("paired"));
  };
  return (
    <section>
      <h2>{t("pairOther")}</h2>
      <p>{t("pairOtherNote")}</p>
      <Form onSubmit={() => setAsking(true)}>
        <Field label={t("pairText")} value={text} onInput={setText} isMono isRequired />
        <div class="row end"><button type="submit" class="button go" disabled={text.trim().length < 20}>{t("pairLetIn")}</button></div>
      </Form>
      {isAsking ? <ProofDialog title={t("pairOther")} text={t("pairProof")} run={send} onClose={() => setAsking(false)} /> : null}
    </section>
  );
}
