/** A worker that checks and runs scenarios. A run fills it: to cancel one, the page ends the worker. */
import { initSync, Scenario } from "../../pkg/paceline_web.js";
import type { Asked, Described, Refused, Source, Told } from "./protocol.ts";

const tell = (told: Told, moved: Transferable[] = []) => self.postMessage(told, { transfer: moved });

/** Runs that take longer than this tell how far they are. */
const PATIENCE_MS = 300;

let known: { source: Source; scenario: Scenario } | undefined;

/** The scenario of these texts, the last one if it is the same. */
function scenarioOf(source: Source): Scenario {
  if (known && JSON.stringify(known.source) === JSON.stringify(source)) return known.scenario;
  known?.scenario.free();
  known = undefined;
  const scenario = new Scenario(source.text, source.file, source.files, []);
  known = { source, scenario };
  return scenario;
}

/** What was thrown, in words. After a defect, or without memory, nothing that the simulator holds can be used. */
function refusal(thrown: unknown): Refused {
  const said = (thrown ?? {}) as Partial<Refused> & { spent?: boolean };
  const trapped = thrown instanceof WebAssembly.RuntimeError;
  const message = trapped
    ? `Paceline has a defect: ${thrown.message}. Please report it with the scenario.`
    : (said.message ?? String(thrown));
  return {
    message: message.charAt(0).toUpperCase() + message.slice(1),
    mistakes: said.mistakes ?? [],
    missing: said.missing ?? [],
    spent: trapped || said.spent === true,
  };
}

function run(asked: Extract<Asked, { kind: "run" }>): void {
  const scenario = scenarioOf(asked.source);
  const began = performance.now();
  let told = began;
  const progress = (share: number) => {
    const now = performance.now();
    if (now - began < PATIENCE_MS || now - told < 50) return;
    told = now;
    tell({ kind: "progress", job: asked.job, seed: asked.seed, share, elapsed_ms: now - began });
  };
  const output = scenario.run(asked.seed, asked.recording.kinds, asked.recording.every_s, progress);
  const took_ms = performance.now() - began;
  const json = output.summary();
  const series = output.series();
  output.free();
  const moved = series.flatMap((one: { columns: Record<string, Float64Array> }) =>
    Object.values(one.columns).map((column) => column.buffer as ArrayBuffer),
  );
  const summary = JSON.parse(json);
  tell({ kind: "ran", job: asked.job, run: { seed: asked.seed, summary, json, series, took_ms } }, moved);
}

self.onmessage = (event: MessageEvent<Asked>) => {
  const asked = event.data;
  if (asked.kind === "load") {
    initSync({ module: asked.module });
    tell({ kind: "ready" });
    return;
  }
  try {
    if (asked.kind === "check") {
      const described = JSON.parse(scenarioOf(asked.source).described()) as Described;
      tell({ kind: "checked", job: asked.job, described });
    } else {
      run(asked);
    }
  } catch (thrown) {
    tell({ kind: "refused", job: asked.job, refused: refusal(thrown) });
  }
};
