/** What would help a flow that fares badly: the same seeds with one thing changed, compared by advice.ts. */
import type { Described, Run, Source, Table, Value } from "../core/protocol.ts";
import { type Advice, adviceFor, comparisons, LEAST_SEEDS, type Tried } from "./advice.ts";
import { type Change, key, removal } from "./controls.ts";
import type { Sentence } from "./words.ts";

/** A scenario with one thing changed. */
export interface Alternative {
  /** "without download" */
  words: string;
  changes: Change[];
}

/** A run that took longer is not made again and again to find out why it went as it did. */
export const WHY_MS = 1500;
/** About so much time of a processor the search may take. */
const SEARCH_MS = 20_000;
/** So many flows are taken away in turn. */
const MOST_FLOWS = 5;
/** With so many seeds it compares, if one run is shown and there is time. */
const USUAL_SEEDS = 10;
/** More seeds than these make no difference clearer that anyone notices. */
const MOST_SEEDS = 20;

/** What could be put in place of a plain queue, and what can be taken away. */
export function alternatives({ filled }: Described): Alternative[] {
  const made: Alternative[] = [];
  for (const [name, link] of Object.entries((filled.link ?? {}) as Table) as [string, Table][]) {
    const path = `link.${key(name)}`;
    const queue = link.queue as Table | undefined;
    if (queue?.kind === "droptail" && link.rate !== undefined) {
      made.push({ words: `with FQ-CoDel in place of drop-tail at ${name}`, changes: [[`${path}.queue`, { kind: "fq-codel" } as Value]] });
    }
    if (link.loss !== undefined) made.push({ words: `without the random loss of ${name}`, changes: [[`${path}.loss`, null]] });
  }
  const flows = Object.entries(filled.flow as Table) as [string, Table][];
  if (flows.length < 2) return made;
  for (const [name, other] of flows.slice(0, MOST_FLOWS + 1)) {
    made.push({ words: `without ${Number(other.count ?? 1) > 1 ? `the ${other.count} flows of ${name}` : name}`, changes: removal({ filled }, name) });
  }
  return made;
}

/** With how many seeds so many changes are tried, and how many of them: none where a run takes too long. */
export function searchOf(took_ms: number, changes: number, shown: number): { seeds: number; changes: number } {
  const none = { seeds: 0, changes: 0 };
  if (took_ms > WHY_MS || changes === 0) return none;
  const runs = Math.floor(SEARCH_MS / Math.max(took_ms, 1));
  const wanted = Math.min(MOST_SEEDS, shown >= LEAST_SEEDS ? shown : USUAL_SEEDS);
  const seeds = runs >= wanted * (changes + 1) ? wanted : LEAST_SEEDS;
  return { seeds, changes: Math.max(1, Math.min(changes, Math.floor(runs / seeds) - 1)) };
}

/** The scenario with a change; undefined if it cannot be made. */
export function changed(source: Source, edit: (text: string, changes: string) => string, alternative: Alternative): Source | undefined {
  try {
    return { ...source, text: edit(source.text, JSON.stringify(alternative.changes)) };
  } catch {
    return undefined;
  }
}

/** How a search makes its runs. */
export interface Search {
  source: Source;
  edit(text: string, changes: string): string;
  /** A run of a scenario; undefined if it was refused, or if nobody waits for it any longer. */
  run(source: Source, seed: bigint): Promise<Run | undefined>;
  /** Whether somebody still waits for it. */
  wanted(): boolean;
}

/** Advice by flows, and over how many seeds it holds. */
export interface Found {
  seeds: number;
  flows: Record<string, Advice[]>;
}

const NOTHING: Found = { seeds: 0, flows: {} };

/** Advice for each flow that has a harm. */
export async function search(described: Described, runs: Run[], sentences: Sentence[], { source, edit, run, wanted }: Search): Promise<Found> {
  const hurt = sentences.flatMap(({ flow, hurt }) => (flow && hurt ? [{ flow, hurt }] : []));
  const possible = alternatives(described);
  const plan = searchOf(Math.min(...runs.map(({ took_ms }) => took_ms)), possible.length, runs.length);
  if (hurt.length === 0 || plan.seeds === 0) return NOTHING;
  const seeds = Array.from({ length: plan.seeds }, (_, at) => BigInt(described.seed) + BigInt(at));
  const all = async (of: Source) => {
    const made = await Promise.all(seeds.map(async (seed) => (of === source && runs.find((one) => one.seed === seed)) || run(of, seed)));
    return made.every((one) => one !== undefined) ? made.map(({ summary }) => summary) : undefined;
  };
  const before = await all(source);
  if (!before) return NOTHING;
  const tried: Tried[] = [];
  for (const alternative of possible.slice(0, plan.changes)) {
    const other = changed(source, edit, alternative);
    const after = other && (await all(other));
    if (!wanted()) return NOTHING;
    if (after) tried.push({ words: alternative.words, found: comparisons(described.filled.flow as Table, before, after) });
  }
  return { seeds: seeds.length, flows: Object.fromEntries(hurt.map(({ flow, hurt: harm }) => [flow, adviceFor(flow, harm, tried)])) };
}
