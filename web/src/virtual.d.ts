declare module "virtual:simulator" {
  /** The gzipped WebAssembly module of crate `web`, as base64. */
  const base64: string;
  export default base64;
}

declare module "virtual:presets" {
  import type { Preset } from "./model/presets.ts";
  const presets: Preset[];
  export default presets;
}
