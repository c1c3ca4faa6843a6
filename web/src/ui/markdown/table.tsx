// A table: it scrolls inside itself, and a huge one shows its first rows until it is asked for the rest.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { Token, Tokens } from "marked";
import { t } from "../i18n";
import { Icon } from "../icons";
import { copyEmbed } from "../message/clipboard";

const FIRST_ROWS = 30;
const MORE_ROWS = 400;
const MAX_COLUMNS = 40;

/** A table. `cell` renders what is in a cell. */
export function TableBlock({ table, cell, isStreaming, isPart }: { table: Tokens.Table; cell: (tokens: Token[]) => ComponentChildren; isStreaming: boolean; isPart: boolean }) {
  const [limit, setLimit] = useState(FIRST_ROWS);
  const rows = isStreaming ? table.rows.slice(-MORE_ROWS) : table.rows.slice(0, limit);
  const hidden = isStreaming ? 0 : table.rows.length - rows.length;
  const align = (at: number) => {
    const one = table.align[at];
    return one === "right" || one === "center" ? one : undefined;
  };
  return (
    <figure class="table" dir="auto">
      <div class="scroll-x" tabIndex={0} role="region" aria-label={t("table")}>
        <table>
          <thead>
            <tr>{table.header.slice(0, MAX_COLUMNS).map((one, at) => <th key={at} class={align(at)} scope="col">{cell(one.tokens)}</th>)}</tr>
          </thead>
          <tbody>
            {rows.map((row, index) => (
              <tr key={index}>{row.slice(0, MAX_COLUMNS).map((one, at) => <td key={at} class={align(at)}>{cell(one.tokens)}</td>)}</tr>
            ))}
          </tbody>
        </table>
      </div>
      {isStreaming || isPart ? null : <button type="button" class="quiet copy-table" onClick={() => void copyEmbed({ type: "table", text: table.raw.trimEnd() })}><Icon name="copy" />{t("copyTable")}</button>}
      {hidden > 0 ? <button type="button" class="unfold" onClick={() => setLimit(limit + MORE_ROWS)}>{t("showRows", { n: hidden })}</button> : null}
    </figure>
  );
}
