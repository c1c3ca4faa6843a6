// The words of a message as nodes. A node draws again only when its words did; while an answer grows, that is the last one.
import { Component } from "preact";
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
export function MessageBody({ id, body, loadBody }: { id: string; body: string; loadBody?: () => Promise<string | null> }) {
  const nodes = useMemo(() => parseMessage(id, body, content), [id, body]);
  return <Nodes nodes={nodes} load={loadBody ?? (async () => body)} />;
}

/** The words of an answer that is coming. */
export function GrowingBody({ id, words }: { id: string; words: Signal<string> }) {
  const stream = useRef<Stream | null>(null);
  stream.current ??= new Stream();
  const nodes = parseMessage(id, words.value, content, { isStreaming: true, stream: stream.current });
  return <Nodes nodes={nodes} load={async () => words.peek()} />;
}

function Nodes({ nodes, load }: { nodes: MessageNode[]; load: () => Promise<string | null> }) {
  return (
    <div class="words">
      {nodes.map((node) => (
        <NodeView key={node.id} node={node} load={load} />
      ))}
    </div>
  );
}

interface NodeProps {
  node: MessageNode;
  load: () => Promise<string | null>;
}

class NodeView extends Component<NodeProps> {
  override shouldComponentUpdate(next: NodeProps): boolean {
    const { node } = this.props;
    return node.contentHash !== next.node.contentHash || node.status !== next.node.status || node.type !== next.node.type;
  }

  override render({ node, load }: NodeProps) {
    const block = content.get(node.contentRef);
    if (block === undefined) return <Missing node={node} load={load} onLoaded={() => this.forceUpdate()} />;
    const isStreaming = node.status === "processing";
    if (node.type === "paste" && !isStreaming) return <Paste node={node} text={block.raw} />;
    return renderBlock(block.token, { isStreaming });
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

/** A long paste: its first lines, and the rest when it is asked for. */
function Paste({ node, text }: { node: MessageNode; text: string }) {
  const [shown, setShown] = useState(PASTE_FIRST);
  const rest = text.length - shown;
  return (
    <figure class="embed paste">
      <figcaption>
        <span>{t("longText", { n: node.meta.words })}</span>
        <button type="button" onClick={() => copyEmbed({ type: "paste", text })}><Icon name="copy" />{t("copy")}</button>
      </figcaption>
      <p class="raw" dir="auto">{readable(text.slice(0, shown))}{rest > 0 ? "…" : ""}</p>
      {rest > 0 ? <button type="button" class="unfold" onClick={() => setShown(shown + PASTE_MORE)}>{t("showMoreText", { n: rest })}</button> : null}
    </figure>
  );
}

const PASTE_FIRST = 600;
const PASTE_MORE = 60_000;
