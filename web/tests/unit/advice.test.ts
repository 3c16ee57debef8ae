/** Advice: planted good, bad and mixed changes, faults planted in the comparison, and changes that the simulator ran. */
import { expect, test } from "vitest";
import { adviceFor, type Compared, comparisons, judged, type Ran, sentenceOf } from "../../src/model/advice.ts";
import { HARMS, type Harm } from "../../src/model/harms.ts";
import { search } from "../../src/model/why.ts";
import { wordsOf } from "../../src/model/words.ts";
import type { Row, Table } from "../../src/core/protocol.ts";
import { describedBy, edit, presetText, runOf, sourceOf } from "./simulator.ts";

const SEEDS = 10;

/** Numbers in [-1, 1) that are the same each time. */
function noise(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 1103515245 + 12345) % 2147483648;
    return state / 1073741824 - 1;
  };
}

const APPS: Record<string, Table> = {
  call: { app: { kind: "encoder" } },
  film: { app: { kind: "stream" } },
  game: { app: { kind: "game" } },
  voice: { app: { kind: "voice" } },
  web: { app: { kind: "web" } },
  bulk: { app: { kind: "ftp" } },
  wild: { app: { kind: "pareto" } },
};

/** A row of each application as a run on a bad line has it, with what differs from seed to seed. */
const ROWS: Record<string, (by: () => number) => Row> = {
  call: (by) => ({
    frames_sent: 2000, frames_complete: 1900 + 10 * by(), frames_skipped: 0, frames_late: 100 + 2 * by(), frames_undecodable: 50 + by(),
    frame_delay_p95_s: 0.3 + 0.05 * by(), freeze_s: 2 + 0.2 * by(), goodput_bps: 1e6 * (1 + 0.05 * by()),
  }),
  film: (by) => ({ began: true, late_share: 0.3 + 0.05 * by(), stall_share: 0.2 + 0.03 * by(), fill_s: 4 + 0.5 * by() }),
  game: (by) => ({ owd_p95_s: 0.2 + 0.03 * by(), loss_rate: 0.04 + 0.005 * by() }),
  voice: (by) => ({ owd_p95_s: 0.2 + 0.03 * by(), loss_rate: 0.04 + 0.005 * by(), voice_mos: 3 + 0.2 * by() }),
  web: (by) => ({ transfer_time_mean_s: 2 + 0.2 * by(), transfers_completed: 90, transfers_unfinished: 10 }),
  wild: (by) => ({ owd_p95_s: 0.3 * 4 ** by(), loss_rate: 0 }),
  bulk: (by) => ({ goodput_bps: 4e6 * (1 + 0.1 * by()), transfer_time_mean_s: null, transfers_completed: 0, transfers_unfinished: 0 }),
};

type Rows = Record<string, Row>;
interface Case {
  name: string;
  /** The flows by their applications; the first one is advised. */
  flows: string[];
  change(rows: Rows, seed: number): void;
  /** "flow key" */
  better?: string[];
  worse?: string[];
  perhaps?: string[];
  seeds?: number;
}

/** Changes a measure of a flow by a factor. */
const times = (flow: string, name: string, factor: number) => (rows: Rows) => {
  const row = rows[flow] as Row;
  row[name] = Number(row[name]) * factor;
};
const set = (flow: string, values: Row) => (rows: Rows) => void Object.assign(rows[flow] as Row, values);
const all = (...changes: ((rows: Rows, seed: number) => void)[]) => (rows: Rows, seed: number) => changes.forEach((change) => change(rows, seed));

const quick = times("call", "frame_delay_p95_s", 0.3);
const lively = times("call", "freeze_s", 0.1);
const intime = times("film", "late_share", 0.1);
const steady = times("film", "stall_share", 0.1);
const near = times("game", "owd_p95_s", 0.3);

