/** The sentences, and the reasons: of runs as the simulator measures them, made up here number by number. */
import { expect, test } from "vitest";
import type { Described, Row, Run, Table } from "../../src/core/protocol.ts";
import { alternatives, reason, usualRun } from "../../src/model/why.ts";
import { type Hurt, wordsOf } from "../../src/model/words.ts";

const described = (flow: Table, link: Table = {}): Described => ({
  name: "x",
  seed: 1,
  duration_s: 60,
  warmup_s: 0,
  warnings: [],
  cut_short: [],
  recordable: [],
  files: [],
  toml: "",
  filled: { flow, link },
});

const run = (flows: Row[], streams: Row[] = [], queues: Row[] = []): Run => ({
  seed: 1n,
  json: "",
  series: [],
  took_ms: 1,
  summary: { name: "x", seed: 1, duration_s: 60, warmup_s: 0, end_s: 60, measured_s: 60, engine: {}, flows, streams, queues, groups: [] },
});

const said = (flow: Table, runs: Run[], link: Table = {}) => wordsOf(described(flow, link), runs, {}).map((sentence) => sentence.text);
const ftp = (goodput_bps: number, more: Row = {}): Row => ({ flow: "a", goodput_bps, loss_rate: 0, ...more });

test("of a flow that got nothing is not said that it lost nothing", () => {
  const voice = { app: { kind: "voice" }, count: 1 };
  expect(said({ v: voice }, [run([{ flow: "v", goodput_bps: 0, loss_rate: 0, owd_p95_s: null, owd_min_s: null }])])).toEqual(["gets 0 bit/s."]);
  const call = { app: { kind: "encoder", max_rate: "2 Mbit/s" }, count: 1 };
  expect(said({ c: call }, [run([{ flow: "c", send_rate_bps: 1e6, complete_share: 0, frame_delay_p95_s: null, freeze_s: 0 }])])).toEqual([
    "sends 1 Mbit/s out of a maximum of 2 Mbit/s; none of its frames arrives.",
  ]);
  const film = { app: { kind: "stream", media_rate: "2 Mbit/s" }, count: 1 };
  expect(said({ f: film }, [run([{ flow: "f", goodput_bps: 0 }], [{ flow: "f", late_share: null, stall_share: null, began: true }])])).toEqual([
    "has nothing to play before the end; it needs 2 Mbit/s and got 0 bit/s.",
  ]);
});

test("of a flow that ended before the measured time nothing is said but that", () => {
  const flow = { a: { app: { kind: "ftp" } } };
  expect(said(flow, [run([ftp(0, { packets_sent: 0, loss_rate: null })])])).toEqual(["sends nothing while it is measured."]);
  expect(said(flow, [run([ftp(0, { packets_sent: 2 })])])).toEqual(["gets 0 bit/s."]);
  expect(said(flow, [run([ftp(1e6, { packets_sent: 2 })])])).toEqual(["gets 1 Mbit/s; loses nothing."]);
});

test("what is late is told of what arrives, and of several flows that it is a mean", () => {
  const game = { app: { kind: "game" }, count: 2 };
  expect(said({ g: game }, [run([{ flow: "g", owd_p95_s: 0.03, owd_min_s: 0.02, loss_rate: 0.1 }, { flow: "g", owd_p95_s: 0.05, owd_min_s: 0.02, loss_rate: 0.2 }])])).toEqual([
    "(each of 2, on average) has a one-way delay of at most 40 ms for 95 % of what arrives, 20 ms at best; 15 % of its packets are lost.",
  ]);
});

test("only flows that go the same way are said to share", () => {
  const flow = (from: string, count = 1): Table => ({ app: { kind: "ftp" }, count, from, to: "x" });
  const rows = [ftp(4e6), ftp(2e6, { flow: "b" }), ftp(2e6, { flow: "c" })];
  expect(said({ a: flow("l"), b: flow("l", 3), c: flow("l") }, [run(rows)]).at(-1)).toBe("a gets 2 times what c gets.");
  expect(said({ a: flow("l"), b: flow("r") }, [run(rows)])).toHaveLength(2);
  const even = [ftp(2e6), ftp(2e6, { flow: "b" }), ftp(2e6, { flow: "c" })];
  expect(said({ a: flow("l"), b: flow("l", 3), c: flow("l") }, [run(even)]).at(-1)).toBe("a, a flow of b and c share evenly.");
  const none = [ftp(2e6), ftp(0, { flow: "b" }), ftp(1e6, { flow: "c" })];
  expect(said({ a: flow("l"), b: flow("l"), c: flow("l") }, [run(none)]).at(-1)).toBe("b gets nothing, a most.");
});

test("a queue on the way back is told of at the rate of that way", () => {
  const queue = { kind: "droptail", limit: "125 kB" };
  const link = { wan: { rate: "50 Mbit/s", queue, backward: { rate: "1 Mbit/s", queue } } };
  const queues = [{ link: "wan", direction: "backward", mean_packets: 9, mean_bytes: 12500, utilisation: 0.5 }];
  expect(said({ a: { app: { kind: "ftp" } } }, [run([ftp(1e6)], [], queues)], link).at(-1)).toBe(
    "The queue of wan, backward, holds 100 ms of traffic on average, 1 s when full; link utilisation is 50 %.",
  );
});

const hurt = (value: number): Hurt => ({ flow: "f", value, of: ({ flows }) => flows[0]?.harm as number | undefined, show: (part) => `${part} s` });

test("the reason is what takes away half of the harm, and what does so too is told", () => {
  const found = [{ words: "without a", value: 0 }, { words: "without b", value: 1 }, { words: "with FQ-CoDel in place of drop-tail at x", value: 4 }];
  expect(reason(hurt(10), found)).toBe("Without a: 0 s; with FQ-CoDel in place of drop-tail at x: 4 s.");
  expect(reason(hurt(10), found.slice(0, 2))).toBe("Without a: 0 s; without b: 1 s.");
  // only a queue was tried: no flow is said to have been taken away
  expect(reason(hurt(10), [{ words: "with FQ-CoDel in place of drop-tail at x", value: 9 }])).toBe(
    "No single change helps enough. The best is with FQ-CoDel in place of drop-tail at x: 9 s.",
  );
});

test("the reason is sought with a seed that has the harm", () => {
  const runs = [0, 3, 5, 9].map((harm) => run([{ flow: "f", harm }]));
  expect(usualRun(hurt(4.5), runs)).toEqual({ run: runs[2], harm: 5 });
  expect(usualRun(hurt(1), runs.slice(0, 1))).toBeUndefined();
});

test("what is tried leaves the rest of the scenario whole", () => {
  const link = { wan: { rate: "1 Mbit/s", queue: { kind: "droptail" }, loss: { kind: "uniform" } } };
  const whole = described({ f: { group: "f" }, bulk: { group: "bulk", count: 3 } }, link);
  whole.filled.stop_after = "bulk";
  expect(alternatives(whole, "f").map(({ words, changes }) => [words, changes.map(([path]) => path)])).toEqual([
    ["without the 3 flows of bulk", ["flow.bulk", "stop_after"]],
    ["without the random loss of wan", ["link.wan.loss"]],
    ["with FQ-CoDel in place of drop-tail at wan", ["link.wan.queue"]],
  ]);
});
