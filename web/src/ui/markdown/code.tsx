// A block of code: its language, a button that copies it, and colours once it is whole.
//
// Colours come from lowlight, which is loaded when the first whole block is seen. Easy to get wrong: colouring while words come. Each
// word would build the tree anew; so the code is one text node until it ends. Long code is folded.
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { t } from "../i18n";
import { Icon } from "../icons";
import { copyEmbed } from "../message/clipboard";
import { readable } from "./links";

const FOLDED_LINES = 28;
const MAX_COLOURED = 40_000;

/** A block of code. */
export function CodeBlock({ text, lang, isStreaming, isPart }: { text: string; lang: string; isStreaming: boolean; isPart: boolean }) {
  const name = /^[\w+#.-]{1,24}/.exec(lang)?.[0] ?? "";
  const [isOpen, setOpen] = useState(false);
  const [isCopied, setCopied] = useState(false);
  const lines = text.split("\n");
  const isFolded = !isOpen && !isStreaming && lines.length > FOLDED_LINES + 6;
  const shown = isFolded ? lines.slice(0, FOLDED_LINES).join("\n") : text;
  const coloured = useColours(shown, name, isStreaming);
  const copy = async () => {
    await copyEmbed({ type: "code", lang: name, text });
    setCopied(true);
    setTimeout(() => setCopied(false), 1500);
  };
  return (
    <figure class="code" dir="ltr">
      <figcaption>
        <span>{name || t("code")}</span>
        {isPart ? null : (
          <button type="button" onClick={copy} aria-label={t("copyCode")}>
            <Icon name={isCopied ? "check" : "copy"} />
            <span aria-live="polite">{isCopied ? t("copied") : t("copy")}</span>
          </button>
        )}
      </figcaption>
      <pre tabIndex={0} aria-label={name || t("code")}><code>{coloured ?? readable(shown)}</code></pre>
      {isFolded ? <button type="button" class="unfold" onClick={() => setOpen(true)}>{t("showLines", { n: lines.length - FOLDED_LINES })}</button> : null}
    </figure>
  );
}

function useColours(text: string, lang: string, isStreaming: boolean): ComponentChildren | null {
  const [coloured, setColoured] = useState<{ text: string; tree: ComponentChildren } | null>(null);
  useEffect(() => {
    if (isStreaming || lang === "" || text.length > MAX_COLOURED) return;
    let isOn = true;
    void import("./highlight").then((module) => {
      const tree = module.highlight(text, lang);
      if (isOn && tree !== null) setColoured({ text, tree });
    }, () => undefined);
    return () => {
      isOn = false;
    };
  }, [text, lang, isStreaming]);
  return coloured?.text === text ? coloured.tree : null;
}
