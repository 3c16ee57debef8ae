/** What the page is doing, and what it asks for. */
import { addFiles, fail, files, leftOut, mistakes, open, runAnyway, shown, status, stop, trouble } from "../model/state.ts";
import { digits } from "../model/quantities.ts";

function duration(seconds: number): string {
  return seconds < 90 ? `${digits(seconds, 2)} s` : `${Math.round(seconds / 60)} minutes`;
}

/** A trace is text, and the whole scenario is held by the page several times. */
const LARGEST_MB = 32;

/** Takes what was dropped or chosen: a scenario takes the place of this one, a trace is one that it names. */
export async function takeFiles(given: FileList | null | undefined): Promise<void> {
  const missing = status.peek().kind === "wants-files" ? (status.peek() as { files: string[] }).files : [];
  const names = [...missing, ...Object.keys(files.peek())];
  const taken: Record<string, string> = {};
  const said: string[] = [];
  for (const file of given ?? []) {
    if (file.size > LARGEST_MB * 1e6) {
      said.push(`${file.name} is ${digits(file.size / 1e6)} MB: the page takes at most ${LARGEST_MB} MB; \`paceline run\` takes more.`);
      continue;
    }
    const content = await file.text();
    const named = names.filter((name) => name.split("/").at(-1) === file.name);
    if (content.includes("\0") || content.includes("\uFFFD")) said.push(`${file.name} is not a text file: a scenario (TOML) or a trace is needed.`);
    else if (named.length > 0) for (const name of named) taken[name] = content;
    else if (file.name.endsWith(".toml")) return void open(content, undefined, {}, 1);
    else if (names.length === 1) taken[names[0] as string] = content;
    else said.push(`${file.name} is not a file that the scenario names${names.length > 0 ? ` (${names.join(", ")})` : ""}; a scenario file's name ends in .toml.`);
  }
  if (Object.keys(taken).length > 0) addFiles(taken);
  if (said.length > 0) fail(said.join(" "));
}

const Chooser = ({ label }: { label: string }) => (
  <input type="file" multiple aria-label={label} onChange={(event) => void takeFiles(event.currentTarget.files)} />
);

export function State() {
  const now = status.value;
  const wrong = mistakes.value;
  return (
    <div class="state" role="status" data-status={now.kind}>
      {wrong.length > 0 && (
        <div class="mistakes">
          <b>
            The text has {wrong.length > 1 ? `${wrong.length} mistakes` : "a mistake"}
            {shown.value ? "; the curves show the last valid version." : "."}
          </b>
          <ul>
            {wrong.slice(0, 6).map((mistake) => (
              <li key={`${mistake.key} ${mistake.line} ${mistake.problem}`}>
                {mistake.line ? `Line ${mistake.line}: ` : ""}
                {mistake.key ? <code>{mistake.key}</code> : null} {mistake.problem}
              </li>
            ))}
          </ul>
          {now.kind !== "wants-files" && Object.keys(files.value).length > 0 && (
            <label>
              Replace {Object.keys(files.value).join(" or ")}: <Chooser label="Another file" />
            </label>
          )}
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
          This run would take {now.at_least ? "more than" : "about"} {duration(now.expected_s)} here.{" "}
          <button type="button" onClick={runAnyway}>
            Run it
          </button>
        </p>
      )}
      {now.kind === "wants-files" && (
        <div class="asks">
          <p>
            The scenario names {now.files.length > 1 ? "files" : "a file"} that the page does not have: <b>{now.files.join(", ")}</b>. Drop{" "}
            {now.files.length > 1 ? "them" : "it"} anywhere on this page, or choose {now.files.length > 1 ? "them" : "it"}:
          </p>
          <Chooser label={`Choose ${now.files.join(", ")}`} />
          {Object.keys(files.value).length > 0 && <p class="quiet">Already here: {Object.keys(files.value).join(", ")}</p>}
        </div>
      )}
      {leftOut.value.length > 0 && (
        <p class="notice">
          Removed, because the new choice does not take it: <code>{leftOut.value.join(", ")}</code>. Undo in the text to get it back.
        </p>
      )}
      {trouble.value && <p class="failed">{trouble.value}</p>}
    </div>
  );
}
