/** From recordings to what is drawn: grids, bins, bands, colours, marks, the axis. */
import { expect, test } from "vitest";
import type { Described, Run, Series, Table } from "../../src/core/protocol.ts";
import { coloursOf, firstOf } from "../../src/model/colours.ts";
import { type Panel, panelsOf, recordingOf, topOf } from "../../src/model/panels.ts";

const described = (link: Table, flow: Table, more: Table = {}): Described => ({
  name: "x",
  seed: 1,
  duration_s: 2,
  warmup_s: 0,
  warnings: [],
  cut_short: [],
  recordable: ["rate", "cwnd"],
  files: [],
  toml: "",
  filled: { link, flow, ...more },
});

const series = (table: string, flow: string, instance: number, columns: Record<string, number[]>): Series => ({
  table,
  labels: { flow, instance: String(instance) },
  columns: Object.fromEntries(Object.entries(columns).map(([name, values]) => [name, new Float64Array(values)])),
});

const run = (flows: [string, number][], recorded: Series[]): Run => ({
  seed: 1n,
  json: "",
  series: recorded,
  took_ms: 1,
  summary: {
    name: "x",
    seed: 1,
    duration_s: 2,
    warmup_s: 0,
    end_s: 2,
    measured_s: 2,
    engine: {},
    flows: flows.map(([flow, instance]) => ({ flow, instance })),
    streams: [],
    queues: [],
    groups: [],
  },
});

const rates = (flow: string, goodput_bps: number[], send_rate_bps = goodput_bps) =>
  series("rate", flow, 0, { time_s: goodput_bps.map((_, at) => (at + 1) * 0.25), goodput_bps, send_rate_bps });
const drawn = (scenario: Described, seeds: Run[], every_s: number) => panelsOf(scenario, seeds, every_s, coloursOf(scenario, seeds[0], new Map()));
const of = (panels: Panel[], id: string) => panels.find((panel) => panel.id === id) as Panel;
const LINK = { wan: { rate: "10 Mbit/s", queue: { kind: "droptail", limit: "12 kB" } } };

test("goodput is averaged over four samples, which end where the point stands", () => {
  const panels = drawn(described(LINK, { a: {} }), [run([["a", 0]], [rates("a", [0, 0, 0, 4e6, 2e6, 2e6, 2e6, 2e6])])], 0.25);
  expect([...of(panels, "rate").time_s]).toEqual([0, 1, 2]);
  expect([...(of(panels, "rate").lines[0]?.y ?? [])]).toEqual([Number.NaN, 1, 2]);
});

test("a window is not drawn after its flow's last packet", () => {
  const window = series("cwnd", "a", 0, { time_s: [0.5, 1, 1.5, 2], cwnd_packets: [1, 2, 3, 4], srtt_s: [1, 1, 1, 1] });
  const panels = drawn(described(LINK, { a: {} }), [run([["a", 0]], [rates("a", [1, 1, 1, 1, 0, 0, 0, 0]), window])], 0.5);
  expect([...(of(panels, "window").lines[0]?.y ?? [])]).toEqual([Number.NaN, 1, 2, Number.NaN, Number.NaN]);
});

