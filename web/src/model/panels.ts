/** From the runs of a scenario to what its plots show: lines on one grid of times. */
import type { Described, Recording, Run, Series, Table } from "../core/protocol.ts";
import { type Colours, isTogether } from "./colours.ts";
import { bufferSeconds, FULL_PACKET_BITS, isGoverned } from "./controls.ts";
import { grouped } from "./grouped.ts";
import { bitsPerSecond, packets } from "./quantities.ts";
import { LEAST_RUNS } from "./intervals.ts";
import { interval } from "./statistics.ts";

/** One line; NaN where it has no value. With several runs `y` is their mean, `low` to `high` its 95 % interval. */
export interface Line {
  label: string;
  /** Which colour: that of a flow is the same in all panels; none for what belongs to no flow. */
  colour: number | undefined;
  dashed: boolean;
  y: Float64Array;
  low?: Float64Array;
  high?: Float64Array;
}

export interface Panel {
  id: string;
  title: string;
  unit: string;
  time_s: Float64Array;
  lines: Line[];
  /** Levels to compare with: a link's rate, a queue's limit. */
  marks: { label: string; value: number }[];
  /** Lines of curves that are held, to compare with. */
  held: Line[];
  /** What stands above it leaves the plot: what had waited for a lost packet is delivered in one instant. */
  roof?: number;
}

/** Rows of a recording, at most; what is longer is recorded more rarely. */
const ROWS = 1200;
/** Numbers that all recordings of all runs may hold together, some 100 MB. */
const MOST_NUMBERS = 12e6;
/** Columns that a flow's tables have, about. */
const COLUMNS_A_FLOW = 25;

const KINDS = ["cwnd", "queue", "rate", "rtcp", "acks", "tfrc", "playout", "arrivals", "frames"];

function nice(seconds: number): number {
  const decade = 10 ** Math.floor(Math.log10(seconds));
  return Number(([1, 2, 5, 10].find((step) => step * decade >= seconds * 0.999) ?? 10).toPrecision(1)) * decade;
}

/** How to record a scenario, and whether its recordings are thinner than they would be of fewer flows. */
export function recordingOf(described: Described, runs: number): Recording & { thinned: boolean } {
  const flows = Object.values(described.filled.flow as Table) as Table[];
  const instances = flows.reduce((sum, flow) => sum + Number(flow.count ?? 1), 0);
  const usual = Math.max(1e-3, nice(described.duration_s / ROWS));
  const least = (described.duration_s * instances * COLUMNS_A_FLOW * runs) / MOST_NUMBERS;
  const every_s = least > usual ? nice(least) : usual;
  return { kinds: KINDS.filter((kind) => described.recordable.includes(kind)), every_s, thinned: every_s > usual };
}

interface Source {
  table: string;
  column: string;
  scale: number;
  /** What is said of it behind the flow's name. */
  suffix?: string;
}

interface Spec {
  id: string;
  title: string;
  unit: string;
  sources: Source[];
  /** How flows alike are drawn together. */
  together: "sum" | "mean";
  /** So many rows are averaged to one. */
  bin?: number;
  /** What a sender says of itself, which it goes on to say when it is done. */
  gauges?: true;
}

