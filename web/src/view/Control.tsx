/** One slider or one choice. */
import { useSignal } from "@preact/signals";
import { useEffect, useId } from "preact/hooks";
import type { Choice, Control as AnyControl, Range } from "../model/controls.ts";
import { grouped } from "../model/grouped.ts";
import { change } from "../model/state.ts";

export function Control({ control }: { control: AnyControl }) {
  return control.kind === "range" ? <Slider control={control} /> : <Select control={control} />;
}

function Slider({ control }: { control: Range }) {
  const id = useId();
  const { steps } = control;
  const place = Math.max(0, steps.indexOf(control.value));
  // While it is dragged the slider leads; what the scenario then says follows it.
  const dragged = useSignal<number | undefined>(undefined);
  useEffect(() => {
    dragged.value = undefined;
  }, [control.value]);
  const at = dragged.value ?? place;
  const value = steps[at] ?? control.value;
  return (
    <div class="control">
      <label for={id} title={control.help ?? control.path}>
        {control.label}
      </label>
      <output for={id}>{control.show(value)}</output>
      <input
        id={id}
        type="range"
        min={0}
        max={steps.length - 1}
        step={1}
        value={at}
        data-path={control.path}
        aria-valuetext={control.show(value)}
        onInput={(event) => {
          const to = Number(event.currentTarget.value);
          dragged.value = change(control.changes(steps[to] as number)) ? to : undefined;
          // the browser has moved it already
          if (dragged.value === undefined) event.currentTarget.value = String(place);
        }}
      />
    </div>
  );
}

function Select({ control }: { control: Choice }) {
  const id = useId();
  const groups = grouped(control.options, (option) => option.group ?? "");
  return (
    <div class="control choice">
      <label for={id} title={control.path}>
        {control.label}
      </label>
      <select id={id} value={control.value} data-path={control.path} onChange={(event) => {
          if (!change(control.changes(event.currentTarget.value), control.within)) event.currentTarget.value = control.value;
        }}
      >
        {[...groups].map(([group, options]) => {
          const items = options.map((option) => (
            <option key={option.value} value={option.value} selected={option.value === control.value}>
              {option.label}
            </option>
          ));
          return group === "" ? (
            items
          ) : (
            <optgroup key={group} label={group}>
              {items}
            </optgroup>
          );
        })}
      </select>
    </div>
  );
}
