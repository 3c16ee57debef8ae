/** Means with their 95 % intervals, as the command line gives them (docs/decisions/intervals.md). */

// Student's t, 97.5 %, for 1 to 30 degrees of freedom.
const T = [
  12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.16, 2.145, 2.131, 2.12, 2.11, 2.101,
  2.093, 2.086, 2.08, 2.074, 2.069, 2.064, 2.06, 2.056, 2.052, 2.048, 2.045, 2.042,
];

/** Student's t for n values, 97.5 %; beyond the table by Cornish and Fisher's expansion, to 0.1 %. */
export function tOf(n: number): number {
  const freedom = n - 1;
  const z = 1.959964;
  return T[freedom - 1] ?? z + (z ** 3 + z) / (4 * freedom) + (5 * z ** 5 + 16 * z ** 3 + 3 * z) / (96 * freedom ** 2);
}

export interface Interval {
  mean: number;
  low: number;
  high: number;
}

/** The mean of values that are there, and the 95 % interval of it; none below two. */
export function interval(values: number[]): Interval {
  const n = values.length;
  const mean = values.reduce((sum, value) => sum + value, 0) / n;
  if (n < 2) return { mean, low: mean, high: mean };
  const variance = values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (n - 1);
  const sd = Math.sqrt(variance);
  const half = sd * longer(values.map((value) => (value - mean) / sd), tOf(n) / Math.sqrt(n));
  return { mean, low: mean - half, high: mean + half };
}

/** Student's half width, or the longer side of Hall's transformation of t where values are skewed (docs/decisions/intervals.md),
 * of values around 0 in standard deviations. */
function longer(values: number[], half: number): number {
  const n = values.length;
  const moment = (power: number) => values.reduce((sum, value) => sum + value ** power, 0) / n;
  const skew = moment(3) / moment(2) ** 1.5;
  if (!(Math.abs(skew) >= 1e-6)) return half; // or all are alike
  const side = (end: number) => Math.abs((3 / skew) * (Math.cbrt(1 + skew * (end - skew / (6 * n))) - 1));
  return Math.max(half, side(half), side(-half));
}

/** The median, and its 95 % interval by order statistics, whatever the distribution; none below six values. */
export function median(values: number[]): Interval {
  const sorted = [...values].sort((a, b) => a - b);
  const n = sorted.length;
  const at = (index: number) => sorted[index] as number;
  const mean = n % 2 ? at((n - 1) / 2) : (at(n / 2 - 1) + at(n / 2)) / 2;
  // the greatest k such that P(B(n, 1/2) < k) <= 2.5 %: the interval is from the k-th value to the (n + 1 - k)-th
  let k = 0;
  let chance = 0.5 ** n;
  for (let below = chance; below <= 0.025 && k < n; k++) {
    chance *= (n - k) / (k + 1);
    below += chance;
  }
  return k < 1 ? { mean, low: Number.NaN, high: Number.NaN } : { mean, low: at(k - 1), high: at(n - k) };
}
