// Something that cannot be shown, by the name of the reason. Nothing refused is shown, and what to do is the person's to decide.
import { useState } from "preact/hooks";
import { t } from "../i18n";
import { Icon } from "../icons";
import { core } from "../state/core";
import { attempt, problemText, say } from "../state/notes";
import { Confirm } from "../parts/dialog";

/** Whether the person may say that an older state is right. */
const OLDER = new Set(["rolled-back", "forked", "withheld", "list-refused"]);

/** A chat that cannot be opened. */
export function CannotOpen({ name }: { name: string }) {
  return (
    <section class="card refused" role="alert">
      <h3><Icon name="warn" />{t("cannotOpen")}</h3>
      <p>{problemText(name)}</p>
      <p class="small">{t("refusedName", { name })}</p>
      {OLDER.has(name) ? <PutBack /> : null}
    </section>
  );
}

/** Writes what this device has over what the server shows. From here, a restored backup and an attack look the same. */
export function PutBack() {
  const [isAsking, setAsking] = useState(false);
  const run = async () => {
    setAsking(false);
    await attempt(async () => {
      const done = await core().putBack();
      say(t("putBackDone", { n: done.written, copies: done.copies }));
    });
  };
  return (
    <>
      <div class="row"><button type="button" class="button" onClick={() => setAsking(true)}>{t("putBack")}</button></div>
      {isAsking ? <Confirm title={t("putBack")} text={t("putBackNote")} yes={t("putBackYes")} onYes={() => void run()} onClose={() => setAsking(false)} /> : null}
    </>
  );
}
