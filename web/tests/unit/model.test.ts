/** What the page reckons by itself: quantities, addresses, statistics, places in the schema. */
import { expect, test } from "vitest";
import { LARGEST, packed, readAddress, TooLarge, unpacked, writeAddress } from "../../src/model/address.ts";
import { bufferSeconds, key } from "../../src/model/controls.ts";
import { csvOf, svgOf, ticks } from "../../src/model/export.ts";
import { behind, type Panel } from "../../src/model/panels.ts";
import { bitsPerSecond, bytes, digits, packets, rateText, seconds, share, shareText, spanText } from "../../src/model/quantities.ts";
import { interval, medianInterval, middle } from "../../src/model/statistics.ts";
import { about, at, type Node, placeIn } from "../../src/view/schema.ts";

test("quantities are read as scenario files write them", () => {
  expect(seconds("20 ms")).toBeCloseTo(0.02, 12);
  expect(seconds("1e-3 min")).toBeCloseTo(0.06, 12);
  expect(bitsPerSecond("384 kbit/s")).toBe(384e3);
  expect(bitsPerSecond("1.5 MB/s")).toBe(12e6);
  expect(bytes("64 KiB")).toBe(65536);
  expect(packets("60 packets")).toBe(60);
  expect(share("1 %")).toBeCloseTo(0.01, 12);
  expect(share(0.25)).toBe(0.25);
  for (const wrong of ["20", "20 Mbit", "fast", "", 5, undefined]) expect(bitsPerSecond(wrong)).toBeUndefined();
});

test("quantities are written so that they are read again as the same", () => {
  for (const value of [0, 1e-3, 0.0125, 0.25, 2.5, 90]) expect(seconds(spanText(value))).toBeCloseTo(value, 12);
  for (const value of [1, 1500, 10e6, 2.5e9]) expect(bitsPerSecond(rateText(value))).toBeCloseTo(value, 3);
  for (const value of [0, 1e-4, 0.015, 0.3, 1]) expect(share(shareText(value))).toBeCloseTo(value, 12);
  expect([digits(1234.5), digits(0.00123456), digits(999.6), digits(-2.5)]).toEqual(["1235", "0.00123", "1000", "-2.5"]);
});

test("a buffer in packets or bytes is a time at the link's rate", () => {
  expect(bufferSeconds("60 packets", 10e6)).toBeCloseTo(0.072, 9);
  expect(bufferSeconds("75 kB", 10e6)).toBeCloseTo(0.06, 9);
  expect(bufferSeconds("100 ms", undefined)).toBe(0.1);
  expect(bufferSeconds("60 packets", undefined)).toBeUndefined();
});

test("addresses hold a scenario, as zlib has it too", async () => {
  const text = 'duration = "1 s" # µ\n';
  // zlib's raw deflate at level 9, base64url
  expect(await unpacked("SyktSizJzM9TsFVQMlQoVlJQVji0lQsA")).toBe(text);
  expect(await unpacked(await packed(text))).toBe(text);
  const { fragment, whole } = await writeAddress(text, { "a.trace": "1\n2\n" }, 5);
  expect(whole).toBe(true);
  expect(await readAddress(fragment)).toEqual({ toml: text, files: { "a.trace": "1\n2\n" }, runs: 5 });
  expect(await readAddress("#preset=film&embed=1")).toEqual({ preset: "film", embed: true });
  await expect(readAddress(`${fragment.slice(0, 12)}&runs=5`)).rejects.toThrow(/damaged/);
});

test("a link asks for no more seeds than there may be, and unfolds to no more than the page holds", async () => {
  expect(await readAddress("#preset=film&runs=100000")).toEqual({ preset: "film", runs: 1000 });
  expect(await readAddress("#preset=film&runs=-1")).toEqual({ preset: "film" });
  const bomb = await packed(" ".repeat(LARGEST + 1));
  expect(bomb.length).toBeLessThan(2000);
  await expect(unpacked(bomb)).rejects.toThrow(TooLarge);
  await expect(readAddress(`#toml=${bomb}`)).rejects.toThrow(/more than 1 MB/);
  expect(await unpacked(await packed(" ".repeat(LARGEST)))).toHaveLength(LARGEST);
  await expect(writeAddress(" ".repeat(LARGEST + 1), {}, 1)).rejects.toThrow(TooLarge);
  expect((await writeAddress("x = 1", { "a.trace": "1\n".repeat(LARGEST) }, 1)).whole).toBe(false);
});

