// Dialogs and menus. The browser's own <dialog> keeps the focus inside and gives it back; a menu closes on Escape, on a choice, and when
// the focus leaves it.
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { t } from "../i18n";
import { Icon, type IconName } from "../icons";
import { IconButton } from "./basics";

/** A dialog over the page. */
export function Dialog({ title, onClose, children, kind }: { title: string; onClose: () => void; children: ComponentChildren; kind?: string }) {
  const element = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const dialog = element.current;
    if (dialog !== null && !dialog.open) dialog.showModal();
    return () => dialog?.close();
  }, []);
  return (
    <dialog
      ref={element}
      class={kind}
      aria-label={title}
      onCancel={(event: Event) => {
        event.preventDefault();
        onClose();
      }}
      onClick={(event: MouseEvent) => {
        if (event.target === element.current) onClose();
      }}
    >
      <div class="dialog">
        <header>
          <h2>{title}</h2>
          <IconButton icon="close" label={t("close")} onClick={onClose} />
        </header>
        {children}
      </div>
    </dialog>
  );
}

export interface MenuItem {
  label: string;
  icon: IconName;
  run: () => void;
  isDanger?: boolean;
}

/** A button that opens a list of things to do. */
export function Menu({ label, items, icon = "more" }: { label: string; items: MenuItem[]; icon?: IconName }) {
  const [isOpen, setOpen] = useState(false);
  const root = useRef<HTMLDivElement>(null);
  const buttons = () => [...(root.current?.querySelectorAll<HTMLElement>("[role=menuitem]") ?? [])];
  useEffect(() => {
    if (isOpen) buttons()[0]?.focus();
  }, [isOpen]);
  const close = (isBack: boolean) => {
    setOpen(false);
    if (isBack) root.current?.querySelector<HTMLElement>("[aria-haspopup]")?.focus();
  };
  const move = (event: KeyboardEvent) => {
    if (!isOpen) return;
    const all = buttons();
    const at = all.indexOf(document.activeElement as HTMLElement);
    const steps: Record<string, number> = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: all.length - 1 };
    const to = steps[event.key];
    if (event.key === "Escape") {
      event.stopPropagation();
      close(true);
    } else if (to !== undefined) {
      event.preventDefault();
      all[(to + all.length) % all.length]?.focus();
    }
  };
  return (
    <div
      class="menu"
      ref={root}
      onKeyDown={move}
      onFocusOut={(event: FocusEvent) => {
        if (!(event.relatedTarget instanceof Node) || !root.current?.contains(event.relatedTarget)) setOpen(false);
      }}
    >
      <button type="button" class="icon-button" aria-haspopup="menu" aria-expanded={isOpen} aria-label={label} title={label} onClick={() => setOpen(!isOpen)}>
        <Icon name={icon} />
      </button>
      {isOpen ? (
        <div class="menu-items" role="menu" aria-label={label}>
          {items.map((item) => (
            <button
              key={item.label}
              type="button"
              role="menuitem"
              tabIndex={-1}
              class={item.isDanger ? "danger" : undefined}
              onMouseDown={(event: MouseEvent) => event.preventDefault()}
              onClick={() => {
                close(true);
                item.run();
              }}
            >
              <Icon name={item.icon} />
              {item.label}
            </button>
          ))}
        </div>
      ) : null}
    </div>
  );
}

/** Asks once more before something that cannot be undone. */
export function Confirm({ title, text, yes, onYes, onClose }: { title: string; text: string; yes: string; onYes: () => void; onClose: () => void }) {
  return (
    <Dialog title={title} onClose={onClose}>
      <p>{text}</p>
      <div class="row end">
        <button type="button" class="button" onClick={onClose}>{t("cancel")}</button>
        <button type="button" class="button danger" onClick={onYes}>{yes}</button>
      </div>
    </Dialog>
  );
}
