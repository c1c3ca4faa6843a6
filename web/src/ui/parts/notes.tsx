// The notes at the foot of the page. They are announced, never take the focus, and go by themselves.
import { t } from "../i18n";
import { Icon } from "../icons";
import { dismiss, notes } from "../state/notes";

export function Notes() {
  return (
    <div class="notes" role="status" aria-live="polite">
      {notes.value.map((note) => (
        <div key={note.id} class={`note ${note.kind}`}>
          <span>{note.text}</span>
          {note.action ? (
            <button
              type="button"
              onClick={() => {
                note.action?.run();
                dismiss(note.id);
              }}
            >
              {note.action.label}
            </button>
          ) : null}
          <button type="button" class="icon-button" aria-label={t("close")} onClick={() => dismiss(note.id)}>
            <Icon name="close" size={12} />
          </button>
        </div>
      ))}
    </div>
  );
}
