// Editing a message of the person: sent again, it begins another branch; the old one stays behind ‹1/2›.
import type { TargetedInputEvent } from "preact";
import { useState } from "preact/hooks";
import { t } from "../i18n";
import { useFocus } from "../parts/basics";
import { sends } from "./enter";

interface Props {
  body: string;
  /** Whether it was begun before, and is only shown again. */
  isKept: boolean;
  onType: (body: string) => void;
  onCancel: () => void;
  onSend: (body: string) => Promise<void>;
}

export function EditBox({ body, isKept, onType, onCancel, onSend }: Props) {
  const [text, setText] = useState(body);
  const [isBusy, setBusy] = useState(false);
  const send = async () => {
    if (text.trim() === "" || isBusy) return;
    setBusy(true);
    await onSend(text);
    setBusy(false);
  };
  return (
    <form
      class="edit-box"
      onSubmit={(event: Event) => {
        event.preventDefault();
        void send();
      }}
    >
      <textarea
        aria-label={t("editResend")}
        value={text}
        rows={Math.min(14, Math.max(3, text.split("\n").length))}
        dir="auto"
        ref={useFocus(!isKept)}
        onInput={(event: TargetedInputEvent<HTMLTextAreaElement>) => {
          setText(event.currentTarget.value);
          onType(event.currentTarget.value);
        }}
        onKeyDown={(event: KeyboardEvent) => {
          if (event.key === "Escape") {
            event.stopPropagation();
            onCancel();
          } else if (sends(event)) {
            event.preventDefault();
            void send();
          }
        }}
      />
      <p class="small">{t("editNote")}</p>
      <div class="row end">
        <button type="button" class="button" onClick={onCancel}>{t("cancel")}</button>
        <button type="submit" class="button go" disabled={isBusy || text.trim() === ""}>{t("sendAgain")}</button>
      </div>
    </form>
  );
}
