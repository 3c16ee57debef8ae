/** A panel as a file: SVG as it is drawn, CSV with every number. */
import type { Panel } from "./panels.ts";
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

const [WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM] = [720, 260, 56, 12, 46, 34];

/** The panel, or the part of its time that is shown, as an SVG of its own. */
export function svgOf(panel: Panel, look: Look, between: [number, number] | undefined): string {
  const last = panel.time_s.at(-1) ?? 1;
  const [from, to] = between ?? [0, last];
  let most = 0;
  for (const line of panel.lines) {
    for (const values of [line.y, line.high ?? line.y]) {
      values.forEach((value, row) => {
        const time = panel.time_s[row] as number;
        if (time >= from && time <= to && value > most) most = value;
      });
    }
  }
  const top = most > 0 ? most * 1.06 : 1;
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
  panel.lines.forEach((line) => {
    const colour = line.colour === undefined ? look.text : (look.colours[line.colour % look.colours.length] as string);
    const { low, high } = line;
    if (low && high) {
      const rows = [...panel.time_s.keys()].filter((row) => inside(row) && !Number.isNaN(low[row] as number));
      const there = rows.map((row) => point(row, high[row] as number));
      const back = rows.reverse().map((row) => point(row, low[row] as number));
      parts.push(`<polygon points="${[...there, ...back].join(" ")}" fill="${colour}" fill-opacity="0.18" stroke="none"/>`);
    }
    let path = "";
    let pen = "M";
    line.y.forEach((value, row) => {
      if (!inside(row)) return;
      if (Number.isNaN(value)) {
        pen = "M";
        return;
      }
      path += pen + point(row, value);
      pen = "L";
    });
    parts.push(`<path d="${path}" fill="none" stroke="${colour}" stroke-width="1.4"${line.dashed ? ' stroke-dasharray="6 3"' : ""}/>`);
  });
  let at = LEFT;
  const legend = panel.lines.map((line) => {
    const colour = line.colour === undefined ? look.text : (look.colours[line.colour % look.colours.length] as string);
    const entry = `<path d="M${at} 33h18" stroke="${colour}" stroke-width="2"${line.dashed ? ' stroke-dasharray="6 3"' : ""}/><text x="${at + 23}" y="37">${escaped(line.label)}</text>`;
    at += 40 + line.label.length * 6.6;
    return entry;
  });
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${HEIGHT}" viewBox="0 0 ${WIDTH} ${HEIGHT}" font-family="system-ui, sans-serif" font-size="12" fill="${look.text}">`,
    `<rect width="100%" height="100%" fill="${look.page}"/>`,
    `<text x="${LEFT}" y="18" font-weight="600">${escaped(panel.title)} (${escaped(panel.unit)})</text>`,
    ...legend,
    ...parts,
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
