/** The simulator's WebAssembly module, unpacked from the page. */
import base64 from "virtual:simulator";

/** Unpacks and compiles it; once for the page and all its workers. */
export async function compiled(): Promise<WebAssembly.Module> {
  const packed = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return WebAssembly.compile(await new Response(stream).arrayBuffer());
}
