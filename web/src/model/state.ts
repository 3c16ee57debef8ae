/** What the page shows: one scenario as text, and what became of it. Sliders, text, address and plots are views of this. */
import { batch, computed, effect, signal } from "@preact/signals";
import { edit, initSync, schema as schemaText, schemes as schemesText, version as versionText } from "../../pkg/paceline_web.js";
import { compiled } from "../core/load.ts";
import { Pool } from "../core/pool.ts";
import type { Described, Mistake, Refused, Run } from "../core/protocol.ts";
import { readAddress, writeAddress } from "./address.ts";
import { type Change, groupsOf, queueKinds, type Scheme } from "./controls.ts";
import { behind, type Panel, panelsOf, recordingOf } from "./panels.ts";
import { PRESETS, type Preset, presetOf } from "./presets.ts";
import { alternatives, changed, type Found, reason } from "./why.ts";
import { wordsOf } from "./words.ts";

/** A run that would take longer than this is not begun without asking. */
export const LONG_MS = 5000;
/** What a run has taken by then tells how long it will take. */
const JUDGED_AFTER_MS = 700;
const ADDRESS_AFTER_MS = 300;

export type Status =
  | { kind: "loading" }
  | { kind: "ready" }
  | { kind: "running"; done: number; of: number; share: number }
  | { kind: "asks"; expected_s: number }
  | { kind: "wants-files"; files: string[] };

/** The scenario as it is written. */
export const text = signal("");
export const files = signal<Record<string, string>>({});
/** How many seeds. */
export const runs = signal(1);
/** The preset that it began as. */
export const preset = signal<Preset | undefined>(undefined);
export const embedded = signal(false);

/** What is wrong with the text as it stands; the plots keep what they had. */
export const mistakes = signal<Mistake[]>([]);
export const status = signal<Status>({ kind: "loading" });
/** What went wrong beside that, until something is changed. */
export const trouble = signal("");
/** The last scenario that was whole, and its runs. */
export const shown = signal<{ described: Described; runs: Run[]; every_s: number; thinned: boolean; text: string } | undefined>(undefined);
/** The last scenario that was whole, whether or not it has been run. */
export const described = signal<Described | undefined>(undefined);
/** When the change was made whose curves are shown. */
export const changed_at = signal(0);

/** The part of the time axis that is shown; all of it if undefined. */
export const zoom = signal<[number, number] | undefined>(undefined);
/** The instant under the pointer. */
export const cursor_s = signal<number | undefined>(undefined);

export const schemes = signal<Scheme[]>([]);
export const schema = signal<object>({});
export const version = signal("");

export const groups = computed(() =>
  described.value ? groupsOf(described.value, schemes.value, queueKinds(schema.value)) : { network: [], flows: [] },
);
/** Curves that are held behind the others, to compare with. */
export const held = signal<Panel[]>([]);
const drawn = computed(() => (shown.value ? panelsOf(shown.value.described, shown.value.runs, shown.value.every_s) : []));
export const panels = computed(() => behind(drawn.value, held.value));

/** Holds the curves as they are, or lets them go. */
export function hold(): void {
  held.value = held.value.length > 0 ? [] : drawn.value;
}

export const sentences = computed(() => (shown.value ? wordsOf(shown.value.described, shown.value.runs) : []));
/** Why a flow fares badly, by its name, once that is known. */
export const reasons = signal<Record<string, string>>({});

let pool: Pool | undefined;
let patient = false;

/** Loads the simulator, and the scenario that the address names. */
export async function begin(): Promise<void> {
  const module = await compiled();
  initSync({ module });
  schemes.value = JSON.parse(schemesText());
  schema.value = JSON.parse(schemaText());
  version.value = versionText();
  pool = new Pool(module);
  await follow();
  window.addEventListener("hashchange", () => void follow());
  effect(remember);
  effect(() => {
    if (status.value.kind === "ready") void askWhy();
  });
}

/** The fragment that the page wrote itself. */
let written = "";

/** Opens what the address names. */
async function follow(): Promise<void> {
  if (location.hash === written && written !== "") return;
  try {
    const address = await readAddress(location.hash);
    const named = address.preset === undefined ? undefined : presetOf(address.preset);
    const first = named ?? (address.toml === undefined ? PRESETS[0] : undefined);
    embedded.value = address.embed ?? false;
    open(address.toml ?? first?.text ?? "", first, address.files ?? {}, address.runs ?? 1);
    if (address.preset !== undefined && !named) {
      fail(`There is no preset "${address.preset}". There are ${PRESETS.map((one) => one.name).join(", ")}.`);
    }
  } catch (error) {
    open(PRESETS[0]?.text ?? "", PRESETS[0], {}, 1);
    fail(String(error instanceof Error ? error.message : error));
  }
}

/** Takes up another scenario. */
export function open(scenario: string, from: Preset | undefined, with_files: Record<string, string>, seeds: number): void {
  batch(() => {
    text.value = scenario;
    trouble.value = "";
    preset.value = from;
    files.value = with_files;
    runs.value = seeds;
    held.value = [];
    zoom.value = undefined;
    cursor_s.value = undefined;
  });
  ask();
}

export function openPreset(from: Preset): void {
  open(from.text, from, {}, 1);
}

/** Another text of the same scenario. */
export function write(scenario: string): void {
  if (scenario === text.value) return;
  text.value = scenario;
  trouble.value = "";
  ask();
}

