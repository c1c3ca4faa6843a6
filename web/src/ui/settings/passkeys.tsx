// Passkeys: which there are, what each is called, and how one is removed.
//
//   Remove ─▶ what stays is shown, each of it: typed, touched ─▶ a new account key and a new recovery code
//
// Whoever held a passkey may know the account key. Easy to get wrong: what goes along. Only what is shown here is sealed for again, so
// the dialog says of every other way whether it stays.
import { useEffect, useState } from "preact/hooks";
import type { Proof, WayIn } from "../../client/core";
import { onDay, t } from "../i18n";
import { Icon } from "../icons";
import { Field } from "../parts/basics";
import { Dialog } from "../parts/dialog";
import { canUsePasskeys, makePasskey, OtherPasskey, usePasskey } from "../passkey";
import { Form, Go, useWork } from "../screens/door";
import { account, freshCode } from "../state/account";
import { core } from "../state/core";
import { attempt, say } from "../state/notes";
import { ProofDialog } from "./proof";

interface Ways {
  ways: WayIn[];
  hasTotp: boolean;
}

export function Passkeys() {
  /** Undefined while it is asked for; null if it cannot be had. */
  const [all, setAll] = useState<Ways | null | undefined>(undefined);
  const [isAdding, setAdding] = useState(false);
  const [naming, setNaming] = useState<WayIn | null>(null);
  const [removing, setRemoving] = useState<WayIn | null>(null);
  // Offline there is no list, and nothing could be done with it.
  const load = async () => setAll(await core().waysIn().catch(() => null));
  useEffect(() => {
    void load();
    return core().on((event) => {
      if (event.type === "data" && event.kind === "credential") void load();
    });
  }, []);
  const add = async (proof: Proof) => {
    const who = account.value;
    if (who?.state !== "open") return;
    await core().addPasskey(proof, await makePasskey(who.login ?? who.account), onDay(Date.now()));
    say(t("passkeyAdded"));
    await load();
  };
  const passkeys = all?.ways.filter(({ kind }) => kind === "passkey") ?? [];
  return (
    <section>
      <h2>{t("passkeys")}</h2>
      <p>{t(canUsePasskeys() ? "passkeyNote" : "passkeyNotHere")}</p>
      {all === null ? <p class="small">{t("waysAway")}</p> : null}
      {passkeys.length > 0 ? (
        <ul class="lines" aria-label={t("passkeys")}>
          {passkeys.map((way) => (
            <li key={way.id}>
              <Icon name="key" />
              <span><b dir="auto">{titleOf(way)}</b></span>
              <button type="button" class="button" aria-label={`${t("rename")}: ${titleOf(way)}`} onClick={() => setNaming(way)}>{t("rename")}</button>
              <button type="button" class="button" aria-label={`${t("passkeyRemove")}: ${titleOf(way)}`} onClick={() => setRemoving(way)}>{t("passkeyRemove")}</button>
            </li>
          ))}
        </ul>
      ) : null}
      {canUsePasskeys() ? <div class="row"><button type="button" class="button" onClick={() => setAdding(true)}>{t("passkeyAdd")}</button></div> : null}
      {isAdding ? <ProofDialog title={t("passkeyAdd")} text={t("passkeyNote")} run={add} onClose={() => setAdding(false)} /> : null}
      {naming ? <Name way={naming} onClose={() => setNaming(null)} onDone={load} /> : null}
      {removing && all ? <Remove way={removing} all={all} onClose={() => setRemoving(null)} onDone={load} /> : null}
    </section>
  );
}

function titleOf(way: WayIn): string {
  return way.kind === "password" ? t("password") : (way.name ?? t("passkeyUnnamed"));
}

interface DialogProps {
  way: WayIn;
  onClose: () => void;
  onDone: () => Promise<void>;
}

function Name({ way, onClose, onDone }: DialogProps) {
  const [name, setName] = useState(way.name ?? "");
  const save = async () => {
    const isDone = await attempt(() => core().nameWayIn(way.id ?? "", name.trim().slice(0, LONGEST_NAME)));
    if (!isDone) return;
    onClose();
    await onDone();
  };
  return (
    <Dialog title={t("rename")} onClose={onClose}>
      <Form onSubmit={save}>
        <Field label={t("passkeyName")} hint={t("deviceLabelNote")} value={name} onInput={setName} autoFocus />
        <div class="row end"><button type="submit" class="button go">{t("save")}</button></div>
      </Form>
    </Dialog>
  );
}

/** Shows what stays, each of it, and removes the rest. */
function Remove({ way, all, onClose, onDone }: DialogProps & { all: Ways }) {
  const [password, setPassword] = useState("");
  const [totp, setTotp] = useState("");
  const [shown, setShown] = useState<ReadonlyMap<string, Proof>>(new Map());
  const work = useWork();
  const others = all.ways.filter(({ kind, id }) => kind !== "recovery" && id !== way.id);
  const hasPassword = others.some(({ kind }) => kind === "password");
  const isShown = (one: WayIn) => (one.kind === "password" ? password !== "" : shown.has(one.id ?? ""));
  const touch = async () => {
    const who = account.value;
    const proof = await usePasskey(who?.state === "open" ? who.login : null);
    const id = await core().passkeyId(proof.credential);
    if (!others.some((one) => one.id === id)) throw new OtherPasskey();
    setShown(new Map<string, Proof>([...shown, [id, proof]]));
  };
  const remove = async () => {
    const typed: Proof[] = password === "" ? [] : [{ kind: "password", password, ...(all.hasTotp && totp.trim() !== "" ? { totp: totp.trim() } : {}) }];
    setPassword("");
    freshCode.value = (await core().removeWayIn(way.id ?? "", [...typed, ...shown.values()])).recoveryCode;
    say(t("passkeyRemoved"));
    onClose();
    await onDone();
  };
  return (
    <Dialog title={t("passkeyRemove")} onClose={onClose}>
      <Form onSubmit={() => work.run(remove)}>
        <p><b dir="auto">{titleOf(way)}</b></p>
        {others.length === 0 ? (
          <p class="problem" role="alert">{t("error.last-way")}</p>
        ) : (
          <>
            <p>{t("passkeyRemoveNote")}</p>
            <ul class="lines" aria-live="polite">
              {others.map((one) => (
                <li key={one.id}>
                  <Icon name={isShown(one) ? "check" : "close"} />
                  <span><b dir="auto">{titleOf(one)}</b><small>{t(isShown(one) ? "wayStays" : "wayGoes")}</small></span>
                </li>
              ))}
            </ul>
            {hasPassword ? <Field label={t("password")} type="password" value={password} onInput={setPassword} autoComplete="current-password" autoFocus /> : null}
            {hasPassword && all.hasTotp ? <Field label={t("totp")} value={totp} onInput={setTotp} autoComplete="one-time-code" inputMode="numeric" isMono /> : null}
            {canUsePasskeys() && others.some(({ kind }) => kind === "passkey") ? <button type="button" class="button wide" disabled={work.isBusy} onClick={() => void work.run(touch)}>{t("loginPasskey")}</button> : null}
            {work.problem ? <p class="problem" role="alert">{work.problem}</p> : null}
            {others.some(isShown) ? <Go isBusy={work.isBusy} label={t("passkeyRemove")} busy={t("stretching")} icon="check" /> : null}
          </>
        )}
      </Form>
    </Dialog>
  );
}

/** Letters of a name. */
const LONGEST_NAME = 80;
