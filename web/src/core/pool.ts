/** Workers that simulate, as many as there are processors: the newest scenario first, its seeds side by side. */
import SimulatorWorker from "./worker.ts?worker&inline";
import type { Asked, Described, Recording, Refused, Run, Source, Told } from "./protocol.ts";

const MOST_WORKERS = 8;
/** A run that nobody waits for any longer may go on for so long before its worker is ended. */
const GRACE_MS = 60;

/** Which runs of a scenario are wanted. */
export interface Plan {
  seeds: bigint[];
  recording: Recording;
}

/** What becomes of a scenario that was asked for. Every method may be called until the next scenario is asked for. */
export interface Listener {
  /** It is whole: what is to be run of it. */
  described(described: Described): Plan;
  ran(run: Run): void;
  refused(refused: Refused): void;
  /** The run of a seed is so far (a share), after so long. */
  progress(seed: bigint, share: number, elapsed_ms: number): void;
}

/** A run beside the scenario that is shown, without recordings. */
interface Aside {
  number: number;
  source: Source;
  seed: bigint;
  done(run: Run | undefined): void;
}

interface Job {
  number: number;
  source: Source;
  listener: Listener;
  /** What is left to run, once it is checked. */
  plan?: Plan;
}

class Hand {
  worker: Worker;
  busy: { job: number; since: number } | undefined;

  constructor(module: WebAssembly.Module, heard: (hand: Hand, told: Told) => void) {
    this.worker = new SimulatorWorker();
    this.worker.onmessage = (event: MessageEvent<Told>) => heard(this, event.data);
    this.worker.onerror = (event) => {
      event.preventDefault();
      const message = `The simulator stopped: ${event.message}`;
      heard(this, { kind: "refused", job: this.busy?.job ?? -1, refused: { message, mistakes: [], missing: [], spent: true } });
    };
    this.ask({ kind: "load", module });
  }

  ask(asked: Asked): void {
    if (asked.kind !== "load") this.busy = { job: asked.job, since: performance.now() };
    this.worker.postMessage(asked);
  }
}

export class Pool {
  private hands: Hand[] = [];
  private newest: Job | undefined;
  private numbers = 0;
  private freeing: ReturnType<typeof setTimeout> | undefined;
  /** What is run when the scenario that is shown is done, in turn. */
  private asides: Aside[] = [];
  /** How many workers there are at most. */
  readonly size: number;

  constructor(private readonly module: WebAssembly.Module) {
    this.size = Math.max(1, Math.min(MOST_WORKERS, navigator.hardwareConcurrency || 2));
    this.hands.push(this.hired());
  }

  private hired(): Hand {
    return new Hand(this.module, (hand, told) => this.heard(hand, told));
  }

  /** Asks for a scenario, which takes the place of whatever was asked for before. */
  ask(source: Source, listener: Listener): void {
    this.newest = { number: ++this.numbers, source, listener };
    this.forget();
    this.free();
    this.next();
  }

  /** Ends what runs, for nobody waits for it. */
  stop(): void {
    this.newest = undefined;
    this.forget();
    this.hands.filter((hand) => hand.busy).forEach((hand) => this.replace(hand));
  }

  /** Runs another scenario once nothing else is to do; undefined if it is refused, or if another is asked for first. */
  aside(source: Source, seed: bigint): Promise<Run | undefined> {
    return new Promise((done) => {
      this.asides.push({ number: ++this.numbers, source, seed, done });
      this.next();
    });
  }

  /** Nobody waits for what is run beside any longer. */
  private forget(): void {
    this.asides.splice(0).forEach((aside) => aside.done(undefined));
  }

  /** Ends the workers that have been busy for too long with what nobody waits for. */
  private free(): void {
    clearTimeout(this.freeing);
    const now = performance.now();
    let soonest = Number.POSITIVE_INFINITY;
    for (const hand of [...this.hands]) {
      const { busy } = hand;
      if (!busy || busy.job === this.newest?.number || this.asides.some((aside) => aside.number === busy.job)) continue;
      const left = GRACE_MS - (now - busy.since);
      if (left <= 0) this.replace(hand);
      else soonest = Math.min(soonest, left);
    }
    if (Number.isFinite(soonest)) this.freeing = setTimeout(() => this.free(), soonest + 1);
  }

  private replace(hand: Hand): void {
    hand.worker.terminate();
    const place = this.hands.indexOf(hand);
    if (place >= 0) this.hands[place] = this.hired();
    this.next();
  }

  /** A worker with nothing to do. */
  private hand(): Hand | undefined {
    return this.hands.find((hand) => !hand.busy);
  }

  /** Gives idle workers what is left of the newest scenario. */
  private next(): void {
    const job = this.newest;
    if (!job) return;
    if (job.plan && job.plan.seeds.length === 0) return this.beside();
    if (!job.plan) {
      const asked = this.hands.some((hand) => hand.busy?.job === job.number);
      if (!asked) this.hand()?.ask({ kind: "check", job: job.number, source: job.source });
      return;
    }
    const { seeds, recording } = job.plan;
    while (seeds.length > 0) {
      if (!this.hand() && this.hands.length < this.size) this.hands.push(this.hired());
      const hand = this.hand();
      if (!hand) return;
      const { number, source } = job;
      hand.ask({ kind: "run", job: number, source, seed: seeds.shift() as bigint, recording });
    }
  }

  /** Gives idle workers the next runs that are to be made beside; of several workers one stays free for what the visitor changes. */
  private beside(): void {
    const spare = this.size > 1 ? 1 : 0;
    for (;;) {
      const waiting = this.asides.find((aside) => !this.hands.some((hand) => hand.busy?.job === aside.number));
      if (!waiting) return;
      const idle = this.hands.filter((hand) => !hand.busy);
      while (idle.length <= spare && this.hands.length < this.size) {
        const hand = this.hired();
        this.hands.push(hand);
        idle.push(hand);
      }
      const hand = idle[spare];
      if (!hand) return;
      const { number, source, seed } = waiting;
      hand.ask({ kind: "run", job: number, source, seed, recording: { kinds: [], every_s: 1 } });
    }
  }

  private heard(hand: Hand, told: Told): void {
    if (told.kind === "ready") return;
    if (told.kind !== "progress") hand.busy = undefined;
    const aside = this.asides.find((one) => one.number === told.job);
    if (aside && told.kind !== "progress") {
      this.asides.splice(this.asides.indexOf(aside), 1);
      aside.done(told.kind === "ran" ? told.run : undefined);
    }
    const job = this.newest;
    const wanted = job && told.job === job.number;
    if (wanted) {
      if (told.kind === "checked") job.plan = job.listener.described(told.described);
      else if (told.kind === "ran") job.listener.ran(told.run);
      else if (told.kind === "progress") job.listener.progress(told.seed, told.share, told.elapsed_ms);
      else {
        this.newest = undefined;
        job.listener.refused(told.refused);
      }
    }
    if (told.kind === "refused" && told.refused.spent) this.replace(hand);
    else this.next();
  }
}
