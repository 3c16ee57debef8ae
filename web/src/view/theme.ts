/** Light or dark, and the colours of lines in each. */
import { computed, signal } from "@preact/signals";
import { type Look, strokeOf } from "../model/export.ts";
import { firstOf } from "../model/colours.ts";
import { shown } from "../model/state.ts";

export type Theme = "light" | "dark";

// Told apart by readers of all kinds of sight, and in grey: as the reproductions' pages have them.
const COLOURS: Record<Theme, string[]> = {
  light: ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#101010", "#882255"],
  dark: ["#56b4e9", "#ff8a3d", "#2bb68c", "#d39ac4", "#aacc99", "#9488ff", "#eeeeee", "#ff5c8a"],
};

const LOOKS: Record<Theme, Look> = {
  light: { colours: COLOURS.light, text: "#1b1f24", grid: "#e4e7eb", page: "#ffffff" },
  dark: { colours: COLOURS.dark, text: "#e5e8ec", grid: "#2b3138", page: "#14171b" },
};

const preferred = matchMedia("(prefers-color-scheme: dark)");
const kept = (): Theme | undefined => {
  try {
    const said = localStorage.getItem("paceline-theme");
    return said === "light" || said === "dark" ? said : undefined;
  } catch {
    return undefined; // a page without storage follows the system
  }
};

export const theme = signal<Theme>(kept() ?? (preferred.matches ? "dark" : "light"));
preferred.addEventListener("change", () => {
  if (!kept()) theme.value = preferred.matches ? "dark" : "light";
});

export function switchTheme(): void {
  theme.value = theme.value === "dark" ? "light" : "dark";
  try {
    localStorage.setItem("paceline-theme", theme.value);
  } catch {
    // it holds for this visit
  }
}

/** Whether a media query holds, as style.css has it. */
function holds(query: string) {
  const asked = matchMedia(query);
  const now = signal(asked.matches);
  asked.addEventListener("change", () => {
    now.value = asked.matches;
  });
  return now;
}

/** Whether there is room for a third column. */
export const wide = holds("(min-width: 1181px)");
/** Whether there is room for one column alone. */
export const narrow = holds("(max-width: 720px)");

export const look = computed(() => LOOKS[theme.value]);

/** The colour of a flow's first line. */
export function colourOf(flow: string): string | undefined {
  const index = shown.value && firstOf(shown.value.colours, flow);
  return index === undefined ? undefined : strokeOf({ colour: index }, look.value);
}
