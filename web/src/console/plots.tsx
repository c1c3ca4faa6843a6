// Small plots, drawn by hand. Each says in words what it shows: to whoever cannot see it, as its name.
import { ceiling, SPAN_MS, type Point } from "./numbers";
import { number, t } from "./words";

const WIDTH = 320;
const HEIGHT = 84;

/** The last minutes of a number. */
export function Line({ points, now, name }: { points: readonly Point[]; now: number; name: (now: string, top: string) => string }) {
  const top = points.reduce((most, { value }) => Math.max(most, value), 0);
  const scale = ceiling(top);
  const x = (at: number) => (WIDTH * (SPAN_MS - (now - at))) / SPAN_MS;
  const y = (value: number) => HEIGHT - 2 - ((HEIGHT - 8) * value) / scale;
  const path = points.map(({ at, value }, index) => `${index === 0 ? "M" : "L"}${x(at).toFixed(1)} ${y(value).toFixed(1)}`).join("");
  const [first, last] = [points[0], points.at(-1)];
  const area = first !== undefined && last !== undefined ? `${path}L${x(last.at).toFixed(1)} ${HEIGHT}L${x(first.at).toFixed(1)} ${HEIGHT}Z` : "";
  return (
    <figure class="plot">
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label={name(number(last?.value ?? 0), number(top))}>
        <path class="grid" d={`M0 ${y(scale)}H${WIDTH}M0 ${y(scale / 2)}H${WIDTH}M0 ${HEIGHT - 1}H${WIDTH}`} />
        <path class="area" d={area} />
        <path class="line" d={path} />
      </svg>
      <figcaption aria-hidden="true">
        <span>{t("ago", { n: SPAN_MS / 60_000 })}</span>
        <span>0–{number(scale)}</span>
        <span>{t("now")}</span>
      </figcaption>
    </figure>
  );
}

/** How many of each, side by side. */
export function Bars({ counts, labels, name }: { counts: readonly number[]; labels: readonly string[]; name: string }) {
  const top = Math.max(1, ...counts);
  const step = WIDTH / Math.max(1, counts.length);
  return (
    <figure class="plot">
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label={name}>
        <path class="grid" d={`M0 ${HEIGHT - 1}H${WIDTH}`} />
        {counts.map((count, index) => {
          const height = count === 0 ? 0 : Math.max(2, ((HEIGHT - 8) * count) / top);
          return <rect key={index} class="bar" x={index * step + 2} y={HEIGHT - 1 - height} width={step - 4} height={height} />;
        })}
      </svg>
      <figcaption aria-hidden="true">
        <span>{labels[0]}</span>
        <span>{labels[Math.floor(labels.length / 2)]}</span>
        <span>{labels.at(-1)}</span>
      </figcaption>
    </figure>
  );
}

/** A share of a whole, as a bar. The number stands beside it. */
export function Share({ part }: { part: number }) {
  return (
    <svg class="share" viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true">
      <rect class="whole" width="100" height="6" />
      <rect class="bar" width={Math.max(0, Math.min(100, part * 100))} height="6" />
    </svg>
  );
}
