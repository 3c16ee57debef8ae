/** How long the page believes that a run will take: whether it asks before it goes on hangs on it. */
import { expect, test } from "vitest";
import { Pace } from "../../src/model/pace.ts";

/** What is expected of a run (ms), each time it tells of itself: it is at a share after a time, and tells at most each 50 ms from 300 ms on. */
function expectedOf(share: (elapsed_ms: number) => number): { elapsed_ms: number; expected_ms: number }[] {
  const pace = new Pace();
  const told: { elapsed_ms: number; expected_ms: number }[] = [];
  let last = 0;
  for (let elapsed_ms = 300; share(elapsed_ms) < 1; elapsed_ms++) {
    const hundredths = Math.floor(100 * share(elapsed_ms)) / 100;
    if (hundredths === last || elapsed_ms - (told.at(-1)?.elapsed_ms ?? 0) < 50) continue;
    last = hundredths;
    told.push({ elapsed_ms, expected_ms: pace.expected_ms(hundredths, elapsed_ms) });
  }
  return told;
}

const longest = (told: { expected_ms: number }[]) => Math.max(...told.map(({ expected_ms }) => expected_ms));

test("of an even run it is what the run takes", () => {
  const told = expectedOf((elapsed_ms) => elapsed_ms / 2000);
  expect(told.length).toBeGreaterThan(20);
  for (const { expected_ms } of told) expect(Math.abs(expected_ms - 2000)).toBeLessThan(100);
});

test("a run of two seconds that stands still for a fifth of one is not taken for a long one", () => {
  for (let still = 900; still < 1900; still += 7) {
    const told = expectedOf((elapsed_ms) => (elapsed_ms < still ? elapsed_ms : Math.max(still, elapsed_ms - 200)) / 2000);
    expect(longest(told), `still from ${still} ms`).toBeLessThan(4500);
  }
});

test("what it took to begin is forgotten, and a pace that falls is seen within twice the time it is measured over", () => {
  // nothing in the first 250 ms, then a hundredth each 10 ms; from the middle on each 100 ms
  const told = expectedOf((elapsed_ms) => {
    const begun = Math.max(0, elapsed_ms - 250);
    return begun < 500 ? begun / 1000 : 0.5 + (begun - 500) / 10000;
  });
  const near = (wanted: number) => told.find(({ elapsed_ms }) => elapsed_ms >= wanted)?.expected_ms;
  expect(near(700)).toBeLessThan(1300);
  expect(near(750 + 600)).toBeGreaterThan(5000);
  expect(longest(told)).toBeLessThan(6500);
});
