/** Which sliders and choices a scenario has, made of the scenario itself: what one would turn first. */
import type { Described, Table, Value } from "../core/protocol.ts";
import { bitsPerSecond, packets, rateText, seconds, share, shareText, spanText, bytes } from "./quantities.ts";

/** A key of the scenario file gets a value, or is taken out. */
export type Change = [path: string, value: Value | null];

interface Common {
  /** The key that it stands for. */
  path: string;
  label: string;
  help?: string;
}

/** A slider. */
export interface Range extends Common {
  kind: "range";
  value: number;
  /** The values that the slider has, from its left end to its right one. */
  steps: number[];
  show(value: number): string;
  changes(value: number): Change[];
}

/** One of several names. */
export interface Choice extends Common {
  kind: "choice";
  value: string;
  options: { value: string; label: string; group?: string }[];
  changes(value: string): Change[];
  /** The table some of whose keys may not go with another choice. */
  within: string;
}

export type Control = Range | Choice;

/** Controls that belong together: a link, a cell, a flow. */
export interface Group {
  /** What it is about: `link.bottleneck`. */
  path: string;
  title: string;
  detail: string;
  controls: Control[];
}

/** A controller, as the simulator lists it. */
export interface Scheme {
  name: string;
  summary: string;
  source: string;
  machine: string;
  /** Whether it can carry an encoder's frames. */
  frames: boolean;
  /** A name of before: the law goes under another, with the parameter `variant`. */
  variant_of?: { name: string; variant: string };
}

/** A full packet on the wire, headers included. */
export const FULL_PACKET_BITS = 1500 * 8;

/** A path's key as TOML writes it. */
export const key = (name: string) => (/^[A-Za-z0-9_-]+$/.test(name) ? name : JSON.stringify(name));

/** Steps that grow by equal factors through 1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8. */
function decades(from: number, to: number): number[] {
  const steps = [];
  for (let decade = Math.floor(Math.log10(from)); 10 ** decade <= to; decade++) {
    for (const step of [1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8]) {
      const value = Number((step * 10 ** decade).toPrecision(3));
      if (value >= from * 0.999 && value <= to * 1.001) steps.push(value);
    }
  }
  return steps;
}

const RATES = decades(100e3, 1e9);
// None is zero: packets must not go round in no time.
const SPANS = decades(1e-3, 1);
const BUFFERS = decades(1e-3, 5);
const SHARES = [0, ...decades(1e-4, 0.3)];
const PACKETS = decades(2, 5000).map(Math.round);
const COUNTS = [...Array.from({ length: 20 }, (_, index) => index + 1), 25, 30, 40, 50, 75, 100];
const MCS = Array.from({ length: 16 }, (_, index) => index);

/** The steps with the value that the scenario has among them. */
const having = (steps: number[], value: number) =>
  steps.includes(value) ? steps : [...steps, value].sort((a, b) => a - b);

function range(common: Common, value: number, steps: number[], show: (value: number) => string, changes: Range["changes"]): Range {
  return { ...common, kind: "range", value, steps: having(steps, value), show, changes };
}

const table = (value: Value | undefined): Table | undefined =>
  typeof value === "object" && !Array.isArray(value) ? value : undefined;

/** How long a full queue takes to drain, in seconds. */
export function bufferSeconds(limit: Value | undefined, rate: number | undefined): number | undefined {
  const time = seconds(limit);
  if (time !== undefined || rate === undefined) return time;
  const many = packets(limit);
  if (many !== undefined) return (many * FULL_PACKET_BITS) / rate;
  const size = bytes(limit);
  return size === undefined ? undefined : (size * 8) / rate;
}

/** Whether a law holds a queue short (codel, pie and their kin): its limit is a bound of memory, which nobody turns. */
export const isGoverned = (kind: Value | undefined) => typeof kind === "string" && /codel|pie|cake|dualpi2/.test(kind);

