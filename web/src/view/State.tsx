/** What the page is doing, and what it asks for. */
import { addFile, files, leftOut, mistakes, runAnyway, shown, status, stop, trouble } from "../model/state.ts";
import { digits } from "../model/quantities.ts";

function duration(seconds: number): string {
  return seconds < 90 ? `${digits(seconds, 2)} s` : `${Math.round(seconds / 60)} minutes`;
}

/** The trace files among those that were dropped or chosen. */
export async function takeFiles(given: FileList | null | undefined, wanted: string[]): Promise<void> {
  for (const file of given ?? []) {
    const named = wanted.find((name) => name.split("/").at(-1) === file.name);
    const name = named ?? (wanted.length === 1 ? (wanted[0] as string) : file.name);
    addFile(name, await file.text());
  }
}

export function State() {
  const now = status.value;
  const wrong = mistakes.value;
  return (
    <div class="state" role="status" data-status={now.kind}>
      {wrong.length > 0 && (
        <div class="mistakes">
          <b>
            The text has {wrong.length > 1 ? `${wrong.length} mistakes` : "a mistake"}
            {shown.value ? "; the curves are those from before." : "."}
          </b>
          <ul>
            {wrong.slice(0, 6).map((mistake) => (
              <li key={`${mistake.key} ${mistake.line} ${mistake.problem}`}>
                {mistake.line ? `Line ${mistake.line}: ` : ""}
                {mistake.key ? <code>{mistake.key}</code> : null} {mistake.problem}
              </li>
            ))}
          </ul>
        </div>
      )}
      {now.kind === "loading" && <p>Loading the simulator …</p>}
      {now.kind === "running" && (now.share > 0 || now.of > 1 || now.slow) && (
        <p class="running">
          <progress value={now.of > 1 ? now.done / now.of : now.share} />{" "}
          {now.of > 1 ? `${now.done} of ${now.of} seeds` : `${Math.round(now.share * 100)} %`}{" "}
          <button type="button" class="small" onClick={stop}>
            Stop
          </button>
        </p>
      )}
      {now.kind === "asks" && (
        <p class="asks">
          This run would take about {duration(now.expected_s)} here.{" "}
          <button type="button" onClick={runAnyway}>
            Run it
          </button>
        </p>
      )}
      {now.kind === "wants-files" && (
        <div class="asks">
          <p>
            The scenario names {now.files.length > 1 ? "files" : "a file"} that the page does not have: <b>{now.files.join(", ")}</b>. Drop{" "}
            {now.files.length > 1 ? "them" : "it"} anywhere on this page, or choose:
          </p>
          <input type="file" multiple aria-label={`Choose ${now.files.join(", ")}`} onChange={(event) => void takeFiles(event.currentTarget.files, now.files)} />
          {Object.keys(files.value).length > 0 && <p class="quiet">There already: {Object.keys(files.value).join(", ")}</p>}
        </div>
      )}
      {leftOut.value.length > 0 && (
        <p class="notice">
          Left out, for it does not go with that choice: <code>{leftOut.value.join(", ")}</code>. Undo in the text brings it back.
        </p>
      )}
      {trouble.value && <p class="failed">{trouble.value}</p>}
    </div>
  );
}
