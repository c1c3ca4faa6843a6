// Settings: loaded when they are first opened. One file a part; each switch says what it keeps out of the requests.
import { useEffect, useRef } from "preact/hooks";
import { t } from "../i18n";
import { hrefOf } from "../state/route";
import { Data } from "../settings/data";
import { Devices } from "../settings/devices";
import { General } from "../settings/general";
import { Memories } from "../settings/memories";
import { Privacy } from "../settings/privacy";
import { Security } from "../settings/security";
import { DrawerButton } from "./shell";

const PARTS = ["general", "privacy", "memories", "devices", "security", "data"] as const;

export function Settings({ part }: { part: string }) {
  const shown = PARTS.find((one) => one === part) ?? "general";
  const tabs = useRef<HTMLElement>(null);
  // On a phone not all of them fit.
  useEffect(() => tabs.current?.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" }), [shown]);
  return (
    <div class="sheet">
      <header class="head"><DrawerButton /><h1>{t("settings")}</h1></header>
      <nav class="tabs" ref={tabs} aria-label={t("settings")}>
        {PARTS.map((one) => (
          <a key={one} href={hrefOf({ page: "settings", part: one })} aria-current={one === shown ? "page" : undefined}>{t(`settings.${one}`)}</a>
        ))}
      </nav>
      <div class="scroll">
        <div class="page">
          {shown === "general" ? <General /> : null}
          {shown === "privacy" ? <Privacy /> : null}
          {shown === "memories" ? <Memories /> : null}
          {shown === "devices" ? <Devices /> : null}
          {shown === "security" ? <Security /> : null}
          {shown === "data" ? <Data /> : null}
        </div>
      </div>
    </div>
  );
}
