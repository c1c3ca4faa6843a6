// The small pieces that every screen is made of: fields, switches, a spinner that waits before it shows itself.
import type { ComponentChildren, TargetedEvent, TargetedInputEvent } from "preact";
import { useEffect, useId, useState } from "preact/hooks";
import { t } from "../i18n";
import { Icon, type IconName } from "../icons";
import { copyText } from "../message/clipboard";

/** A button with a word, or with an icon and a name. */
export function IconButton({ icon, label, onClick, pressed, disabled, kind }: { icon: IconName; label: string; onClick: () => void; pressed?: boolean; disabled?: boolean; kind?: string }) {
  return (
    <button type="button" class={kind ? `icon-button ${kind}` : "icon-button"} aria-label={label} title={label} aria-pressed={pressed} disabled={disabled} onClick={onClick}>
      <Icon name={icon} />
    </button>
  );
}

interface FieldProps {
  label: string;
  value: string;
  onInput: (value: string) => void;
  type?: "text" | "password";
  autoComplete?: string;
  hint?: string;
  error?: string | null;
  isRequired?: boolean;
  autoFocus?: boolean;
  inputMode?: "text" | "numeric";
  isMono?: boolean;
}

/** A field with its name, what to know about it, and what is wrong with it. */
export function Field({ label, value, onInput, type = "text", autoComplete = "off", hint, error, isRequired, autoFocus, inputMode, isMono }: FieldProps) {
  const id = useId();
  const [isShown, setShown] = useState(false);
  const isPassword = type === "password";
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <div class="input">
        <input
          id={id}
          {...(isPassword && !isShown ? { type: "password" as const } : { type: "text" as const })}
          value={value}
          autoComplete={autoComplete}
          autocapitalize="off"
          spellcheck={false}
          required={isRequired}
          inputMode={inputMode}
          class={isMono ? "mono" : undefined}
          dir="auto"
          aria-invalid={error ? true : undefined}
          aria-describedby={hint || error ? `${id}-hint` : undefined}
          ref={useFocus(autoFocus === true)}
          onInput={(event: TargetedInputEvent<HTMLInputElement>) => onInput(event.currentTarget.value)}
        />
        {isPassword ? (
          <button type="button" class="icon-button" aria-label={t(isShown ? "hidePassword" : "showPassword")} aria-pressed={isShown} onClick={() => setShown(!isShown)}>
            <Icon name="eye" />
          </button>
        ) : null}
      </div>
      {hint || error ? <small id={`${id}-hint`} class={error ? "problem" : undefined}>{error ?? hint}</small> : null}
    </div>
  );
}

/** Takes the focus when it appears. */
export function useFocus(isOn: boolean): (element: HTMLElement | null) => void {
  const [isDone, setDone] = useState(false);
  return (element) => {
    if (element === null || !isOn || isDone) return;
    element.focus();
    setDone(true);
  };
}

/** Something that is on or off, with what that means. */
export function Switch({ label, hint, isOn, onChange, disabled }: { label: string; hint?: string; isOn: boolean; onChange: (isOn: boolean) => void; disabled?: boolean }) {
  const id = useId();
  return (
    <div class="switch-row">
      <span>
        <span id={id}>{label}</span>
        {hint ? <small>{hint}</small> : null}
      </span>
      <button type="button" role="switch" class="switch" aria-checked={isOn} aria-labelledby={id} disabled={disabled} onClick={() => onChange(!isOn)}>
        <i />
      </button>
    </div>
  );
}

/** One of a few. */
export function Choice<T extends string>({ label, value, options, onChange }: { label: string; value: T; options: { value: T; label: string }[]; onChange: (value: T) => void }) {
  const id = useId();
  return (
    <div class="switch-row">
      <label for={id}>{label}</label>
      <select
        id={id}
        value={value}
        onChange={(event: TargetedEvent<HTMLSelectElement>) => {
          const found = options.find((option) => option.value === event.currentTarget.value);
          if (found !== undefined) onChange(found.value);
        }}
      >
        {options.map((option) => (
          <option key={option.value} value={option.value} selected={option.value === value}>{option.label}</option>
        ))}
      </select>
    </div>
  );
}

/** Shows its children after 300 ms: what is quick never flickers. */
export function After({ ms = 300, children }: { ms?: number; children: ComponentChildren }) {
  const [isShown, setShown] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setShown(true), ms);
    return () => clearTimeout(timer);
  }, [ms]);
  return isShown ? <>{children}</> : null;
}

export function Spinner() {
  return <span class="spinner" aria-hidden="true" />;
}

/** Copies a text, and says so. */
export function CopyButton({ text, label }: { text: () => string; label: string }) {
  const [isCopied, setCopied] = useState(false);
  const copy = async () => {
    await copyText(text());
    setCopied(true);
    setTimeout(() => setCopied(false), 1500);
  };
  return (
    <button type="button" class="quiet" onClick={copy}>
      <Icon name={isCopied ? "check" : "copy"} />
      <span class="label" aria-live="polite">{isCopied ? t("copied") : label}</span>
    </button>
  );
}
