// The words of a message as nodes. A node draws again only when its words did; while an answer grows, that is the last one.
import { Component, type ComponentChildren } from "preact";
import { useMemo, useRef, useState } from "preact/hooks";
import type { Signal } from "@preact/signals";
import { t } from "../i18n";
import { Icon } from "../icons";
import { Stream, lex } from "../markdown/lex";
import { readable } from "../markdown/links";
import { renderBlock } from "../markdown/render";
import { content } from "../state/chat";
import { copyEmbed } from "./clipboard";
import { parseMessage, type MessageNode } from "./parse";

/** The words of a message that is whole. */
export function MessageBody({ id, body, isPart = false }: { id: string; body: string; isPart?: boolean }) {
  const nodes = useMemo(() => parseMessage(id, body, content), [id, body]);
  return <Nodes nodes={nodes} load={async () => body} isPart={isPart} />;
}

/** The words of an answer that is coming. */
export function GrowingBody({ id, words }: { id: string; words: Signal<string> }) {
  const stream = useRef<Stream | null>(null);
  stream.current ??= new Stream();
  const nodes = parseMessage(id, words.value, content, { isStreaming: true, stream: stream.current });
  return <Nodes nodes={nodes} load={async () => words.peek()} />;
}

/** `isPart`: of a message that was shortened, so that its last embed may be cut, and is not copied. */
function Nodes({ nodes, load, isPart = false }: { nodes: MessageNode[]; load: () => Promise<string | null>; isPart?: boolean }) {
  return (
    <div class="words">
      {nodes.map((node) => (
        <NodeView key={node.id} node={node} load={load} isPart={isPart} />
      ))}
    </div>
  );
}

interface NodeProps {
  node: MessageNode;
  load: () => Promise<string | null>;
  isPart: boolean;
}

class NodeView extends Component<NodeProps> {
  override shouldComponentUpdate(next: NodeProps): boolean {
    const { node } = this.props;
    return node.contentRef !== next.node.contentRef || node.contentHash !== next.node.contentHash || node.status !== next.node.status || node.type !== next.node.type;
  }

  override render({ node, load, isPart }: NodeProps) {
    const block = content.get(node.contentRef);
    if (block === undefined) return <Missing node={node} load={load} isPart={isPart} onLoaded={() => this.forceUpdate()} />;
    const isStreaming = node.status === "processing";
    if (node.type === "paste" && !isStreaming) return <Paste node={node} text={block.raw} isPart={isPart} />;
    const drawn = renderBlock(block.token, { isStreaming, isPart });
    return node.type === "link" && !isStreaming && !isPart ? <LinkEmbed text={block.raw.trim()}>{drawn}</LinkEmbed> : drawn;
  }
}

/** The words are not in memory: they are loaded when they are wanted. */
function Missing({ node, load, onLoaded }: NodeProps & { onLoaded: () => void }) {
  const [isGone, setGone] = useState(false);
  const fetchIt = async () => {
    const raw = await content.load(node.contentRef, load);
    const block = raw === null ? undefined : lex(raw)[0];
    if (block === undefined) setGone(true);
    else {
      content.put(node.contentRef, block);
      onLoaded();
    }
  };
  return (
    <button type="button" class="embed missing" onClick={fetchIt} disabled={isGone}>
      <Icon name="download" />
      {isGone ? t("contentGone") : t("contentLoad", { n: node.meta.lines })}
    </button>
  );
}

/** A link that stands alone: it can be copied as what it is. */
function LinkEmbed({ text, children }: { text: string; children: ComponentChildren }) {
  return (
    <div class="embed link-embed">
      {children}
      <button type="button" class="quiet" aria-label={t("copyLink")} title={t("copyLink")} onClick={() => void copyEmbed({ type: "link", text })}><Icon name="copy" /></button>
    </div>
  );
}

/** A long paste: its first lines, and the rest when it is asked for. */
function Paste({ node, text, isPart }: { node: MessageNode; text: string; isPart: boolean }) {
  const [shown, setShown] = useState(PASTE_FIRST);
  const rest = text.length - shown;
  return (
    <figure class="embed paste">
      <figcaption>
        <span>{t("longText", { n: node.meta.words })}</span>
        {isPart ? null : <button type="button" onClick={() => copyEmbed({ type: "paste", text })}><Icon name="copy" />{t("copy")}</button>}
      </figcaption>
      <p class="raw" dir="auto">{readable(text.slice(0, shown))}{rest > 0 ? "…" : ""}</p>
      {rest > 0 ? <button type="button" class="unfold" onClick={() => setShown(shown + PASTE_MORE)}>{t("showMoreText", { n: rest })}</button> : null}
    </figure>
  );
}

const PASTE_FIRST = 600;
const PASTE_MORE = 60_000;
