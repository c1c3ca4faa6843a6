// What the account remembers for the person: learning style, interests, notes. Sealed like chats. The server learns their names with a
// question, and the words only of what is ticked, given, or switched to go with every question.
import type { ComponentChildren, TargetedInputEvent } from "preact";
import { useEffect, useState } from "preact/hooks";
import { t } from "../i18n";
import { Field, IconButton, Switch } from "../parts/basics";
import { memoryName, PROFILE } from "../message/names";
import { Form } from "../screens/door";
import { core } from "../state/core";
import { attempt, problemText, say } from "../state/notes";
import { along, listOf, loadOptions, MAX_GIVEN_BYTES, memories, MEMORY, setList } from "../state/options";

const BUILT_IN: string[] = [PROFILE.learningStyle, PROFILE.interests];

export function Memories() {
  const load = () => attempt(loadOptions);
  useEffect(() => void load(), []);
  const save = async (name: string, body: string | null) => {
    // More than that could never be given, here or on the command line.
    if (body !== null && new TextEncoder().encode(body).length > MAX_GIVEN_BYTES) {
      say(problemText("too-large"));
      return;
    }
    await attempt(() => core().setData(MEMORY, name, body));
    await load();
  };
  const bodyOf = (name: string) => memories.value.find((line) => line.name === name)?.body ?? "";
  const own = memories.value.filter((line) => !BUILT_IN.includes(line.name));
  return (
    <section>
      <h2>{t("settings.memories")}</h2>
      <p>{t("memoriesNote")}</p>
      <Memory label={t("memory.learning_style")} hint={t("memoryNote.learning_style")} body={bodyOf(PROFILE.learningStyle)} onSave={(body) => void save(PROFILE.learningStyle, body.trim() === "" ? null : body)}>
        <Along name={PROFILE.learningStyle} label={t("alongStyle")} onChange={load} />
      </Memory>
      <Interests ticked={bodyOf(PROFILE.interests)} onSave={(body) => save(PROFILE.interests, body)} onChange={load} />
      {own.map((line) => (
        <Memory key={line.name} label={line.name} body={line.body} onSave={(body) => void save(line.name, body)} onRemove={() => void save(line.name, null)} />
      ))}
      <Add onAdd={(name, body) => void save(name, body)} />
    </section>
  );
}

/** Whether a memory goes with every question. Off at first. */
function Along({ name, label, onChange }: { name: string; label: string; onChange: () => unknown }) {
  const set = async (isOn: boolean) => {
    const rest = along.value.filter((one) => one !== name);
    await attempt(() => setList("along", isOn ? [...rest, name] : rest));
    onChange();
  };
  return <Switch label={label} hint={t("alongNote")} isOn={along.value.includes(name)} onChange={(isOn) => void set(isOn)} />;
}

/** Interests, each with its tick: the memory that a server can get has only those that are ticked. */
function Interests({ ticked, onSave, onChange }: { ticked: string; onSave: (body: string | null) => Promise<void>; onChange: () => unknown }) {
  const [all, setAll] = useState<string[]>([]);
  const [text, setText] = useState("");
  const on = ticked.split(",").map((one) => one.trim()).filter((one) => one !== "");
  useEffect(() => {
    void attempt(async () => setAll(listOf(await core().data("settings", "interests"))));
  }, []);
  const shown = [...new Set([...all, ...on])];
  // Which there are, and which of them are ticked, are kept apart: one who adds and ticks at once gets both.
  const keep = async (list: string[]) => {
    setAll(list);
    await attempt(() => setList("interests", list));
  };
  const tick = (isOn: string[]) => onSave(isOn.length > 0 ? isOn.join(", ") : null);
  const add = () => {
    // A comma parts two of them.
    const fresh = text.split(",").map((one) => one.trim().slice(0, 60)).filter((one) => one !== "" && !shown.includes(one));
    setText("");
    void keep([...shown, ...fresh]);
  };
  return (
    <div class="memory">
      <b>{t("memory.interests")}</b>
      <small>{t("memoryNote.interests")}</small>
      <div class="interests" role="group" aria-label={t("memory.interests")}>
        {shown.map((one) => (
          <span key={one}>
            <label class="tick">
              <input type="checkbox" checked={on.includes(one)} onChange={() => void tick(on.includes(one) ? on.filter((other) => other !== one) : [...on, one])} />
              <span dir="auto">{one}</span>
            </label>
            <IconButton icon="close" label={t("interestRemove", { name: one })} onClick={() => void keep(shown.filter((other) => other !== one)).then(() => (on.includes(one) ? tick(on.filter((other) => other !== one)) : undefined))} />
          </span>
        ))}
      </div>
      <Form onSubmit={add}>
        <Field label={t("interestAdd")} value={text} onInput={setText} />
        <div class="row end"><button type="submit" class="button" disabled={text.trim() === ""}>{t("interestAdd")}</button></div>
      </Form>
      <Along name={PROFILE.interests} label={t("alongInterests")} onChange={onChange} />
    </div>
  );
}

interface MemoryProps {
  label: string;
  hint?: string;
  body: string;
  onSave: (body: string) => void;
  onRemove?: () => void;
  children?: ComponentChildren;
}

function Memory({ label, hint, body, onSave, onRemove, children }: MemoryProps) {
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
        <button type="button" class="button" disabled={text === body || (onRemove !== undefined && text.trim() === "")} onClick={() => onSave(text)}>{t("save")}</button>
      </div>
      {children}
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
