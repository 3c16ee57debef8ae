/** The simulator as the page has it, in node: real runs for tests of what the page makes of them. */
import { readFileSync } from "node:fs";
import type { Described, Run, Source } from "../../src/core/protocol.ts";
import { edit, initSync, Scenario } from "../../pkg/paceline_web.js";

initSync({ module: readFileSync(new URL("../../pkg/paceline_web_bg.wasm", import.meta.url)) });

export { edit };

/** The text of a preset. */
export const presetText = (name: string) => readFileSync(new URL(`../../presets/${name}.toml`, import.meta.url), "utf8");

export const sourceOf = (text: string): Source => ({ file: "x.toml", text, files: {} });

export function describedBy(source: Source): Described {
  const scenario = new Scenario(source.text, source.file, source.files, []);
  const described = JSON.parse(scenario.described()) as Described;
  scenario.free();
  return described;
}

export function runOf(source: Source, seed: bigint): Run {
  const scenario = new Scenario(source.text, source.file, source.files, []);
  const output = scenario.run(seed, [], 1, undefined);
  const json = output.summary();
  output.free();
  scenario.free();
  return { seed, json, summary: JSON.parse(json), series: [], took_ms: 1 };
}
