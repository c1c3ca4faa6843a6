// Colours for code, loaded when the first whole block is seen. lowlight gives a tree of spans with classes, never HTML.
import type { ComponentChildren } from "preact";
import { common, createLowlight } from "lowlight";
import { readable } from "./links";

const lowlight = createLowlight(common);

interface Node {
  type: string;
  value?: string;
  properties?: { className?: unknown };
  children?: Node[];
}

/** The text in colours; null if the language is not known. */
export function highlight(text: string, lang: string): ComponentChildren | null {
  const name = lang.toLowerCase();
  if (!lowlight.registered(name)) return null;
  try {
    return children(lowlight.highlight(name, text) as Node, 0);
  } catch {
    return null;
  }
}

function children(node: Node, depth: number): ComponentChildren[] {
  return (node.children ?? []).map((child) => {
    if (child.type === "text") return readable(child.value ?? "");
    const names = Array.isArray(child.properties?.className) ? child.properties.className.filter((name): name is string => typeof name === "string") : [];
    return <span class={names.join(" ")}>{depth < 24 ? children(child, depth + 1) : null}</span>;
  });
}
