/** The page: controls, plots with what they show in words, and the text. */
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { changed_at, described, embedded, held, hold, link, panels, preset, zoom } from "../model/state.ts";
import { Chart } from "./Chart.tsx";
import { Controls } from "./Controls.tsx";
import { Editor } from "./Editor.tsx";
import { Header } from "./Header.tsx";
import { State, takeFiles } from "./State.tsx";
import { theme, wide } from "./theme.ts";
import { Measures, Words } from "./Words.tsx";

const HEIGHT = 112;
const EMBEDDED_HEIGHT = 104;

function Intro() {
  const from = preset.value;
  const words = from ? `${from.question} ${from.tryThis}` : String(described.value?.filled.description ?? "");
  return words ? <p class="intro">{words}</p> : null;
}

function Plots() {
  useEffect(() => {
    if (panels.value.length === 0) return;
    const start = changed_at.value;
    // What is set in a frame's callback is painted by the task after it. For bench/playground.
    requestAnimationFrame(() => setTimeout(() => performance.measure("paceline: from a change to its curves", { start })));
  }, [panels.value]);
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

function OpenOutside() {
  const address = useSignal("");
  const names = [preset.value, described.value];
  useEffect(() => {
    void link().then(({ fragment }) => {
      address.value = location.href.replace(/#.*$/, "") + fragment;
    });
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
      <main>
        <div class="left">
          <Controls />
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
            <details open>
              <summary>The scenario as text</summary>
              <Editor />
            </details>
          </div>
        )}
      </main>
    </div>
  );
}
