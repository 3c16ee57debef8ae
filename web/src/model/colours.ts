/** Which colour a flow's lines have: a flow keeps its own while others come and go. */
import type { Described, Run, Table } from "../core/protocol.ts";

/** More flows than these are drawn together, one line for all of a name. */
export const MOST_LINES = 8;

/** The number of a colour, by the name of a line: `film[0]`, or `film[-1]` for all of a name. */
export type Colours = ReadonlyMap<string, number>;

/** Whether flows alike are drawn as one. */
export const isTogether = (run: Run | undefined) => (run?.summary.flows.length ?? 0) > MOST_LINES;

/** The names of a scenario's lines. */
function linesOf(described: Described, run: Run | undefined): string[] {
  if (isTogether(run)) return Object.keys(described.filled.flow as Table).map((name) => `${name}[-1]`);
  return (run?.summary.flows ?? []).map((flow) => `${flow.flow}[${flow.instance}]`);
}

/** The colours of a scenario's lines: what has one keeps it, the others take the first that are free. */
export function coloursOf(described: Described, run: Run | undefined, before: Colours): Colours {
  const names = linesOf(described, run);
  const colours = new Map(names.flatMap((name) => (before.has(name) ? [[name, before.get(name) as number] as const] : [])));
  const taken = new Set(colours.values());
  for (const name of names) {
    if (colours.has(name)) continue;
    let free = 0;
    while (taken.has(free)) free++;
    taken.add(free);
    colours.set(name, free);
  }
  return colours;
}

/** The colour of a flow's first line. */
export function firstOf(colours: Colours, flow: string): number | undefined {
  const own = [...colours].filter(([name]) => name.slice(0, name.lastIndexOf("[")) === flow);
  return own.length === 0 ? undefined : Math.min(...own.map(([, colour]) => colour));
}
