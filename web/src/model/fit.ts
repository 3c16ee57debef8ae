/** What a choice leaves without a meaning goes out of the text with it: a controller's own keys, when another takes its place. */
import type { Mistake } from "../core/protocol.ts";

/** Keys may hang together: what is left out may leave others without a meaning. */
const MOST_ROUNDS = 6;

/**
 * The text without those keys of the table `within` that the checker wants left out; the keys of `kept` stay.
 * Where it wants something else the text stays as it is, and its mistakes are shown.
 */
export function fitted(
  text: string,
  within: string,
  kept: string[],
  wrongIn: (text: string) => Mistake[],
  edit: (text: string, changes: string) => string,
): { text: string; leftOut: string[] } {
  const leftOut: string[] = [];
  let now = text;
  for (let round = 0; round < MOST_ROUNDS; round++) {
    const idle = wrongIn(now).filter(
      ({ key, problem }) => key.startsWith(`${within}.`) && !kept.includes(key) && /leave (the key|the table|it) out/.test(problem),
    );
    if (idle.length === 0) return { text: now, leftOut };
    const keys = [...new Set(idle.map(({ key }) => key))];
    now = edit(now, JSON.stringify(keys.map((key) => [key, null])));
    leftOut.push(...keys);
  }
  return { text: now, leftOut };
}
