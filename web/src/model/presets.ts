/** The scenarios that one can begin from. */
import presets from "virtual:presets";

export interface Preset {
  name: string;
  title: string;
  /** What it lets one see. */
  question: string;
  /** What to try, in a sentence or two. */
  tryThis: string;
  text: string;
}

export const PRESETS: Preset[] = presets;

export const presetOf = (name: string) => PRESETS.find((preset) => preset.name === name);
