/** Why a flow fares badly: the same run with one thing taken away, and the one that changes most is the reason. */
import type { Described, Source, Table, Value } from "../core/protocol.ts";
import { type Change, key, removal } from "./controls.ts";
import type { Hurt } from "./words.ts";

/** A scenario with one thing changed. */
export interface Alternative {
  /** "without download" */
  words: string;
  changes: Change[];
}

/** A run that took longer is not made again and again to find out why it went as it did. */
export const WHY_MS = 1500;
/** So many flows are taken away in turn. */
const MOST_FLOWS = 5;

/** What can be taken away, and what could be put in place of a plain queue. */
export function alternatives(described: Described, flow: string): Alternative[] {
  const flows = Object.entries(described.filled.flow as Table) as [string, Table][];
  const made: Alternative[] = [];
  for (const [name, other] of flows.filter(([name]) => name !== flow).slice(0, MOST_FLOWS)) {
    made.push({ words: `without ${Number(other.count ?? 1) > 1 ? `the ${other.count} flows of ${name}` : name}`, changes: removal(described, name) });
  }
  for (const [name, link] of Object.entries((described.filled.link ?? {}) as Table) as [string, Table][]) {
    const path = `link.${key(name)}`;
    if (link.loss !== undefined) made.push({ words: `without the random loss of ${name}`, changes: [[`${path}.loss`, null]] });
    const queue = link.queue as Table | undefined;
    if (queue?.kind === "droptail" && link.rate !== undefined) {
      made.push({ words: `with FQ-CoDel in place of drop-tail at ${name}`, changes: [[`${path}.queue`, { kind: "fq-codel" } as Value]] });
    }
  }
  return made;
}

/** What an alternative brought. */
export interface Found {
  words: string;
  value: number;
}

const capital = (words: string) => words.charAt(0).toUpperCase() + words.slice(1);

/** The reason in words: what helps most, if it takes away half of the harm; else that nothing alone does. */
export function reason(hurt: Hurt, found: Found[]): string {
  const sorted = [...found].sort((a, b) => a.value - b.value);
  const [best, ...rest] = sorted;
  if (!best) return "";
  const half = hurt.value / 2;
  if (best.value > half) return `No single change helps enough. The best is ${best.words}: ${hurt.show(best.value)}.`;
  // of what helps as well, the queue is what one can do without asking others
  const second = rest.find((one) => one.value <= half && one.words.startsWith("with FQ")) ?? rest.find((one) => one.value <= half);
  return `${capital(best.words)}: ${hurt.show(best.value)}${second ? `; ${second.words}: ${hurt.show(second.value)}` : ""}.`;
}

/** Of several runs the one whose harm is nearest the usual one, if it has harm at all. */
export function usualRun<R extends { summary: Parameters<Hurt["of"]>[0] }>(hurt: Hurt, runs: R[]): { run: R; harm: number } | undefined {
  const harmed = runs.flatMap((run) => {
    const harm = hurt.of(run.summary);
    return harm !== undefined && harm > 0 ? [{ run, harm }] : [];
  });
  const far = ({ harm }: { harm: number }) => Math.abs(harm - hurt.value);
  return harmed.reduce<{ run: R; harm: number } | undefined>((near, one) => (near && far(near) <= far(one) ? near : one), undefined);
}

/** The scenario with a change; undefined if it cannot be made. */
export function changed(source: Source, edit: (text: string, changes: string) => string, alternative: Alternative): Source | undefined {
  try {
    return { ...source, text: edit(source.text, JSON.stringify(alternative.changes)) };
  } catch {
    return undefined;
  }
}
