/** The intervals are the command line's: of cases that tests/test_web_intervals.py makes of `paceline.interval`. */
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { averages, isEndless, measuresOf, type Summary, said, summary } from "../../src/model/intervals.ts";
import { medianRank } from "../../src/model/statistics.ts";

const known = JSON.parse(readFileSync(new URL("./intervals.json", import.meta.url), "utf8"));
const measures = measuresOf(JSON.stringify(known.tables));

test("the measures that have an interval of the mean are the command line's", () => {
  expect(Object.keys(measures).filter((name) => averages(name, measures[name])).sort()).toEqual(known.means);
  expect(known.means.length).toBeGreaterThan(20);
});

test("the ranks of a median's interval are the command line's", () => {
  expect(known.ranks.map((_: number, index: number) => medianRank(index + 1))).toEqual(known.ranks);
});

test("what is a transfer without an end is the command line's", () => {
  for (const { flows, found } of known.endless) expect(isEndless(flows), JSON.stringify(flows)).toBe(found);
});

interface Case {
  name: string;
  measure: string;
  endless: boolean;
  values: number[];
  found: Partial<Summary>;
}

for (const { name, measure, values, endless, found } of known.cases as Case[]) {
  test(name, () => {
    const ours = summary(measure, values, endless, measures[measure]);
    expect(Object.keys(ours).sort()).toEqual([...Object.keys(found), "mean"].sort());
    for (const [key, theirs] of Object.entries(found)) {
      const value = ours[key as keyof Summary];
      if (typeof theirs === "number") expect(Math.abs(Number(value) - theirs), `${key}: ${value}, ${theirs}`).toBeLessThanOrEqual(1e-9 * Math.abs(theirs));
      else expect(value).toBe(theirs);
    }
  });
}

test("intervals are told as in the command line's tables", () => {
  const told = (name: string, values: number[], endless = true) => said(summary(name, values, endless, measures[name]), String);
  expect(told("goodput_bps", [3])).toBe("3");
  expect(told("goodput_bps", [3, 4, 5, 6, 8])).toBe("5.2, no interval");
  expect(told("goodput_bps", [1, 2, 3, 4, 5, 60])).toBe("3.5 [1 to 60]");
  expect(told("goodput_bps", [1, 2, 3, 4, 5, 6, 7, 8, 9, 1000], false)).toBe("5.5 [2 to 9], mean 104.5");
  expect(told("goodput_bps", [1, 2, 3, 4, 5, 6, 7, 8, 9, 10])).toMatch(/^5\.5 ± 2\.16/);
  expect(told("mean_packets", [0, 0, 0, 0, 0, 1, 2, 3, 4, 50])).toMatch(/^6 \(0 to /);
  expect(told("timeouts", [2, 2, 2, 2])).toBe("2, all 4");
  expect(told("timeouts", [0, 0, 0, 0, 5])).toBe("1, 1 of 5 not 0");
  expect(told("timeouts", [2, 2, 2, 2, 7])).toBe("3, 4 of 5 at 2");
});