/** Changes keys of the text; comments and layout stay. */
export function change(changes: Change[]): void {
  try {
    write(edit(text.value, JSON.stringify(changes)));
  } catch (error) {
    fail(`The text is to be mended first: ${error instanceof Error ? error.message : String(error)}`);
  }
}

export function addFile(name: string, content: string): void {
  files.value = { ...files.value, [name]: content };
  ask();
}

export function setRuns(many: number): void {
  runs.value = many;
  ask();
}

/** Runs it although that takes long. */
export function runAnyway(): void {
  patient = true;
  ask();
}

/** Ends what runs; what is done stays. */
export function stop(): void {
  pool?.stop();
  status.value = { kind: "ready" };
}

function fail(message: string): void {
  trouble.value = message;
}

/** What the scenario's file is called when it is downloaded. */
export const fileName = () => `${preset.peek()?.name ?? "scenario"}.toml`;

/** Asks for the runs of the scenario as it now is. */
function ask(): void {
  const source = { file: fileName(), text: text.value, files: files.value };
  const seeds = runs.value;
  const began = performance.now();
  const wait = patient;
  patient = false;
  const done: Run[] = [];
  let found: Described | undefined;
  let recording = { every_s: 1, thinned: false };
  pool?.ask(source, {
    described(checked) {
      found = checked;
      recording = recordingOf(checked, seeds);
      batch(() => {
        described.value = checked;
        mistakes.value = [];
        if (status.value.kind !== "running") status.value = { kind: "running", done: 0, of: seeds, share: 0 };
      });
      const first = BigInt(checked.seed);
      return { seeds: Array.from({ length: seeds }, (_, index) => first + BigInt(index)), recording: recordingOf(checked, seeds) };
    },
    ran(run) {
      performance.measure("paceline: a run", { start: performance.now() - run.took_ms, duration: run.took_ms });
      done.push(run);
      if (!found) return;
      const whole = done.length === seeds;
      // With many seeds the curves move with the first and when all are there, and now and then between.
      if (!whole && done.length > 1 && done.length % 5 !== 0) {
        status.value = { kind: "running", done: done.length, of: seeds, share: 0 };
        return;
      }
      const sorted = [...done].sort((a, b) => (a.seed < b.seed ? -1 : 1));
      const current = found;
      batch(() => {
        shown.value = { described: current, runs: sorted, every_s: recording.every_s, thinned: recording.thinned, text: source.text };
        status.value = whole ? { kind: "ready" } : { kind: "running", done: done.length, of: seeds, share: 0 };
        changed_at.value = began;
      });
    },
    progress(share, elapsed_ms) {
      const expected = (elapsed_ms / Math.max(share, 1e-4)) * Math.ceil(seeds / Math.max(1, navigator.hardwareConcurrency || 2));
      if (!wait && elapsed_ms > JUDGED_AFTER_MS && expected > LONG_MS) {
        pool?.stop();
        status.value = { kind: "asks", expected_s: expected / 1000 };
        return;
      }
      status.value = { kind: "running", done: done.length, of: seeds, share };
    },
    refused: (refused) => refuse(refused),
  });
}

function refuse(refused: Refused): void {
  batch(() => {
    mistakes.value = refused.mistakes;
    if (refused.missing.length > 0) status.value = { kind: "wants-files", files: refused.missing };
    else {
      status.value = { kind: "ready" };
      if (refused.mistakes.length === 0) fail(refused.message);
    }
  });
}

/** Runs what is shown with one thing taken away at a time, once nothing else is to do. */
async function askWhy(): Promise<void> {
  const now = shown.peek();
  const [first] = now?.runs ?? [];
  if (!now || !first || !pool || embedded.peek()) return;
  reasons.value = {};
  const source = { file: fileName(), text: now.text, files: files.peek() };
  for (const { hurt } of sentences.peek()) {
    const harm = hurt?.of(first.summary);
    if (!hurt || harm === undefined) continue;
    const found: Found[] = [];
    for (const alternative of alternatives(now.described, hurt.flow)) {
      const other = changed(source, edit, alternative);
      const run = other && (await pool.aside(other, first.seed));
      if (shown.peek() !== now) return;
      const value = run && hurt.of(run.summary);
      if (value !== undefined) found.push({ words: alternative.words, value });
    }
    if (found.length > 0) reasons.value = { ...reasons.peek(), [hurt.flow]: reason({ ...hurt, value: harm }, found) };
  }
}

let remembered: ReturnType<typeof setTimeout> | undefined;

/** Keeps the address in step, a little behind. */
function remember(): void {
  const [scenario, named, many] = [files.value, runs.value, text.value];
  void [scenario, named, many];
  clearTimeout(remembered);
  remembered = setTimeout(async () => {
    if (embedded.value) return;
    const { fragment } = await link();
    written = fragment;
    history.replaceState(null, "", fragment);
  }, ADDRESS_AFTER_MS);
}

/** The fragment of what is shown; a preset that nobody has changed keeps its name. */
export async function link(): Promise<{ fragment: string; whole: boolean }> {
  const named = preset.value;
  if (named && named.text === text.value && runs.value === 1) return { fragment: `#preset=${named.name}`, whole: true };
  return writeAddress(text.value, files.value, runs.value);
}
