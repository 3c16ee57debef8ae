/** The page's views in step, whatever is done in whichever order; what it is given that it cannot use. */
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { packed, readAddress } from "../../src/model/address.ts";
import { changing, download, launched, opened, picture, settled, toml } from "./chromium.ts";

let browser: Browser;
beforeAll(async () => {
  browser = await launched();
});
afterAll(() => browser?.close());

/** Puts another line in place of the first that has these words. */
async function rewrite(page: Page, words: string, line: string): Promise<void> {
  await page.locator(".cm-line", { hasText: words }).first().click();
  await page.keyboard.press("Home");
  await page.keyboard.press("Shift+End");
  await page.keyboard.insertText(line);
}

const rate = (page: Page) => page.locator('[data-path="link.bottleneck.rate"]');

test("the time axis follows a longer run, and a zoom beyond a shorter one ends", async () => {
  const { page } = await opened(browser, "#preset=two-tcps");
  const longer = (await toml(page)).replace("60 s", "120 s");
  await changing(page, () => rewrite(page, "duration", 'duration = "120 s"'));
  await page.locator("h1").click();
  const other = await opened(browser, `#toml=${await packed(longer)}`);
  // both have 1201 rows: only the axis tells them apart
  await expect.poll(() => picture(page, "window")).toBe(await picture(other.page, "window"));
  await page.locator('[data-panel="queue"] .plot').focus();
  await page.keyboard.press("+");
  await page.waitForSelector(".reset");
  await changing(page, () => rewrite(page, "duration", 'duration = "20 s"'));
  expect(await page.locator(".reset").count()).toBe(0);
});

test("a slider that could not be moved goes back", async () => {
  const { page } = await opened(browser, "#preset=two-tcps");
  const before = await rate(page).inputValue();
  await rewrite(page, "delay", "delay = [");
  await page.locator(".mistakes").waitFor();
  await rate(page).focus();
  await page.keyboard.press("ArrowRight");
  await page.locator(".failed", { hasText: "Fix the text first" }).waitFor();
  expect(await rate(page).inputValue()).toBe(before);
  await changing(page, () => rewrite(page, "delay", 'delay = "20 ms"'));
  expect(await rate(page).getAttribute("aria-valuetext")).toBe("10 Mbit/s");
  expect(await page.locator(".failed").count()).toBe(0);
});