function queueControls(path: string, queue: Table, rate: number | undefined, kinds: Kinds): Control[] {
  const controls: Control[] = [];
  const governed = isGoverned(queue.kind);
  const limit = governed ? undefined : bufferSeconds(queue.limit, rate);
  const many = governed ? undefined : packets(queue.limit);
  if (limit !== undefined) {
    const title = { path: `${path}.limit`, label: "Buffer", help: "how long a full queue takes to drain" };
    controls.push(range(title, Number(limit.toPrecision(3)), BUFFERS, spanText, (to) => [[`${path}.limit`, spanText(to)]]));
  } else if (many !== undefined) {
    const title = { path: `${path}.limit`, label: "Buffer" };
    controls.push(range(title, many, PACKETS, (to) => `${to} packets`, (to) => [[`${path}.limit`, `${to} packets`]]));
  }
  controls.push({
    kind: "choice",
    path: `${path}.kind`,
    label: "Queue",
    value: String(queue.kind),
    options: Object.keys(kinds).map((kind) => ({ value: kind, label: QUEUES[kind] ?? kind })),
    within: path,
    changes: (kind) => [[`${path}.kind`, kind], ...Object.keys(queue).filter((name) => !kinds[kind]?.includes(name)).map((name): Change => [`${path}.${name}`, null])],
  });
  return controls;
}

const QUEUES: Record<string, string> = {
  droptail: "drop-tail",
  red: "RED",
  codel: "CoDel",
  "fq-codel": "FQ-CoDel",
  pie: "PIE",
  "fq-pie": "FQ-PIE",
  dualpi2: "DualPI2 (L4S)",
  cake: "CAKE",
  unlimited: "unlimited",
};

function linkGroup(name: string, link: Table, alone: boolean, kinds: Kinds): Group {
  const path = `link.${key(name)}`;
  const controls: Control[] = [];
  const rate = bitsPerSecond(link.rate);
  const back = table(link.backward);
  if (rate !== undefined) {
    controls.push(range({ path: `${path}.rate`, label: "Rate" }, rate, RATES, rateText, (to) => [[`${path}.rate`, rateText(to)]]));
  }
  const delay = seconds(link.delay);
  if (delay !== undefined) {
    const even = alone && back !== undefined && seconds(back.delay) === delay;
    const title = { path: `${path}.delay`, label: even ? "Round trip" : "Delay, one way", help: "propagation, without any queue" };
    const ways = even ? 2 : 1;
    // What goes back follows the delay unless it has its own: that would make another of what is one slider.
    const also: Change[] = even ? [[`${path}.backward.delay`, null]] : [];
    controls.push(range(title, delay * ways, SPANS, spanText, (to) => [[`${path}.delay`, spanText(to / ways)], ...also]));
  }
  const queue = table(link.queue);
  if (queue) controls.push(...queueControls(`${path}.queue`, queue, rate, kinds));
  const loss = table(link.loss);
  const lossRate = loss ? share(loss.rate) : 0;
  if (lossRate !== undefined && (!loss || loss.kind === "uniform")) {
    const to = (value: number): Change[] => {
      if (value === 0) return [[`${path}.loss`, null]];
      return loss ? [[`${path}.loss.rate`, shareText(value)]] : [[`${path}.loss`, { rate: shareText(value) }]];
    };
    controls.push(range({ path: `${path}.loss`, label: "Random loss" }, lossRate, SHARES, shareText, to));
  }
  return { path, title: alone ? "The bottleneck" : `Link ${name}`, detail: rate === undefined ? "" : rateText(rate), controls };
}

function cellGroup(name: string, cell: Table, kinds: Kinds): Group {
  const path = `cell.${key(name)}`;
  const controls: Control[] = [];
  if (typeof cell.mcs === "number") {
    controls.push(range({ path: `${path}.mcs`, label: "MCS", help: "modulation and coding of 802.11n" }, cell.mcs, MCS, String, (to) => [[`${path}.mcs`, to]]));
  }
  const queue = table(cell.queue);
  const { dualpi2: _, cake: __, unlimited: ___, ...there } = kinds;
  if (queue) controls.push(...queueControls(`${path}.queue`, queue, undefined, there));
  return { path, title: `Wi-Fi cell ${name}`, detail: `802.11${cell.standard ?? ""}`, controls };
}