test("a flow has one colour in all panels, and several seeds one line, from ten on with a band", () => {
  const window = (flow: string, at: number) => series("cwnd", flow, 0, { time_s: [1, 2], cwnd_packets: [at, at + 2], srtt_s: [1, 1] });
  const seeds = (windows: number[]) =>
    windows.map((at) => run([["a", 0], ["b", 0]], [rates("a", [1, 1]), rates("b", [1, 1, 1, 1, 1, 1, 1, 1]), window("b", at)]));
  const panels = drawn(described(LINK, { a: {}, b: {} }), seeds([2, 4]), 1);
  const [line] = of(panels, "window").lines;
  expect(of(panels, "rate").lines.map(({ label, colour }) => [label, colour])).toEqual([["a", 0], ["b", 1]]);
  expect(line?.colour).toBe(1);
  expect([...(line?.y ?? [])]).toEqual([Number.NaN, 3, 5]);
  expect([line?.low?.[1], line?.high?.[1]]).toEqual([Number.NaN, Number.NaN]);
  // the mean of nine 0 and one 10, and Hall's longer side, cut at zero
  const [banded] = of(drawn(described(LINK, { a: {}, b: {} }), seeds([0, 0, 0, 0, 0, 0, 0, 0, 0, 10]), 1), "window").lines;
  expect([banded?.y?.[1], banded?.low?.[1]]).toEqual([1, 0]);
  expect(banded?.high?.[1]).toBeGreaterThan(1 + 2.262);
});

test("what is delivered at once leaves the plot above the fastest link, whichever that is", () => {
  const peak = [run([["a", 0]], [rates("a", [1e6, 1e6, 1e6, 400e6, 1e6, 1e6, 1e6, 1e6])])];
  const top = (link: Table, more: Table = {}) => topOf(of(drawn(described(link, { a: {} }, more), peak, 0.25), "rate"));
  expect(top(LINK)).toBeCloseTo(15 * 1.06, 9);
  const two = { ...LINK, lan: { rate: "2 Mbit/s", backward: { rate: "20 Mbit/s" } } };
  expect(top(two)).toBeCloseTo(30 * 1.06, 9);
  // of a link whose rate is not fixed, or of a radio, nothing is known
  expect(top({ wan: { rate_schedule: [] } })).toBeCloseTo(100.75 * 1.06, 9);
  expect(top(LINK, { cell: { home: {} } })).toBeCloseTo(100.75 * 1.06, 9);
});

test("an axis goes to a mark that is near, and to what is shown of the curves", () => {
  const panel: Panel = { ...of(drawn(described(LINK, { a: {} }), [run([["a", 0]], [rates("a", [4e6, 4e6, 4e6, 4e6, 1e6, 1e6, 1e6, 1e6])])], 0.25), "rate") };
  expect(topOf(panel)).toBeCloseTo(10 * 1.06, 9);
  expect(topOf({ ...panel, marks: [{ label: "far", value: 13 }] })).toBeCloseTo(4 * 1.06, 9);
  expect(topOf({ ...panel, marks: [] }, [1.5, 2])).toBeCloseTo(1 * 1.06, 9);
});

test("of very many flows and seeds samples are rarer", () => {
  expect(recordingOf(described(LINK, { a: { count: 2 } }), 1)).toMatchObject({ kinds: ["cwnd", "rate"], thinned: false });
  const many = recordingOf(described(LINK, { a: { count: 2000 } }), 50);
  expect(many.thinned).toBe(true);
  expect((2 / many.every_s) * 2000 * 25 * 50).toBeLessThanOrEqual(12e6);
});

test("a flow keeps its colour while others come and go", () => {
  const two = run([["b", 0], ["c", 0]], []);
  const before = coloursOf(described(LINK, { b: {}, c: {} }), two, new Map());
  expect([...before]).toEqual([["b[0]", 0], ["c[0]", 1]]);
  const three = run([["a", 0], ["b", 0], ["c", 0]], []);
  const more = coloursOf(described(LINK, { a: {}, b: {}, c: {} }), three, before);
  expect([firstOf(more, "a"), firstOf(more, "b"), firstOf(more, "c")]).toEqual([2, 0, 1]);
  const fewer = coloursOf(described(LINK, { a: {}, c: {} }), run([["a", 0], ["c", 0]], []), more);
  expect([firstOf(fewer, "a"), firstOf(fewer, "c"), firstOf(fewer, "b")]).toEqual([2, 1, undefined]);
  expect(firstOf(coloursOf(described(LINK, { a: {}, b: {}, c: {} }), three, fewer), "b")).toBe(0);
});
