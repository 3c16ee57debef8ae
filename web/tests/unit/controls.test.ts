/** Sliders, choices and buttons against the simulator itself: what they write is a scenario that runs. */
import { readdirSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { edit, initSync, Scenario, schema as schemaText, schemes as schemesText } from "../../pkg/paceline_web.js";
import type { Described, Mistake, Refused } from "../../src/core/protocol.ts";
import { ADDITIONS, addition, type Change, groupsOf, queueKinds, removal } from "../../src/model/controls.ts";
import { fitted } from "../../src/model/fit.ts";

const ROOT = new URL("../../../", import.meta.url);
initSync({ module: readFileSync(new URL("web/pkg/paceline_web_bg.wasm", ROOT)) });
const schemes = JSON.parse(schemesText());
const kinds = queueKinds(JSON.parse(schemaText()));

/** What the simulator says of a text, with the traces of the examples at hand. */
function check(text: string): { described?: Described; mistakes: Mistake[] } {
  const files: Record<string, string> = {};
  for (const name of readdirSync(new URL("examples/traces", ROOT))) {
    files[`traces/${name}`] = readFileSync(new URL(`examples/traces/${name}`, ROOT), "utf8");
  }
  try {
    const scenario = new Scenario(text, "scenario.toml", files, []);
    const described = JSON.parse(scenario.described());
    scenario.free();
    return { described, mistakes: [] };
  } catch (thrown) {
    return { mistakes: (thrown as Refused).mistakes };
  }
}

function after(text: string, changes: Change[], within?: string): { text: string; leftOut: string[]; mistakes: Mistake[] } {
  const edited = edit(text, JSON.stringify(changes));
  const wrongIn = (made: string) => check(made).mistakes;
  const made = within === undefined ? { text: edited, leftOut: [] } : fitted(edited, within, changes.map(([path]) => path), wrongIn, edit);
  return { ...made, mistakes: check(made.text).mistakes };
}

const scenarios = ["examples", "web/presets"].flatMap((folder) =>
  readdirSync(new URL(folder, ROOT))
    .filter((name) => name.endsWith(".toml"))
    .map((name) => ({ name, text: readFileSync(new URL(`${folder}/${name}`, ROOT), "utf8") })),
);
// Own controllers do not run in a page; a bundle's flows go by its leader, a relay's by what comes in.
const bundles = ["call-bundle.toml", "quic-tracks.toml", "quic-relay.toml"];
const playable = scenarios.filter(({ name, text }) => !bundles.includes(name) && check(text).described);

/** What a scenario says by itself against a value at the end of a slider, or a choice: a page can but show it. */
const CLASHES = [/under profile/, /must be at least what the path itself has/, /less than the .* that `buffer` waits for/, /needs a queue with a limit/];

test("there are examples and presets to try", () => expect(playable.length).toBeGreaterThan(30));

test.each(playable)("every control of $name writes what runs", ({ text }) => {
  const described = check(text).described as Described;
  const { network, flows } = groupsOf(described, schemes, kinds);
  const refused: string[] = [];
  const attempt = (what: string, changes: Change[], within?: string) => {
    const wrong = after(text, changes, within).mistakes.filter(({ problem }) => !CLASHES.some((clash) => clash.test(problem)));
    if (wrong.length > 0) refused.push(`${what}: ${wrong[0]?.key} ${wrong[0]?.problem}`);
  };
  for (const control of [...network, ...flows].flatMap((group) => group.controls)) {
    if (control.kind === "range") {
      for (const value of [control.steps[0], control.steps.at(-1)] as number[]) attempt(`${control.path} = ${value}`, control.changes(value));
    } else for (const { value } of control.options) attempt(`${control.path} = ${value}`, control.changes(value), control.within);
  }
  expect(refused).toEqual([]);
});

const LINK = '[link.bottleneck]\nrate = "10 Mbit/s"\ndelay = "20 ms"\n';
const groupsIn = (text: string) => groupsOf(check(text).described as Described, schemes, kinds);

test("a choice takes out what does not go with it, and nothing else", () => {
  const text = `duration = "9 s"\n${LINK}[flow.a]\ncc = "lda-plus"\nrtp = { bandwidth = "1 Mbit/s" }\nsegment = "1 kB" # small\n`;
  const made = after(text, [["flow.a.cc", "cubic"]], "flow.a");
  expect(made).toEqual({ text: text.replace("lda-plus", "cubic").replace('rtp = { bandwidth = "1 Mbit/s" }\n', ""), leftOut: ["flow.a.rtp"], mistakes: [] });
  // what is wrong by itself is not taken out
  expect(after(`${text}colour = 5\n`, [["flow.a.cc", "nada"]], "flow.a").text).toContain("colour = 5");
});

test("another queue keeps the keys that it has too, and takes no limit that nobody wrote", () => {
  const text = `duration = "9 s"\n${LINK}queue = { kind = "codel", target = "7 ms", mtu = "3 kB" }\n[flow.a]\n`;
  const queue = groupsIn(text).network[0]?.controls.find(({ path }) => path.endsWith("queue.kind"));
  if (queue?.kind !== "choice") throw new Error("no choice of queues");
  expect(after(text, queue.changes("pie"), queue.within).text).toBe(text.replace("codel", "pie").replace(', mtu = "3 kB"', ""));
  expect(after(text, queue.changes("droptail"), queue.within).text).toContain('queue = { kind = "droptail" }\n');
});

test("a round trip stays one, whether or not the way back says its delay", () => {
  const text = `duration = "9 s"\n${LINK}backward = { delay = "20 ms", rate = "1 Mbit/s" }\n[flow.a]\n`;
  const trip = groupsIn(text).network[0]?.controls.find(({ path }) => path.endsWith(".delay"));
  if (trip?.kind !== "range") throw new Error("no slider of the delay");
  expect([trip.label, trip.value]).toEqual(["Round trip", 0.04]);
  const made = after(text, trip.changes(0.1));
  const again = groupsIn(made.text).network[0]?.controls.find(({ path }) => path.endsWith(".delay"));
  expect([again?.label, again?.value]).toEqual(["Round trip", 0.1]);
  expect(made.text).toContain('backward = { rate = "1 Mbit/s" }');
});

test("a queue that a law keeps short has no slider for its limit", () => {
  const limitOf = (kind: string) => {
    const { described } = check(`duration = "5 s"\n[link.bottleneck]\nrate = "5 Mbit/s"\ndelay = "1 ms"\nqueue = { kind = "${kind}"${kind === "droptail" || kind === "red" ? ', limit = "60 packets"' : ""} }\n[flow.a]\n`);
    const [link] = groupsOf(described as Described, schemes, kinds).network;
    return link?.controls.filter(({ path }) => path.endsWith(".queue.limit")).length;
  };
  expect([limitOf("droptail"), limitOf("red")]).toEqual([1, 1]);
  for (const kind of ["codel", "fq-codel", "pie", "fq-pie", "cake", "dualpi2"]) expect(limitOf(kind), kind).toBe(0);
});

test("a flow goes with what names it", () => {
  const text = `duration = "9 s"\nstop_after = "a"\nfriendliness_to = "b"\n${LINK}[flow.a]\ncc = "vegas"\napp = { kind = "ftp", size = "1 MB" }\n[flow.b]\n`;
  const described = check(text).described as Described;
  for (const name of ["a", "b"]) expect(after(text, removal(described, name)).mistakes).toEqual([]);
  expect(after(text, removal(described, "b")).text).toContain('stop_after = "a"');
});

test("every flow that can be added runs, in whatever topology", () => {
  for (const { name, text } of playable) {
    const described = check(text).described as Described;
    ADDITIONS.forEach((flow, index) => {
      const wrong = after(text, [addition(described, index)]).mistakes.filter(({ problem }) => !/under profile/.test(problem));
      expect(wrong, `${flow.label} in ${name}`).toEqual([]);
    });
  }
});
