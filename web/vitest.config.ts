import { defineConfig } from "vitest/config";
import { WAIT_MS } from "./tests/browser/wait.ts";

export default defineConfig({
  test: {
    environment: "node",
    // A wait that fails says for what; a test is given longer than one of them, so that it can.
    testTimeout: 3 * WAIT_MS,
    hookTimeout: 2 * WAIT_MS,
    expect: { poll: { timeout: WAIT_MS } },
    fileParallelism: true,
    maxWorkers: 2,
  },
});
