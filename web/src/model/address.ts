/**
 * The address holds the whole scenario: the fragment is `preset=NAME`, or `toml=...`, deflated and in base64url; with both the text
 * is a preset's that was changed.
 */

export interface Address {
  preset?: string;
  toml?: string;
  files?: Record<string, string>;
  runs?: number;
  embed?: boolean;
}

/** A link stays short enough for chats and mail programs. */
const MOST_FILES = 24_000;
/** The most seeds, as `paceline explore` has it. */
const MOST_RUNS = 1000;
/** The most bytes that a part of a link may unfold to. */
export const LARGEST = 1_000_000;

/** A link of which a part unfolds to more than LARGEST. */
export class TooLarge extends Error {
  constructor() {
    super("The link is not opened: it unpacks to more than 1 MB. Open a scenario of that size with `paceline run`, or begin with a preset.");
  }
}

/** What a stream makes of bytes; as soon as that is more than `most`, it ends and throws TooLarge. */
async function through(bytes: Uint8Array<ArrayBuffer>, stream: GenericTransformStream, most = Number.POSITIVE_INFINITY): Promise<Uint8Array<ArrayBuffer>> {
  const made: ReadableStream<Uint8Array<ArrayBuffer>> = new Blob([bytes]).stream().pipeThrough(stream);
  const reader = made.getReader();
  const parts: Uint8Array<ArrayBuffer>[] = [];
  let size = 0;
  for (let read = await reader.read(); !read.done; read = await reader.read()) {
    size += read.value.length;
    if (size > most) {
      void reader.cancel().catch(() => {});
      throw new TooLarge();
    }
    parts.push(read.value);
  }
  return new Uint8Array(await new Blob(parts).arrayBuffer());
}

/** A table of texts. Throws if it is anything else. */
function texts(given: unknown): Record<string, string> {
  if (typeof given !== "object" || given === null || Array.isArray(given)) throw new Error("no table");
  if (!Object.values(given).every((text) => typeof text === "string")) throw new Error("no table of texts");
  return given as Record<string, string>;
}

/** Raw deflate in base64url, without padding. */
export async function packed(text: string): Promise<string> {
  const deflated = await through(new TextEncoder().encode(text), new CompressionStream("deflate-raw"));
  let letters = "";
  for (const byte of deflated) letters += String.fromCharCode(byte);
  return btoa(letters).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

/** What `packed` made. Throws TooLarge, and an error if it is damaged. */
export async function unpacked(code: string): Promise<string> {
  const letters = atob(code.replaceAll("-", "+").replaceAll("_", "/"));
  const deflated = Uint8Array.from(letters, (letter) => letter.charCodeAt(0));
  const bytes = await through(deflated, new DecompressionStream("deflate-raw"), LARGEST);
  return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
}

/** Whether a fragment asks for the small page, be the rest of it damaged or not. */
export const wantsEmbedding = (hash: string) => new URLSearchParams(hash.replace(/^#/, "")).get("embed") === "1";

/** Reads a fragment. Throws an error in words if it is damaged. */
export async function readAddress(hash: string): Promise<Address> {
  const given = new URLSearchParams(hash.replace(/^#/, ""));
  const address: Address = {};
  const preset = given.get("preset");
  if (preset) address.preset = preset;
  const runs = Number(given.get("runs"));
  if (Number.isInteger(runs) && runs >= 1) address.runs = Math.min(runs, MOST_RUNS);
  if (wantsEmbedding(hash)) address.embed = true;
  try {
    const toml = given.get("toml");
    if (toml) address.toml = await unpacked(toml);
    const files = given.get("files");
    if (files) address.files = texts(JSON.parse(await unpacked(files)));
  } catch (error) {
    if (error instanceof TooLarge) throw error;
    throw new Error("The link is damaged: part of it was lost on the way. Ask for it again, or begin with a preset.");
  }
  return address;
}

/** The fragment of a scenario, and whether its files are in it. A preset that nobody has changed is its name alone. Throws TooLarge. */
export async function writeAddress(
  toml: string,
  files: Record<string, string>,
  runs: number,
  preset?: { name: string; text: string },
): Promise<{ fragment: string; whole: boolean }> {
  const fields = new URLSearchParams();
  if (preset) fields.set("preset", preset.name);
  if (preset?.text !== toml) {
    if (new TextEncoder().encode(toml).length > LARGEST) throw new TooLarge();
    fields.set("toml", await packed(toml));
  }
  if (runs > 1) fields.set("runs", String(runs));
  let whole = true;
  if (Object.keys(files).length > 0) {
    const text = JSON.stringify(files);
    const code = text.length > LARGEST ? "" : await packed(text);
    whole = code !== "" && code.length <= MOST_FILES;
    if (whole) fields.set("files", code);
  }
  return { fragment: `#${fields}`, whole };
}
