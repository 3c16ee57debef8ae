/** A worker that checks and runs scenarios. A run fills it: to cancel one, the page ends the worker. */
import { initSync, Scenario } from "../../pkg/paceline_web.js";
import type { Asked, Described, Refused, Source, Told } from "./protocol.ts";

const tell = (told: Told, moved: Transferable[] = []) => self.postMessage(told, { transfer: moved });

let known: { source: Source; scenario: Scenario } | undefined;

/** The scenario of these texts, the last one if it is the same. */
function scenarioOf(source: Source): Scenario {
  const same = known && known.source.text === source.text && JSON.stringify(known.source.files) === JSON.stringify(source.files);
  if (known && same) return known.scenario;
  known?.scenario.free();
  known = undefined;
  const scenario = new Scenario(source.text, "scenario.toml", source.files, []);
  known = { source, scenario };
  return scenario;
}

let panic: string | undefined;

/** The simulator says here what went wrong, before it stops for good. */
(globalThis as { paceline_panic?: (message: string) => void }).paceline_panic = (message) => {
  panic = message;
};

/** What was thrown, in words. A trap is the simulator's own fault: nothing that it holds can be used afterwards. */
function refusal(thrown: unknown): Refused {
  if (thrown instanceof WebAssembly.RuntimeError) {
    const what = panic ?? thrown.message;
    const memory = /memory|unreachable/.test(thrown.message) && panic === undefined;
    const message = memory
      ? "The simulator ran out of memory, or has a defect: make the scenario smaller, or run it in a terminal."
      : `Paceline has a defect: ${what}. Please report it with the scenario.`;
    return { message, mistakes: [], missing: [], defect: true };
  }
  const said = thrown as Partial<Refused> | undefined;
  return {
    message: said?.message ?? String(thrown),
    mistakes: said?.mistakes ?? [],
    missing: said?.missing ?? [],
    defect: false,
  };
}

function run(asked: Extract<Asked, { kind: "run" }>): void {
  const scenario = scenarioOf(asked.source);
  const began = performance.now();
  let told = began;
  const progress = (share: number) => {
    const now = performance.now();
    if (now - began < asked.patience_ms || now - told < 50) return;
    told = now;
    tell({ kind: "progress", job: asked.job, share, elapsed_ms: now - began });
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
