/** Why a flow fares badly: the same run with one thing taken away, and the one that changes most is the reason. */
import type { Described, Source, Table, Value } from "../core/protocol.ts";
import { type Change, key } from "./controls.ts";
import type { Hurt } from "./words.ts";

/** A scenario with one thing changed. */
export interface Alternative {
  /** "without download" */
  words: string;
  changes: Change[];
}

/** So many flows are taken away in turn. */
const MOST_FLOWS = 5;

/** What can be taken away, and what could be put in place of a plain queue. */
export function alternatives(described: Described, flow: string): Alternative[] {
  const flows = Object.entries(described.filled.flow as Table) as [string, Table][];
  const made: Alternative[] = [];
  for (const [name, other] of flows.filter(([name]) => name !== flow).slice(0, MOST_FLOWS)) {
    made.push({ words: `without ${Number(other.count ?? 1) > 1 ? `the ${other.count} flows ${name}` : name}`, changes: [[`flow.${key(name)}`, null]] });
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

/** The reason in words: what helps most, if it takes away half of the harm; else that nothing alone does. */
export function reason(hurt: Hurt, found: Found[]): string {
  const [best] = [...found].sort((a, b) => a.value - b.value);
  if (!best) return "";
  if (best.value > hurt.value / 2) return "No single flow is the reason: whichever is taken away, it stays about the same.";
  const second = found.find((one) => one !== best && one.words.startsWith("with FQ") && one.value <= hurt.value / 2);
  const also = second && !best.words.startsWith("with FQ") ? `; ${second.words}, ${hurt.show(second.value)}` : "";
  return `${best.words.charAt(0).toUpperCase()}${best.words.slice(1)} it would be ${hurt.show(best.value)}${also}.`;
}

/** The scenario with a change; undefined if it cannot be made. */
export function changed(source: Source, edit: (text: string, changes: string) => string, alternative: Alternative): Source | undefined {
  try {
    return { ...source, text: edit(source.text, JSON.stringify(alternative.changes)) };
  } catch {
    return undefined;
  }
}
