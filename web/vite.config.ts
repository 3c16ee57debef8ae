// The page is one file: script, style, the presets and the gzipped simulator are inside of it, so that it also works from a
// folder, beside a report, and offline.
import { readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";
import preact from "@preact/preset-vite";
import { defineConfig, type Plugin } from "vite";
import { viteSingleFile } from "vite-plugin-singlefile";

const WASM = "pkg/paceline_web_bg.wasm";
const PRESETS = "presets";

/** The modules `virtual:simulator` (the gzipped wasm as base64) and `virtual:presets` (with their texts). */
function embedded(): Plugin {
  const made: Record<string, () => string> = {
    "virtual:simulator": () => `export default ${JSON.stringify(gzipSync(readFileSync(WASM), { level: 9 }).toString("base64"))}`,
    "virtual:presets": () => {
      // One that names a file is an example or a paper's point, which stands elsewhere in the clone.
      const list: { name: string; file?: string }[] = JSON.parse(readFileSync(`${PRESETS}/presets.json`, "utf8"));
      const read = (one: { name: string; file?: string }) => readFileSync(one.file ? `../${one.file}` : `${PRESETS}/${one.name}.toml`, "utf8");
      return `export default ${JSON.stringify(list.map((one) => ({ ...one, text: read(one) })))}`;
    },
  };
  return {
    name: "embedded",
    resolveId: (id) => (id in made ? `\0${id}` : undefined),
    load: (id) => made[id.slice(1)]?.(),
  };
}

export default defineConfig({
  plugins: [preact(), embedded(), viteSingleFile()],
  worker: { format: "iife", plugins: () => [] },
  build: { target: "es2022", outDir: "dist", assetsInlineLimit: 1e9, cssCodeSplit: false, chunkSizeWarningLimit: 4000 },
});
