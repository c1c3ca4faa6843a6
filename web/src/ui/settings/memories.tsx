// What the account remembers for the person: learning style, interests, notes. Sealed like chats. The server learns their names with a
// question, and the words only of what is ticked for it.
import type { TargetedInputEvent } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { DataLine } from "../../client/core";
import { t } from "../i18n";
import { Field, IconButton } from "../parts/basics";
import { memoryName } from "../message/names";
import { Form } from "../screens/door";
import { core } from "../state/core";
import { attempt, say } from "../state/notes";
import { available } from "../state/options";

const KIND = "memories";
const BUILT_IN = ["learning_style", "interests"] as const;

export function Memories() {
  const [lines, setLines] = useState<DataLine[]>([]);
  const load = () =>
    attempt(async () => {
      const all = await core().dataOf(KIND);
      setLines(all);
      available.value = all.map((one) => one.name);
    });
  useEffect(() => void load(), []);
  const save = (name: string, body: string | null) => attempt(() => core().setData(KIND, name, body)).then(load);
  const own = lines.filter((line) => !BUILT_IN.some((name) => name === line.name));
  return (
    <section>
      <h2>{t("settings.memories")}</h2>
      <p>{t("memoriesNote")}</p>
      {BUILT_IN.map((name) => (
        <Memory key={name} label={t(`memory.${name}`)} hint={t(`memoryNote.${name}`)} body={lines.find((line) => line.name === name)?.body ?? ""} onSave={(body) => void save(name, body.trim() === "" ? null : body)} />
      ))}
      {own.map((line) => (
        <Memory key={line.name} label={line.name} body={line.body} onSave={(body) => void save(line.name, body)} onRemove={() => void save(line.name, null)} />
      ))}
      <Add onAdd={(name, body) => void save(name, body)} />
    </section>
  );
}

function Memory({ label, hint, body, onSave, onRemove }: { label: string; hint?: string; body: string; onSave: (body: string) => void; onRemove?: () => void }) {
  const [text, setText] = useState(body);
  useEffect(() => setText(body), [body]);
  return (
    <div class="memory">
      <label>
        <b>{label}</b>
        {hint ? <small>{hint}</small> : null}
        <textarea rows={2} value={text} dir="auto" onInput={(event: TargetedInputEvent<HTMLTextAreaElement>) => setText(event.currentTarget.value)} />
      </label>
      <div class="row end">
        {onRemove ? <IconButton icon="trash" label={t("removeMemory")} onClick={onRemove} /> : null}
        <button type="button" class="button" disabled={text === body} onClick={() => onSave(text)}>{t("save")}</button>
      </div>
    </div>
  );
}

function Add({ onAdd }: { onAdd: (name: string, body: string) => void }) {
  const [name, setName] = useState("");
  const [body, setBody] = useState("");
  const add = () => {
    const slug = memoryName(name);
    if (slug === null) return say(t("memoryNameBad"));
    onAdd(slug, body.trim());
    setName("");
    setBody("");
  };
  return (
    <Form onSubmit={add}>
      <h3>{t("memoryAdd")}</h3>
      <Field label={t("memoryName")} hint={t("memoryNameNote")} value={name} onInput={setName} isRequired />
      <Field label={t("memoryBody")} value={body} onInput={setBody} isRequired />
      <div class="row end"><button type="submit" class="button go" disabled={name.trim() === "" || body.trim() === ""}>{t("memoryAdd")}</button></div>
    </Form>
  );
}
