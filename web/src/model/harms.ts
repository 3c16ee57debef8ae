/** What can go wrong for a flow: each harm as a number that is the smaller the better, with its words (docs/measures.md). */
import type { Row, Table } from "../core/protocol.ts";
import { digits, rateText, shareText, spanText } from "./quantities.ts";

/** The rows of a run that harms are read from. */
export type Rows = { flows: Row[]; streams: Row[] };

/** How a flow is spoken of: "its", or "download's". */
export interface Who {
  it: string;
  its: string;
}

export interface Harm {
  key: string;
  /** The applications that have it. */
  apps: string[];
  /** Of one row of the flow: the number; undefined where the row has none. */
  of(row: Row): number | undefined;
  table: "flows" | "streams";
  /** In place of a number that is missing because nothing arrived; `run_s` is the length of the run. */
  worst(run_s: number): number;
  /** A smaller difference is no harm to anyone. */
  noticed: number;
  /** What is above this stays to be named, although something else became better. */
  bad?: number;
  less(who: Who): string;
  more(who: Who): string;
  /** What stands before a value: "95 % within ". */
  before?: string;
  show(value: number): string;
  /** A difference, without its sign. */
  by(value: number): string;
}

/** A difference of less than this part of the larger value is no harm to anyone either. */
export const NOTICED_PART = 0.1;
/** One-way delay up to which a conversation is not disturbed (ITU-T G.114). */
export const CONVERSATION_S = 0.15;

const FRAMES = ["encoder", "relay"];
const DATAGRAMS = ["game", "voice", "cbr", "video", "video-trace", "pareto"];
const FILMS = ["stream"];

const number = (value: unknown) => (typeof value === "number" ? value : undefined);
const measure = (name: string) => (row: Row) => number(row[name]);
/** The share that `parts` have of `whole`. */
const shareOf = (parts: string, whole: string[]) => (row: Row) => {
  const all = whole.reduce((sum, name) => sum + (number(row[name]) ?? 0), 0);
  const part = number(row[parts]);
  return part === undefined || all === 0 ? undefined : part / all;
};
const points = (value: number) => `${digits(100 * value)} points`;
const whole = () => 1;

const inFlows = { table: "flows", worst: (run_s: number) => run_s, show: spanText, by: spanText } as const;
const ofShare = { worst: whole, noticed: 0.005, show: shareText, by: points };

