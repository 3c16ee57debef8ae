/** Links, reload and Back keep what was there; nothing is begun that nobody asked for; a phone has cause and effect on one screen. */
import { readFileSync } from "node:fs";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { packed } from "../../src/model/address.ts";
import { changing, launched, opened, PAGE, settled, toml } from "./chromium.ts";

let browser: Browser;
beforeAll(async () => {
  browser = await launched();
});
afterAll(() => browser?.close());

const hash = (page: Page) => page.evaluate(() => location.hash);
const chosen = (page: Page) => page.locator('[data-path="preset"]').inputValue();
const turn = (page: Page) =>
  changing(page, async () => {
    await page.locator('[data-path="link.bottleneck.rate"]').focus();
    await page.keyboard.press("ArrowRight");
  });

test("a damaged link says so and stays, also behind what is then begun", async () => {
  const { page } = await opened(browser, "#toml=xxxx");
  expect(await page.locator(".failed").innerText()).toMatch(/damaged/);
  await page.waitForTimeout(1000);
  expect(await hash(page)).toBe("#toml=xxxx");
  await turn(page);
  await page.waitForFunction(() => location.hash.startsWith("#preset=two-tcps&toml="));
  await page.goBack();
  await page.locator(".failed", { hasText: "damaged" }).waitFor();
  expect(await hash(page)).toBe("#toml=xxxx");
});

test("a link that unfolds without end is refused at once, in words of its own", async () => {
  const bomb = await packed(" ".repeat(63 << 20));
  const began = performance.now();
  const { page } = await opened(browser, `#toml=${bomb}`);
  expect(await page.locator(".failed").innerText()).toMatch(/unpacks to more than 1 MB/);
  expect(performance.now() - began).toBeLessThan(20_000);
  expect(await hash(page)).toBe(`#toml=${bomb}`);
});

test("many seeds of a link ask first; then progress and Stop are there at once", async () => {
  const { page } = await opened(browser, "#preset=film&runs=1000", {}, false);
  await page.locator(".asks", { hasText: "would take about" }).waitFor();
  const shown = await page.evaluate(async () => {
    (document.querySelector(".asks button") as HTMLButtonElement).click();
    await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
    return document.querySelector(".running")?.textContent;
  });
  expect(shown).toMatch(/0 of 1000 seeds\s*Stop/);
  await page.locator(".running", { hasText: /[1-9]\d* of 1000/ }).waitFor();
  await page.getByRole("button", { name: "Stop" }).click();
  expect(await page.locator(".running").count()).toBe(0);
  expect(await hash(page)).toBe("#preset=film&runs=1000");
});

test("a reload and a link keep the preset's title, question and Reset", async () => {
  const { page } = await opened(browser, "#preset=call-codel");
  const question = await page.locator(".intro").innerText();
  await turn(page);
  await page.waitForFunction(() => location.hash.includes("toml="));
  const changed = await toml(page);
  await page.reload();
  await settled(page);
  const linked = await opened(browser, await hash(page));
  for (const one of [page, linked.page]) {
    expect(await chosen(one)).toBe("call-codel");
    expect(await one.locator(".intro").innerText()).toBe(question);
    expect(await toml(one)).toBe(changed);
    expect(await one.getByRole("button", { name: "Reset" }).count()).toBe(1);
  }
});

test("presets are entries of the history, with what was changed in them", async () => {
  const { page } = await opened(browser, "#preset=two-tcps");
  await turn(page);
  const changed = await toml(page);
  await changing(page, () => page.locator('[data-path="preset"]').selectOption("film"));
  await page.waitForFunction(() => location.hash === "#preset=film");
  await changing(page, () => page.locator('[data-path="preset"]').selectOption("home"));
  await page.waitForFunction(() => location.hash === "#preset=home");
  await changing(page, () => page.goBack());
  expect(await chosen(page)).toBe("film");
  await changing(page, () => page.goBack());
  expect(await chosen(page)).toBe("two-tcps");
  expect(await toml(page)).toBe(changed);
  await changing(page, () => page.getByRole("button", { name: "Reset" }).click());
  await page.waitForFunction(() => location.hash === "#preset=two-tcps");
  await changing(page, () => page.goBack());
  expect(await toml(page)).toBe(changed);
  await changing(page, () => page.goForward());
  expect(await hash(page)).toBe("#preset=two-tcps");
});

