/** Which interval a measure has over several runs: the rules of python/paceline/interval.py and docs/measures.md ("Over
 * several runs"). How a measure scatters is in the simulator's table of measures; both are held to the same cases by
 * web/tests/unit/intervals.json. */
import type { Row } from "../core/protocol.ts";
import { inverse } from "./beta.ts";
import { interval, medianInterval, middle } from "./statistics.ts";

/** What the table of measures says of one. */
export interface Measure {
  scatter: "steady" | "rare" | "restless";
  /** Whether its values lie between 0 and 1. */
  share: boolean;
}

export type Measures = Record<string, Measure>;

/** The measures by their names, of the table as the simulator writes it. */
export function measuresOf(json: string): Measures {
  const tables = JSON.parse(json) as Record<string, { columns: Record<string, string>; unit: string; scatter: Measure["scatter"] }[]>;
  const entries = Object.entries(tables).flatMap(([table, measures]) => (table === "classes" ? [] : measures));
  return Object.fromEntries(
    entries.flatMap(({ columns, unit, scatter }) =>
      Object.entries(columns).map(([name, type]) => [name, { scatter, share: unit === "share" || type === "truth" }]),
    ),
  );
}

/** Parts of the names of extremes, which have far outliers. */
const EXTREMES = ["max", "min", "p95", "p99"];
/** With fewer runs there is no interval of the mean. */
export const LEAST_RUNS = 10;
/** Percentiles that differ by less are equal. */
const RESOLUTION = 0.002;
const PERCENTILES = ["rtt_p", "owd_p", "interarrival_p", "transfer_time_p"];
/** How often the bounds of a share of runs may miss on either side: 99 %. */
const TAIL = 0.005;

export interface Summary {
  /** As docs/measures.md has them. */
  kind: "t" | "runs" | "median" | "none";
  n: number;
  mean: number;
  median: number;
  median_low?: number;
  median_high?: number;
  /** Of the mean, cut at the measure's bounds. */
  low?: number;
  high?: number;
  /** Half of it, unless it was cut. */
  half_width?: number;
  /** What most runs have, how many differ, and bounds of their share. */
  usual?: number;
  others?: number;
  others_low?: number;
  others_high?: number;
}

/** Whether the mean of a measure has an interval, over enough runs of transfers without an end. */
export function averages(name: string, measure: Measure | undefined): boolean {
  const parts = name.split("_");
  return !["rare", "restless"].includes(measure?.scatter ?? "steady") && !parts.some((part) => EXTREMES.includes(part) || part === "p50");
}

/** Summarises a measure over runs, of at least one value; `endless`: all traffic is transfers without an end. */
export function summary(name: string, values: number[], endless: boolean, measure: Measure | undefined): Summary {
  const n = values.length;
  const { mean, low, high } = interval(values);
  const order = medianInterval(values);
  const found: Summary = { kind: "none", n, mean, median: middle(values), ...(order && { median_low: order[0], median_high: order[1] }) };
  if (n === 1) return found;
  const truths = values.every((value) => value === 0 || value === 1) && values.includes(0) && values.includes(1);
  const { usual, others } = usualOf(name, values, truths);
  if (5 * others <= n || truths) {
    const [others_low, others_high] = shareInterval(others, n);
    return { ...found, kind: "runs", usual, others, others_low, others_high };
  }
  if (2 * others < n || n < LEAST_RUNS || !(endless && averages(name, measure))) return order ? { ...found, kind: "median" } : found;
  const bounds: [number, number] = [values.some((value) => value < 0) ? Number.NEGATIVE_INFINITY : 0, measure?.share ? 1 : Number.POSITIVE_INFINITY];
  const whole = bounds[0] <= low && high <= bounds[1] ? { half_width: high - mean } : {};
  return { ...found, kind: "t", low: Math.max(low, bounds[0]), high: Math.min(high, bounds[1]), ...whole };
}

/** The value that most runs have, the least of several, and how many differ; of 0 and 1 it is 0. */
function usualOf(name: string, values: number[], truths: boolean): { usual: number; others: number } {
  if (truths) return { usual: 0, others: values.filter((value) => value === 1).length };
  const sorted = [...values].sort((a, b) => a - b);
  if (PERCENTILES.some((start) => name.startsWith(start))) {
    const usual = sorted[Math.floor((sorted.length - 1) / 2)] as number;
    return { usual, others: values.filter((value) => Math.abs(value - usual) > RESOLUTION * Math.abs(usual)).length };
  }
  const times = new Map<number, number>();
  for (const value of sorted) times.set(value, (times.get(value) ?? 0) + 1);
  const [usual, most] = [...times].reduce((best, one) => (one[1] > best[1] ? one : best));
  return { usual, others: values.length - most };
}

/** Exact bounds of a share, k of n observed, at 99 % (Clopper and Pearson 1934). */
export function shareInterval(k: number, n: number): [number, number] {
  return [k === 0 ? 0 : inverse(k, n - k + 1, TAIL), k === n ? 1 : inverse(k + 1, n - k, 1 - TAIL)];
}

/** Whether each of these flows is a transfer without an end, as far as its row shows. */
export function isEndless(flows: Row[]): boolean {
  return flows.every((row) => (row.app ?? "ftp") === "ftp" && (row.transfers_started ?? 0) === 0);
}

/** A summary in words, as the command line's tables have it. */
export function said(found: Summary, show: (value: number) => string): string {
  const between = (centre: number, low = 0, high = 0, [open, close] = "()") => `${show(centre)} ${open}${show(low)} to ${show(high)}${close}`;
  if (found.kind === "t") {
    return found.half_width === undefined ? between(found.mean, found.low, found.high) : `${show(found.mean)} ± ${show(found.half_width)}`;
  }
  if (found.kind === "median") {
    const { mean, median_low = 0, median_high = 0 } = found;
    const apart = mean < median_low || mean > median_high ? `, mean ${show(mean)}` : "";
    return between(found.median, median_low, median_high, "[]") + apart;
  }
  if (found.kind === "runs") return `${show(found.mean)}, ${ofRuns(found, show)}`;
  return found.n > 1 ? `${show(found.mean)}, no interval` : show(found.mean);
}

/** How many runs differ from the usual value. */
export function ofRuns({ n, mean, usual = 0, others = 0 }: Summary, show: (value: number) => string): string {
  if (others === 0) return `all ${n}`;
  if (usual === 0) return `${others} of ${n} not 0`;
  return `${n - others} of ${n} ${show(usual) === show(mean) ? "alike" : `at ${show(usual)}`}`;
}