const CASES: Case[] = [
  { name: "frames take less time", flows: ["call", "bulk"], change: quick, better: ["call frame delay"] },
  { name: "a seventh less time in every run, though runs differ more", flows: ["wild"], change: times("wild", "owd_p95_s", 0.86), better: ["wild delay"] },
  { name: "and fewer arrive", flows: ["call", "bulk"], change: all(quick, times("call", "frames_complete", 0.88)), better: ["call frame delay"], worse: ["call missing"] },
  { name: "and the picture freezes", flows: ["call", "bulk"], change: all(quick, times("call", "freeze_s", 3)), better: ["call frame delay"], worse: ["call freeze"] },
  { name: "and the call gets less", flows: ["call", "bulk"], change: all(quick, times("call", "goodput_bps", 0.6)), better: ["call frame delay"], worse: ["call goodput"] },
  { name: "and the download gets less", flows: ["call", "bulk"], change: all(quick, times("bulk", "goodput_bps", 0.6)), better: ["call frame delay"], worse: ["bulk goodput"] },
  { name: "and the download starves", flows: ["call", "bulk"], change: all(quick, set("bulk", { goodput_bps: 0 })), better: ["call frame delay"], worse: ["bulk goodput"] },
  { name: "and the encoder skips frames", flows: ["call", "bulk"], change: all(quick, set("call", { frames_skipped: 400 })), better: ["call frame delay"], worse: ["call missing"] },
  { name: "and frames are late", flows: ["call", "bulk"], change: all(quick, times("call", "frames_late", 2)), better: ["call frame delay"], worse: ["call late frames"] },
  { name: "and frames cannot be decoded", flows: ["call", "bulk"], change: all(quick, times("call", "frames_undecodable", 2)), better: ["call frame delay"], worse: ["call undecodable frames"] },
  { name: "and a game loses packets", flows: ["call", "game"], change: all(quick, times("game", "loss_rate", 3)), better: ["call frame delay"], worse: ["game loss"] },
  { name: "and a film stalls", flows: ["call", "film"], change: all(quick, times("film", "stall_share", 2)), better: ["call frame delay"], worse: ["film stalled"] },
  { name: "and pages take longer", flows: ["call", "web"], change: all(quick, times("web", "transfer_time_mean_s", 2)), better: ["call frame delay"], worse: ["web transfer time"] },
  { name: "freezes less", flows: ["call", "bulk"], change: lively, better: ["call freeze"] },
  { name: "freezes less, takes longer", flows: ["call", "bulk"], change: all(lively, times("call", "frame_delay_p95_s", 5)), better: ["call freeze"], worse: ["call frame delay"] },
  { name: "freezes never, for nothing arrives", flows: ["call"], change: set("call", { freeze_s: 0, frames_complete: 0, frame_delay_p95_s: null }), worse: ["call missing", "call frame delay", "call freeze"] },
  { name: "more frames arrive", flows: ["call", "bulk"], change: set("call", { frames_complete: 2000 }), better: ["call missing"] },
  { name: "fewer late, fewer undecodable", flows: ["call"], change: set("call", { frames_late: 0, frames_undecodable: 0 }), better: ["call late frames", "call undecodable frames"] },
  { name: "the call gets more", flows: ["call"], change: times("call", "goodput_bps", 1.8), better: ["call goodput"] },
  { name: "all is better", flows: ["call"], change: all(quick, lively, set("call", { frames_complete: 2000 })), better: ["call frame delay", "call freeze", "call missing"] },
  { name: "nothing changes", flows: ["call", "bulk", "film", "game", "voice", "web"], change: () => {} },
  { name: "three milliseconds less", flows: ["call"], change: (rows) => set("call", { frame_delay_p95_s: Number(rows.call?.frame_delay_p95_s) - 0.003 })(rows) },
  { name: "three percent more", flows: ["bulk"], change: times("bulk", "goodput_bps", 1.03) },
  { name: "frames take longer", flows: ["call"], change: times("call", "frame_delay_p95_s", 3), worse: ["call frame delay"] },
  { name: "fewer frames arrive", flows: ["call"], change: times("call", "frames_complete", 0.8), worse: ["call missing"] },
  { name: "better in six runs of ten", flows: ["call"], change: (rows, seed) => times("call", "frame_delay_p95_s", seed < 6 ? 0.3 : 1.2)(rows) },
  { name: "better, and in three runs it freezes for long", flows: ["call"], change: (rows, seed) => all(quick, times("call", "freeze_s", seed < 3 ? 9 : 1))(rows, seed), better: ["call frame delay"], perhaps: ["call freeze"] },
  { name: "better in nine runs, in one for ever", flows: ["call"], change: (rows, seed) => (seed === 4 ? times("call", "frame_delay_p95_s", 50) : quick)(rows), perhaps: ["call frame delay"] },
  { name: "another call pays", flows: ["call", "other"], change: all(quick, times("other", "freeze_s", 4)), better: ["call frame delay"], worse: ["other freeze"] },
  { name: "the other flow is taken away", flows: ["call", "bulk"], change: (rows) => { quick(rows); delete rows.bulk; }, better: ["call frame delay"] },
  { name: "with five seeds nothing is known", flows: ["call"], change: quick, seeds: 5 },
  { name: "less is late", flows: ["film", "bulk"], change: intime, better: ["film late"] },
  { name: "less is late, it begins later", flows: ["film"], change: all(intime, times("film", "fill_s", 3)), better: ["film late"], worse: ["film fill"] },
  { name: "it never begins", flows: ["film"], change: set("film", { began: false, late_share: 1, stall_share: 1, fill_s: null }), worse: ["film never begins", "film late", "film stalled", "film fill"] },
  { name: "nothing was due", flows: ["film"], change: all(steady, set("film", { late_share: null })), better: ["film stalled"], worse: ["film late"] },
  { name: "it stalls less", flows: ["film", "bulk"], change: steady, better: ["film stalled"] },
  { name: "it stalls less, a game waits", flows: ["film", "game"], change: all(steady, times("game", "owd_p95_s", 2)), better: ["film stalled"], worse: ["game delay"] },
  { name: "it stalls less, a voice gets worse", flows: ["film", "voice"], change: all(steady, times("voice", "voice_mos", 0.6)), better: ["film stalled"], worse: ["voice voice"] },
  { name: "it begins sooner", flows: ["film"], change: times("film", "fill_s", 0.3), better: ["film fill"] },
  { name: "it stalls less, and begins in half of the runs", flows: ["film"], change: (rows, seed) => all(steady, set("film", { began: seed % 2 === 0 }))(rows, seed), better: ["film stalled"], perhaps: ["film never begins"] },
  { name: "packets take less time", flows: ["game", "bulk"], change: near, better: ["game delay"] },
  { name: "packets take less time, and are lost", flows: ["game", "bulk"], change: all(near, times("game", "loss_rate", 4)), better: ["game delay"], worse: ["game loss"] },
  { name: "no packet arrives", flows: ["game"], change: set("game", { owd_p95_s: null, loss_rate: 1 }), worse: ["game delay", "game loss"] },
  { name: "fewer packets are lost", flows: ["game"], change: times("game", "loss_rate", 0.1), better: ["game loss"] },
  { name: "a voice sounds better", flows: ["voice"], change: times("voice", "voice_mos", 1.4), better: ["voice voice"] },
  { name: "a voice is sooner there, and sounds worse", flows: ["voice"], change: all(times("voice", "owd_p95_s", 0.3), times("voice", "voice_mos", 0.7)), better: ["voice delay"], worse: ["voice voice"] },
  { name: "a download gets more", flows: ["bulk", "web"], change: times("bulk", "goodput_bps", 2), better: ["bulk goodput"] },
  { name: "a download gets more, pages are not done", flows: ["bulk", "web"], change: all(times("bulk", "goodput_bps", 2), set("web", { transfers_unfinished: 60 })), better: ["bulk goodput"], worse: ["web unfinished"] },
  { name: "pages take less time", flows: ["web"], change: times("web", "transfer_time_mean_s", 0.4), better: ["web transfer time"] },
  { name: "pages take less time, fewer end", flows: ["web"], change: all(times("web", "transfer_time_mean_s", 0.4), set("web", { transfers_unfinished: 60 })), better: ["web transfer time"], worse: ["web unfinished"] },
  { name: "no page ends", flows: ["web"], change: set("web", { transfer_time_mean_s: null, transfers_completed: 0, transfers_unfinished: 9 }), worse: ["web transfer time", "web unfinished"] },
];

