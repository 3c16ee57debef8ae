/**
 * Whether a change to a scenario is one to advise: every harm of every flow, before and after, over the same seeds. Pure functions of
 * summaries; tests/unit/advice.test.ts plants good, bad and mixed changes, and faults in what is here.
 */
import type { Table } from "../core/protocol.ts";
import { appOf, HARMS, type Harm, harmOf, NOTICED_PART, type Rows, type Who } from "./harms.ts";
import { medianInterval, middle } from "./statistics.ts";

/** From so many pairs on a median of differences has an interval of 95 %. */
export const LEAST_SEEDS = 6;

/** What a run has for a comparison: the summary's tables, and its length. */
export type Ran = Rows & { end_s: number };

/** `perhaps`: worse on average, and chance is not excluded. */
export type Verdict = "better" | "worse" | "perhaps" | "alike";

/** One harm of one flow, before and after. */
export interface Compared {
  flow: string;
  harm: Harm;
  verdict: Verdict;
  /** Medians over the seeds. */
  before: number;
  after: number;
  /** The 95 % interval of the median of the differences of equal seeds. */
  low: number;
  high: number;
}

const mean = (values: number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;

/** What became of a harm; undefined where no run has it. `before[i]` and `after[i]` are runs of one seed. */
function comparedBy(harm: Harm, flow: string, before: Ran[], after: Ran[]): Compared | undefined {
  const valuesOf = (runs: Ran[]) => runs.map((run) => harmOf(harm, flow, run, run.end_s));
  const [then, now] = [valuesOf(before), valuesOf(after)];
  if ([...then, ...now].every((value) => value === undefined)) return undefined;
  // what has no number while others do is no good news: nothing arrived
  const filled = (values: (number | undefined)[], runs: Ran[]) => values.map((value, at) => value ?? harm.worst((runs[at] as Ran).end_s));
  const [old, made] = [filled(then, before), filled(now, after)];
  const differences = made.map((value, at) => value - (old[at] as number));
  const [was, is, moved] = [middle(old), middle(made), middle(differences)];
  const [low, high] = medianInterval(differences) as [number, number]; // comparisons() has enough of them
  const least = Math.max(harm.noticed, NOTICED_PART * Math.max(Math.abs(was), Math.abs(is)));
  const leastOnAverage = Math.max(harm.noticed, NOTICED_PART * Math.max(Math.abs(mean(old)), Math.abs(mean(made))));
  let verdict: Verdict = "alike";
  if (high < 0 && moved <= -least && mean(differences) < 0) verdict = "better";
  else if (low > 0 && moved >= least) verdict = "worse";
  else if (mean(differences) >= leastOnAverage || moved >= least) verdict = "perhaps";
  return { flow, harm, verdict, before: was, after: is, low, high };
}

/** All harms of all flows that a change leaves there. Empty below LEAST_SEEDS pairs. */
export function comparisons(flows: Table, before: Ran[], after: Ran[], harms: Harm[] = HARMS): Compared[] {
  if (before.length !== after.length || before.length < LEAST_SEEDS) return [];
  return Object.entries(flows).flatMap(([name, flow]) => {
    if (!after.some((run) => run.flows.some((row) => row.flow === name))) return [];
    const own = harms.filter((harm) => harm.apps.includes(appOf(flow as Table)));
    return own.flatMap((harm) => comparedBy(harm, name, before, after) ?? []);
  });
}

/** A change that was tried. */
export interface Tried {
  /** "without download" */
  words: string;
  found: Compared[];
}

/** What a change is for one flow: nothing unless one of its harms is better. */
export interface Judged {
  words: string;
  gains: Compared[];
  /** Of all flows. */
  costs: Compared[];
  perhaps: Compared[];
  /** What stays bad for this flow, although it may be better. */
  still: Compared[];
}

export function judged({ words, found }: Tried, flow: string): Judged | undefined {
  const own = found.filter((one) => one.flow === flow);
  const gains = own.filter(({ verdict }) => verdict === "better");
  if (gains.length === 0) return undefined;
  const of = (verdict: Verdict) => found.filter((one) => one.verdict === verdict);
  const still = own.filter(({ harm, after, verdict }) => (verdict === "better" || verdict === "alike") && harm.bad !== undefined && after > harm.bad);
  return { words, gains, costs: of("worse"), perhaps: of("perhaps"), still };
}

/** What of the harm `key` is gone, from 0 to 1; if that did not change, half of the flow's greatest gain. */
function relief({ gains }: Judged, key: string): number {
  const part = ({ before, after }: Compared) => (before - after) / Math.max(Math.abs(before), Math.abs(after));
  const own = gains.find(({ harm }) => harm.key === key);
  return own ? part(own) : Math.max(...gains.map(part)) / 2;
}

const listed = (parts: string[]) => [parts.slice(0, -1).join(", "), parts.at(-1)].filter(Boolean).join(" and ");
const capital = (words: string) => words.charAt(0).toUpperCase() + words.slice(1);

/** "9 to 13 points" */
function between(one: number, other: number, show: Harm["by"]): string {
  const [least, most] = [Math.min(one, other), Math.max(one, other)].map((value) => show(Number(value.toPrecision(2)))) as [string, string];
  const [number, unit] = [least.replace(/ .*/, ""), least.replace(/^\S+/, "")];
  return least === most ? least : `${most.replace(/^\S+/, "") === unit ? number : least} to ${most}`;
}

/** A change, what it brings and costs, in phrases: "fewer of its frames arrive (87.9 % instead of 99.2 %; by 10 to 13 points)". */
export interface Advice {
  /** "Without download", "A trade: with FQ-CoDel in place of drop-tail at bottleneck" */
  head: string;
  gains: string[];
  costs: string[];
  /** What stays bad all the same. */
  still: string[];
}

/** What a difference is, in words. */
function told(one: Compared, flow: string): string {
  const who: Who = one.flow === flow ? { it: "it", its: "its" } : { it: one.flow, its: `${one.flow}'s` };
  const { harm, before, after, low, high } = one;
  const phrase = one.verdict === "better" ? harm.less(who) : harm.more(who);
  if (one.verdict === "perhaps") return `perhaps ${phrase}, in some runs`;
  const values = `${harm.before ?? ""}${harm.show(after)} instead of ${harm.show(before)}`;
  return `${phrase} (${values}; by ${between(Math.abs(low), Math.abs(high), harm.by)})`;
}

const NOUNS: Record<string, string> = {
  missing: "frames that arrive",
  freeze: "freezes",
  late: "late media",
  voice: "voice quality",
  "never begins": "how often it begins to play",
  stalled: "stalls",
};

function advised({ words, gains, costs, perhaps, still }: Judged, flow: string): Advice {
  const all = [...costs, ...perhaps];
  return {
    head: all.length > 0 ? `A trade: ${words}` : capital(words),
    gains: gains.map((one) => told(one, flow)),
    costs: all.map((one) => told(one, flow)),
    still: still.map(({ harm, after }) => `${NOUNS[harm.key] ?? harm.key} (${harm.before ?? ""}${harm.show(after)})`),
  };
}

/** Advice as sentences. */
export const sentenceOf = ({ head, gains, costs, still }: Advice) =>
  `${head}, ${listed(gains)}${costs.length > 0 ? `, but ${listed(costs)}` : ""}.${still.length > 0 ? ` Still bad: ${listed(still)}.` : ""}`;

/**
 * The advice for a flow that has the harm `key`: none if no change makes anything better for it, two at most. A change without a cost
 * comes before a trade, and of two the one that takes more of the harm away.
 */
export function adviceFor(flow: string, key: string, tried: Tried[]): Advice[] {
  const helpful = tried.map((one) => judged(one, flow)).filter((one) => one !== undefined);
  const price = ({ costs, perhaps }: Judged) => (costs.length > 0 ? 2 : perhaps.length > 0 ? 1 : 0);
  helpful.sort((a, b) => price(a) - price(b) || relief(b, key) - relief(a, key));
  const [best, ...rest] = helpful;
  if (!best) return [];
  // of what helps as well, the queue is what one can do without asking others
  const second = rest.find(({ words }) => words.startsWith("with ")) ?? rest.find((one) => price(one) === 0);
  return [best, ...(second ? [second] : [])].map((one) => advised(one, flow));
}