const SPECS: Spec[] = [
  { id: "rate", title: "Goodput", unit: "Mbit/s", together: "sum", bin: 4, sources: [{ table: "rate", column: "goodput_bps", scale: 1e-6 }] },
  {
    id: "window",
    title: "Window",
    unit: "packets",
    together: "mean",
    gauges: true,
    sources: [
      { table: "cwnd", column: "cwnd_packets", scale: 1 },
      { table: "rtcp", column: "window_packets", scale: 1 },
    ],
  },
  {
    id: "allowed",
    title: "Allowed rate",
    unit: "Mbit/s",
    together: "mean",
    gauges: true,
    sources: ["rtcp", "tfrc", "acks"].map((table) => ({ table, column: "allowed_bps", scale: 1e-6 })),
  },
  { id: "queue", title: "Queue", unit: "packets", together: "sum", sources: [{ table: "queue", column: "packets", scale: 1 }] },
  {
    id: "delay",
    title: "Delay",
    unit: "ms",
    together: "mean",
    gauges: true,
    sources: [
      { table: "cwnd", column: "srtt_s", scale: 1e3, suffix: "round trip" },
      { table: "rtcp", column: "rtt_s", scale: 1e3, suffix: "round trip" },
      { table: "tfrc", column: "srtt_s", scale: 1e3, suffix: "round trip" },
      { table: "acks", column: "srtt_s", scale: 1e3, suffix: "round trip" },
      { table: "arrivals", column: "owd_s", scale: 1e3, suffix: "one way" },
    ],
  },
  { id: "frames", title: "Frame delay", unit: "ms", together: "mean", sources: [{ table: "frames", column: "frame_delay_s", scale: 1e3 }] },
  { id: "playout", title: "Play-out buffer", unit: "s", together: "mean", sources: [{ table: "playout", column: "buffer_s", scale: 1 }] },
];

/** When each flow of a run sent its last packet: what is told of a window after that is stale. */
function lastSent(run: Run): Map<string, number> {
  const ends = new Map<string, number>();
  for (const series of run.series) {
    if (series.table !== "rate") continue;
    const { time_s, send_rate_bps } = series.columns as { time_s: Float64Array; send_rate_bps: Float64Array };
    const last = send_rate_bps.findLastIndex((rate) => rate > 0);
    ends.set(`${series.labels.flow}[${series.labels.instance}]`, last < 0 ? 0 : (time_s[last] as number));
  }
  return ends;
}

interface Curve {
  flow: string;
  instance: number;
  suffix: string | undefined;
  /** Rows of each run. */
  runs: Float64Array[];
}

/** A column on the grid of times: NaN where there is no row, and after the flow's end. */
function onGrid(series: Series, source: Source, rows: number, every_s: number, end_s = Infinity): Float64Array {
  const grid = new Float64Array(rows).fill(Number.NaN);
  const times = series.columns.time_s as Float64Array;
  const values = series.columns[source.column] as Float64Array;
  for (let row = 0; row < times.length; row++) {
    const at = Math.round((times[row] as number) / every_s);
    if (at < rows && (times[row] as number) <= end_s) grid[at] = (values[row] as number) * source.scale;
  }
  return grid;
}

/** Means over bins of so many rows; each stands at its end. */
function binned(values: Float64Array, bin: number): Float64Array {
  const made = new Float64Array(Math.ceil(values.length / bin)).fill(Number.NaN);
  for (let to = 0; to < made.length; to++) {
    let sum = 0;
    let many = 0;
    for (let row = Math.max(0, (to - 1) * bin + 1); row <= to * bin && row < values.length; row++) {
      const value = values[row] as number;
      if (!Number.isNaN(value)) {
        sum += value;
        many++;
      }
    }
    if (many > 0) made[to] = sum / many;
  }
  return made;
}

function curvesOf(runs: Run[], spec: Spec, rows: number, every_s: number): Curve[] {
  const curves = new Map<string, Curve>();
  for (const run of runs) {
    const ends = spec.gauges ? lastSent(run) : undefined;
    for (const source of spec.sources) {
      for (const series of run.series) {
        if (series.table !== source.table || !(source.column in series.columns) || !("flow" in series.labels)) continue;
        const flow = series.labels.flow as string;
        const instance = Number(series.labels.instance ?? 0);
        const name = `${flow}[${instance}] ${source.suffix ?? ""}`;
        const curve = curves.get(name) ?? { flow, instance, suffix: source.suffix, runs: [] };
        curves.set(name, curve);
        curve.runs.push(onGrid(series, source, rows, every_s, ends?.get(`${flow}[${instance}]`)));
      }
    }
  }
  return [...curves.values()];
}