test("a link of a preset keeps its name, changed or not", async () => {
  const preset = { name: "film", text: "x = 1" };
  expect((await writeAddress("x = 1", {}, 1, preset)).fragment).toBe("#preset=film");
  expect((await writeAddress("x = 1", {}, 5, preset)).fragment).toBe("#preset=film&runs=5");
  const { fragment } = await writeAddress("x = 2", {}, 1, preset);
  expect(fragment).toMatch(/^#preset=film&toml=/);
  expect(await readAddress(fragment)).toEqual({ preset: "film", toml: "x = 2" });
});

test("files that are too large for a link are left out, and that is told", async () => {
  const noise = Array.from({ length: 40_000 }, (_, index) => String((index * 7919) % 10_007)).join("\n");
  const { fragment, whole } = await writeAddress("x = 1", { "a.trace": noise }, 1);
  expect(whole).toBe(false);
  expect(fragment).not.toContain("files");
});

test("intervals are Student's and those of order statistics", () => {
  const found = interval([1, 2, 3, 4, 5]);
  expect(found.mean).toBe(3);
  expect(found.high - found.mean).toBeCloseTo((2.7764451052 * Math.sqrt(2.5)) / Math.sqrt(5), 9);
  // skewed: the command line's, `paceline.interval.half_width`
  const skewed = interval([1, 2, 3, 4, 10]);
  expect(skewed.high - skewed.mean).toBeCloseTo(16.492059666949782, 9);
  // of ten values the second and the ninth, with 97.9 %; below six none
  expect(medianInterval([10, 9, 8, 7, 6, 5, 4, 3, 2, 1])).toEqual([2, 9]);
  expect(medianInterval([1, 2, 3, 4, 5, 6])).toEqual([1, 6]);
  expect(medianInterval([1, 2, 3, 4, 5])).toBeUndefined();
  expect([middle([10, 7, 1, 9]), middle([3, 1, 2])]).toEqual([8, 2]);
});

test("the place of the cursor is known in tables, inline tables and headers", () => {
  expect(placeIn("[link.bottleneck]\nra")).toEqual({ path: ["link", "bottleneck"], typed: "ra" });
  expect(placeIn('[link.bottleneck]\nqueue = { kind = "dr')).toEqual({ path: ["link", "bottleneck", "queue"], key: "kind", typed: '"dr' });
  expect(placeIn('[flow.a]\napp = { kind = "stream", med')).toEqual({ path: ["flow", "a", "app"], typed: "med" });
  expect(placeIn('[flow."a b"]\ncc = "cu')).toEqual({ path: ["flow", "a b"], key: "cc", typed: '"cu' });
  expect(placeIn("duration = 5\n[flow.a.ap")).toEqual({ path: ["flow", "a"], typed: "ap" });
  expect(placeIn('[flow.a]\napp = { kind = "ftp" }\nst')).toEqual({ path: ["flow", "a"], typed: "st" });
});

test("the schema is followed through names, references and variants", () => {
  const schema: Node = {
    type: "object",
    properties: { flow: { additionalProperties: { $ref: "#/$defs/Flow" } }, hops: { type: "integer", minimum: 1, maximum: 9, default: 2, description: "How many." } },
    $defs: {
      Flow: { properties: { app: { $ref: "#/$defs/App" }, rates: { type: "array", items: { properties: { at: {} } } } } },
      App: { oneOf: [{ properties: { kind: { const: "ftp" }, size: {} } }, { properties: { kind: { const: "web" }, gap: {} } }] },
    },
  };
  expect(at(schema, ["flow", "film", "app"]).flatMap((node) => Object.keys(node.properties ?? {}))).toEqual(["kind", "size", "kind", "gap"]);
  expect(at(schema, ["flow", "film", "rates"]).flatMap((node) => Object.keys(node.properties ?? {}))).toEqual(["at"]);
  expect(about(schema, schema.properties?.hops as Node)).toBe("How many. 1 to 9. Default: 2.");
});

const panel: Panel = {
  id: "rate",
  title: "Rate",
  unit: "Mbit/s",
  time_s: new Float64Array([0, 1, 2]),
  lines: [{ label: 'a, "b" & c', colour: 0, dashed: false, y: new Float64Array([1, Number.NaN, 3]) }],
  marks: [],
  held: [],
};
const look = { colours: ["#123456"], text: "#000", grid: "#eee", page: "#fff" };

test("a panel's files have its numbers, with their letters escaped", () => {
  expect(csvOf(panel)).toBe('time_s,"a, ""b"" & c (Mbit_s)"\n0,1\n1,\n2,3\n');
  const svg = svgOf(panel, look, undefined);
  expect(svg).toContain("a, &quot;b&quot; &amp; c");
  // two strokes: the row without a value parts them
  expect(svg.match(/fill="none" stroke="#123456"/g)).toHaveLength(1);
  expect(/<path d="(M[^"]*)" fill="none"/.exec(svg)?.[1]?.match(/M/g)).toHaveLength(2);
});

