/** Completion of keys and values in the text, from the schema and from what the scenario has. */
import type { Completion, CompletionContext, CompletionResult } from "@codemirror/autocomplete";
import { schema, schemes } from "../model/state.ts";
import { about, at, type Node, placeIn, variants } from "./schema.ts";

function keysOf(root: Node, path: string[]): Completion[] {
  const found = new Map<string, Completion>();
  for (const node of at(root, path)) {
    for (const [name, child] of Object.entries(node.properties ?? {})) {
      if (!found.has(name)) found.set(name, { label: name, type: "property", info: about(root, child) });
    }
  }
  return [...found.values()];
}

function valuesOf(root: Node, path: string[], key: string): Completion[] {
  if (key === "cc" && path[0] === "flow") {
    return schemes.value.map((scheme) => ({ label: `"${scheme.name}"`, type: "constant", detail: scheme.machine, info: `${scheme.summary} (${scheme.source})` }));
  }
  const found = new Map<string, Completion>();
  const add = (value: unknown, info: string | undefined) => {
    const label = JSON.stringify(value);
    if (!found.has(label)) found.set(label, { label, type: "constant", ...(info ? { info } : {}) });
  };
  for (const parent of at(root, path)) {
    const child = parent.properties?.[key];
    if (!child) continue;
    for (const node of variants(root, child)) {
      if (node.const !== undefined) add(node.const, node.description ?? parent.description);
      for (const value of node.enum ?? []) add(value, node.description);
      if (node.type === "boolean") [true, false].forEach((value) => add(value, undefined));
      for (const value of node.examples ?? []) add(value, "for example");
    }
    for (const value of child.examples ?? []) add(value, "for example");
  }
  return [...found.values()];
}

export function complete(context: CompletionContext): CompletionResult | null {
  const before = context.state.sliceDoc(0, context.pos);
  const line = before.slice(before.lastIndexOf("\n") + 1);
  if (/^[^"']*#/.test(line)) return null;
  const place = placeIn(before);
  if (!context.explicit && place.typed === "" && place.key === undefined) return null;
  const root = schema.value as Node;
  const options = place.key === undefined ? keysOf(root, place.path) : valuesOf(root, place.path, place.key);
  return options.length === 0 ? null : { from: context.pos - place.typed.length, options, validFor: /^["\w .-]*$/ };
}