/** One value a row of several columns, where they have any. */
function merged(columns: Float64Array[], how: "sum" | "mean"): Float64Array {
  return columns[0]?.map((_, row) => {
    let sum = 0;
    let many = 0;
    for (const column of columns) {
      const value = column[row] as number;
      if (Number.isNaN(value)) continue;
      sum += value;
      many++;
    }
    return many === 0 ? Number.NaN : how === "sum" ? sum : sum / many;
  }) as Float64Array;
}

/** Flows alike as one: of each run the sum or the mean over them. */
function together(curves: Curve[], how: "sum" | "mean"): Curve[] {
  const groups = grouped(curves, (curve) => `${curve.flow} ${curve.suffix ?? ""}`);
  return [...groups.values()].map((alike) => {
    const [first] = alike as [Curve, ...Curve[]];
    if (alike.length === 1) return { ...first, instance: -1 };
    const runs = first.runs.map((_, run) => merged(alike.flatMap((curve) => curve.runs[run] ?? []), how));
    return { flow: first.flow, instance: -1, suffix: [first.suffix, `${how} of ${alike.length}`].filter(Boolean).join(", "), runs };
  });
}

/** The mean over runs and, from ten of them on, its 95 % interval, row by row. */
function over(runs: Float64Array[]): Pick<Line, "y" | "low" | "high"> {
  const [only] = runs;
  if (runs.length === 1 && only) return { y: only };
  const rows = only?.length ?? 0;
  const [y, low, high] = [new Float64Array(rows), new Float64Array(rows), new Float64Array(rows)];
  for (let row = 0; row < rows; row++) {
    const there = runs.map((run) => run[row] as number).filter((value) => !Number.isNaN(value));
    const found = interval(there);
    y[row] = found.mean;
    const whole = there.length >= LEAST_RUNS;
    low[row] = whole ? Math.max(found.low, Math.min(0, ...there)) : Number.NaN;
    high[row] = whole ? found.high : Number.NaN;
  }
  return { y, low, high };
}

/** The queues worth a line: those in which something waited, the longest first. */
function queueLines(runs: Run[], source: Source, rows: number, every_s: number): Line[] {
  const [first] = runs;
  if (!first) return [];
  const rank = [...first.summary.queues].sort((a, b) => Number(b.mean_packets) - Number(a.mean_packets));
  const worth = rank.filter((queue, index) => index === 0 || Number(queue.mean_packets) > 0.5).slice(0, 4);
  return worth.flatMap((queue, index) => {
    const ours = (series: Series) =>
      series.table === source.table && series.labels.link === queue.link && series.labels.direction === queue.direction;
    const found = runs.flatMap((run) => run.series.filter(ours).map((series) => onGrid(series, source, rows, every_s)));
    if (found.length === 0) return [];
    const label = queue.direction === "forward" ? String(queue.link) : `${queue.link} ${queue.direction}`;
    return [{ label, colour: index === 0 ? undefined : index + 3, dashed: index > 0, ...over(found) }];
  });
}

function marksOf(described: Described, id: string): Panel["marks"] {
  const links = Object.values((described.filled.link ?? {}) as Table) as Table[];
  const [link] = links;
  if (!link || links.length > 1) return [];
  const rate = bitsPerSecond(link.rate);
  const queue = link.queue as Table | undefined;
  if (id === "rate" && rate !== undefined) return [{ label: "link rate", value: rate / 1e6 }];
  if (id === "queue" && queue && !isGoverned(queue.kind)) {
    const full = packets(queue.limit);
    const held = full ?? ((bufferSeconds(queue.limit, rate) ?? Number.NaN) * (rate ?? Number.NaN)) / FULL_PACKET_BITS;
    return Number.isFinite(held) ? [{ label: "full", value: held }] : [];
  }
  return [];
}