test("without a clipboard the link stays, to be copied by hand", async () => {
  const { page } = await opened(browser, "#preset=film");
  await page.evaluate(() => Object.defineProperty(navigator, "clipboard", { value: undefined }));
  await page.getByRole("button", { name: "Copy link" }).click();
  const field = page.getByLabel("Copy this by hand");
  expect(await field.inputValue()).toMatch(/#preset=film$/);
  expect(await page.evaluate(() => getSelection()?.toString() || (document.activeElement as HTMLInputElement).value)).toMatch(/#preset=film$/);
  await page.waitForTimeout(7000);
  expect(await field.count()).toBe(1);
  await page.getByRole("button", { name: "Close" }).click();
  expect(await field.count()).toBe(0);
});

test("the page may load nothing, and says so itself", async () => {
  expect(readFileSync(PAGE, "utf8")).toMatch(/<meta http-equiv="Content-Security-Policy" content="default-src 'none'/);
  const { page, faults } = await opened(browser, "#preset=film");
  expect(faults).toEqual([]);
  const refused = await page.evaluate(() => fetch("data:text/plain,x").then(() => "loaded", () => "refused"));
  expect(refused).toBe("refused");
});

test("letters follow the size that the browser is set to", async () => {
  const { page } = await opened(browser, "#preset=film");
  const session = await page.context().newCDPSession(page);
  const size = () => page.evaluate(() => [document.body, document.querySelector(".control label"), document.querySelector(".words li")].map((one) => Number.parseFloat(getComputedStyle(one as Element).fontSize)));
  const before = await size();
  await session.send("Page.setFontSizes", { fontSizes: { standard: 24, fixed: 20 } });
  const after = await size();
  expect(before[0]).toBe(14);
  for (const [at, one] of after.entries()) expect(one / (before[at] as number)).toBeCloseTo(1.5, 2);
});

test.each(["call-droptail", "film", "home", "two-tcps"])("a phone has question, curve and slider on one screen: %s", async (preset) => {
  const { page } = await opened(browser, `#preset=${preset}`, { viewport: { width: 390, height: 664 }, hasTouch: true });
  const top = (what: string) => page.evaluate((selector) => document.querySelector(selector)?.getBoundingClientRect().top ?? Number.NaN, what);
  const slider = await page.locator('.controls input[type="range"]').first().evaluate((one) => one.getBoundingClientRect().bottom);
  const [question, curve, words] = [await top(".intro"), await top(".one canvas"), await top(".words")];
  expect(question).toBeLessThan(curve);
  expect(curve).toBeLessThan(slider);
  expect(slider).toBeLessThan(664);
  expect(words).toBeGreaterThan(slider);
  // the curve stays while one scrolls to the words
  await page.locator(".words").evaluate((one) => one.scrollIntoView());
  expect(await top(".one canvas")).toBeGreaterThanOrEqual(0);
  expect(await top(".one canvas")).toBeLessThan(200);
});

test("long names wrap, and all numbers are on a phone's screen", async () => {
  const name = "n".repeat(64);
  const text = `duration = "9 s"\n[link.bottleneck]\nrate = "5 Mbit/s"\ndelay = "20 ms"\n[flow.${name}]\n[flow.b]\n`;
  for (const width of [320, 390, 768, 1280]) {
    const { page } = await opened(browser, `#toml=${await packed(text)}`, { viewport: { width, height: 800 } });
    const wide = await page.evaluate(() => {
      const cut = [...document.querySelectorAll(".scrolled")].map((one) => one.scrollWidth - one.clientWidth);
      return Math.max(document.documentElement.scrollWidth - innerWidth, ...cut);
    });
    expect(wide, `${width} px`).toBeLessThanOrEqual(0);
  }
});
