/** The left column: the network, the flows, and how often it is run. */
import { ADDITIONS, addition, type Group, removal } from "../model/controls.ts";
import { change, described, embedded, fail, groups, runs, setRuns } from "../model/state.ts";
import { Control } from "./Control.tsx";
import { colourOf } from "./theme.ts";

/** Groups beyond these are folded; on a phone, where the plots are below, all but the first. */
const PHONE = matchMedia("(max-width: 720px)").matches;
const OPEN_LINKS = PHONE ? 1 : 2;
const OPEN_FLOWS = PHONE ? 0 : 4;

function Section({ group, open, colour, onRemove }: { group: Group; open: boolean; colour?: string; onRemove?: () => void }) {
  return (
    <div class="group">
      <details open={open}>
        <summary>
          {colour && <span class="swatch" style={{ background: colour }} aria-hidden="true" />}
          <b>{group.title}</b> <span class="quiet">{group.detail}</span>
        </summary>
        {group.controls.map((control) => (
          <Control key={control.path} control={control} />
        ))}
      </details>
      {onRemove && (
        <button type="button" class="small remove" aria-label={`Remove the flow ${group.title}`} title="Remove this flow" onClick={onRemove}>
          ×
        </button>
      )}
    </div>
  );
}

function Repetition() {
  const seed = String(described.value?.seed ?? 1);
  return (
    <div class="repetition">
      <label>
        Seed{" "}
        <input
          type="number"
          min={0}
          step={1}
          value={seed}
          data-path="seed"
          onChange={(event) => {
            const to = Number(event.currentTarget.value);
            const possible = /^\d+$/.test(event.currentTarget.value) && Number.isSafeInteger(to);
            if (!possible) fail(`A seed is a whole number from 0 to ${Number.MAX_SAFE_INTEGER} here; the text takes larger ones.`);
            if (!possible || !change([["seed", to]])) event.currentTarget.value = seed;
          }}
        />
      </label>
      <label>
        Runs{" "}
        <select value={runs.value} data-path="runs" onChange={(event) => setRuns(Number(event.currentTarget.value))}>
          {[...new Set([1, 5, 10, 20, 50, runs.value])]
            .sort((a, b) => a - b)
            .map((many) => (
              <option key={many} value={many} selected={many === runs.value}>
                {many === 1 ? "1" : `${many} seeds`}
              </option>
            ))}
        </select>
      </label>
    </div>
  );
}

function AddFlow() {
  return (
    <select
      class="add"
      aria-label="Add a flow"
      value=""
      onChange={(event) => {
        const index = Number(event.currentTarget.value);
        event.currentTarget.value = "";
        if (described.value) change([addition(described.value, index)]);
      }}
    >
      <option value="" disabled selected>
        Add a flow …
      </option>
      {ADDITIONS.map((flow, index) => (
        <option key={flow.label} value={index}>
          {flow.label}
        </option>
      ))}
    </select>
  );
}

/** The network's controls. */
export function Network() {
  return (
    <section class="controls" aria-label="The network's controls">
      {groups.value.network.map((group, index) => (
        <Section key={group.path} group={group} open={index < OPEN_LINKS} />
      ))}
    </section>
  );
}

/** The flows' controls, and how often it is run. */
export function Flows() {
  const { flows } = groups.value;
  const alone = flows.length === 1;
  return (
    <section class="controls" aria-label="The flows' controls">
      {flows.map((group, index) => {
        const colour = colourOf(group.title);
        const remove = () => described.value && change(removal(described.value, group.title));
        const more = { ...(colour ? { colour } : {}), ...(alone ? {} : { onRemove: remove }) };
        return <Section key={group.path} group={group} open={index < OPEN_FLOWS} {...more} />;
      })}
      {!embedded.value && <AddFlow />}
      <Repetition />
    </section>
  );
}
