// The parts of the page: one card for each thing that whoever looks after a server wants to know. What the server does not say, says so.
import type { ComponentChildren } from "preact";
import { Icon } from "../ui/icons";
import { lately, perMinute, quantile, share, SPAN_MS, type Sample } from "./numbers";
import { Bars, Line, Share } from "./plots";
import type { AuditLine, Channel, Check, Sessions as SessionCounts, Times, Told } from "./told";
import { lasting, named, number, percent, t, when, type Key } from "./words";

const MINUTES = SPAN_MS / 60_000;

function Card({ title, note, isWide, children }: { title: string; note?: string | undefined; isWide?: boolean; children: ComponentChildren }) {
  return (
    <section class={isWide === true ? "panel wide" : "panel"}>
      <h2>{title}{note !== undefined && <small>{note}</small>}</h2>
      {children}
    </section>
  );
}

const Missing = () => <p class="small">{t("notAvailable")}</p>;

function Big({ value, label, isBad }: { value: string; label: string; isBad?: boolean }) {
  return <p class={isBad === true ? "big bad" : "big"}><b>{value}</b> <span>{label}</span></p>;
}

function Facts({ facts }: { facts: [string, string][] }) {
  return <dl class="facts">{facts.map(([name, value]) => <div key={name}><dt>{name}</dt><dd>{value}</dd></div>)}</dl>;
}

/** Whether everything works, and what does not. */
export function Health({ told }: { told: Told }) {
  const rows: (Check & { word: string })[] = [
    ...told.checks.map((check) => ({ ...check, word: check.ok ? t("running") : t("failed") })),
    ...told.damaged.map((check) => ({ ...check, word: t("damaged") })),
    ...told.channels.map((channel) => ({ part: channelName(channel), ok: channel.condition === "up" && channel.trouble === null, trouble: channel.trouble, word: named("condition", channel.condition) })),
  ];
  const isWell = rows.every(({ ok }) => ok);
  return (
    <Card title={t("health")} note={t("version", { v: told.version })}>
      <p class={isWell ? "verdict good" : "verdict bad"}><Icon name={isWell ? "check" : "warn"} /> {isWell ? t("allWell") : t("notWell")}</p>
      <ul class="checks">
        {rows.map(({ part, ok, trouble, word }) => (
          <li key={part} class={ok ? "good" : "bad"}>
            <Icon name={ok ? "check" : "warn"} /><span>{named("part", part)}</span><em>{word}</em>
            {trouble !== null && <small>{trouble}</small>}
          </li>
        ))}
      </ul>
      <p class="small">{t("uptime", { at: when(told.startedAt) })}{told.stores !== null && ` · ${t("dataIn", { data: told.stores.data, keys: told.stores.keyring })}`}</p>
    </Card>
  );
}

const channelName = ({ platform, label }: Channel) => (label === "" || label === platform ? platform : `${platform} · ${label}`);

/** What runs, and what ran. */
export function Turns({ told, samples }: { told: Told; samples: readonly Sample[] }) {
  const { turns } = told;
  if (turns === null) return <Card title={t("turns")}><Missing /></Card>;
  const answered = perMinute(samples, (sample) => sample.answered);
  const facts = (["accepted", "answered", "failed", "paused", "cancelled", "replayed", "resumed", "degraded", "tool_calls"] as const).map((name): [string, string] => [t(`turns.${name}`), number(turns[name])]);
  return (
    <Card title={t("turns")}>
      <div class="pair">
        <div>
          <Big value={number(turns.running)} label={t("runningNow")} />
          <Line points={samples.map(({ at, running }) => ({ at, value: running }))} now={told.at} name={(now, top) => t("turnsPlot", { n: MINUTES, now, top })} />
        </div>
        <div>
          <Big value={number(answered.at(-1)?.value ?? 0)} label={t("answeredMinute")} />
          <Line points={answered} now={told.at} name={(now, top) => t("answeredPlot", { n: MINUTES, now, top })} />
        </div>
      </div>
      <h3>{t("sinceStart")}</h3>
      <Facts facts={facts} />
    </Card>
  );
}

const shown = (times: Times, part: number): string => {
  const found = quantile(times, part);
  return found === null ? "–" : found.isOver ? t("over", { time: lasting(found.ms) }) : lasting(found.ms);
};

