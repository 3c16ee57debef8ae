/** For whom the page works: phones, keyboards, readers of all kinds of sight. */
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { launched, opened, reason } from "./chromium.ts";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

let browser: Browser;
beforeAll(async () => {
  browser = await launched();
});
afterAll(() => browser?.close());

interface Violation {
  id: string;
  impact: string;
  nodes: { html: string; failureSummary: string }[];
}

/** Serious faults that axe finds. */
async function faultsOf(page: Page): Promise<string[]> {
  await page.evaluate(AXE);
  const violations = (await page.evaluate("axe.run().then((found) => found.violations)")) as Violation[];
  const serious = violations.filter(({ impact }) => impact === "serious" || impact === "critical");
  return serious.map(({ id, nodes }) => `${id}: ${nodes.map((node) => `${node.html} ${node.failureSummary}`).join("; ")}`);
}

const SIGHTS = (["light", "dark"] as const).flatMap((colorScheme) => [1280, 400].map((width) => ({ colorScheme, width })));

test.each(SIGHTS)("axe finds no serious fault: $colorScheme, $width px", async ({ colorScheme, width }) => {
  const { page } = await opened(browser, "#preset=call-droptail", { colorScheme, viewport: { width, height: 860 } });
  await reason(page);
  expect(await faultsOf(page)).toEqual([]);
});

test("axe finds no serious fault in an embedded page, nor in one with a mistake", async () => {
  const embedded = await opened(browser, "#preset=film&embed=1", { viewport: { width: 760, height: 560 } });
  expect(await faultsOf(embedded.page)).toEqual([]);
  expect(await embedded.page.locator(".editor").count()).toBe(0);
  const { page } = await opened(browser, "#preset=film");
  await page.locator(".cm-content").click();
  await page.keyboard.press("Control+End");
  await page.keyboard.insertText("\ncolour = 1");
  await page.locator(".mistakes").waitFor();
  expect(await faultsOf(page)).toEqual([]);
});

test.each(["two-tcps", "film", "home", "vegas-streaming", "voap"])("nothing is wider than a phone: %s", async (preset) => {
  for (const width of [400, 320]) {
    const { page } = await opened(browser, `#preset=${preset}`, { viewport: { width, height: 800 }, hasTouch: true });
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
    expect(wide, `${width} px`).toBeLessThanOrEqual(0);
  }
});

test("a keyboard reaches all that a pointer does, and leaves the text again", async () => {
  const { page } = await opened(browser, "#preset=two-tcps");
  const seen = new Set<string>();
  for (let step = 0; step < 80; step++) {
    await page.keyboard.press("Tab");
    seen.add(
      await page.evaluate(() => {
        const at = document.activeElement as HTMLElement;
        return at.dataset.path ?? at.closest("[data-panel]")?.getAttribute("data-panel") ?? (at.closest(".cm-editor") ? "text" : (at.textContent ?? "").slice(0, 20));
      }),
    );
  }
  for (const place of ["preset", "link.bottleneck.rate", "link.bottleneck.queue.kind", "flow.cubic.cc", "seed", "runs", "rate", "delay", "text", "Copy link"]) {
    expect([...seen]).toContain(place);
  }
});

test("dark and light are kept, and differ", async () => {
  const { page } = await opened(browser, "#preset=two-tcps", { colorScheme: "light" });
  const back = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  expect(await back()).toBe("rgb(255, 255, 255)");
  await page.getByRole("button", { name: "Dark colours" }).click();
  await expect.poll(back).toBe("rgb(20, 23, 27)");
});
