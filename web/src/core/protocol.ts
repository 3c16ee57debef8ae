/** What the page and its workers say to one another. */

/** A scenario as it is written, with the files that it names. */
export interface Source {
  /** The file's name, from which a scenario without `name` has its own. */
  file: string;
  text: string;
  files: Record<string, string>;
}

/** One thing that is wrong with a scenario; lines and columns count from 1. */
export interface Mistake {
  line?: number;
  column?: number;
  key: string;
  problem: string;
}

/** A checked scenario. */
export interface Described {
  name: string;
  /** A text where a number of JavaScript does not hold it to the last digit. */
  seed: number | string;
  duration_s: number;
  warmup_s: number;
  warnings: string[];
  cut_short: string[];
  recordable: string[];
  files: string[];
  /** The scenario with every default filled in. */
  filled: Table;
  toml: string;
}

export type Value = string | number | boolean | Value[] | Table;
export interface Table {
  [key: string]: Value;
}

/** A recorded table: a column of numbers for each name, all of one length. */
export interface Series {
  table: string;
  labels: Record<string, string>;
  columns: Record<string, Float64Array>;
}

/** What a run measured. */
export type Row = Record<string, unknown>;
export interface Summary {
  name: string;
  seed: number;
  duration_s: number;
  warmup_s: number;
  end_s: number;
  measured_s: number;
  engine: Row;
  flows: Row[];
  streams: Row[];
  queues: Row[];
  groups: Row[];
  interfaces?: Row[];
  notices?: { kind: string; text: string }[];
}

/** One run of a scenario. */
export interface Run {
  seed: bigint;
  summary: Summary;
  /** The summary as the simulator wrote it, to the letter. */
  json: string;
  series: Series[];
  /** How long the simulator took. */
  took_ms: number;
}

/** How a run is recorded. */
export interface Recording {
  kinds: string[];
  every_s: number;
}

export type Asked =
  | { kind: "load"; module: WebAssembly.Module }
  | { kind: "check"; job: number; source: Source }
  | { kind: "run"; job: number; source: Source; seed: bigint; recording: Recording };

/** Why a scenario was refused, or a run ended without a result. */
export interface Refused {
  message: string;
  mistakes: Mistake[];
  missing: string[];
  /** The worker cannot go on. */
  spent: boolean;
}

export type Told =
  | { kind: "ready" }
  | { kind: "checked"; job: number; described: Described }
  | { kind: "refused"; job: number; refused: Refused }
  | { kind: "progress"; job: number; seed: bigint; share: number; elapsed_ms: number }
  | { kind: "ran"; job: number; run: Run };
