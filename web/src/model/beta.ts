/** The regularised incomplete beta function and its inverse at half-integers, for Student's t and bounds of shares: as in
 * python/paceline/statistics/special_functions.py. */

const EPSILON = 2 ** -53;
const TINY = 1e-300;

const notZero = (value: number) => (Math.abs(value) > TINY ? value : TINY);

/** The logarithm of the gamma function at n / 2. */
function logGamma(x: number): number {
  let sum = 0;
  let at = x;
  for (; at > 1; at--) sum += Math.log(at - 1);
  return at === 1 ? sum : sum + Math.log(Math.PI) / 2;
}

const logBeta = (a: number, b: number) => logGamma(a) + logGamma(b) - logGamma(a + b);

/** I_x(a, b), from 0 at x = 0 to 1 at x = 1 (DLMF 8.17). */
export function incomplete(a: number, b: number, x: number): number {
  if (x <= 0 || x >= 1) return x <= 0 ? 0 : 1;
  // the continued fraction converges fast below the mean; above it, use the symmetry (DLMF 8.17.4)
  return x > (a + 1) / (a + b + 2) ? 1 - below(b, a, 1 - x) : below(a, b, x);
}

/** I_x(a, b) by its continued fraction (DLMF 8.17.22), with Lentz's method. */
function below(a: number, b: number, x: number): number {
  const front = Math.exp(a * Math.log(x) + b * Math.log1p(-x) - logBeta(a, b)) / a;
  let c = 1;
  let d = 1 / notZero(1 - ((a + b) * x) / (a + 1));
  let fraction = d;
  for (let m = 1; m < 100_000; m++) {
    const even = (m * (b - m) * x) / ((a + 2 * m - 1) * (a + 2 * m));
    const odd = (-(a + m) * (a + b + m) * x) / ((a + 2 * m) * (a + 2 * m + 1));
    let change = 1;
    for (const term of [even, odd]) {
      d = 1 / notZero(1 + term * d);
      c = notZero(1 + term / c);
      change = c * d;
      fraction *= change;
    }
    if (Math.abs(change - 1) < 4 * EPSILON) break;
  }
  return front * fraction;
}

/** The x at which I_x(a, b) is p: Newton's method, with bisection where a step leaves the bracket. */
export function inverse(a: number, b: number, p: number): number {
  let [low, high, x] = [0, 1, a / (a + b)];
  const scale = logBeta(a, b);
  for (let step = 0; step < 200; step++) {
    const error = incomplete(a, b, x) - p;
    if (Math.abs(error) <= 2 * EPSILON * p) return x;
    [low, high] = error > 0 ? [low, x] : [x, high];
    const slope = (a - 1) * Math.log(x) + (b - 1) * Math.log1p(-x) - scale;
    const next = Math.abs(slope) < 700 ? x - error / Math.exp(slope) : Number.NaN;
    const after = low < next && next < high ? next : (low + high) / 2;
    if (Math.abs(after - x) <= 2 * EPSILON * x) return after;
    x = after;
  }
  return x;
}

const quantiles = new Map<number, number>();

/** The distance from zero within which Student's t with these degrees of freedom lies with a probability of 95 %. */
export function tWithin(degrees: number): number {
  let found = quantiles.get(degrees);
  if (found === undefined) {
    const x = inverse(degrees / 2, 0.5, 1 - 0.95);
    found = Math.sqrt((degrees * (1 - x)) / x);
    quantiles.set(degrees, found);
  }
  return found;
}
