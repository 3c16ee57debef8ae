/** One panel: its curves, the values under the pointer, and its files. */
import { useSignalEffect } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { csvOf, type Look, save, strokeOf, svgOf } from "../model/export.ts";
import { type Panel, topOf } from "../model/panels.ts";
import { digits } from "../model/quantities.ts";
import { cursor_s, shown, zoom } from "../model/state.ts";
import { look } from "./theme.ts";

const SYNC = uPlot.sync("time");
const AXIS_WIDTH = 52;

/** Columns as uPlot takes them: the time, then a line each, then the bands' edges. */
function dataOf(panel: Panel): uPlot.AlignedData {
  const blank = (values: Float64Array) => Array.from(values, (value) => (Number.isNaN(value) ? null : value));
  const edges = panel.lines.flatMap((line) => (line.low && line.high ? [blank(line.high), blank(line.low)] : []));
  const marks = panel.marks.map((mark) => Array.from(panel.time_s, () => mark.value));
  const held = panel.held.map((line) => blank(line.y));
  return [Array.from(panel.time_s), ...panel.lines.map((line) => blank(line.y)), ...edges, ...marks, ...held] as uPlot.AlignedData;
}

function optionsOf(panel: Panel, from: Look, width: number, height: number): uPlot.Options {
  const series: uPlot.Series[] = [{}];
  for (const line of panel.lines) {
    series.push({ label: line.label, stroke: strokeOf(line, from), width: 1.4, points: { show: false }, ...(line.dashed ? { dash: [6, 3] } : {}) });
  }
  const bands: uPlot.Band[] = [];
  for (const line of panel.lines) {
    if (!line.low || !line.high) continue;
    series.push({ stroke: "transparent", points: { show: false } }, { stroke: "transparent", points: { show: false } });
    bands.push({ series: [series.length - 2, series.length - 1], fill: `${strokeOf(line, from)}2e` });
  }
  for (const mark of panel.marks) {
    series.push({ label: mark.label, stroke: from.text, width: 1, dash: [2, 4], points: { show: false }, scale: "y" });
  }
  for (const line of panel.held) {
    series.push({ stroke: `${strokeOf(line, from)}80`, width: 1, dash: [3, 3], points: { show: false } });
  }
  const last = panel.time_s.at(-1) ?? 1;
  const axis = { stroke: from.text, grid: { stroke: from.grid, width: 1 }, ticks: { stroke: from.grid, width: 1, size: 4 }, font: "11px system-ui, sans-serif" };
  return {
    width,
    height,
    series,
    bands,
    legend: { show: false },
    padding: [6, 20, 0, 0],
    scales: {
      x: { time: false, range: () => zoom.peek() ?? [0, last] },
      y: { range: () => [0, topOf(panel, zoom.peek())] },
    },
    axes: [
      { ...axis, size: 22, gap: 2, values: (_u, splits) => splits.map((at) => `${digits(at, 4)} s`) },
      { ...axis, size: AXIS_WIDTH, space: 26, values: (_u, splits) => splits.map((at) => digits(at, 4)) },
    ],
    cursor: {
      sync: { key: SYNC.key, setSeries: false },
      drag: { x: true, y: false, setScale: false },
      points: { size: 6 },
      bind: {
        dblclick: () => () => {
          zoom.value = undefined;
          return null;
        },
      },
    },
    hooks: {
      setSelect: [
        (plot) => {
          if (plot.select.width < 4) return;
          const [from_s, to_s] = [plot.posToVal(plot.select.left, "x"), plot.posToVal(plot.select.left + plot.select.width, "x")];
          zoom.value = [Math.max(0, from_s), Math.min(last, to_s)];
          plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
        },
      ],
      setCursor: [
        (plot) => {
          const index = plot.cursor.idx;
          cursor_s.value = index === null || index === undefined ? undefined : plot.data[0][index];
        },
      ],
    },
  };
}

/** What makes a new plot necessary: other lines, other colours. */
const shapeOf = (panel: Panel, from: Look) =>
  JSON.stringify([panel.lines.map((line) => [line.label, line.colour, line.dashed, line.low !== undefined]), panel.marks.map((mark) => mark.label), panel.held.map((line) => line.colour ?? -1), from.page]);

function Values({ panel }: { panel: Panel }) {
  const at = cursor_s.value;
  const step = (panel.time_s[1] ?? 1) - (panel.time_s[0] ?? 0);
  const row = at === undefined ? undefined : Math.round(at / step);
  return (
    <ul class="legend">
      {panel.lines.map((line) => {
        const value = row === undefined ? undefined : line.y[row];
        return (
          <li key={line.label}>
            <svg width="22" height="8" aria-hidden="true">
              <path d="M0 4h22" stroke={strokeOf(line, look.value)} stroke-width="2.5" {...(line.dashed ? { "stroke-dasharray": "6 3" } : {})} />
            </svg>
            {line.label}
            <b class="value">{value === undefined || Number.isNaN(value) ? "" : ` ${digits(value)} ${panel.unit}`}</b>
          </li>
        );
      })}
      {panel.marks.map((mark) => (
        <li key={mark.label} class="quiet">
          <svg width="22" height="8" aria-hidden="true">
            <path d="M0 4h22" stroke="currentColor" stroke-dasharray="2 4" stroke-width="1.5" />
          </svg>
          {mark.label}: {digits(mark.value)} {panel.unit}
        </li>
      ))}
    </ul>
  );
}