/** How long turns take. */
export function Latency({ told, samples }: { told: Told; samples: readonly Sample[] }) {
  const { times } = told;
  if (times === null) return <Card title={t("latency")}><Missing /></Card>;
  if (times.counts.every((count) => count === 0)) return <Card title={t("latency")}><p class="small">{t("noTurns")}</p></Card>;
  const recent = lately(samples, times);
  const labels = times.counts.map((_, index) => { const bound = times.bounds[index]; return bound === undefined ? t("over", { time: lasting(times.bounds.at(-1) ?? 0) }) : t("upTo", { time: lasting(bound) }); });
  return (
    <Card title={t("latency")}>
      <table class="grid-table">
        <thead><tr><td /><th scope="col">{t("median")}</th><th scope="col">{t("slow")}</th></tr></thead>
        <tbody>
          <tr><th scope="row">{t("sinceStart")}</th><td>{shown(times, 0.5)}</td><td>{shown(times, 0.95)}</td></tr>
          <tr><th scope="row">{t("lately")}</th>{recent === null ? <td colSpan={2}>{t("noTurnsLately")}</td> : <><td>{shown(recent, 0.5)}</td><td>{shown(recent, 0.95)}</td></>}</tr>
        </tbody>
      </table>
      <Bars counts={times.counts} labels={labels} name={t("timesPlot", { half: shown(times, 0.5), most: shown(times, 0.95) })} />
      <details>
        <summary>{t("values")}</summary>
        <table class="grid-table">
          <thead><tr><th scope="col">{t("time")}</th><th scope="col">{t("count")}</th></tr></thead>
          <tbody>{times.counts.map((count, index) => <tr key={index}><th scope="row">{labels[index]}</th><td>{number(count)}</td></tr>)}</tbody>
        </table>
      </details>
    </Card>
  );
}

function whyNot(told: Told): string {
  if (told.notCounted === "counting") return t("counting");
  return told.notCounted === null ? t("notAvailable") : t("notCounted", { why: told.notCounted });
}

/** How many sessions there are, by channel and by where they are kept. */
export function Sessions({ told }: { told: Told }) {
  const { sessions } = told;
  if (sessions === null) return <Card title={t("sessions")}><p class="small">{whyNot(told)}</p></Card>;
  const all = sessions.byChannel.reduce((sum, one) => sum + one.sessions, 0);
  return (
    <Card title={t("sessions")} note={t("sessionsOf", { at: when(sessions.countedAt) })}>
      <Big value={number(all)} label="" />
      {all === 0 ? <p class="small">{t("noSessions")}</p> : <SessionTable sessions={sessions} all={all} />}
      {told.notCounted !== null && <p class="small problem">{whyNot(told)}</p>}
    </Card>
  );
}

function SessionTable({ sessions, all }: { sessions: SessionCounts; all: number }) {
  return (
    <table class="grid-table">
      <thead><tr><th scope="col">{t("channel")}</th><th scope="col">{t("kept")}</th><th scope="col">{t("count")}</th></tr></thead>
      <tbody>
        {sessions.byChannel.map(({ channel, kept, sessions: count }) => (
          <tr key={`${channel} ${kept}`}><th scope="row">{channel}</th><td>{named("kept", kept)}</td><td>{number(count)}<Share part={count / all} /></td></tr>
        ))}
      </tbody>
    </table>
  );
}

/** What waits in the channels. */
export function Queue({ told, samples }: { told: Told; samples: readonly Sample[] }) {
  const waiting = told.channels.reduce((sum, { backlog }) => sum + backlog, 0);
  if (told.channels.length === 0) return <Card title={t("queue")}><p class="small">{t("noChannels")}</p></Card>;
  return (
    <Card title={t("queue")}>
      <Big value={number(waiting)} label={t("waiting")} />
      <Line points={samples.map(({ at, backlog }) => ({ at, value: backlog }))} now={told.at} name={(now, top) => t("backlogPlot", { n: MINUTES, now, top })} />
      <ul class="checks">
        {told.channels.map((channel) => (
          <li key={channelName(channel)} class={channel.condition === "up" ? "good" : "bad"}>
            <Icon name={channel.condition === "up" ? "check" : "warn"} /><span>{channelName(channel)}</span><em>{number(channel.backlog)}</em>
            <small>{[t("received", { n: channel.received }), t("undelivered", { n: channel.undelivered }), t("reconnects", { n: channel.reconnects })].join(" · ")}</small>
          </li>
        ))}
      </ul>
    </Card>
  );
}