/** What an application is called. */
export const APPS: Record<string, string> = {
  ftp: "bulk transfer",
  web: "browsing",
  pareto: "bursts",
  cbr: "constant rate",
  game: "game",
  voice: "voice",
  video: "video",
  "video-trace": "video",
  encoder: "video call",
  relay: "relay",
  stream: "film",
};

const MACHINES: Record<string, string> = {
  tcp: "TCP",
  tfrc: "TFRC and relatives, over datagrams",
  acks: "rate-based, every packet acknowledged",
  rtp: "calls, over RTP",
  udp: "no congestion control",
};

/** Whether an application can ride on a scheme. */
function fits(app: string, { machine, frames }: Scheme): boolean {
  if (app === "web" || app === "stream") return machine === "tcp";
  if (app === "encoder") return frames;
  return machine !== "rtp" && (app !== "ftp" || machine !== "udp");
}

/** The rate that an application has of its own. */
const APP_RATES: Record<string, [string, string]> = {
  stream: ["media_rate", "Media rate"],
  encoder: ["max_rate", "Maximum bit rate"],
  cbr: ["rate", "Rate"],
  video: ["rate", "Mean rate"],
  pareto: ["rate", "Burst rate"],
};

function flowGroup(name: string, flow: Table, duration: number, schemes: Scheme[]): Group {
  const path = `flow.${key(name)}`;
  const app = table(flow.app) ?? {};
  const kind = String(app.kind ?? "ftp");
  const cc = String(flow.cc);
  // A way in which TCP repairs losses is no controller of QUIC's.
  const carried = (scheme: Scheme) => flow.transport !== "quic" || scheme.name !== "tahoe";
  const current = schemes.filter((scheme) => !scheme.variant_of || scheme.name === cc);
  const offered = current.filter((scheme) => (fits(kind, scheme) && carried(scheme)) || scheme.name === cc);
  const controls: Control[] = [];
  controls.push({
    kind: "choice",
    path: `${path}.cc`,
    label: "Controller",
    value: cc,
    options: offered.map((scheme) => ({ value: scheme.name, label: scheme.name, group: MACHINES[scheme.machine] ?? scheme.machine })),
    within: path,
    changes: (to) => [[`${path}.cc`, to], [`${path}.params`, null], [`${path}.recovery`, null]],
  });
  const count = Number(flow.count ?? 1);
  // Keys with a value for each instance go with that many of them.
  const each = Object.values(flow).some((value) => Array.isArray(value) && value.length === count);
  if (!each) controls.push(range({ path: `${path}.count`, label: "How many" }, count, COUNTS, String, (to) => [[`${path}.count`, to]]));
  const own = APP_RATES[kind];
  const rate = own ? bitsPerSecond(app[own[0]]) : undefined;
  if (own && rate !== undefined) {
    const at = `${path}.app.${own[0]}`;
    controls.push(range({ path: at, label: own[1] }, rate, RATES, rateText, (to) => [[at, rateText(to)]]));
  }
  const start = seconds(flow.start);
  if (start !== undefined) {
    const end = Math.min(duration, seconds(flow.stop) ?? duration);
    const starts = Array.from({ length: 51 }, (_, index) => Number(((index * end) / 51).toPrecision(2))).filter((one) => one < end);
    controls.push(range({ path: `${path}.start`, label: "Starts at" }, start, [...new Set(starts)], spanText, (to) => [[`${path}.start`, spanText(to)]]));
  }
  const rtt = seconds(flow.rtt);
  if (rtt !== undefined) {
    controls.push(range({ path: `${path}.rtt`, label: "Round trip" }, rtt, SPANS, spanText, (to) => [[`${path}.rtt`, spanText(to)]]));
  }
  return { path, title: name, detail: `${count > 1 ? `${count} × ` : ""}${APPS[kind] ?? kind}`, controls };
}

