/** A panel as a file: SVG as it is drawn, CSV with every number. */
import { type Panel, topOf } from "./panels.ts";
import { digits } from "./quantities.ts";

/** The panel's lines as CSV: the time, and a column for each line; with several runs its mean and interval. */
export function csvOf(panel: Panel): string {
  const unit = panel.unit.replace(/[^A-Za-z0-9]+/g, "_");
  const columns: [string, Float64Array][] = panel.lines.flatMap((line): [string, Float64Array][] => {
    const name = `${line.label} (${unit})`;
    if (!line.low || !line.high) return [[name, line.y]];
    return [[`${name} mean`, line.y], [`${name} low`, line.low], [`${name} high`, line.high]];
  });
  const quoted = (name: string) => (/[",\n]/.test(name) ? `"${name.replaceAll('"', '""')}"` : name);
  const rows = [["time_s", ...columns.map(([name]) => quoted(name))].join(",")];
  panel.time_s.forEach((time, row) => {
    const values = columns.map(([, column]) => column[row] as number).map((value) => (Number.isNaN(value) ? "" : String(value)));
    rows.push([String(Number(time.toPrecision(12))), ...values].join(","));
  });
  return `${rows.join("\n")}\n`;
}

const escaped = (text: string) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");

/** Numbers at which an axis has ticks: round ones, at most so many. */
export function ticks(low: number, high: number, most: number): number[] {
  const raw = (high - low) / most;
  const decade = 10 ** Math.floor(Math.log10(raw));
  const step = ([1, 2, 5, 10].find((one) => one * decade >= raw) ?? 10) * decade;
  const made = [];
  for (let at = Math.ceil(low / step) * step; at <= high + step * 1e-6; at += step) made.push(Number(at.toPrecision(10)));
  return made;
}

/** What the page looks like to a figure. */
export interface Look {
  colours: string[];
  text: string;
  grid: string;
  page: string;
}

/** The colour that a line is drawn in: that of its flow, or the text's. */
export const strokeOf = ({ colour }: { colour: number | undefined }, look: Look) =>
  colour === undefined ? look.text : (look.colours[colour % look.colours.length] as string);

const [WIDTH, PLOT, LEFT, RIGHT, HEAD, BOTTOM, ROW] = [720, 180, 56, 12, 28, 34, 18];
/** About how wide a letter is. */
const LETTER = 6.6;

interface Entry {
  label: string;
  colour: number | undefined;
  dash: string;
  x: number;
  row: number;
}

/** Where each entry of the legend stands: in as many rows as they need. */
function legendOf(panel: Panel): Entry[] {
  let [x, row] = [LEFT, 0];
  const lines = panel.lines.map(({ label, colour, dashed }) => ({ label, colour, dash: dashed ? "6 3" : "" }));
  const marks = panel.marks.map(({ label, value }) => ({ label: `${label}: ${digits(value)} ${panel.unit}`, colour: undefined, dash: "2 4" }));
  return [...lines, ...marks].map((entry) => {
    const wide = 40 + entry.label.length * LETTER;
    if (x > LEFT && x + wide > WIDTH) [x, row] = [LEFT, row + 1];
    const place = { ...entry, x, row };
    x += wide;
    return place;
  });
}

/** The panel, or the part of its time that is shown, as an SVG of its own. */
export function svgOf(panel: Panel, look: Look, between: [number, number] | undefined): string {
  const last = panel.time_s.at(-1) ?? 1;
  const [from, to] = between ?? [0, last];
  const top = topOf(panel, between);
  const places = legendOf(panel);
  const TOP = HEAD + ROW * ((places.at(-1)?.row ?? 0) + 1);
  const HEIGHT = TOP + PLOT + BOTTOM;
  const x = (time: number) => LEFT + ((time - from) / (to - from)) * (WIDTH - LEFT - RIGHT);
  const y = (value: number) => HEIGHT - BOTTOM - (value / top) * (HEIGHT - TOP - BOTTOM);
  const point = (row: number, value: number) => `${x(panel.time_s[row] as number).toFixed(2)},${y(value).toFixed(2)}`;
  const inside = (row: number) => (panel.time_s[row] as number) >= from && (panel.time_s[row] as number) <= to;
  const parts: string[] = [];
  for (const tick of ticks(0, top, 5)) {
    parts.push(`<path d="M${LEFT} ${y(tick).toFixed(2)}H${WIDTH - RIGHT}" stroke="${look.grid}"/>`);
    parts.push(`<text x="${LEFT - 6}" y="${(y(tick) + 4).toFixed(2)}" text-anchor="end">${digits(tick, 4)}</text>`);
  }
  for (const tick of ticks(from, to, 8)) {
    parts.push(`<path d="M${x(tick).toFixed(2)} ${HEIGHT - BOTTOM}v4" stroke="${look.text}"/>`);
    parts.push(`<text x="${x(tick).toFixed(2)}" y="${HEIGHT - BOTTOM + 16}" text-anchor="middle">${digits(tick, 4)}</text>`);
  }
  const stroke = (values: Float64Array, style: string) => {
    let path = "";
    let pen = "M";
    values.forEach((value, row) => {
      if (!inside(row)) return;
      if (Number.isNaN(value)) {
        pen = "M";
        return;
      }
      path += pen + point(row, value);
      pen = "L";
    });
    return `<path d="${path}" fill="none" ${style}/>`;
  };
  const curves: string[] = [];
  for (const { value } of panel.marks) {
    curves.push(`<path d="M${LEFT} ${y(value).toFixed(2)}H${WIDTH - RIGHT}" stroke="${look.text}" stroke-dasharray="2 4"/>`);
  }
  for (const line of panel.held) curves.push(stroke(line.y, `stroke="${strokeOf(line, look)}" stroke-opacity="0.5" stroke-dasharray="3 3"`));
  for (const line of panel.lines) {
    const { low, high } = line;
    if (low && high) {
      const rows = [...panel.time_s.keys()].filter((row) => inside(row) && !Number.isNaN(low[row] as number));
      const there = rows.map((row) => point(row, high[row] as number));
      const back = rows.reverse().map((row) => point(row, low[row] as number));
      curves.push(`<polygon points="${[...there, ...back].join(" ")}" fill="${strokeOf(line, look)}" fill-opacity="0.18" stroke="none"/>`);
    }
    curves.push(stroke(line.y, `stroke="${strokeOf(line, look)}" stroke-width="1.4"${line.dashed ? ' stroke-dasharray="6 3"' : ""}`));
  }
  const legend = places.map(({ x: at, row, label, colour, dash }) => {
    const middle = HEAD + ROW * row + 5;
    return `<path d="M${at} ${middle}h18" stroke="${strokeOf({ colour }, look)}" stroke-width="2"${dash ? ` stroke-dasharray="${dash}"` : ""}/><text x="${at + 23}" y="${middle + 4}">${escaped(label)}</text>`;
  });
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${HEIGHT}" viewBox="0 0 ${WIDTH} ${HEIGHT}" font-family="system-ui, sans-serif" font-size="12" fill="${look.text}">`,
    `<rect width="100%" height="100%" fill="${look.page}"/>`,
    `<text x="${LEFT}" y="18" font-weight="600">${escaped(panel.title)} (${escaped(panel.unit)})</text>`,
    ...legend,
    ...parts,
    // what leaves the plot is cut off at its edge
    `<clipPath id="plot"><rect x="${LEFT}" y="${TOP}" width="${WIDTH - LEFT - RIGHT}" height="${PLOT}"/></clipPath>`,
    '<g clip-path="url(#plot)">',
    ...curves,
    "</g>",
    `<path d="M${LEFT} ${HEIGHT - BOTTOM}H${WIDTH - RIGHT}" stroke="${look.text}"/>`,
    `<text x="${WIDTH - RIGHT}" y="${HEIGHT - 4}" text-anchor="end">time (s)</text>`,
    "</svg>",
    "",
  ].join("\n");
}

/** Hands a text to the visitor as a file. */
export function save(name: string, content: string, type: string): void {
  const address = URL.createObjectURL(new Blob([content], { type }));
  const anchor = Object.assign(document.createElement("a"), { href: address, download: name });
  anchor.click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}
