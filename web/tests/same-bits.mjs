// What the simulator for browsers says of the cases of a file: `node same-bits.mjs CASES.json RESULTS.json`.
// tests/test_web.py writes the cases and holds the results against what Python has.

import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import * as paceline from "../pkg/paceline_web.js";

const [cases, results] = process.argv.slice(2);
const asked = JSON.parse(readFileSync(cases, "utf8"));
const wasm = readFileSync(new URL("../pkg/paceline_web_bg.wasm", import.meta.url));
paceline.initSync({ module: wasm });

/** What `work` gives, or what it throws, as plain data. */
function tried(work) {
  try {
    return { value: work() };
  } catch (thrown) {
    const words = thrown instanceof Error ? { message: thrown.message, name: thrown.name } : thrown;
    return { thrown: words };
  }
}

function digest(column) {
  return createHash("sha256").update(new Uint8Array(column.buffer, column.byteOffset, column.byteLength)).digest("hex");
}

function columnsOf(series) {
  return Object.fromEntries(Object.entries(series.columns).map(([name, column]) => [name, digest(column)]));
}

function run({ text, file, files, values, seed, record, every_s, told }) {
  const scenario = new paceline.Scenario(text, file, files ?? {}, values ?? []);
  const shares = [];
  const output = scenario.run(BigInt(seed), record, Number(every_s), told ? (share) => void shares.push(share) : undefined);
  const series = output.series().map((one) => ({ ...one, columns: columnsOf(one) }));
  const done = { described: scenario.described(), summary: output.summary(), series, shares };
  output.free();
  scenario.free();
  return done;
}

function model({ name, columns, inverse }) {
  const numbers = columns.map((column) => Float64Array.from(column, Number));
  return paceline.model(name, numbers, inverse).map(digest);
}

/** What a run throws that its progress ends, and whether the scenario runs again. */
function ended({ text, file, seed }) {
  const scenario = new paceline.Scenario(text, file, {}, []);
  const thrown = tried(() => scenario.run(BigInt(seed), [], 0.1, () => { throw { message: "enough" }; })).thrown;
  return { thrown, again: scenario.run(BigInt(seed), [], 0.1, undefined).summary() };
}

/** Asks for more memory than there is; nothing can be called after it. */
function exhausted({ rows }) {
  const column = new Float64Array(rows).fill(0.1);
  return tried(() => paceline.model("reno", Array(5).fill(column), false)).thrown;
}

const answer = {
  version: paceline.version(),
  schema: paceline.schema(),
  measures: paceline.measures(),
  schemes: paceline.schemes(),
  models: paceline.models(),
  runs: asked.runs.map((one) => tried(() => run(one))),
  columns: asked.columns.map((one) => tried(() => model(one))),
  edits: asked.edits.map(({ text, changes }) => tried(() => paceline.edit(text, JSON.stringify(changes)))),
  ended: ended(asked.ended),
  exhausted: exhausted(asked.exhausted),
};
writeFileSync(results, JSON.stringify(answer));
