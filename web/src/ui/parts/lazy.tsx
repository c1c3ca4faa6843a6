// A part of the page that is loaded when it is first shown. While it comes, a quiet line after 300 ms; if it does not come, how to go on:
// the server is away (try again), or it has another page by now (load that one).
import type { ComponentType, VNode } from "preact";
import { useEffect, useState } from "preact/hooks";
import { t } from "../i18n";
import { isStale } from "../state/account";
import { look, renew } from "../state/offline";
import { After, Spinner } from "./basics";

/** A component that is loaded when it is first shown. */
export function lazy<P extends object>(load: () => Promise<ComponentType<P>>): (props: P) => VNode {
  let loaded: ComponentType<P> | null = null;
  return function Lazy(props: P) {
    const [Shown, setShown] = useState<{ component: ComponentType<P> } | null>(loaded ? { component: loaded } : null);
    const [isFailed, setFailed] = useState(false);
    useEffect(() => {
      if (Shown !== null || isFailed) return;
      load().then(
        (component) => {
          loaded = component;
          setShown({ component });
        },
        () => {
          setFailed(true);
          void look();
        },
      );
    }, [isFailed]);
    if (Shown !== null) return <Shown.component {...props} />;
    if (isFailed) return <Missing onRetry={() => setFailed(false)} />;
    return <After><p class="loading"><Spinner />{t("loading")}</p></After>;
  };
}

function Missing({ onRetry }: { onRetry: () => void }) {
  return (
    <p class="problem missing" role="alert">
      {t(isStale.value ? "error.stale-client" : "partMissing")}{" "}
      {isStale.value ? null : <button type="button" class="text" onClick={onRetry}>{t("tryAgain")}</button>}{" "}
      <button type="button" class="text" onClick={() => void renew()}>{t("reload")}</button>
    </p>
  );
}