test("an SVG has marks and held curves, cuts off at the roof, and its legend stays on the page", () => {
  const long = Array.from({ length: 9 }, (_, at) => ({ ...(panel.lines[0] as (typeof panel.lines)[0]), label: `a rather long name ${at}` }));
  const held = [{ label: "old", colour: 0, dashed: false, y: new Float64Array([2, 2, 2]) }];
  const svg = svgOf({ ...panel, lines: long, marks: [{ label: "link rate", value: 2 }], held, roof: 2.5 }, look, undefined);
  expect(svg).toContain("link rate: 2 Mbit/s");
  expect(svg).toContain('stroke-dasharray="2 4"/>');
  expect(svg).toContain('stroke-opacity="0.5"');
  // 2.65 is the top of the axis, the value 3 is above it, and cut off
  expect(svg).toContain('<g clip-path="url(#plot)">');
  expect(svg).not.toContain(">3</text>");
  const entries = [...svg.matchAll(/<path d="M(\d+(?:\.\d+)?) \d+h18"/g)].map(([, x]) => Number(x));
  expect(entries).toHaveLength(10);
  for (const x of entries) expect(x).toBeLessThan(720 - 100);
});

test("held curves are moved to the times of the new ones", () => {
  const coarse = { ...panel, time_s: new Float64Array([0, 2]), lines: [{ ...(panel.lines[0] as (typeof panel.lines)[0]), y: new Float64Array([5, 7]) }] };
  expect([...(behind([panel], [coarse])[0]?.held[0]?.y ?? [])]).toEqual([5, 7, 7]);
  expect(behind([panel], [{ ...coarse, id: "queue" }])[0]?.held).toEqual([]);
  // a held curve has the colour that its flow now has; one whose flow is gone has none
  const [line] = panel.lines as [(typeof panel.lines)[0]];
  const then = { ...panel, lines: [{ ...line, label: "gone" }, { ...line, colour: 1 }] };
  expect(behind([panel], [then])[0]?.held.map(({ colour }) => colour)).toEqual([undefined, 0]);
});

test("ticks are round and inside", () => {
  expect(ticks(0, 10.6, 5)).toEqual([0, 5, 10]);
  expect(ticks(3.2, 4.1, 8)).toEqual([3.2, 3.4, 3.6, 3.8, 4]);
});

test("names are quoted where TOML needs it", () => {
  expect([key("film"), key("a b"), key('say "x"')]).toEqual(["film", '"a b"', '"say \\"x\\""']);
});
