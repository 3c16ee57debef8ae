/** What the page shows: one scenario as text, and what became of it. Sliders, text, address and plots are views of this. */
import { batch, computed, effect, signal } from "@preact/signals";
import { edit, initSync, measures as measuresText, Scenario, schema as schemaText, schemes as schemesText, version as versionText } from "../../pkg/paceline_web.js";
import { compiled } from "../core/load.ts";
import { Pool } from "../core/pool.ts";
import type { Described, Mistake, Refused, Run, Source } from "../core/protocol.ts";
import { readAddress, wantsEmbedding, writeAddress } from "./address.ts";
import { type Colours, coloursOf } from "./colours.ts";
import { type Change, groupsOf, queueKinds, type Scheme } from "./controls.ts";
import { fitted } from "./fit.ts";
import { type Measures, measuresOf } from "./intervals.ts";
import { Pace } from "./pace.ts";
import { behind, type Panel, panelsOf, recordingOf } from "./panels.ts";
import { PRESETS, type Preset, presetOf } from "./presets.ts";
import { type Found, search } from "./why.ts";
import { wordsOf } from "./words.ts";

/** A run that would take longer than this is not begun without asking. */
export const LONG_MS = 5000;
/** What a run has taken by then tells how long it will take. */
const JUDGED_AFTER_MS = 900;
const ADDRESS_AFTER_MS = 300;
/** What is typed is run when nothing more has been typed for so long. */
const TYPED_AFTER_MS = 200;

export type Status =
  | { kind: "loading" }
  | { kind: "ready" }
  /** `slow`: it is known to take long, though it says nothing of itself yet. */
  | { kind: "running"; done: number; of: number; share: number; slow?: true }
  | { kind: "asks"; expected_s: number; at_least?: true }
  | { kind: "wants-files"; files: string[] };

export interface Shown {
  described: Described;
  runs: Run[];
  every_s: number;
  thinned: boolean;
  text: string;
  colours: Colours;
}

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
/** What a choice took out of the text beside what it set, until something is changed. */
export const leftOut = signal<string[]>([]);
/** The last scenario that was whole, and its runs. */
export const shown = signal<Shown | undefined>(undefined);
/** The last scenario that was whole, whether or not it has been run. */
export const described = signal<Described | undefined>(undefined);
/** When the change was made whose curves are shown. */
export const changed_at = signal(0);

/** The part of the time axis that is shown; all of it if undefined. */
export const zoom = signal<[number, number] | undefined>(undefined);
/** The instant under the pointer. */
export const cursor_s = signal<number | undefined>(undefined);

export const schemes = signal<Scheme[]>([]);
/** How measures scatter from run to run. */
export const measures = signal<Measures>({});
export const schema = signal<object>({});
export const version = signal("");

export const groups = computed(() =>
  described.value ? groupsOf(described.value, schemes.value, queueKinds(schema.value)) : { network: [], flows: [] },
);
/** Curves that are held behind the others, to compare with. */
export const held = signal<Panel[]>([]);
const drawn = computed(() => (shown.value ? panelsOf(shown.value.described, shown.value.runs, shown.value.every_s, shown.value.colours) : []));
export const panels = computed(() => behind(drawn.value, held.value));

/** Holds the curves as they are, or lets them go. */
export function hold(): void {
  held.value = held.value.length > 0 ? [] : drawn.value;
}

export const sentences = computed(() => (shown.value ? wordsOf(shown.value.described, shown.value.runs, measures.value) : []));
/** What would help flows that fare badly; undefined until it is known. */
export const advice = signal<Found | undefined>(undefined);

let pool: Pool | undefined;
let patient = false;

