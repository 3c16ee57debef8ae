/** What the runs showed, in words and as a table. */
import { useState } from "preact/hooks";
import type { Row } from "../core/protocol.ts";
import { digits, rateText, shareText, spanText } from "../model/quantities.ts";
import { isEndless, said, summary } from "../model/intervals.ts";
import { advice, measures, sentences, shown } from "../model/state.ts";
import { save } from "../model/export.ts";
import { colourOf } from "./theme.ts";

interface Column {
  title: string;
  measure: string;
  table: "flows" | "streams";
  show(value: number): string;
}

const COLUMNS: Column[] = [
  { title: "goodput", measure: "goodput_bps", table: "flows", show: rateText },
  { title: "loss", measure: "loss_rate", table: "flows", show: shareText },
  { title: "RTT", measure: "rtt_mean_s", table: "flows", show: spanText },
  { title: "RTT 95 %", measure: "rtt_p95_s", table: "flows", show: spanText },
  { title: "one-way 95 %", measure: "owd_p95_s", table: "flows", show: spanText },
  { title: "window", measure: "cwnd_mean_packets", table: "flows", show: (value) => digits(value) },
  { title: "late", measure: "late_share", table: "streams", show: shareText },
  { title: "frames 95 %", measure: "frame_delay_p95_s", table: "flows", show: spanText },
  { title: "frozen", measure: "freeze_s", table: "flows", show: spanText },
];

function valueIn(rows: Row[], flow: Row, measure: string): number | undefined {
  const row = rows.find((one) => one.flow === flow.flow && one.instance === flow.instance);
  const value = row?.[measure];
  return typeof value === "number" ? value : undefined;
}

/** A cell: the value of one run; of several what the command line's tables have (docs/measures.md, "Over several runs"). */
function cellOf(values: number[], column: Column, endless: boolean): string {
  if (values.length === 0) return "";
  return said(summary(column.measure, values, endless, measures.value[column.measure]), column.show);
}

const MOST_ROWS = 12;

function Numbers() {
  const [all, showAll] = useState(false);
  const now = shown.value;
  if (!now) return null;
  const flows = now.runs[0]?.summary.flows ?? [];
  const everywhere = now.runs.flatMap((run) => run.summary.flows);
  const cells = flows.map((flow) => {
    const endless = isEndless(everywhere.filter((row) => row.flow === flow.flow));
    return COLUMNS.map((column) => {
      const values = now.runs.map((run) => valueIn(run.summary[column.table], flow, column.measure));
      return cellOf(values.filter((value): value is number => value !== undefined), column, endless);
    });
  });
  const used = COLUMNS.map((_, index) => cells.some((row) => row[index] !== ""));
  const many = new Set(flows.map((flow) => flow.flow)).size < flows.length;
  return (
    <div class="scrolled" tabIndex={0} role="region" aria-label="Numbers of each flow">
      <table>
        <thead>
          <tr>
            <th scope="col">flow</th>
            <th scope="col">controller</th>
            {COLUMNS.filter((_, index) => used[index]).map((column) => (
              <th scope="col" key={column.title} title={column.measure}>
                {column.title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {flows.slice(0, all ? undefined : MOST_ROWS).map((flow, row) => (
            <tr key={`${flow.flow}[${flow.instance}]`}>
              <th scope="row">{many ? `${flow.flow}[${flow.instance}]` : String(flow.flow)}</th>
              <td data-title="controller">{String(flow.cc)}</td>
              {cells[row]?.map((cell, index) => used[index] && <td key={index} data-title={COLUMNS[index]?.title} class={cell === "" ? "none" : undefined}>{cell}</td>)}
            </tr>
          ))}
        </tbody>
      </table>
      {!all && flows.length > MOST_ROWS && (
        <button type="button" class="small" onClick={() => showAll(true)}>
          all {flows.length} flows
        </button>
      )}
    </div>
  );
}

/** What would help a flow, at which price. */
function Why({ flow }: { flow: string }) {
  const found = advice.value?.flows[flow];
  if (!found || found.length === 0) return null;
  const side = (sign: string, kind: string, said: string[]) =>
    said.map((one) => (
      <li key={one} class={kind}>
        <span class="sign" aria-hidden="true">
          {sign}
        </span>
        {kind !== "still bad" && <span class="hidden">{kind}: </span>}
        {one}
      </li>
    ));
  return (
    <div class="why">
      {found.map(({ head, gains, costs, still }) => (
        <div key={head}>
          <b>{head}</b>
          <ul>
            {side("+", "better", gains)}
            {side("−", "worse", costs)}
            {side("!", "still bad", still.map((one) => `still bad: ${one}`))}
          </ul>
        </div>
      ))}
      <p class="quiet">Compared over {advice.value?.seeds} seeds: medians, and 95 % intervals of the differences between runs of one seed.</p>
    </div>
  );
}

/** What became of each flow, in sentences. */
export function Words() {
  if (sentences.value.length === 0) return null;
  // Who fares badly comes first, and stays in its place among its like.
  const sorted = [...sentences.value].sort((a, b) => Number(b.hurt !== undefined) - Number(a.hurt !== undefined));
  return (
    <section class="words" aria-label="What it shows">
      <ul aria-live="polite">
        {sorted.map((sentence) => (
          <li key={sentence.flow ?? sentence.text}>
            {sentence.flow && (
              <>
                <span class="swatch" style={{ background: colourOf(sentence.flow) ?? "var(--text)" }} aria-hidden="true" />
                <b>{sentence.flow}</b>{" "}
              </>
            )}
            {sentence.text}
            {sentence.flow && <Why flow={sentence.flow} />}
          </li>
        ))}
      </ul>
    </section>
  );
}

/** The numbers, how they were measured, and what a reader of them should know. */
export function Measures() {
  const now = shown.value;
  if (!now) return null;
  const { described, runs } = now;
  const notices = [...new Set(runs.flatMap((run) => run.summary.notices ?? []).map((notice) => notice.text))];
  const several = runs.length > 1;
  return (
    <section class="measures" aria-label="Numbers">
      <Numbers />
      <p class="quiet">
        {several
          ? `${runs.length} seeds from ${runs[0]?.seed}: means ± half of their 95 % interval, from ten seeds on and where it holds; else medians [and their intervals], from six on, or how many runs differ. Curves: the mean and, from ten seeds on, shaded, its 95 % interval.`
          : `One run, seed ${runs[0]?.seed}: one run cannot tell an effect from chance. Choose more runs for intervals.`}{" "}
        Measured from {spanText(described.warmup_s)} to {spanText(runs[0]?.summary.end_s ?? described.duration_s)}; curves sampled every {spanText(now.every_s)}
        {now.thinned ? ", less often than usual, so that this many flows fit in memory" : ""}.{" "}
        <button type="button" class="small" onClick={() => save(`${described.name}.json`, `${several ? `[${runs.map((run) => run.json).join(",\n")}]` : runs[0]?.json}\n`, "application/json")}>
          All measures (JSON)
        </button>
      </p>
      {[...described.warnings, ...described.cut_short, ...notices].map((notice) => (
        <p class="notice" key={notice}>
          {notice}
        </p>
      ))}
    </section>
  );
}
