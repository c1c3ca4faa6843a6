#!/usr/bin/env python3
"""Draws the benchmark's results: what a turn costs, and what a conversation takes, as it grows.

    bench/plot.py RESULTS.json [--out bench/results]

RESULTS has `ours` and `bare` (each `{"variants": […]}`), `peers` (a list of the same), and optionally `startup` and
`cold_open`, all in the shape that bench/peers/*.py print. Whatever is missing is left out of the picture. Writes
turn-cost.svg/.png and bytes.svg/.png.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import dataclass
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

# Okabe and Ito's palette: told apart with every common kind of colour blindness. Line styles and markers tell the same.
OURS, BARE, OTHER = "#0072B2", "#000000", "#777777"
PEERS = ("#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
STYLES = ("-", (0, (5, 2)), (0, (1.5, 1.5)), (0, (6, 2, 1, 2)))
MARKERS = ("o", "s", "^", "D")


@dataclass
class Line:
    """One variant of one contender."""

    label: str
    short: str
    colour: str
    style: object
    marker: str
    width: float
    points: list[dict]
    grown: list[dict]

    def values(self, *path: str) -> tuple[list[float], list[float]]:
        """The points that have this number, e.g. `("warm", "cpu_ms")`."""
        xs, ys = [], []
        for point in sorted(self.points, key=lambda point: point["messages"]):
            value: object = point
            for key in path:
                value = value.get(key) if isinstance(value, dict) else None
            if isinstance(value, (int, float)) and value > 0:
                xs.append(point["messages"])
                ys.append(value)
        return xs, ys

    def stored(self) -> tuple[list[float], list[float]]:
        """Stored bytes of conversations that really grew turn by turn, or else of seeded ones."""
        if not self.grown:
            return self.values("stored_bytes")
        rows = sorted(self.grown, key=lambda row: row["messages"])
        return [row["messages"] for row in rows], [row["stored_bytes"] for row in rows]


def contender(data: dict | None, name: str, colour: str, width: float) -> list[Line]:
    if not data:
        return []
    variants, grown = data.get("variants") or [], data.get("grown") or []
    lines = []
    for i, variant in enumerate(variants):
        label = name if len(variants) == 1 else f"{name}, {variant['name']}"
        rows = [row for row in grown if row.get("variant") == variant["name"] or len(variants) == 1]
        style, marker = STYLES[i % len(STYLES)], MARKERS[i % len(MARKERS)]
        lines.append(Line(label, variant["name"], colour, style, marker, width, variant.get("points") or [], rows))
    return lines


def short(peer: str) -> str:
    """`LangGraph SqliteSaver + EncryptedSerializer` → `LangGraph`; `seed document, …` → `seed document`."""
    name = peer.split(",")[0].split(" + ")[0]
    return "LangGraph" if name.startswith("LangGraph") else name


def all_lines(results: dict) -> list[Line]:
    lines = contender(results.get("ours"), "Confidant", OURS, 2.6)
    lines += contender(results.get("bare"), "bare commit + seal", BARE, 1.4)
    for i, peer in enumerate(results.get("peers") or []):
        lines += contender(peer, short(peer.get("peer", f"peer {i + 1}")), PEERS[i % len(PEERS)], 1.7)
    return lines


def milliseconds(value: float, _position: int) -> str:
    return f"{value:g} ms" if value < 1000 else f"{value / 1000:g} s"


def size(value: float, _position: int = 0) -> str:
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if value >= factor:
            return f"{value / factor:g} {unit}"
    return f"{value:g} B"


def prepare(axes: Axes, title: str, formatter, ticks: list[float]) -> None:
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_title(title, loc="left", fontsize=11, fontweight="bold")
    axes.set_xlabel("messages in the conversation")
    axes.xaxis.set_major_locator(FixedLocator(ticks))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}".replace(",", "\u202f")))
    axes.yaxis.set_major_formatter(FuncFormatter(formatter))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.grid(True, which="major", color="#dddddd", linewidth=0.7)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def draw(axes: Axes, drawn: list[tuple[Line, tuple[list[float], list[float]]]]) -> None:
    """Draws the lines and writes each one's name at its right end, moved apart where they would overlap."""
    ends = []
    for line, (xs, ys) in drawn:
        if not xs:
            continue
        axes.plot(
            xs,
            ys,
            color=line.colour,
            linestyle=line.style,
            marker=line.marker,
            markersize=4.5,
            linewidth=line.width,
            zorder=4 if line.colour == OURS else 3,
        )
        ends.append((line, xs[-1], ys[-1]))
    if not ends:
        axes.text(0.5, 0.5, "not measured", transform=axes.transAxes, ha="center", color=OTHER)
        return
    axes.figure.canvas.draw()
    gap, height = 11.0, []
    to_points = 72 / axes.figure.dpi
    for line, x, y in sorted(ends, key=lambda end: end[2]):
        x_at, y_at = (value * to_points for value in axes.transData.transform((x, y)))
        height.append([line, x, y, y_at, x_at])
    wanted = [row[3] for row in height]
    placed = spread(wanted, gap)
    right = axes.transAxes.transform((1, 0))[0] * to_points
    for (line, x, y, y_at, x_at), target in zip(height, placed, strict=True):
        axes.annotate(
            line.label,
            (x, y),
            xytext=(right - x_at + 8, target - y_at),
            textcoords="offset points",
            va="center",
            fontsize=8.5,
            color=line.colour,
            fontweight="bold" if line.colour == OURS else "normal",
            annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": line.colour, "linewidth": 0.5, "alpha": 0.6, "shrinkB": 3},
        )


