/** How long a run will take, by what it tells of itself. */

/** How fast a run is, is measured over so long at least: a shorter time may be one in which its processor did something else. */
export const PACE_OVER_MS = 300;

interface Told {
  share: number;
  elapsed_ms: number;
}

/** The pace of one run, of late: at first the browser is still compiling. */
export class Pace {
  private from: Told = { share: 0, elapsed_ms: 0 };
  private next: Told = { share: 0, elapsed_ms: 0 };

  /** How long the whole run takes, in milliseconds, now that it is so far (a share) after so long. */
  expected_ms(share: number, elapsed_ms: number): number {
    if (elapsed_ms - this.next.elapsed_ms >= PACE_OVER_MS) {
      this.from = this.next;
      this.next = { share, elapsed_ms };
    }
    const pace = (share - this.from.share) / (elapsed_ms - this.from.elapsed_ms);
    return elapsed_ms + (1 - share) / Math.max(pace, 1e-9);
  }
}
