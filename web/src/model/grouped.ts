/** Things by what they have in common, in the order in which they come (`Map.groupBy`, which is newer than node 20). */
export function grouped<T>(things: T[], of: (thing: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const thing of things) {
    const name = of(thing);
    const there = groups.get(name);
    if (there) there.push(thing);
    else groups.set(name, [thing]);
  }
  return groups;
}
