// A part of the page that is loaded when it is first shown. While it comes, a quiet line after 300 ms; if it does not come, how to try again.
import type { ComponentType, VNode } from "preact";
import { useEffect, useState } from "preact/hooks";
import { t } from "../i18n";
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
        () => setFailed(true),
      );
    }, [isFailed]);
    if (Shown !== null) return <Shown.component {...props} />;
    if (isFailed) return <p class="problem">{t("partMissing")} <button type="button" class="text" onClick={() => setFailed(false)}>{t("tryAgain")}</button></p>;
    return <After><p class="loading"><Spinner />{t("loading")}</p></After>;
  };
}