const appOf = (flow: string) => (flow === "other" ? "call" : flow);

/** The runs before and after a change: equal seeds differ by the change alone, but for a little. */
function ranOf({ flows, change, seeds }: Case): [Ran[], Ran[]] {
  const run = (rows: Rows): Ran => {
    const given = Object.entries(rows).map(([flow, row]): Row => ({ flow, ...row }));
    return { flows: given, streams: given.filter(({ flow }) => flow === "film"), end_s: 60 };
  };
  const pairs = Array.from({ length: seeds ?? SEEDS }, (_, seed): [Ran, Ran] => {
    const by = noise(97 * seed + 13);
    const rows = Object.fromEntries(flows.map((flow) => [flow, (ROWS[appOf(flow)] as (by: () => number) => Row)(by)]));
    const after = structuredClone(rows);
    for (const row of Object.values(after)) {
      for (const [name, value] of Object.entries(row)) if (typeof value === "number" && !Number.isInteger(value)) row[name] = value * (1 + 0.005 * by());
    }
    change(after, seed);
    return [run(rows), run(after)];
  });
  return [pairs.map(([before]) => before), pairs.map(([, after]) => after)];
}

type Comparison = (flows: Table, before: Ran[], after: Ran[], advised: string) => Compared[];

/** Whether a comparison finds what was planted in a case, and advises accordingly. */
function right(one: Case, compare: Comparison): boolean {
  const [before, after] = ranOf(one);
  const [advised] = one.flows as [string];
  const found = compare(Object.fromEntries(one.flows.map((flow) => [flow, APPS[appOf(flow)] as Table])), before, after, advised);
  const named = (verdict: string) => found.filter((each) => each.verdict === verdict).map(({ flow, harm }) => `${flow} ${harm.key}`).sort().join();
  const expected = (names: string[] = []) => [...names].sort().join();
  const [advice] = adviceFor(advised, "", [{ words: "with a change", found }]);
  const kind = advice ? (advice.costs.length > 0 ? "trade" : "good") : "silent";
  const wanted = !one.better?.some((name) => name.startsWith(`${advised} `)) ? "silent" : one.worse || one.perhaps ? "trade" : "good";
  return named("better") === expected(one.better) && named("worse") === expected(one.worse) && named("perhaps") === expected(one.perhaps) && kind === wanted;
}

