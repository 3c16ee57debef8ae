/** The sentences, and the reasons: of runs as the simulator measures them, made up here number by number. */
import { expect, test } from "vitest";
import type { Described, Row, Run, Table } from "../../src/core/protocol.ts";
import { alternatives, searchOf, WHY_MS } from "../../src/model/why.ts";
import { wordsOf } from "../../src/model/words.ts";

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
  expect(said({ v: voice }, [run([{ flow: "v", goodput_bps: 0, loss_rate: 0, owd_p95_s: null, owd_min_s: null }])])).toEqual(["gets nothing."]);
  const call = { app: { kind: "encoder", max_rate: "2 Mbit/s" }, count: 1 };
  expect(said({ c: call }, [run([{ flow: "c", goodput_bps: 1e6, complete_share: 0, frame_delay_p95_s: null, freeze_s: 0 }])])).toEqual([
    "gets 1 Mbit/s of media, of 2 Mbit/s at most; none of its frames arrives.",
  ]);
  const film = { app: { kind: "stream", media_rate: "2 Mbit/s" }, count: 1 };
  expect(said({ f: film }, [run([{ flow: "f", goodput_bps: 0 }], [{ flow: "f", late_share: null, stall_share: null, began: true }])])).toEqual([
    "has nothing to play before the end; it needs 2 Mbit/s and got 0 bit/s.",
  ]);
});

test("of a flow that ended before the measured time nothing is said but that", () => {
  const flow = { a: { app: { kind: "ftp" } } };
  expect(said(flow, [run([ftp(0, { packets_sent: 0, loss_rate: null })])])).toEqual(["sends nothing while it is measured."]);
  expect(said(flow, [run([ftp(0, { packets_sent: 2, rtt_mean_s: 0.03 })])])).toEqual(["gets nothing."]);
  expect(said(flow, [run([ftp(1e6, { packets_sent: 2 })])])).toEqual(["gets 1 Mbit/s; loses nothing."]);
});

test("what is late is told of what arrives, and of several flows that it is a mean", () => {
  const game = { app: { kind: "game" }, count: 2 };
  expect(said({ g: game }, [run([{ flow: "g", owd_p95_s: 0.03, owd_min_s: 0.02, loss_rate: 0.1 }, { flow: "g", owd_p95_s: 0.05, owd_min_s: 0.02, loss_rate: 0.2 }])])).toEqual([
    "(each of 2, on average) has a one-way delay of at most 40 ms for 95 % of what arrives, 20 ms at best; 15 % of its packets are lost.",
  ]);
});

test("of a film in datagrams is told how much of it arrives", () => {
  const film = { app: { kind: "video", rate: "1 Mbit/s" } };
  expect(said({ f: film }, [run([{ flow: "f", goodput_bps: 0.97e6, owd_p95_s: 0.015, owd_min_s: 0.001, loss_rate: 0 }])])).toEqual([
    "gets 970 kbit/s of the 1 Mbit/s that it has on average; its one-way delay is at most 15 ms for 95 % of what arrives, 1 ms at best; none is lost.",
  ]);
});

test("a queue that is governed is not said to be full", () => {
  const queues = [{ link: "wan", direction: "forward", mean_packets: 9, mean_bytes: 12500, utilisation: 0.5 }];
  const of = (kind: string) => said({ a: { app: { kind: "ftp" } } }, [run([ftp(1e6)], [], queues)], { wan: { rate: "1 Mbit/s", queue: { kind, limit: "125 kB" } } }).at(-1);
  expect(of("droptail")).toContain("1 s when full");
  for (const kind of ["codel", "fq-codel", "pie", "fq-pie", "cake", "dualpi2"]) expect(of(kind), kind).not.toContain("full");
});

test("only flows that go the same way are said to share", () => {
  const flow = (from: string, count = 1): Table => ({ app: { kind: "ftp" }, count, from, to: "x" });
  const rows = [ftp(4e6), ftp(2e6, { flow: "b" }), ftp(2e6, { flow: "c" })];
  expect(said({ a: flow("l"), b: flow("l", 3), c: flow("l") }, [run(rows)]).at(-1)).toBe("a gets 2 times what c gets.");
  expect(said({ a: flow("l"), b: flow("r") }, [run(rows)])).toHaveLength(2);
  const even = [ftp(2e6), ftp(2e6, { flow: "b" }), ftp(2e6, { flow: "c" })];
  expect(said({ a: flow("l"), b: flow("l", 3), c: flow("l") }, [run(even)]).at(-1)).toBe("a, a flow of b and c share evenly.");
  const hurt = wordsOf(described({ a: flow("l"), b: flow("l"), c: flow("l") }), [run([ftp(8e6), ftp(0.7e6, { flow: "b" }), ftp(0.9e6, { flow: "c" })])], {}).map((one) => one.hurt);
  expect(hurt).toEqual([undefined, "goodput", undefined, undefined]);
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

test("what is tried leaves the rest of the scenario whole", () => {
  const link = { wan: { rate: "1 Mbit/s", queue: { kind: "droptail" }, loss: { kind: "uniform" } } };
  const whole = described({ f: { group: "f" }, bulk: { group: "bulk", count: 3 } }, link);
  whole.filled.stop_after = "bulk";
  expect(alternatives(whole).map(({ words, changes }) => [words, changes.map(([path]) => path)])).toEqual([
    ["with FQ-CoDel in place of drop-tail at wan", ["link.wan.queue"]],
    ["without the random loss of wan", ["link.wan.loss"]],
    ["without f", ["flow.f"]],
    ["without the 3 flows of bulk", ["flow.bulk", "stop_after"]],
  ]);
});

test("a search has seeds enough for intervals, and ends", () => {
  expect(searchOf(50, 3, 1)).toEqual({ seeds: 10, changes: 3 });
  expect(searchOf(50, 3, 20)).toEqual({ seeds: 20, changes: 3 });
  expect(searchOf(50, 3, 3)).toEqual({ seeds: 10, changes: 3 });
  expect(searchOf(400, 5, 20)).toEqual({ seeds: 6, changes: 5 });
  expect(searchOf(1000, 7, 1)).toEqual({ seeds: 6, changes: 2 });
  expect(searchOf(WHY_MS + 1, 1, 1)).toEqual({ seeds: 0, changes: 0 });
  expect(searchOf(50, 0, 1)).toEqual({ seeds: 0, changes: 0 });
});