/** What no curve of a goodput is above for long: half as much again as the fastest link has. None where a rate is not fixed. */
function roofOf(described: Described): number | undefined {
  const links = Object.values((described.filled.link ?? {}) as Table) as Table[];
  const rates = links.flatMap((link) => [link.rate, (link.backward as Table | undefined)?.rate ?? link.rate]).map(bitsPerSecond);
  if (rates.length === 0 || described.filled.cell !== undefined || rates.includes(undefined)) return undefined;
  return (1.5 * Math.max(...(rates as number[]))) / 1e6;
}

/** All panels that these runs fill. */
export function panelsOf(described: Described, runs: Run[], every_s: number, colours: Colours): Panel[] {
  const rows = Math.floor(described.duration_s / every_s + 1e-9) + 1;
  const joined = isTogether(runs[0]);
  const panels: Panel[] = [];
  for (const spec of SPECS) {
    const bin = spec.bin ?? 1;
    let lines: Line[];
    if (spec.id === "queue") lines = spec.sources.flatMap((source) => queueLines(runs, source, rows, every_s));
    else {
      let curves = curvesOf(runs, spec, rows, every_s);
      if (joined) curves = together(curves, spec.together);
      lines = curves.map((curve) => {
        const many = curves.some((other) => other.flow === curve.flow && other.instance !== curve.instance);
        const name = many ? `${curve.flow}[${curve.instance}]` : curve.flow;
        const label = curve.suffix ? `${name}, ${curve.suffix}` : name;
        const found = over(curve.runs.map((run) => (bin > 1 ? binned(run, bin) : run)));
        return { label, colour: colours.get(`${curve.flow}[${curve.instance}]`), dashed: curve.suffix === "one way", ...found };
      });
    }
    if (lines.length === 0 || !lines.some((line) => line.y.some((value) => !Number.isNaN(value)))) continue;
    lines.sort((a, b) => (a.colour ?? -1) - (b.colour ?? -1));
    const time_s = new Float64Array(lines[0]?.y.length ?? 0).map((_, row) => row * every_s * bin);
    // The sum of flows that go over several links may be above each of them.
    const summed = joined && Object.keys((described.filled.link ?? {}) as Table).length > 1;
    const roof = spec.id === "rate" && !summed ? roofOf(described) : undefined;
    panels.push({ id: spec.id, title: spec.title, unit: spec.unit, time_s, lines, marks: marksOf(described, spec.id), held: [], ...(roof ? { roof } : {}) });
  }
  return panels;
}

/** The panels with the curves of others behind theirs, at their times. */
export function behind(panels: Panel[], held: Panel[]): Panel[] {
  return panels.map((panel) => {
    const other = held.find((one) => one.id === panel.id);
    if (!other) return panel;
    const step = (other.time_s[1] ?? 1) - (other.time_s[0] ?? 0);
    const moved = (values: Float64Array) => panel.time_s.map((time) => values[Math.round(time / step)] ?? Number.NaN);
    // Colours go by flows, of which some may have come or gone since.
    const colourNow = (label: string) => panel.lines.find((line) => line.label === label)?.colour;
    return { ...panel, held: other.lines.map(({ label, dashed, y }) => ({ label, colour: colourNow(label), dashed, y: moved(y) })) };
  });
}

/** How high a panel's axis goes over a stretch of time: to its curves, to a mark that is not far above them, not above the roof. */
export function topOf(panel: Panel, between?: [number, number]): number {
  const [from, to] = between ?? [0, Number.POSITIVE_INFINITY];
  let most = 0;
  for (const values of [...panel.lines, ...panel.held].map((line) => line.high ?? line.y)) {
    values.forEach((value, row) => {
      const time = panel.time_s[row] as number;
      if (time >= from && time <= to && value > most) most = value;
    });
  }
  // A limit that nothing comes near would press the curves onto the floor.
  const marked = panel.marks.reduce((top, { value }) => (value <= 3 * most ? Math.max(top, value) : top), most);
  return Math.min(panel.roof ?? Number.POSITIVE_INFINITY, marked || 1) * 1.06;
}
