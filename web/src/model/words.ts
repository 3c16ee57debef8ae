/** What the runs showed, in sentences: what became of each flow, and of the narrowest queue. */
import type { Described, Row, Run, Table } from "../core/protocol.ts";
import { bufferSeconds, isGoverned } from "./controls.ts";
import { grouped } from "./grouped.ts";
import { appOf, CONVERSATION_S, type Rows } from "./harms.ts";
import { bitsPerSecond, digits, rateText, shareText, spanText } from "./quantities.ts";
import { isEndless, type Measures, ofRuns, summary } from "./intervals.ts";
import { middle } from "./statistics.ts";

export interface Sentence {
  /** The flow that it is about; none: the network. */
  flow: string | undefined;
  text: string;
  /** The harm that is worth asking what would help, by its key in harms.ts. */
  hurt?: string;
}

/** A share of this much that is late or lost is worth asking why. */
const WORTH_ASKING = 0.01;

const meanOf = (rows: Row[], measure: string): number | undefined => {
  const there = rows.map((row) => row[measure]).filter((value): value is number => typeof value === "number");
  return there.length === 0 ? undefined : there.reduce((sum, value) => sum + value, 0) / there.length;
};

/** What is said before measures that are means over a flow's instances. */
const each = (count: number) => (count > 1 ? `(each of ${count}, on average) ` : "");

/** A measure in the rows of a run, of a flow or, without one, of the network. */
interface Measured {
  (rows: Rows): number | undefined;
  measure: string;
  flow?: string;
}

/** Of a flow's instances the mean, of each run. */
const measured = (table: "flows" | "streams", flow: string, measure: string): Measured =>
  Object.assign((rows: Rows) => meanOf(rows[table].filter((row) => row.flow === flow), measure), { measure, flow });

class Over {
  constructor(
    private readonly runs: Run[],
    private readonly measures: Measures,
  ) {}

  values(of: (rows: Rows) => number | undefined): number[] {
    return this.runs.map((run) => of(run.summary)).filter((value): value is number => value !== undefined);
  }

  /** "1.74 Mbit/s", with several seeds "1.74 (1.6 to 1.9) Mbit/s": the mean or the median, and the 95 % interval of it that
   * the measure has (docs/measures.md). */
  told(of: Measured, show: (value: number) => string): string | undefined {
    const values = this.values(of);
    if (values.length === 0) return undefined;
    const found = summary(of.measure, values, this.endless(of.flow), this.measures[of.measure]);
    const centre = show(found.kind === "median" ? found.median : found.mean);
    if (values.every((value) => show(value) === centre)) return centre;
    if (found.kind === "runs") return `${centre} (${ofRuns(found, show)})`;
    const [low, high] = found.kind === "median" ? [found.median_low, found.median_high] : [found.low, found.high];
    if (low === undefined || high === undefined) return `${centre} (${show(Math.min(...values))} to ${show(Math.max(...values))} in ${values.length} runs)`;
    return `${centre} (${show(low)} to ${show(high)})`;
  }

  /** Whether a flow is a transfer without an end in all runs; of the network, whether there is such a flow. */
  private endless(flow: string | undefined): boolean {
    const rows = this.runs.flatMap((run) => run.summary.flows);
    return flow === undefined ? rows.some((row) => isEndless([row])) : isEndless(rows.filter((row) => row.flow === flow));
  }
}

function filmWords(name: string, app: Table, count: number, over: Over): Sentence {
  const late = measured("streams", name, "late_share");
  const stalled = measured("streams", name, "stall_share");
  const goodput = over.told(measured("flows", name, "goodput_bps"), rateText);
  const fill = over.told(measured("streams", name, "fill_s"), spanText);
  const needs = bitsPerSecond(app.media_rate);
  const clock = over.values(late).length > 0;
  const of = clock ? late : stalled;
  const values = over.values(of);
  const value = values.length > 0 ? middle(values) : 0;
  const began = over.values((rows) => {
    const ours = rows.streams.filter((row) => row.flow === name);
    return ours.length === 0 ? undefined : ours.filter((row) => row.began === true).length / ours.length;
  });
  const parts: string[] = [];
  if (began.length > 0 && began.every((share) => share === 0)) parts.push("never begins to play: its buffer does not fill before the end");
  else if (values.length === 0) parts.push("has nothing to play before the end");
  else if (value === 0 && values.every((one) => one === 0)) parts.push(`plays without a gap${fill ? `, after ${fill} of waiting` : ""}`);
  else {
    const said = over.told(of, shareText);
    parts.push(clock ? `gets ${said} of its media too late to play` : `stalls for ${said} of the time`);
  }
  if (needs !== undefined && goodput) parts.push(`it needs ${rateText(needs)} and got ${goodput}`);
  const sentence: Sentence = { flow: name, text: `${each(count)}${parts.join("; ")}.` };
  if (value >= WORTH_ASKING) sentence.hurt = clock ? "late" : "stalled";
  return sentence;
}