test("what was typed a moment before a slider moved stays", async () => {
  const { page } = await opened(browser, "#preset=two-tcps");
  await page.locator(".cm-line", { hasText: 'cc = "newreno"' }).click();
  await page.keyboard.press("End");
  await changing(page, async () => {
    await page.keyboard.insertText(" # typed");
    await rate(page).focus();
    await page.keyboard.press("ArrowRight");
  });
  expect(await toml(page)).toMatch(/rate = "12 Mbit\/s"[^]*newreno" # typed/);
});

test("slider, text, address and curves agree after quick changes with several seeds", async () => {
  const { page, faults } = await opened(browser, "#preset=two-tcps");
  await page.locator('[data-path="runs"]').selectOption("5");
  await rate(page).focus();
  for (let press = 0; press < 30; press++) await page.keyboard.press(press % 3 ? "ArrowRight" : "ArrowLeft");
  await page.locator('[data-path="preset"]').selectOption("film");
  await page.locator('[data-path="runs"]').selectOption("5");
  await rate(page).focus();
  for (let press = 0; press < 6; press++) await page.keyboard.press("ArrowLeft");
  await changing(page, () => page.keyboard.press("ArrowLeft"));
  expect(await page.locator(".measures > p").first().innerText()).toMatch(/^5 seeds/);
  const said = (await rate(page).getAttribute("aria-valuetext")) as string;
  expect(await toml(page)).toContain(`rate = "${said}"`);
  // The address is a little behind, and may be an earlier step's till then.
  const address = () => page.evaluate(() => location.hash);
  await expect.poll(async () => (await readAddress(await address())).toml).toBe(await toml(page));
  const fresh = await opened(browser, await address());
  const goodput = async (from: Page) => (await download(from, "Save Goodput as CSV")).text;
  expect(await goodput(fresh.page)).toBe(await goodput(page));
  expect(await rate(fresh.page).getAttribute("aria-valuetext")).toBe(said);
  expect([...faults, ...fresh.faults]).toEqual([]);
});

test("a choice tells what it took out of the text", async () => {
  const text = 'duration = "9 s"\n[link.bottleneck]\nrate = "1 Mbit/s"\ndelay = "20 ms"\n[flow.a]\ncc = "lda-plus"\nrtp = { bandwidth = "1 Mbit/s" }\n';
  const { page } = await opened(browser, `#toml=${await packed(text)}`);
  await changing(page, () => page.locator('[data-path="flow.a.cc"]').selectOption("cubic"));
  expect(await page.locator(".state .notice").innerText()).toContain("flow.a.rtp");
  expect(await toml(page)).not.toContain("rtp");
  await changing(page, () => page.locator('[data-path="flow.a.cc"]').selectOption("vegas"));
  expect(await page.locator(".state .notice").count()).toBe(0);
});

test("a run that says nothing of itself for long asks, too", async () => {
  const text = 'duration = "1000000 s"\n[link.bottleneck]\nrate = "100 Mbit/s"\ndelay = "20 ms"\n[flow.a]\n';
  const { page } = await opened(browser, `#toml=${await packed(text)}`, {}, false);
  await page.getByRole("button", { name: "Run it" }).waitFor();
});

test("files that cannot be used are told, a wrong trace is replaced, a scenario is opened", async () => {
  const text = 'duration = "5 s"\n[link.bottleneck]\nrate_trace = { file = "traces/x.down" }\nbackward = { rate = "1 Mbit/s" }\ndelay = "1 ms"\n[flow.a]\n';
  const { page } = await opened(browser, `#toml=${await packed(text)}`, {}, false);
  await page.locator(".asks", { hasText: "traces/x.down" }).waitFor();
  expect(await page.locator(".mistakes").count()).toBe(0);
  const give = (name: string, content: string | Buffer) =>
    page.setInputFiles('input[type="file"]', { name, mimeType: "text/plain", buffer: Buffer.from(content as string) });
  await give("x.bin", Buffer.from([0, 1, 255]));
  await page.locator(".failed", { hasText: "not a text file" }).waitFor();
  await give("other.txt", "no trace\n");
  await page.locator(".mistakes", { hasText: "line 1" }).waitFor();
  await give("x.down", Array.from({ length: 5000 }, (_, at) => `${at + 1}\n`).join(""));
  await settled(page);
  expect(await page.locator(".mistakes").count()).toBe(0);
  const drop = (name: string, content: string) =>
    page.evaluate(
      ([called, inside]) => {
        const dataTransfer = new DataTransfer();
        dataTransfer.items.add(new File([inside as string], called as string));
        document.querySelector("main")?.dispatchEvent(new DragEvent("drop", { dataTransfer, bubbles: true, cancelable: true }));
      },
      [name, content],
    );
  await changing(page, () => drop("mine.toml", 'duration = "5 s"\n[link.bottleneck]\nrate = "3 Mbit/s"\ndelay = "1 ms"\n[flow.mine]\n'));
  expect(await toml(page)).toContain("[flow.mine]");
  await drop("two.txt", "1");
  await page.locator(".failed", { hasText: "not a file that the scenario names" }).waitFor();
});

test("damaged links say so: files that are no texts, and a small page that stays small", async () => {
  const whole = await packed('duration = "5 s"\n');
  for (const files of ["null", "[]", '{"x":5}']) {
    const { page, faults } = await opened(browser, `#toml=${whole}&files=${await packed(files)}`);
    expect(await page.locator(".failed").innerText()).toMatch(/damaged/);
    expect(faults).toEqual([]);
  }
  const { page } = await opened(browser, "#toml=xxxx&embed=1");
  expect(await page.locator(".failed").innerText()).toMatch(/damaged/);
  expect(await page.locator("header").count()).toBe(0);
});

test("the lines of a link may end as on Windows", async () => {
  const text = 'duration = "9 s" # long\r\n[link.bottleneck]\r\nrate = "5 Mbit/s"\r\ndelay = "20 ms"\r\n[flow]\r\na.cc = "reno"\r\n';
  const { page } = await opened(browser, `#toml=${await packed(text)}`);
  await changing(page, async () => {
    await rate(page).focus();
    await page.keyboard.press("ArrowRight");
  });
  expect(await toml(page)).toBe(text.replaceAll("\r\n", "\n").replace("5 Mbit/s", "6 Mbit/s"));
});

test("a preset is reset, and a seed that is none goes back", async () => {
  const { page } = await opened(browser, "#preset=two-tcps");
  const again = page.getByRole("button", { name: "Reset" });
  const before = await toml(page);
  expect(await again.count()).toBe(0);
  const seed = page.locator('[data-path="seed"]');
  await seed.fill("1.5");
  await seed.press("Enter");
  await page.locator(".failed", { hasText: "whole number" }).waitFor();
  expect(await seed.inputValue()).toBe("1");
  await changing(page, async () => {
    await seed.fill("7");
    await seed.press("Enter");
  });
  expect(await toml(page)).toContain("seed = 7");
  expect(await page.locator(".failed").count()).toBe(0);
  await changing(page, () => again.click());
  expect(await toml(page)).toBe(before);
  await page.waitForFunction(() => location.hash === "#preset=two-tcps");
});

test("a copied link says where it opens", async () => {
  const { page } = await opened(browser, "#preset=two-tcps", { permissions: ["clipboard-read", "clipboard-write"] });
  await page.getByRole("button", { name: "Copy link" }).click();
  await page.locator(".said", { hasText: "only on this computer" }).waitFor();
  expect(await page.evaluate(() => navigator.clipboard.readText())).toMatch(/#preset=two-tcps$/);
});