export const HARMS: Harm[] = [
  {
    ...inFlows,
    ...ofShare,
    key: "missing",
    apps: FRAMES,
    // what the encoder did not even send, because its data waited, is missing too
    of: (row) => {
      const complete = shareOf("frames_complete", ["frames_sent", "frames_skipped"])(row);
      return complete === undefined ? undefined : 1 - complete;
    },
    bad: 0.02,
    less: ({ its }) => `more of ${its} frames arrive`,
    more: ({ its }) => `fewer of ${its} frames arrive`,
    show: (value) => shareText(1 - value),
  },
  {
    ...inFlows,
    key: "frame delay",
    apps: FRAMES,
    of: measure("frame_delay_p95_s"),
    noticed: 0.01,
    bad: CONVERSATION_S,
    less: ({ its }) => `${its} frames take less time`,
    more: ({ its }) => `${its} frames take longer`,
    before: "95 % within ",
  },
  {
    ...inFlows,
    key: "freeze",
    apps: FRAMES,
    // a picture that never begins does not freeze
    of: (row) => (row.frames_complete === 0 ? undefined : number(row.freeze_s)),
    noticed: 0.1,
    bad: 0.5,
    less: ({ its }) => `${its} picture freezes less`,
    more: ({ its }) => `${its} picture freezes longer`,
  },
  ...(["late", "undecodable"] as const).map((what): Harm => ({
    ...inFlows,
    ...ofShare,
    key: `${what} frames`,
    apps: FRAMES,
    of: shareOf(`frames_${what}`, ["frames_sent"]),
    bad: 0.01,
    less: ({ its }) => `fewer of ${its} frames are ${what}`,
    more: ({ its }) => `more of ${its} frames are ${what}`,
  })),
  {
    ...inFlows,
    ...ofShare,
    table: "streams",
    key: "never begins",
    apps: FILMS,
    of: (row) => (typeof row.began === "boolean" ? (row.began ? 0 : 1) : number(row.began)),
    bad: 0,
    less: ({ it }) => `${it} begins to play more often`,
    more: ({ it }) => `${it} begins to play less often`,
    before: "in ",
    show: (value) => `${shareText(1 - value)} of all cases`,
  },
  {
    ...inFlows,
    ...ofShare,
    table: "streams",
    key: "late",
    apps: FILMS,
    of: measure("late_share"),
    bad: 0.01,
    less: ({ its }) => `less of ${its} media is late`,
    more: ({ its }) => `more of ${its} media is late`,
  },
  {
    ...inFlows,
    ...ofShare,
    table: "streams",
    key: "stalled",
    apps: FILMS,
    of: measure("stall_share"),
    bad: 0.01,
    less: ({ it }) => `${it} stalls less`,
    more: ({ it }) => `${it} stalls longer`,
    show: (value) => `${shareText(value)} of the time`,
  },
  {
    ...inFlows,
    table: "streams",
    key: "fill",
    apps: FILMS,
    of: measure("fill_s"),
    noticed: 0.5,
    less: ({ it }) => `${it} begins sooner`,
    more: ({ it }) => `${it} begins later`,
    before: "after ",
  },
  {
    ...inFlows,
    key: "delay",
    apps: DATAGRAMS,
    of: measure("owd_p95_s"),
    noticed: 0.005,
    bad: CONVERSATION_S,
    less: ({ its }) => `${its} packets take less time`,
    more: ({ its }) => `${its} packets take longer`,
    before: "95 % within ",
  },
  {
    ...inFlows,
    ...ofShare,
    key: "loss",
    apps: DATAGRAMS,
    of: measure("loss_rate"),
    bad: 0.02,
    less: ({ its }) => `fewer of ${its} packets are lost`,
    more: ({ its }) => `more of ${its} packets are lost`,
  },
  {
    ...inFlows,
    key: "voice",
    apps: ["voice"],
    of: (row) => (number(row.voice_mos) === undefined ? undefined : -Number(row.voice_mos)),
    worst: () => -1, // the scale's lower end
    noticed: 0.1,
    bad: -3.6, // "some users dissatisfied" begins there (ITU-T G.107, annex B)
    less: ({ it }) => `${it} sounds better`,
    more: ({ it }) => `${it} sounds worse`,
    before: "a MOS of ",
    show: (value) => digits(-value, 2),
    by: (value) => digits(value, 2),
  },
  {
    ...inFlows,
    key: "goodput",
    apps: [...FRAMES, "ftp"],
    of: (row) => (number(row.goodput_bps) === undefined ? undefined : -Number(row.goodput_bps)),
    worst: () => 0,
    noticed: 1000,
    less: ({ it }) => `${it} gets more`,
    more: ({ it }) => `${it} gets less`,
    show: (value) => rateText(Math.abs(value)),
    by: rateText,
  },
  {
    ...inFlows,
    key: "transfer time",
    apps: ["web", "ftp"],
    of: measure("transfer_time_mean_s"),
    noticed: 0.05,
    less: ({ its }) => `${its} transfers take less time`,
    more: ({ its }) => `${its} transfers take longer`,
    before: "on average ",
  },
  {
    ...inFlows,
    ...ofShare,
    key: "unfinished",
    apps: ["web", "ftp"],
    of: shareOf("transfers_unfinished", ["transfers_completed", "transfers_unfinished"]),
    less: ({ its }) => `more of ${its} transfers end in time`,
    more: ({ its }) => `fewer of ${its} transfers end in time`,
    show: (value) => shareText(1 - value),
  },
];

/** What application a flow has. */
export const appOf = (flow: Table) => String(((flow.app ?? {}) as Table).kind ?? "ftp");

/** The mean of a harm over a flow's instances; one that has no number counts as the worst. Undefined if none has one. */
export function harmOf(harm: Harm, flow: string, rows: Rows, run_s: number): number | undefined {
  const ours = rows[harm.table].filter((row) => row.flow === flow);
  const values = ours.map(harm.of);
  if (values.every((value) => value === undefined)) return undefined;
  return values.reduce<number>((sum, value) => sum + (value ?? harm.worst(run_s)), 0) / values.length;
}