function callWords(name: string, app: Table, count: number, over: Over): Sentence {
  const delay = measured("flows", name, "frame_delay_p95_s");
  const froze = measured("flows", name, "freeze_s");
  const parts: string[] = [];
  const got = over.told(measured("flows", name, "goodput_bps"), rateText);
  const most = bitsPerSecond(app.max_rate);
  if (got && most !== undefined) parts.push(`gets ${got} of media, of ${rateText(most)} at most`);
  const complete = over.told(measured("flows", name, "complete_share"), shareText);
  const within = over.told(delay, spanText);
  if (!within) parts.push("none of its frames arrives");
  else if (complete) parts.push(`${complete} of its frames arrive, 95 % of these within ${within}`);
  const still = over.values(froze);
  if (still.some((value) => value > 0)) parts.push(`its picture freezes for ${over.told(froze, spanText)} in all`);
  else if (still.length > 0 && within) parts.push("its picture never freezes");
  const values = over.values(delay);
  const value = values.length > 0 ? middle(values) : 0;
  const sentence: Sentence = { flow: name, text: `${each(count)}${parts.join("; ")}.` };
  const frozen = still.length > 0 ? middle(still) : 0;
  const missing = over.values(measured("flows", name, "complete_share")).map((share) => 1 - share);
  if (frozen > 0) sentence.hurt = "freeze";
  else if (value > CONVERSATION_S) sentence.hurt = "frame delay";
  else if (missing.length > 0 && middle(missing) >= WORTH_ASKING) sentence.hurt = "missing";
  return sentence;
}

function datagramWords(name: string, app: Table, count: number, over: Over): Sentence {
  const delay = measured("flows", name, "owd_p95_s");
  const kind = String(app.kind);
  const least = over.told(measured("flows", name, "owd_min_s"), spanText);
  const within = over.told(delay, spanText);
  const lost = over.values(measured("flows", name, "loss_rate"));
  const rating = over.told(measured("flows", name, "voice_mos"), (value) => digits(value, 2));
  const parts: string[] = [];
  const got = over.told(measured("flows", name, "goodput_bps"), rateText);
  const rate = bitsPerSecond(app.rate);
  // of a game and a voice call everyone asks how late, of a film and the like first how much
  const rated = got && rate !== undefined && kind !== "voice" && kind !== "game";
  if (!within) parts.push(got && got !== rateText(0) ? `gets ${got}` : "gets nothing");
  else if (rated) parts.push(`gets ${got} of the ${rateText(rate)} that it has on average`);
  if (within && least) parts.push(`${rated ? "its" : "has a"} one-way delay ${rated ? "is" : "of"} at most ${within} for 95 % of what arrives, ${least} at best`);
  if (lost.some((share) => share > 0)) parts.push(`${over.told(measured("flows", name, "loss_rate"), shareText)} of its packets are lost`);
  else if (lost.length > 0 && within) parts.push("none is lost");
  if (kind === "voice" && rating) parts.push(`its estimated MOS is ${rating} out of 5 (ITU-T G.107)`);
  const values = over.values(delay);
  const value = values.length > 0 ? middle(values) : 0;
  const quickest = over.values(measured("flows", name, "owd_min_s"));
  const sentence: Sentence = { flow: name, text: `${each(count)}${parts.join("; ")}.` };
  if (quickest.length > 0 && value > 2 * Math.min(...quickest) && value > 0.02) {
    sentence.hurt = "delay";
  } else if (lost.length > 0 && middle(lost) >= WORTH_ASKING) sentence.hurt = "loss";
  return sentence;
}

function bulkWords(name: string, count: number, over: Over): Sentence {
  const goodput = over.told(measured("flows", name, "goodput_bps"), rateText) ?? rateText(0);
  const lost = over.told(measured("flows", name, "loss_rate"), shareText);
  const trip = over.told(measured("flows", name, "rtt_mean_s"), spanText);
  const nothing = goodput === rateText(0);
  const parts = [nothing ? "gets nothing" : `gets ${goodput}`];
  if (lost && !nothing) parts.push(lost === "0 %" ? "loses nothing" : `${lost} of its packets are lost`);
  if (trip && !nothing) parts.push(`its RTT averages ${trip}`);
  return { flow: name, text: `${each(count)}${parts.join("; ")}.` };
}

/** "a, b and c" */
const listed = (names: string[]) => [names.slice(0, -1).join(", "), names.at(-1)].filter(Boolean).join(" and ");

/** A flow that gets less than this part of what another one gets starves. */
const STARVED = 0.1;