/** The kinds of queues, with the keys that each has. */
export type Kinds = Record<string, string[]>;

/** The kinds of queues that the schema names. */
export function queueKinds(schema: { $defs?: Record<string, { oneOf?: { properties?: { kind?: { const?: string } } }[] }> }): Kinds {
  const forms = schema.$defs?.Queue?.oneOf ?? [];
  return Object.fromEntries(forms.flatMap(({ properties }) => (properties?.kind?.const ? [[properties.kind.const, Object.keys(properties)]] : [])));
}

/** All groups of a scenario: links and cells, the narrowest first, and flows. */
export function groupsOf(described: Described, schemes: Scheme[], kinds: Kinds): { network: Group[]; flows: Group[] } {
  const { filled, duration_s } = described;
  const links = Object.entries(table(filled.link) ?? {}) as [string, Table][];
  const cells = Object.entries(table(filled.cell) ?? {}) as [string, Table][];
  const flows = Object.entries(table(filled.flow) ?? {}) as [string, Table][];
  links.sort(([, a], [, b]) => (bitsPerSecond(a.rate) ?? Infinity) - (bitsPerSecond(b.rate) ?? Infinity));
  const alone = links.length === 1 && cells.length === 0;
  return {
    network: [
      ...cells.map(([name, cell]) => cellGroup(name, cell, kinds)),
      ...links.map(([name, link]) => linkGroup(name, link, alone, kinds)),
    ],
    flows: flows.map(([name, flow]) => flowGroup(name, flow, duration_s, schemes)),
  };
}

/** Flows that can be added: the words for them, and their tables. */
export const ADDITIONS: { label: string; name: string; flow: Table }[] = [
  { label: "a download (CUBIC)", name: "download", flow: { cc: "cubic" } },
  { label: "a download (BBR 3)", name: "bulk", flow: { cc: "bbr3" } },
  { label: "a film", name: "film", flow: { cc: "newreno", app: { kind: "stream", media_rate: "2 Mbit/s", length: "60 s" } } },
  { label: "a video call (GCC)", name: "call", flow: { cc: "gcc", app: { kind: "encoder", max_rate: "2.5 Mbit/s" } } },
  { label: "a voice call", name: "voice", flow: { cc: "udp", app: { kind: "voice" } } },
  { label: "a game", name: "game", flow: { cc: "udp", app: { kind: "game" } } },
  { label: "someone browsing", name: "browsing", flow: { app: { kind: "web", gap: "2 s", mean_size: "100 kB", max_size: "5 MB" } } },
  { label: "TFRC", name: "tfrc", flow: { cc: "tfrc" } },
];

/** The change that adds such a flow, under a name that is free; between nodes that flows of the scenario have. */
export function addition(described: Described, index: number): Change {
  const { name, flow } = ADDITIONS[index] as (typeof ADDITIONS)[number];
  const flows = table(described.filled.flow) ?? {};
  let free = name;
  for (let number = 2; free in flows; number++) free = `${name}${number}`;
  const graph = described.filled.topology === "graph" || described.filled.topology === "home";
  const like = Object.values(flows)[0] as Table | undefined;
  const ends: Table = graph && like ? { from: like.from as Value, to: like.to as Value } : {};
  return [`flow.${free}`, { ...ends, ...flow }];
}

/** The changes that take a flow out, with what the scenario says of it elsewhere. */
export function removal(described: Pick<Described, "filled">, name: string): Change[] {
  const { flow, stop_after, friendliness_to } = described.filled;
  const others = Object.entries(table(flow) ?? {}).filter(([other]) => other !== name);
  const grouped = others.some(([, other]) => table(other)?.group === friendliness_to);
  const changes: Change[] = [[`flow.${key(name)}`, null]];
  if (stop_after === name) changes.push(["stop_after", null]);
  if (friendliness_to !== undefined && !grouped) changes.push(["friendliness_to", null]);
  return changes;
}