const ours: Comparison = (flows, before, after) => comparisons(flows, before, after);
const score = (compare: Comparison) => CASES.filter((one) => right(one, compare)).length;

test.each(CASES)("planted: $name", (one) => {
  expect(right(one, ours)).toBe(true);
});

const withHarms = (harms: Harm[]): Comparison => (flows, before, after) => comparisons(flows, before, after, harms);
const FAULTS: [string, Comparison][] = [
  ...HARMS.map((harm): [string, Comparison] => [`without the harm "${harm.key}"`, withHarms(HARMS.filter((one) => one !== harm))]),
  ...HARMS.map((harm): [string, Comparison] => {
    const flipped = { ...harm, of: (row: Row) => { const value = harm.of(row); return value === undefined ? undefined : -value; } };
    return [`with "${harm.key}" the wrong way round`, withHarms(HARMS.map((one) => (one === harm ? flipped : one)))];
  }),
  ["only the harm that was asked about", (flows, before, after, advised) => comparisons(flows, before, after).filter(({ flow }) => flow === advised).slice(0, 1)],
  ["only the flow that was asked about", (flows, before, after, advised) => comparisons(flows, before, after).filter(({ flow }) => flow === advised)],
  ["only the first seed", (flows, before, after) => comparisons(flows, before.map(() => before[0] as Ran), after.map(() => after[0] as Ran))],
  ["five seeds taken twice", (flows, before, after) => comparisons(flows, [...before, ...before].slice(0, 10), [...after, ...after].slice(0, 10))],
  ["seeds that are no pairs", (flows, before, after) => comparisons(flows, before, [...after.slice(3), ...after.slice(0, 3)])],
  ["what is missing is no harm", withHarms(HARMS.map((harm) => ({ ...harm, worst: () => 0 })))],
  ["the least difference counts", withHarms(HARMS.map((harm) => ({ ...harm, noticed: 0 })))],
  ["chance counts", (flows, before, after) => comparisons(flows, before, after).map((one) => (one.verdict === "perhaps" ? { ...one, verdict: "alike" as const } : one))],
];