/** Loads the simulator, and the scenario that the address names. */
export async function begin(): Promise<void> {
  const module = await compiled();
  initSync({ module });
  schemes.value = JSON.parse(schemesText());
  measures.value = measuresOf(measuresText());
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

let followed = 0;
/** The fragment that the page wrote last, or followed. */
let written = "";
/** The fragment that the page opened first, and whether it shows something else instead, because it could not. */
let kept = "";
let instead = false;
/** Which of the scenarios that were taken up the newest entry of the history holds. */
let entry = 0;

let remembering = 0;
let remembered: ReturnType<typeof setTimeout> | undefined;

/** Opens what the address names. */
async function follow(): Promise<void> {
  if (location.hash === written && written !== "") return;
  // Of two that are opened at once the later one counts, and what was shown is no longer written.
  const mine = ++followed;
  clearTimeout(remembered);
  remembering++;
  embedded.value = wantsEmbedding(location.hash);
  try {
    const address = await readAddress(location.hash);
    if (mine !== followed) return;
    const named = address.preset === undefined ? undefined : presetOf(address.preset);
    const first = named ?? (address.toml === undefined ? PRESETS[0] : undefined);
    take(address.toml ?? first?.text ?? "", first, address.files ?? {}, address.runs ?? 1);
    kept = written = location.hash;
    if (address.preset !== undefined && !named && address.toml === undefined) {
      instead = true;
      fail(`There is no preset "${address.preset}". There are ${PRESETS.map((one) => one.name).join(", ")}.`);
    }
  } catch (error) {
    if (mine !== followed) return;
    take(PRESETS[0]?.text ?? "", PRESETS[0], {}, 1);
    kept = written = location.hash;
    instead = true;
    fail(String(error instanceof Error ? error.message : error));
  }
}

/** How many scenarios have been taken up. */
export const opened = signal(0);

/** Takes up a scenario that the address names. */
function take(scenario: string, from: Preset | undefined, with_files: Record<string, string>, seeds: number): void {
  instead = false;
  batch(() => {
    opened.value++;
    // the editor has its lines so
    text.value = scenario.replaceAll("\r\n", "\n");
    preset.value = from;
    files.value = with_files;
    runs.value = seeds;
    held.value = [];
    zoom.value = undefined;
    cursor_s.value = undefined;
  });
  entry = opened.value;
  ask();
}

/** Takes up another scenario in place of this one, to which the browser's Back leads. */
export async function open(scenario: string, from: Preset | undefined, with_files: Record<string, string>, seeds: number): Promise<void> {
  const mine = ++followed;
  await writeDown();
  if (mine !== followed) return;
  take(scenario, from, with_files, seeds);
  entry = opened.value - 1;
}

export const openPreset = (from: Preset) => open(from.text, from, {}, 1);

let typing: ReturnType<typeof setTimeout> | undefined;

/** Another text of the same scenario, as somebody types it: all else follows it at once, its runs a little later. */
export function typed(scenario: string): void {
  if (scenario === text.value) return;
  text.value = scenario;
  clearTimeout(typing);
  typing = setTimeout(ask, TYPED_AFTER_MS);
}

/** What is wrong with a text. */
function wrongIn(scenario: string): Mistake[] {
  try {
    new Scenario(scenario, fileName(), files.value, []).free();
    return [];
  } catch (thrown) {
    return (thrown as Partial<Refused>).mistakes ?? [];
  }
}

/**
 * Changes keys of the text; comments and layout stay. Keys of `within` that the checker then wants left out are left out.
 * Whether it could be done.
 */
export function change(changes: Change[], within?: string): boolean {
  let made: { text: string; leftOut: string[] };
  try {
    made = { text: edit(text.value, JSON.stringify(changes)), leftOut: [] };
    if (within !== undefined) made = fitted(made.text, within, changes.map(([path]) => path), wrongIn, edit);
  } catch (error) {
    const said = error instanceof Error ? error.message : String(error);
    fail(/not TOML/.test(said) ? `Fix the text first: ${said}` : `That cannot be set: ${said}`);
    return false;
  }
  if (made.text === text.value) return true;
  text.value = made.text;
  ask();
  leftOut.value = made.leftOut;
  return true;
}

/** Files that the scenario is to use. */
export function addFiles(given: Record<string, string>): void {
  files.value = { ...files.value, ...given };
  ask();
}

export function setRuns(many: number): void {
  runs.value = many;
  ask();
}

/** Runs it although that takes long. */
export function runAnyway(): void {
  patient = true;
  status.value = { kind: "running", done: 0, of: runs.value, share: 0, slow: true };
  ask();
}

/** Ends what runs; what is done stays. */
export function stop(): void {
  clearTimeout(silence);
  pool?.stop();
  status.value = { kind: "ready" };
}

/** Tells what went wrong, until something is changed. */
export function fail(message: string): void {
  trouble.value = message;
}

/** What the scenario's file is called when it is downloaded. */
export const fileName = () => `${preset.peek()?.name ?? "scenario"}.toml`;

/** Looks after a run that tells nothing of itself. */
let silence: ReturnType<typeof setTimeout> | undefined;

/** Of which of the scenarios that were taken up the colours are. */
let coloured = 0;

/** Asks for the runs of the scenario as it now is. */
function ask(): void {
  clearTimeout(typing);
  clearTimeout(silence);
  trouble.value = "";
  leftOut.value = [];
  const source = { file: fileName(), text: text.value, files: files.value };
  const seeds = runs.value;
  const began = performance.now();
  const wait = patient;
  patient = false;
  const done: Run[] = [];
  let found: Described | undefined;
  let recording: ReturnType<typeof recordingOf>;
  // Colours begin anew with another scenario.
  const another = opened.value !== coloured;
  const paces = new Map<bigint, Pace>();
  pool?.ask(source, {
    described(checked) {
      found = checked;
      recording = recordingOf(checked, seeds);
      batch(() => {
        described.value = checked;
        mistakes.value = [];
        if (status.value.kind !== "running") status.value = { kind: "running", done: 0, of: seeds, share: 0 };
        const [, end] = zoom.value ?? [0, 0];
        if (end > checked.duration_s) zoom.value = undefined;
      });
      // A hundredth of a run is the first that is told of it.
      silence = setTimeout(() => {
        if (wait) status.value = { kind: "running", done: 0, of: seeds, share: 0, slow: true };
        else {
          pool?.stop();
          status.value = { kind: "asks", expected_s: (100 * LONG_MS) / 1000, at_least: true };
        }
      }, LONG_MS);
      const first = BigInt(checked.seed);
      return { seeds: Array.from({ length: seeds }, (_, index) => first + BigInt(index)), recording };
    },
    ran(run) {
      clearTimeout(silence);
      performance.measure("paceline: a run", { start: performance.now() - run.took_ms, duration: run.took_ms });
      done.push(run);
      if (!found) return;
      const whole = done.length === seeds;
      const pools = pool?.size ?? 1;
      // At first the browser is still compiling: the quickest of some runs tells how long the others will take.
      const judge = done.length > 2 * pools || performance.now() - began > JUDGED_AFTER_MS;
      const expected = Math.min(...done.map(({ took_ms }) => took_ms)) * Math.ceil((seeds - done.length) / pools);
      if (!wait && judge && expected > LONG_MS) {
        pool?.stop();
        status.value = { kind: "asks", expected_s: expected / 1000 };
        return;
      }
      // With many seeds the curves move with the first and when all are there, and now and then between.
      if (!whole && done.length > 1 && done.length % 5 !== 0) {
        status.value = { kind: "running", done: done.length, of: seeds, share: 0 };
        return;
      }
      const sorted = [...done].sort((a, b) => (a.seed < b.seed ? -1 : 1));
      const current = found;
      batch(() => {
        coloured = opened.value;
        const colours = coloursOf(current, run, another ? new Map() : (shown.value?.colours ?? new Map()));
        const { every_s, thinned } = recording;
        shown.value = { described: current, runs: sorted, every_s, thinned, text: source.text, colours };
        status.value = whole ? { kind: "ready" } : { kind: "running", done: done.length, of: seeds, share: 0 };
        changed_at.value = began;
      });
    },
    progress(seed, share, elapsed_ms) {
      clearTimeout(silence);
      const pace = paces.get(seed) ?? new Pace();
      paces.set(seed, pace);
      const one = pace.expected_ms(share, elapsed_ms);
      const expected = one * Math.ceil(seeds / (pool?.size ?? 1));
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
  clearTimeout(silence);
  batch(() => {
    // What is asked for is no mistake of the text.
    mistakes.value = refused.mistakes.filter(({ problem }) => !/is not here: give the file/.test(problem));
    if (refused.missing.length > 0) status.value = { kind: "wants-files", files: refused.missing };
    else {
      status.value = { kind: "ready" };
      if (refused.mistakes.length === 0) fail(refused.message);
    }
  });
}

/** What the advice is about. */
let explained: object | undefined;
/** Somebody who drags a slider waits for curves, and not for advice. */
const ADVICE_AFTER_MS = 300;

/** Looks for what would help the flows that fare badly, once nothing else is to do. */
async function askWhy(): Promise<void> {
  const now = shown.peek();
  if (!now || now === explained || !pool || embedded.peek() || mistakes.peek().length > 0) return;
  explained = now;
  advice.value = undefined;
  const wanted = () => shown.peek() === now;
  await new Promise((done) => setTimeout(done, ADVICE_AFTER_MS));
  if (!wanted() || status.peek().kind !== "ready") return;
  const source = { file: fileName(), text: now.text, files: files.peek() };
  const run = (of: Source, seed: bigint) => (pool as Pool).aside(of, seed);
  const found = await search(now.described, now.runs, sentences.peek(), { source, edit, run, wanted });
  if (wanted()) advice.value = found;
}

/** Keeps the address in step, a little behind. */
function remember(): void {
  const [scenario, named, many] = [files.value, runs.value, text.value];
  void [scenario, named, many];
  clearTimeout(remembered);
  remembered = setTimeout(() => void writeDown(), ADDRESS_AFTER_MS);
}

/** Writes what is shown into the address. A link that could not be opened stays there until something is changed, and behind Back after it. */
async function writeDown(): Promise<void> {
  clearTimeout(remembered);
  if (embedded.peek()) return;
  const mine = ++remembering;
  const now = opened.peek();
  const { fragment } = await link().catch(() => ({ fragment: "" }));
  if (mine !== remembering || fragment === "") return;
  if (instead && fragment === `#preset=${PRESETS[0]?.name}` && location.hash === kept) return;
  if ((entry !== now || instead) && fragment !== location.hash) history.pushState(null, "", fragment);
  else history.replaceState(null, "", fragment);
  instead = false;
  entry = now;
  written = fragment;
}

/** The fragment of what is shown. Rejects with TooLarge. */
export const link = () => writeAddress(text.value, files.value, runs.value, preset.value);
