/** What the JSON Schema says of the place in a TOML text where the cursor is: the keys there, and the values they take. */

export interface Node {
  type?: string | string[];
  description?: string;
  const?: unknown;
  enum?: unknown[];
  default?: unknown;
  examples?: unknown[];
  properties?: Record<string, Node>;
  additionalProperties?: Node | boolean;
  items?: Node;
  oneOf?: Node[];
  anyOf?: Node[];
  allOf?: Node[];
  $ref?: string;
  $defs?: Record<string, Node>;
  "x-default"?: string;
  "x-min"?: string;
  "x-max"?: string;
  minimum?: number;
  maximum?: number;
}

/** The node itself, or those that it may be. */
export function variants(root: Node, node: Node | undefined): Node[] {
  if (!node) return [];
  if (node.$ref) return variants(root, root.$defs?.[node.$ref.replace("#/$defs/", "")]);
  const more = [...(node.oneOf ?? []), ...(node.anyOf ?? []), ...(node.allOf ?? [])];
  return more.length > 0 ? more.flatMap((one) => variants(root, one)) : [node];
}

/** The nodes at a path of keys. */
export function at(root: Node, path: string[]): Node[] {
  let nodes = variants(root, root);
  for (const step of path) {
    nodes = nodes.flatMap((node) => {
      const child = node.properties?.[step] ?? (typeof node.additionalProperties === "object" ? node.additionalProperties : undefined);
      const own = variants(root, child);
      return own.flatMap((one) => (one.type === "array" && one.items ? variants(root, one.items) : [one]));
    });
  }
  return nodes;
}

/** Splits `a."b c".d`. */
export const split = (path: string) => (path.match(/"[^"]*"|'[^']*'|[^.\s]+/g) ?? []).map((step) => step.replace(/^["']|["']$/g, ""));

/** Where the cursor is: the path of the table around it, and, behind a `=`, the key whose value is written. */
export interface Place {
  path: string[];
  key?: string;
  /** What of the key or the value stands before the cursor. */
  typed: string;
}

/** Reads the text before the cursor: the last header, and the line, inline tables opened in it included. */
export function placeIn(before: string): Place {
  const lines = before.split("\n");
  const line = lines.at(-1) ?? "";
  const header = [...lines].reverse().find((one, index) => index > 0 && /^\s*\[[^[\]]+\]/.test(one));
  const table = header ? split(/^\s*\[([^\]]+)\]/.exec(header)?.[1] ?? "") : [];
  const opened = /^\s*\[([^\]]*)$/.exec(line);
  if (opened) {
    const steps = (opened[1] as string).split(".");
    return { path: split(steps.slice(0, -1).join(".")), typed: steps.at(-1) ?? "" };
  }
  const path = [...table];
  let rest = line;
  for (let inner = /^[\s,]*([^=,{}]+?)\s*=\s*\{(.*)$/.exec(rest); inner; inner = /(?:^|,)\s*([^=,{}]+?)\s*=\s*\{([^{}]*)$/.exec(rest)) {
    if (/\}/.test(inner[2] as string)) break;
    path.push(...split(inner[1] as string));
    rest = inner[2] as string;
  }
  const last = rest.split(",").at(-1) ?? "";
  const value = /^\s*([^=]+?)\s*=\s*(.*)$/.exec(last);
  if (value) {
    const steps = split(value[1] as string);
    return { path: [...path, ...steps.slice(0, -1)], key: steps.at(-1) as string, typed: value[2] as string };
  }
  const steps = last.trimStart().split(".");
  return { path: [...path, ...split(steps.slice(0, -1).join("."))], typed: steps.at(-1) ?? "" };
}

/** What a key is, in a line. */
export function about(root: Node, node: Node): string {
  const forms = variants(root, node);
  const fall = node["x-default"] ?? (node.default === undefined ? undefined : JSON.stringify(node.default));
  const least = node["x-min"] ?? node.minimum ?? forms[0]?.minimum;
  const most = node["x-max"] ?? node.maximum ?? forms[0]?.maximum;
  const range = least !== undefined && most !== undefined ? ` ${least} to ${most}.` : "";
  return `${(node.description ?? "").replaceAll("\n", " ")}${range}${fall === undefined ? "" : ` Default: ${fall}.`}`;
}