test("perfect input scores all, and each planted fault less", () => {
  expect(CASES.length).toBeGreaterThanOrEqual(40);
  expect(score(ours)).toBe(CASES.length);
  const scores = FAULTS.map(([name, fault]): [string, number] => [name, score(fault)]);
  expect(scores.filter(([, found]) => found === CASES.length)).toEqual([]);
  expect(new Map(scores).get("only the harm that was asked about")).toBeLessThan(CASES.length / 3);
});

test("where nothing changes but by chance, advice is rare", () => {
  let advised = 0;
  const all = Object.keys(APPS);
  for (let trial = 0; trial < 200; trial++) {
    const by = noise(trial * 7 + 1);
    const ran = () => Array.from({ length: SEEDS }, (): Ran => {
      const flows = all.map((flow): Row => ({ flow, ...(ROWS[flow] as (by: () => number) => Row)(by) }));
      return { flows, streams: flows.filter(({ flow }) => flow === "film"), end_s: 60 };
    });
    const found = comparisons(Object.fromEntries(all.map((flow) => [flow, APPS[flow] as Table])), ran(), ran());
    if (all.some((flow) => judged({ words: "", found }, flow))) advised++;
  }
  // of 21 harms each has 1 % by chance; most of that is too little to be noticed
  expect(advised).toBeLessThan(200 * 0.1);
});

const CALL = presetText("call-droptail");
const REAL: { name: string; text: string; flow: string; says: RegExp[]; never?: RegExp }[] = [
  { name: "a call beside a download", text: CALL, flow: "call", says: [/^Without download, its frames take less time/, /A trade: with FQ-CoDel.*fewer of its frames arrive.*picture freezes longer.*download gets less/] },
  { name: "at 100 kbit/s", text: CALL.replace("5 Mbit/s", "100 kbit/s"), flow: "call", says: [/^Without download/, /Still bad: .*frame delay \(95 % within [\d.]+ s\)/] },
  { name: "with a loss of 30 %", text: CALL.replace('delay = "15 ms"', 'delay = "15 ms"\nloss = { rate = "30 %" }'), flow: "call", says: [/^Without the random loss/, /more of its frames arrive/, /Still bad: frame delay/] },
  { name: "a film beside a download", text: presetText("film"), flow: "film", says: [/^Without download, less of its media is late \(0 % instead of/, /A trade: with FQ-CoDel.*but download gets less/] },
  { name: "a call in FQ-CoDel", text: presetText("call-fq-codel"), flow: "call", says: [/^Without download/], never: /FQ-CoDel/ },
];

test.each(REAL)("the simulator's: $name", async ({ text, flow, says, never }) => {
  const source = sourceOf(text);
  const described = describedBy(source);
  const first = runOf(source, BigInt(described.seed));
  const found = await search(described, [first], wordsOf(described, [first], {}), { source, edit, run: async (of, seed) => runOf(of, seed), wanted: () => true });
  expect(found.seeds).toBe(SEEDS);
  const words = (found.flows[flow] ?? []).map(sentenceOf).join(" ");
  for (const said of says) expect(words).toMatch(said);
  if (never) expect(words).not.toMatch(never);
});
