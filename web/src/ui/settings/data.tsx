// Taking everything with you, bringing chats from elsewhere, leaving this browser, and erasing everything, with the receipt.
import type { TargetedEvent } from "preact";
import { useState } from "preact/hooks";
import type { Proof } from "../../client/core";
import { t } from "../i18n";
import { Icon } from "../icons";
import { Field, Switch } from "../parts/basics";
import { Confirm } from "../parts/dialog";
import { Form, useWork } from "../screens/door";
import { download } from "../screens/download";
import { account, freshCode, outbox, receipt } from "../state/account";
import { core, nameOf } from "../state/core";
import { loadList } from "../state/list";
import { attempt, say, sayProblem } from "../state/notes";
import { readFile } from "./imports";
import { BadArchive } from "./unzip";
import { ProofDialog } from "./proof";

export function Data() {
  const [asking, setAsking] = useState<"export" | "erase" | "leave" | null>(null);
  const close = () => setAsking(null);
  return (
    <>
      <section>
        <h2>{t("exportTitle")}</h2>
        <p>{t("exportNote")}</p>
        <div class="row"><button type="button" class="button" onClick={() => setAsking("export")}><Icon name="download" />{t("exportAll")}</button></div>
      </section>
      <Import />
      <section>
        <h2>{t("leaveTitle")}</h2>
        <p>{t("leaveNote")}</p>
        <div class="row"><button type="button" class="button" onClick={() => setAsking("leave")}>{t("logOut")}</button></div>
      </section>
      <Restore />
      <section>
        <h2>{t("eraseTitle")}</h2>
        <p>{t("eraseNote")}</p>
        <div class="row"><button type="button" class="button danger" onClick={() => setAsking("erase")}><Icon name="trash" />{t("eraseAll")}</button></div>
      </section>
      {asking === "export" ? <ProofDialog title={t("exportAll")} text={t("exportProof")} run={exportAll} onClose={close} /> : null}
      {asking === "erase" ? <ProofDialog title={t("eraseAll")} text={t("eraseProof")} run={erase} onClose={close} /> : null}
      {asking === "leave" ? <Leave onClose={close} /> : null}
    </>
  );
}

async function exportAll(proof: Proof): Promise<void> {
  download("confidant-export.json", await core().exportAll(proof), "application/json");
}

async function erase(proof: Proof): Promise<void> {
  receipt.value = await core().erase(proof);
}

function Leave({ onClose }: { onClose: () => void }) {
  const [isEverywhere, setEverywhere] = useState(false);
  const unsent = outbox.value.waiting;
  const leave = async () => {
    try {
      await core().logOut({ everywhere: isEverywhere, ...(unsent > 0 ? { unsent: "throw-away" as const } : {}) });
    } catch (error) {
      if (nameOf(error) === "offline") await attempt(() => core().forget());
      else {
        sayProblem(error);
        // Something waits that was not seen: it is asked about here.
        if (nameOf(error) === "conflict") return;
      }
    }
    onClose();
  };
  if (unsent > 0) return <Confirm title={t("logOut")} text={t("leaveUnsent", { n: unsent })} yes={t("leaveThrowAway")} onYes={() => void leave()} onClose={onClose} />;
  return (
    <div class="card">
      <Switch label={t("leaveEverywhere")} isOn={isEverywhere} onChange={setEverywhere} />
      <div class="row end">
        <button type="button" class="button" onClick={onClose}>{t("cancel")}</button>
        <button type="button" class="button go" onClick={() => void leave()}>{t("logOut")}</button>
      </div>
    </div>
  );
}

/** The server lost the account: this device puts back what it has, with a code of the operator and a new password. */
function Restore() {
  const who = account.value;
  const [login, setLogin] = useState(who?.state === "open" ? (who.login ?? "") : "");
  const [password, setPassword] = useState("");
  const [code, setCode] = useState("");
  const [isAnew, setAnew] = useState(false);
  const work = useWork();
  const submit = () => {
    const typed = password;
    setPassword("");
    return work.run(async () => {
      freshCode.value = (await core().restore(login.trim(), typed, code.trim(), isAnew)).recoveryCode;
      say(t("restored"));
    });
  };
  return (
    <details class="section">
      <summary>{t("restoreTitle")}</summary>
      <p>{t("restoreNote", { account: who?.state === "open" ? who.account : "" })}</p>
      <Form onSubmit={submit}>
        <Field label={t("login")} value={login} onInput={setLogin} autoComplete="username" isRequired />
        <Field label={t("newPassword")} type="password" value={password} onInput={setPassword} autoComplete="new-password" isRequired />
        <Field label={t("restoreCode")} value={code} onInput={setCode} isMono isRequired error={work.problem} />
        <Switch label={t("restoreAnew")} isOn={isAnew} onChange={setAnew} />
        <div class="row end"><button type="submit" class="button go" disabled={work.isBusy || password.length < 10 || code.trim() === ""}>{t("restore")}</button></div>
      </Form>
    </details>
  );
}

/** A file is read as a whole. */
const MOST_BYTES = 512 * 1024 * 1024;

/** Chats of this program or of other assistants. They are read here, and sealed before they leave. */
function Import() {
  const [done, setDone] = useState<string | null>(null);
  const take = async (files: FileList | null) => {
    const file = files?.[0];
    if (file === undefined) return;
    setDone(null);
    await attempt(async () => {
      if (file.size > MOST_BYTES) return setDone(t("importBadArchive"));
      const read = await readFile(file.name, new Uint8Array(await file.arrayBuffer())).catch((error: unknown) => {
        if (error instanceof BadArchive) return null;
        throw error;
      });
      if (read === null || (read.chats.length === 0 && read.memories.length === 0)) return setDone(t(read === null ? "importBadArchive" : "importNothing"));
      const made = await core().importChats({ chats: read.chats, memories: read.memories });
      const skipped = read.skipped + made.skipped;
      const parts = [t("imported", { n: made.chats.length }), ...(made.memories > 0 ? [t("importedMemories", { n: made.memories })] : []), ...(skipped > 0 ? [t("importSkipped", { n: skipped })] : [])];
      setDone(parts.join(" "));
      await loadList();
    });
  };
  return (
    <section>
      <h2>{t("importTitle")}</h2>
      <p>{t("importNote")}</p>
      <label class="button file">
        <Icon name="upload" />
        {t("importChoose")}
        <input type="file" accept=".json,.md,.txt,.zip" onChange={(event: TargetedEvent<HTMLInputElement>) => void take(event.currentTarget.files)} />
      </label>
      {done === null ? null : <p role="status">{done}</p>}
    </section>
  );
}
