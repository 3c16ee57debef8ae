/** The page: controls, plots with what they show in words, and the text. */
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { changed_at, described, embedded, held, hold, link, opened, panels, preset, zoom } from "../model/state.ts";
import type { Table } from "../core/protocol.ts";
import { appOf } from "../model/harms.ts";
import { Chart } from "./Chart.tsx";
import { Flows, Network } from "./Controls.tsx";
import { Editor } from "./Editor.tsx";
import { Header } from "./Header.tsx";
import { State, takeFiles } from "./State.tsx";
import { narrow, theme, wide } from "./theme.ts";
import { Measures, Words } from "./Words.tsx";

const HEIGHT = 112;
const EMBEDDED_HEIGHT = 104;

function Intro() {
  const from = preset.value;
  const words = from ? `${from.question} ${from.tryThis}` : String(described.value?.filled.description ?? "");
  return words ? <p class="intro">{words}</p> : null;
}

/** Measures how long curves took. */
function useTimed() {
  useEffect(() => {
    if (panels.value.length === 0) return;
    const start = changed_at.value;
    // What is set in a frame's callback is painted by the task after it. For bench/playground.
    requestAnimationFrame(() => setTimeout(() => performance.measure("paceline: from a change to its curves", { start })));
  }, [panels.value]);
}

function Plots() {
  useTimed();
  return <AllPlots />;
}

function AllPlots() {
  return (
    <section class="plots" aria-label="Curves over time">
      {panels.value.map((panel) => (
        <Chart key={panel.id} panel={panel} height={embedded.value ? EMBEDDED_HEIGHT : HEIGHT} />
      ))}
      {!embedded.value && panels.value.length > 0 && (
        <button type="button" class="hold small" aria-pressed={held.value.length > 0} onClick={hold} title="Keeps these curves in the background, so that you can compare the next ones with them">
          {held.value.length > 0 ? "Release the held curves" : "Hold these curves"}
        </button>
      )}
      {zoom.value && (
        <button
          type="button"
          class="reset small"
          onClick={() => {
            zoom.value = undefined;
          }}
        >
          Show the whole run
        </button>
      )}
    </section>
  );
}

/** The plot that shows most of what a flow's application suffers. */
const TELLING: Record<string, string> = { encoder: "frames", relay: "frames", stream: "playout", game: "delay", voice: "delay" };

function firstPanel(): string {
  const flows = Object.values((described.value?.filled.flow ?? {}) as Table) as Table[];
  return flows.map((flow) => TELLING[appOf(flow)]).find((id) => id !== undefined) ?? "rate";
}

/** Where there is one column: one plot that stays in sight beside the sliders. */
function OnePlot() {
  useTimed();
  const chosen = useSignal<string | undefined>(undefined);
  useEffect(() => {
    chosen.value = undefined;
  }, [opened.value]);
  const all = panels.value;
  const panel = all.find(({ id }) => id === (chosen.value ?? firstPanel())) ?? all[0];
  if (!panel) return null;
  return (
    <section class="one" aria-label="The curve in sight">
      <Chart key={panel.id} panel={panel} height={HEIGHT} />
      <select aria-label="Which curve stays in sight" value={panel.id} onChange={(event) => {
          chosen.value = event.currentTarget.value;
        }}
      >
        {all.map(({ id, title, unit }) => (
          <option key={id} value={id} selected={id === panel.id}>
            {title} ({unit})
          </option>
        ))}
      </select>
    </section>
  );
}

/** All plots, drawn only when somebody wants to see them. */
function Folded() {
  const open = useSignal(false);
  return (
    <details class="folded" onToggle={(event) => {
        open.value = event.currentTarget.open;
      }}
    >
      <summary>All curves, to compare and save</summary>
      {open.value && <AllPlots />}
    </details>
  );
}

const Text = () => (
  <details open={!narrow.value}>
    <summary>The scenario as text</summary>
    <Editor />
  </details>
);

/** One column: the question, the curve that answers it, what one turns, and then the words. */
const Narrow = () => (
  <main class="narrow">
    <Intro />
    <State />
    <OnePlot />
    <Network />
    <Words />
    <Flows />
    <Folded />
    <Measures />
    <Text />
  </main>
);

function OpenOutside() {
  const address = useSignal("");
  const names = [preset.value, described.value];
  useEffect(() => {
    const show = (fragment: string) => {
      address.value = location.href.replace(/#.*$/, "") + fragment;
    };
    // what is too large for a link has the one that it came by
    link().then(({ fragment }) => show(fragment), () => show(location.hash));
  }, names);
  return (
    <p class="outside">
      <a href={address.value} target="_blank" rel="noopener">
        Open in the playground
      </a>
    </p>
  );
}

export function App() {
  const over = useSignal(false);
  useEffect(() => {
    document.documentElement.dataset.theme = theme.value;
  }, [theme.value]);
  // Where there is room the words stand beside the curves, in sight from the start.
  const aside = wide.value && !embedded.value;
  const layout = embedded.value ? "page embedded" : "page";
  return (
    <div
      class={over.value ? `${layout} over` : layout}
      onDragOver={(event) => {
        event.preventDefault();
        over.value = true;
      }}
      onDragLeave={() => {
        over.value = false;
      }}
      onDrop={(event) => {
        event.preventDefault();
        over.value = false;
        void takeFiles(event.dataTransfer?.files);
      }}
    >
      {!embedded.value && <Header />}
      {narrow.value && !embedded.value ? <Narrow /> : <main>
        <div class="left">
          <Network />
          <Flows />
        </div>
        <div class="middle">
          {!embedded.value && <Intro />}
          <State />
          <Plots />
          {!aside && <Words />}
          {embedded.value ? <OpenOutside /> : <Measures />}
        </div>
        {!embedded.value && (
          <div class="right">
            {aside && <Words />}
            <Text />
          </div>
        )}
      </main>}
    </div>
  );
}