/** How evenly flows share that would take all they can get: those that go one way between the same ends. */
function sharing(greedy: { name: string; many: boolean }[], over: Over, sentences: Sentence[]): Sentence | undefined {
  if (greedy.length < 2) return undefined;
  const rates = greedy.map(({ name, many }) => {
    const values = over.values(measured("flows", name, "goodput_bps"));
    return { flow: name, name: many ? `a flow of ${name}` : name, rate: values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length) };
  });
  rates.sort((a, b) => b.rate - a.rate);
  const [most, least] = [rates[0], rates.at(-1)];
  if (!most || !least || most.rate === 0) return undefined;
  for (const { flow, rate } of rates) {
    const own = sentences.find((sentence) => sentence.flow === flow);
    if (own && rate < STARVED * most.rate) own.hurt = "goodput";
  }
  const times = most.rate / least.rate;
  const text =
    times < 1.1
      ? `${listed(rates.map(({ name }) => name))} share evenly.`
      : least.rate === 0
        ? `${least.name} gets nothing, ${most.name} most.`
        : `${most.name} gets ${digits(times, 2)} times what ${least.name} gets.`;
  return { flow: undefined, text: text.replace(/^a flow of /, "A flow of ") };
}

function queueWords(described: Described, runs: Run[], over: Over): Sentence[] {
  const [first] = runs;
  const worst = [...(first?.summary.queues ?? [])].sort((a, b) => Number(b.mean_packets) - Number(a.mean_packets))[0];
  if (!worst) return [];
  const of = (measure: string): Measured =>
    Object.assign(
      (rows: Rows) => {
        const found = (rows as unknown as Run["summary"]).queues.find((row) => row.link === worst.link && row.direction === worst.direction);
        return typeof found?.[measure] === "number" ? (found[measure] as number) : undefined;
      },
      { measure },
    );
  const link = ((described.filled.link ?? {}) as Table)[String(worst.link)] as Table | undefined;
  const forward = worst.direction === "forward";
  const back = link?.backward as Table | undefined;
  const rate = bitsPerSecond((forward ? link : back)?.rate);
  const queue = ((forward ? link : back)?.queue ?? {}) as Table;
  const place = forward ? String(worst.link) : `${worst.link}, ${worst.direction},`;
  const parts: string[] = [];
  const used = over.told(of("utilisation"), shareText);
  if (rate !== undefined) {
    const held = over.told(of("mean_bytes"), (size) => spanText((size * 8) / rate));
    // a queue that is governed hardly fills: its limit says nothing of the delay
    const full = isGoverned(queue.kind) ? undefined : bufferSeconds(queue.limit, rate);
    parts.push(`the queue of ${place} holds ${held} of traffic on average${full === undefined ? "" : `, ${spanText(full)} when full`}`);
  } else parts.push(`the queue of ${place} holds ${over.told(of("mean_packets"), (value) => `${digits(value)} packets`)} on average`);
  if (used) parts.push(`link utilisation is ${used}`);
  const text = `${parts.join("; ")}.`;
  return [{ flow: undefined, text: text.charAt(0).toUpperCase() + text.slice(1) }];
}

/** All sentences: of the flows by their names, then how they share, and of the longest queue. */
export function wordsOf(described: Described, runs: Run[], measures: Measures): Sentence[] {
  const over = new Over(runs, measures);
  const flows = Object.entries(described.filled.flow as Table) as [string, Table][];
  const greedy: { name: string; many: boolean; ends: string }[] = [];
  const sentences = flows.map(([name, flow]): Sentence => {
    const app = (flow.app ?? { kind: "ftp" }) as Table;
    const kind = appOf(flow);
    const count = Number(flow.count ?? 1);
    const sent = over.values(measured("flows", name, "packets_sent"));
    // what a track of another's connection sends is in that one's packets
    const came = over.values(measured("flows", name, "bytes_delivered"));
    if (sent.length > 0 && [...sent, ...came].every((many) => many === 0)) return { flow: name, text: "sends nothing while it is measured." };
    if (kind === "stream") return filmWords(name, app, count, over);
    if (kind === "encoder" || kind === "relay") return callWords(name, app, count, over);
    if (["game", "voice", "cbr", "video", "video-trace", "pareto"].includes(kind)) return datagramWords(name, app, count, over);
    if (kind === "ftp" && app.size === undefined) greedy.push({ name, many: count > 1, ends: JSON.stringify([flow.from, flow.to]) });
    return bulkWords(name, count, over);
  });
  const shared = [...grouped(greedy, ({ ends }) => ends).values()].map((alike) => sharing(alike, over, sentences));
  return [...sentences, ...shared.filter((one) => one !== undefined), ...queueWords(described, runs, over)];
}
