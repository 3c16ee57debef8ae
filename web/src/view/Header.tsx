/** The top: which scenario, and what one can take away from the page. */
import { useSignal } from "@preact/signals";
import { useRef } from "preact/hooks";
import { save } from "../model/export.ts";
import { described, fail, fileName, files, link, openPreset, preset, runs, text, version } from "../model/state.ts";
import { PRESETS, presetOf } from "../model/presets.ts";
import { narrow, switchTheme, theme } from "./theme.ts";

/** The command that gives the same numbers in a terminal. */
function command(): string {
  const seeds = runs.value > 1 ? ` --runs ${runs.value}` : "";
  return `paceline run ${fileName()}${seeds}`;
}

const SAID_FOR_MS = 6000;
/** Whether the page's address means nothing elsewhere: it is a file, or `paceline explore` serves it. */
const HERE_ALONE = location.protocol === "file:" || ["127.0.0.1", "localhost"].includes(location.hostname);

export function Header() {
  const said = useSignal("");
  /** What the browser does not let the page copy, and the visitor copies by hand. */
  const byHand = useSignal("");
  const silent = useRef<ReturnType<typeof setTimeout>>(undefined);
  const copy = async (what: string, words: string) => {
    byHand.value = "";
    try {
      await navigator.clipboard.writeText(what);
      said.value = words;
    } catch {
      said.value = "";
      byHand.value = what;
    }
    clearTimeout(silent.current);
    silent.current = setTimeout(() => {
      said.value = "";
    }, SAID_FOR_MS);
  };
  const share = async () => {
    let made: Awaited<ReturnType<typeof link>>;
    try {
      made = await link();
    } catch {
      fail("The scenario is too large for a link: more than 1 MB. Download TOML saves it.");
      return;
    }
    const { fragment, whole } = made;
    const address = location.href.replace(/#.*$/, "") + fragment;
    const held = whole ? "it holds the whole scenario" : "it leaves out the trace files, which are too large for a link";
    await copy(address, `Link copied: ${held}.${HERE_ALONE ? " It opens only on this computer, but the part from the # on works in any playground." : ""}`);
  };
  return (
    <header>
      <h1>
        Paceline <span class="quiet">playground</span>
      </h1>
      <label class="preset">
        <span class="hidden">Preset</span>
        <select
          value={preset.value?.name ?? ""}
          data-path="preset"
          onChange={(event) => {
            const chosen = presetOf(event.currentTarget.value);
            if (chosen) void openPreset(chosen);
          }}
        >
          {!preset.value && <option value="">{described.value?.name ?? "a scenario of your own"}</option>}
          {PRESETS.map((one) => (
            <option key={one.name} value={one.name} selected={one.name === preset.value?.name}>
              {one.title}
            </option>
          ))}
        </select>
      </label>
      {preset.value && preset.value.text !== text.value && (
        <button type="button" onClick={() => preset.value && openPreset(preset.value)} title="Undoes every change to the preset">
          Reset
        </button>
      )}
      <details class="menu" open={!narrow.value}>
        <summary>Share and save</summary>
      <nav aria-label="Share and save">
        <button type="button" onClick={share}>
          Copy link
        </button>
        <button type="button" onClick={() => save(fileName(), text.value, "application/toml")}>
          Download TOML
        </button>
        <button type="button" onClick={() => copy(command(), `Copied: ${command()}`)} title={command()}>
          Copy command
        </button>
        <button type="button" onClick={switchTheme} aria-label={theme.value === "dark" ? "Light colours" : "Dark colours"}>
          {theme.value === "dark" ? "☀" : "☾"}
        </button>
        <span class="version quiet">{version.value}</span>
      </nav>
      </details>
      {byHand.value && (
        <p class="by-hand">
          <label>
            Copy this by hand:{" "}
            <input readOnly value={byHand.value} ref={(field) => field?.select()} onFocus={(event) => event.currentTarget.select()} />
          </label>{" "}
          <button
            type="button"
            onClick={() => {
              byHand.value = "";
            }}
          >
            Close
          </button>
        </p>
      )}
      <p role="status" class="said">
        {said.value}
        {said.value.startsWith("Copied: paceline run") && Object.keys(files.value).length === 0 ? `. It needs ${fileName()}, which Download TOML saves, in the current folder.` : ""}
      </p>
    </header>
  );
}