/** How often what a turn needs was at hand. */
export function Cache({ told }: { told: Told }) {
  const { cache } = told;
  if (cache === null) return <Card title={t("cache")}><Missing /></Card>;
  const rows: { name: Key; hits: number; misses: number }[] = [{ name: "warm", hits: cache.warm, misses: cache.cold }, { name: "history", hits: cache.historyKnown, misses: cache.historyAsked }];
  return (
    <Card title={t("cache")} note={t("sinceStart")}>
      {rows.map(({ name, hits, misses }) => {
        const part = share(hits, misses);
        return (
          <div key={name} class="hit">
            <p><span>{t(name)}</span> <b>{part === null ? t("notYet") : percent(part)}</b>{part !== null && <small> {t("ofTurns", { hits, all: hits + misses })}</small>}</p>
            {part !== null && <Share part={part} />}
          </div>
        );
      })}
    </Card>
  );
}

/** The key ring, its rotation, and what did not open. */
export function Keys({ told }: { told: Told }) {
  const { keys } = told;
  const unreadable = told.sessions?.unreadable ?? null;
  const isBad = (told.failedOpenings ?? 0) > 0 || (unreadable ?? 0) > 0;
  const facts: [string, string][] = [];
  if (keys !== null) facts.push([t("keysSealed"), number(keys.keys)], [t("masters"), number(keys.masters)], [t("underOthers"), number(keys.underOthers)]);
  if (told.failedOpenings !== null) facts.push([t("failedOpenings"), number(told.failedOpenings)]);
  if (unreadable !== null) facts.push([t("unreadableKeys"), number(unreadable)]);
  return (
    <Card title={t("keys")}>
      {keys === null ? <p class="small">{whyNot(told)}</p> : (
        <>
          <p>{keys.rotatedAt === null ? t("neverRotated") : t("rotated", { at: when(keys.rotatedAt) })}</p>
          {keys.underOthers === 0 ? <p class="small">{t("rotationDone")}</p> : <p class="notice warn">{t("rotationOpen", { n: keys.underOthers, all: keys.keys })}</p>}
        </>
      )}
      <Facts facts={facts} />
      {isBad ? <p class="notice bad">{t("openingsBad")}</p> : told.failedOpenings !== null && <p class="small">{t("openingsFine")}</p>}
    </Card>
  );
}

/** What other parts count. */
export function Others({ told }: { told: Told }) {
  const facts: [string, string][] = told.gauges.map(({ name, help, value }) => [named("gauge", name, help), number(value)]);
  if (told.erased !== null) facts.push([t("erased"), number(told.erased)]);
  if (told.conflicts !== null) facts.push([t("conflicts"), number(told.conflicts)]);
  return <Card title={t("counts")}>{facts.length === 0 ? <Missing /> : <Facts facts={facts} />}</Card>;
}

/** The newest of what was recorded. */
export function Audit({ audit, trouble, isReading, onRead }: { audit: { lines: AuditLine[]; readAt: number } | null; trouble: string | null; isReading: boolean; onRead: () => void }) {
  return (
    <Card title={t("audit")} note={audit === null ? undefined : t("readAt", { at: when(audit.readAt) })} isWide>
      <div class="row audit-head"><p class="small">{t("auditLead")}</p><button type="button" class="button small" disabled={isReading} onClick={onRead}><Icon name="retry" />{t("readAgain")}</button></div>
      {trouble !== null && <p class="problem" role="alert">{t("auditFailed")} {trouble}</p>}
      {audit !== null && (audit.lines.length === 0 ? <p class="small">{t("auditEmpty")}</p> : <AuditTable lines={audit.lines} />)}
    </Card>
  );
}

function AuditTable({ lines }: { lines: readonly AuditLine[] }) {
  return (
    <div class="audit" tabIndex={0} role="region" aria-label={t("audit")}>
      <table>
        <thead><tr><th scope="col">{t("time")}</th><th scope="col">{t("what")}</th><th scope="col">{t("who")}</th><th scope="col">{t("count")}</th><th scope="col">{t("why")}</th></tr></thead>
        <tbody>
          {lines.map((line, index) => (
            <tr key={index}><td>{when(line.at)}</td><td><code>{line.action}</code></td><td><code>{line.actor}</code></td><td>{line.count === null ? "" : number(line.count)}</td><td>{line.reason ?? ""}</td></tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