def spread(wanted: list[float], gap: float) -> list[float]:
    """Positions near the wanted ones (ascending) with at least `gap` between neighbours: overlapping runs share their mean."""
    groups: list[list[float]] = []
    for position in wanted:
        groups.append([position])
        while len(groups) > 1:
            below, above = groups[-2], groups[-1]
            top = sum(below) / len(below) + gap * (len(below) - 1) / 2
            bottom = sum(above) / len(above) - gap * (len(above) - 1) / 2
            if bottom - top >= gap:
                break
            groups[-2:] = [below + above]
    placed = []
    for group in groups:
        start = sum(group) / len(group) - gap * (len(group) - 1) / 2
        placed += [start + gap * i for i in range(len(group))]
    return placed


def figure(title: str, panels: list[tuple[str, object, list]], note: str, target: Path) -> None:
    ticks = sorted({x for _, _, drawn in panels for _, (xs, _ys) in drawn for x in xs}) or [2, 20, 100, 500, 2000]
    picture, both = plt.subplots(1, len(panels), figsize=(13.5, 5.4), sharey=False)
    picture.subplots_adjust(left=0.06, right=0.855, top=0.83, bottom=0.17, wspace=0.72)
    picture.suptitle(title, x=0.01, ha="left", fontsize=14, fontweight="bold")
    for axes, (name, formatter, drawn) in zip(both, panels, strict=True):
        prepare(axes, name, formatter, thinned(ticks))
        draw(axes, drawn)
    picture.text(0.01, 0.025, note, fontsize=8.5, color="#444444", ha="left")
    for ending in ("svg", "png"):
        picture.savefig(target.with_suffix(f".{ending}"), dpi=160, metadata={"Date": None} if ending == "svg" else None)
        print(target.with_suffix(f".{ending}"))
    plt.close(picture)


def thinned(ticks: list[float]) -> list[float]:
    """Ticks far enough apart to be read."""
    kept: list[float] = []
    for tick in ticks:
        if not kept or tick / kept[-1] > 2:
            kept.append(tick)
    return kept


def ratio_note(lines: list[Line]) -> str:
    """How many times cheaper ours is at 100 messages, from the same results."""
    ours = next((line for line in lines if line.colour == OURS), None)
    if ours is None:
        return ""
    base = dict(zip(*ours.values("warm", "cpu_ms"), strict=True)).get(100)
    said = []
    for line in lines:
        other = dict(zip(*line.values("warm", "cpu_ms"), strict=True)).get(100)
        if base and other and line.colour not in (OURS, BARE):
            said.append(f"{line.label} {other / base:.0f}×")
    return "CPU time against ours at 100 messages, warm: " + "; ".join(said) + "." if said else ""


def footnote(results: dict) -> str:
    said = []
    startup = results.get("startup") or {}
    if "start_ms" in startup:
        said.append(f"start-up {startup['start_ms']:.0f} ms")
    if "idle_rss_mb" in startup:
        said.append(f"idle memory {startup['idle_rss_mb']:.0f} MB")
    cold = results.get("cold_open") or {}
    if "sessions" in cold and "cpu_ms_per_session" in cold:
        said.append(f"opening {cold['sessions']} cold sessions: {cold['cpu_ms_per_session']:.3g} ms CPU each")
    return "confidant serve: " + ", ".join(said) + "." if said else ""


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("results", type=Path)
    arguments.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    options = arguments.parse_args()
    results = json.loads(options.results.read_text())
    lines = all_lines(results)
    if not lines:
        sys.exit(f"{options.results} has no measurements\nhint: it needs `ours`, `bare` or `peers`")
    options.out.mkdir(parents=True, exist_ok=True)
    # Text as text and no date: the committed picture changes only when the numbers do.
    plt.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "confidant", "font.family": "DejaVu Sans"})

    notes = "\n".join(filter(None, [ratio_note(lines), footnote(results)]))
    figure(
        "Cost of one turn: load, append two messages of 300 bytes, save, encrypted",
        [
            (f"CPU time per turn, {heat}", milliseconds, [(line, line.values(heat, "cpu_ms")) for line in lines])
            for heat in ("warm", "cold")
        ],
        notes,
        options.out / "turn-cost",
    )
    figure(
        "Bytes: what a conversation takes, and what a turn writes",
        [
            ("Stored per conversation", size, [(line, line.stored()) for line in lines]),
            ("Written per turn, warm", size, [(line, line.values("warm", "wchar")) for line in lines]),
        ],
        "Stored: conversations grown turn by turn where that was measured, with the write-ahead log folded in. "
        "Written: bytes passed to write calls.",
        options.out / "bytes",
    )


if __name__ == "__main__":
    main()
