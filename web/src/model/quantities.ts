/** Quantities as scenario files write them, and as people read them. */

const SPANS: Record<string, number> = { ns: 1e-9, us: 1e-6, µs: 1e-6, ms: 1e-3, s: 1, min: 60, h: 3600 };
const RATES: Record<string, number> = {};
for (const [prefix, factor] of Object.entries({ "": 1, k: 1e3, M: 1e6, G: 1e9 })) {
  for (const unit of ["bit/s", "bps", "b/s"]) RATES[prefix + unit] = factor;
  RATES[`${prefix}B/s`] = 8 * factor;
}
const SIZES: Record<string, number> = { B: 1, kB: 1e3, MB: 1e6, GB: 1e9, KiB: 1024, MiB: 1 << 20, GiB: 2 ** 30 };

function read(value: unknown, units: Record<string, number>): number | undefined {
  if (typeof value !== "string") return undefined;
  const found = /^\s*\+?([0-9.]+(?:[eE][+-]?[0-9]+)?)\s*(\S+)\s*$/.exec(value);
  const factor = found ? units[found[2] as string] : undefined;
  return factor === undefined ? undefined : Number(found?.[1]) * factor;
}

/** Seconds of a time such as "20 ms". */
export const seconds = (value: unknown) => read(value, SPANS);
/** Bits a second of a rate such as "10 Mbit/s". */
export const bitsPerSecond = (value: unknown) => read(value, RATES);
/** Bytes of a size such as "50 kB". */
export const bytes = (value: unknown) => read(value, SIZES);
/** Packets of a limit such as "60 packets". */
export const packets = (value: unknown) => read(value, { packet: 1, packets: 1 });
/** A share of "1 %" or 0.01. */
export const share = (value: unknown) => (typeof value === "number" ? value : read(value, { "%": 0.01 }));

/** A number with three digits that mean something, and no zeros that do not. */
export function digits(value: number, many = 3): string {
  if (value === 0) return "0";
  const places = Math.min(12, Math.max(0, many - 1 - Math.floor(Math.log10(Math.abs(value)))));
  return String(Number(value.toFixed(places)));
}

function scaled(value: number, steps: [number, string][]): string {
  const [factor, unit] = steps.find(([least]) => Math.abs(value) >= least * 0.9995) ?? (steps.at(-1) as [number, string]);
  return `${digits(value / factor)} ${unit}`;
}

/** "10 Mbit/s" */
export const rateText = (bps: number) =>
  scaled(bps, [[1e9, "Gbit/s"], [1e6, "Mbit/s"], [1e3, "kbit/s"], [1, "bit/s"]]);
/** "20 ms" */
export const spanText = (s: number) =>
  s === 0 ? "0 s" : scaled(s, [[1, "s"], [1e-3, "ms"], [1e-6, "us"], [1e-9, "ns"]]);
/** "1.2 %" */
export const shareText = (part: number) => `${digits(part * 100)} %`;
