/** Means and medians over runs, and their 95 % intervals (docs/decisions/intervals.md). Which of them a measure has,
 * `intervals.ts` decides. */
import { tWithin } from "./beta.ts";

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
  const half = sd * longer(values.map((value) => (value - mean) / sd), tWithin(n - 1) / Math.sqrt(n));
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

/** The middle value, or the mean of the two in the middle. */
export function middle(values: number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const n = sorted.length;
  return ((sorted[Math.floor((n - 1) / 2)] as number) + (sorted[Math.floor(n / 2)] as number)) / 2;
}

/** The largest k for which the median lies between the k-th smallest and the k-th largest of n values at 95 %: the
 * greatest for which n tosses of a coin give fewer than k heads with a probability of at most 2.5 %; 0: there is none. */
export function medianRank(n: number): number {
  let rank = 0;
  let chance = 0.5 ** n;
  for (let fewer = chance; fewer <= 0.025; rank++) {
    chance *= (n - rank) / (rank + 1);
    fewer += chance;
  }
  return rank;
}

/** The order statistics between which the median lies, whatever the distribution; none below six values. */
export function medianInterval(values: number[]): [number, number] | undefined {
  const rank = medianRank(values.length);
  const sorted = [...values].sort((a, b) => a - b);
  return rank === 0 ? undefined : [sorted[rank - 1] as number, sorted[sorted.length - rank] as number];
}