/** What a reader who does not see the curves is told of them. */
function described(panel: Panel): string {
  const lines = panel.lines.map((line) => {
    const there = Array.from(line.y).filter((value) => !Number.isNaN(value));
    if (there.length === 0) return `${line.label}: nothing`;
    const mean = there.reduce((sum, value) => sum + value, 0) / there.length;
    return `${line.label}: ${digits(mean)} ${panel.unit} on average, from ${digits(there.reduce((a, b) => Math.min(a, b)))} to ${digits(there.reduce((a, b) => Math.max(a, b)))}`;
  });
  return `${panel.title} over time. ${lines.join("; ")}. Arrow keys move the cursor, plus and minus zoom, 0 shows all.`;
}

/** Moves the cursor and zooms by keys. */
function onKey(event: KeyboardEvent, panel: Panel): void {
  const last = panel.time_s.at(-1) ?? 1;
  const [from, to] = zoom.peek() ?? [0, last];
  const at = cursor_s.peek() ?? (from + to) / 2;
  const move = (by: number) => {
    cursor_s.value = Math.min(to, Math.max(from, at + by * (to - from)));
  };
  const around = (factor: number) => {
    const half = ((to - from) * factor) / 2;
    const middle = Math.min(last - half, Math.max(half, at));
    zoom.value = half * 2 >= last ? undefined : [middle - half, middle + half];
  };
  const keys: Record<string, () => void> = {
    ArrowLeft: () => move(-0.01),
    ArrowRight: () => move(0.01),
    "+": () => around(0.5),
    "=": () => around(0.5),
    "-": () => around(2),
    "0": () => {
      zoom.value = undefined;
    },
    Escape: () => {
      zoom.value = undefined;
    },
  };
  const act = keys[event.key];
  if (!act) return;
  event.preventDefault();
  act();
}

export function Chart({ panel, height }: { panel: Panel; height: number }) {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<{ made: uPlot; shape: string } | undefined>(undefined);
  const newest = useRef(panel);
  newest.current = panel;

  useEffect(() => {
    const box = place.current as HTMLDivElement;
    const from = look.value;
    const shape = shapeOf(panel, from) + JSON.stringify([panel.marks, panel.time_s.length, panel.time_s.at(-1)]);
    if (plot.current?.shape === shape) {
      const made = plot.current.made;
      Object.assign(made.scales.y as object, { range: optionsOf(panel, from, 0, 0).scales?.y?.range });
      made.setData(dataOf(panel));
    } else {
      plot.current?.made.destroy();
      plot.current = { made: new uPlot(optionsOf(panel, from, box.clientWidth, height), dataOf(panel), box), shape };
      SYNC.sub(plot.current.made);
    }
  }, [panel, look.value, height]);

  useEffect(() => {
    const box = place.current as HTMLDivElement;
    const watcher = new ResizeObserver(() => plot.current?.made.setSize({ width: box.clientWidth, height }));
    watcher.observe(box);
    return () => {
      watcher.disconnect();
      if (plot.current) SYNC.unsub(plot.current.made);
      plot.current?.made.destroy();
      plot.current = undefined;
    };
  }, []);

  useSignalEffect(() => {
    const last = newest.current.time_s.at(-1) ?? 1;
    const [min, max] = zoom.value ?? [0, last];
    plot.current?.made.setScale("x", { min, max });
  });

  const name = () => `${shown.peek()?.described.name ?? "paceline"}-${panel.id}`;
  return (
    <figure class="panel" data-panel={panel.id}>
      <figcaption>
        <b>{panel.title}</b> <span class="quiet">{panel.unit}</span>
        <Values panel={panel} />
        <span class="files">
          <button type="button" class="small" onClick={() => save(`${name()}.svg`, svgOf(panel, look.value, zoom.value), "image/svg+xml")} aria-label={`Save ${panel.title} as SVG`}>
            SVG
          </button>
          <button type="button" class="small" onClick={() => save(`${name()}.csv`, csvOf(panel), "text/csv")} aria-label={`Save ${panel.title} as CSV`}>
            CSV
          </button>
        </span>
      </figcaption>
      <div class="plot" ref={place} role="img" aria-label={described(panel)} tabIndex={0} onKeyDown={(event) => onKey(event, panel)} style={{ height: `${height}px` }} />
    </figure>
  );
}
