/** The page in a real Chromium: what is drawn, that its views agree, and what its visitors can take away. */
import { readFileSync } from "node:fs";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import presets from "../../presets/presets.json" with { type: "json" };
import { changing, download, launched, opened, picture, reason, terminal, toml } from "./chromium.ts";

let browser: Browser;
beforeAll(async () => {
  browser = await launched();
});
afterAll(() => browser?.close());

/** How many points of a canvas have a colour of their own: curves, not axes. */
const coloured = (canvas: HTMLCanvasElement) => {
  const context = canvas.getContext("2d") as CanvasRenderingContext2D;
  const { data } = context.getImageData(0, 0, canvas.width, canvas.height);
  let many = 0;
  for (let at = 0; at < data.length; at += 4) {
    const [red, green, blue, alpha] = data.slice(at, at + 4) as unknown as [number, number, number, number];
    if (alpha > 200 && Math.max(red, green, blue) - Math.min(red, green, blue) > 60) many++;
  }
  return many;
};

test.each(presets)("the preset $name draws, says what it shows, and has the terminal's numbers", async ({ name }) => {
  const { page, faults } = await opened(browser, `#preset=${name}`);
  const panels = await page.$$(".panel canvas");
  expect(panels.length).toBeGreaterThanOrEqual(3);
  expect(await page.$eval('[data-panel="rate"] canvas', coloured)).toBeGreaterThan(200);
  expect(await page.locator(".words li").count()).toBeGreaterThanOrEqual(2);
  const measures = JSON.parse((await download(page, "All measures (JSON)")).text);
  const scenario = await download(page, "Download TOML");
  expect(measures).toEqual(terminal(scenario.text, scenario.name));
  expect(faults).toEqual([]);
});

test("a slider changes curves and text, and keeps the comments", async () => {
  const { page, faults } = await opened(browser, "#preset=two-tcps");
  const before = { rate: await picture(page, "rate"), text: await toml(page) };
  const slider = page.locator('[data-path="link.bottleneck.rate"]');
  await changing(page, async () => {
    await slider.focus();
    await page.keyboard.press("ArrowRight");
  });
  const text = await toml(page);
  await expect.poll(() => picture(page, "rate")).not.toBe(before.rate);
  expect(text).toBe(before.text.replace('rate = "10 Mbit/s"', 'rate = "12 Mbit/s"'));
  expect(await slider.getAttribute("aria-valuetext")).toBe("12 Mbit/s");
  expect(faults).toEqual([]);
});

test("what is typed moves the slider", async () => {
  const { page } = await opened(browser, "#preset=two-tcps");
  await page.locator(".cm-line", { hasText: "rate =" }).click();
  await page.keyboard.press("Home");
  await changing(page, async () => {
    await page.keyboard.press("Shift+End");
    await page.keyboard.insertText('rate = "5 Mbit/s"');
  });
  expect(await page.locator('[data-path="link.bottleneck.rate"]').getAttribute("aria-valuetext")).toBe("5 Mbit/s");
});

test("every control of a preset leads to a scenario that runs", async () => {
  const { page } = await opened(browser, "#preset=call-droptail");
  for (const path of ["link.bottleneck.delay", "link.bottleneck.queue.limit", "link.bottleneck.loss", "flow.call.count", "flow.call.app.max_rate", "flow.download.start"]) {
    const slider = page.locator(`[data-path="${path}"]`);
    const before = await slider.getAttribute("aria-valuetext");
    await changing(page, async () => {
      await slider.focus();
      await page.keyboard.press("ArrowRight");
    });
    expect(await slider.getAttribute("aria-valuetext"), path).not.toBe(before);
    expect(await page.locator(".mistakes").count(), path).toBe(0);
  }
  const queue = page.locator('[data-path="link.bottleneck.queue.kind"]');
  for (const kind of await queue.locator("option").evaluateAll((options) => options.map((one) => (one as HTMLOptionElement).value))) {
    if (kind === (await queue.inputValue())) continue;
    await changing(page, () => queue.selectOption(kind));
    expect(await page.locator(".mistakes").count(), kind).toBe(0);
  }
  const control = page.locator('[data-path="flow.call.cc"]');
  for (const cc of await control.locator("option").evaluateAll((options) => options.map((one) => (one as HTMLOptionElement).value))) {
    if (cc === (await control.inputValue())) continue;
    await changing(page, () => control.selectOption(cc));
    expect(await page.locator(".mistakes").count(), cc).toBe(0);
  }
});

test("another preset's text cannot be undone into the one before", async () => {
  const { page } = await opened(browser, "#preset=two-tcps");
  await changing(page, () => page.locator('[data-path="preset"]').selectOption("film"));
  const film = await toml(page);
  await page.locator(".cm-content").click();
  await page.keyboard.press("Control+z");
  expect(await toml(page)).toBe(film);
});

test("held curves stay behind the new ones", async () => {
  const { page } = await opened(browser, "#preset=two-tcps");
  const step = () =>
    changing(page, async () => {
      await page.locator('[data-path="link.bottleneck.delay"]').focus();
      await page.keyboard.press("ArrowRight");
    });
  await step();
  const alone = await picture(page, "window");
  await changing(page, () => page.locator('[data-path="preset"]').selectOption("film"));
  await changing(page, () => page.locator('[data-path="preset"]').selectOption("two-tcps"));
  await page.getByRole("button", { name: "Hold these curves" }).click();
  await step();
  await expect.poll(() => picture(page, "window")).not.toBe(alone);
  await page.getByRole("button", { name: "Release the held curves" }).click();
  await page.waitForFunction(() => document.querySelector(".hold")?.textContent === "Hold these curves");
  await page.locator("h1").click();
  await expect.poll(() => picture(page, "window")).toBe(alone);
});

test("flows are added and removed", async () => {
  const { page } = await opened(browser, "#preset=two-tcps");
  const add = page.getByLabel("Add a flow");
  const many = (await add.locator("option").count()) - 1;
  for (let index = 0; index < many; index++) await changing(page, () => add.selectOption(String(index)));
  expect(await page.locator(".mistakes").count()).toBe(0);
  expect(await toml(page)).toContain("[flow.call]");
  await changing(page, () => page.getByLabel("Remove the flow newreno").click());
  expect(await toml(page)).not.toContain("[flow.newreno]");
  expect(await toml(page)).toContain("[flow.cubic]");
});

test("a link opens in a fresh profile with equal numbers", async () => {
  const first = await opened(browser, "#preset=film");
  await changing(first.page, async () => {
    await first.page.locator('[data-path="link.bottleneck.delay"]').focus();
    await first.page.keyboard.press("ArrowRight");
  });
  await changing(first.page, () => first.page.locator('[data-path="runs"]').selectOption("5"));
  await first.page.waitForFunction(() => location.hash.startsWith("#preset=film&toml=") && location.hash.endsWith("runs=5"));
  const fragment = await first.page.evaluate(() => location.hash);
  const second = await opened(browser, fragment);
  const all = async (page: typeof first.page) => JSON.parse((await download(page, "All measures (JSON)")).text);
  const numbers = await all(first.page);
  expect(numbers).toHaveLength(5);
  expect(await all(second.page)).toEqual(numbers);
  expect(await toml(second.page)).toBe(await toml(first.page));
});

test("a broken text shows its error and keeps the curves", async () => {
  const { page } = await opened(browser, "#preset=two-tcps");
  const before = await picture(page, "window");
  await page.locator(".cm-line", { hasText: 'cc = "newreno"' }).click();
  await page.keyboard.press("End");
  await page.keyboard.insertText("\ncolour = 5");
  const said = page.locator(".mistakes");
  await said.waitFor();
  expect(await said.innerText()).toMatch(/Line 15: flow\.newreno\.colour/);
  await expect.poll(() => picture(page, "window")).toBe(before);
  await page.keyboard.insertText("\n= [");
  await page.waitForFunction(() => /not TOML/.test(document.querySelector(".mistakes")?.textContent ?? ""));
  await expect.poll(() => picture(page, "window")).toBe(before);
  await page.locator('[data-path="link.bottleneck.rate"]').focus();
  await page.keyboard.press("ArrowRight");
  expect(await page.locator(".failed").innerText()).toMatch(/Fix the text first/);
});

test("several seeds have bands, and the terminal's means and intervals", async () => {
  const { page } = await opened(browser, "#preset=two-tcps");
  const before = await picture(page, "rate");
  await changing(page, () => page.locator('[data-path="runs"]').selectOption("10"));
  expect(await page.locator(".measures").innerText()).toMatch(/10 seeds/);
  await expect.poll(() => picture(page, "rate")).not.toBe(before);
  const csv = (await download(page, "Save Goodput as CSV")).text;
  expect(csv.split("\n")[0]).toBe("time_s,cubic (Mbit_s) mean,cubic (Mbit_s) low,cubic (Mbit_s) high,newreno (Mbit_s) mean,newreno (Mbit_s) low,newreno (Mbit_s) high");
  const scenario = await download(page, "Download TOML");
  const said = terminal(scenario.text, scenario.name, "--runs", "10") as { flows: Record<string, { mean: number; high: number; median: number; median_low: number; median_high: number }>[] };
  const cells = await page.locator("tbody tr").first().locator("td").allInnerTexts();
  const number = (text: string | undefined) => (text?.match(/[\d.]+/g) ?? []).map(Number);
  const row = said.flows[0] as Record<string, { mean: number; high: number; median: number; median_low: number; median_high: number }>;
  const goodput = row.goodput_bps as { mean: number; high: number };
  const [mean, half] = number(cells[1]?.replace(/kbit/g, ""));
  expect(mean).toBeCloseTo(goodput.mean / 1e6, 1);
  expect(half).toBeCloseTo((goodput.high - goodput.mean) / (/± .*kbit/.test(cells[1] ?? "") ? 1e3 : 1e6), 0);
  const loss = row.loss_rate as { median: number; median_low: number; median_high: number };
  const [middle, low, high] = number(cells[2]);
  expect(middle).toBeCloseTo(loss.median * 100, 2);
  expect(low).toBeCloseTo(loss.median_low * 100, 2);
  expect(high).toBeCloseTo(loss.median_high * 100, 2);
});

test("drag zooms, a double click and a key reset, the cursor is one", async () => {
  const { page } = await opened(browser, "#preset=two-tcps");
  const before = [await picture(page, "rate"), await picture(page, "queue")];
  const over = page.locator('[data-panel="window"] .u-over');
  const box = (await over.boundingBox()) as { x: number; y: number; width: number; height: number };
  await page.mouse.move(box.x + box.width * 0.3, box.y + 30);
  await page.locator('[data-panel="rate"] .value', { hasText: "Mbit/s" }).first().waitFor();
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.5, box.y + 40, { steps: 4 });
  await page.mouse.up();
  await page.getByRole("button", { name: "Show the whole run" }).waitFor();
  await page.mouse.move(5, 5);
  await expect.poll(() => picture(page, "rate")).not.toBe(before[0]);
  await expect.poll(() => picture(page, "queue")).not.toBe(before[1]);
  await over.dblclick();
  await page.mouse.move(5, 5);
  await page.waitForFunction(() => document.querySelector(".reset") === null);
  await expect.poll(() => picture(page, "rate")).toBe(before[0]);
  await page.locator('[data-panel="queue"] .plot').focus();
  await page.keyboard.press("+");
  await page.waitForSelector(".reset");
  await page.keyboard.press("0");
  await page.waitForFunction(() => document.querySelector(".reset") === null);
  await expect.poll(() => picture(page, "queue")).toBe(before[1]);
});

test("a panel is saved as SVG that a browser draws", async () => {
  const { page } = await opened(browser, "#preset=film");
  const { name, text } = await download(page, "Save Play-out buffer as SVG");
  expect(name).toBe("film-playout.svg");
  const parsed = await page.evaluate((svg) => {
    const drawn = new DOMParser().parseFromString(svg, "image/svg+xml");
    return { broken: drawn.querySelector("parsererror") !== null, points: drawn.querySelectorAll("path[fill='none']")[0]?.getAttribute("d")?.length ?? 0, words: drawn.documentElement.textContent };
  }, text);
  expect(parsed.broken).toBe(false);
  expect(parsed.points).toBeGreaterThan(1000);
  expect(parsed.words).toContain("Play-out buffer (s)");
});

test("the reason is the flow without which the film is in time", async () => {
  const { page } = await opened(browser, "#preset=film");
  expect(await reason(page)).toMatch(/^Without download\s[^]*less of its media is late \(0 % instead of/);
});

test("trace files are asked for, and dropped ones are taken", async () => {
  const trace = readFileSync(new URL("../../../examples/traces/cell.down", import.meta.url), "utf8");
  const scenario = 'duration = "20 s"\n[link.bottleneck]\nrate_trace = { file = "traces/cell.down" }\nbackward = { rate = "10 Mbit/s" }\ndelay = "20 ms"\n[flow.a]\n';
  const { page } = await opened(browser, "#preset=two-tcps");
  await page.locator(".cm-content").click();
  await page.keyboard.press("Control+a");
  await page.keyboard.insertText(scenario);
  await page.locator(".asks", { hasText: "traces/cell.down" }).waitFor();
  await changing(page, () => page.setInputFiles('input[type="file"]', { name: "cell.down", mimeType: "text/plain", buffer: Buffer.from(trace) }));
  expect(await page.locator(".words li").count()).toBeGreaterThan(0);
});

test("a long run asks first, tells how far it is, and is stopped", async () => {
  const { page } = await opened(browser, "#preset=two-tcps");
  const line = page.locator(".cm-line", { hasText: "duration" });
  await line.click();
  await page.keyboard.press("Home");
  await page.keyboard.press("Shift+End");
  // Its hundredth part, after which it tells of itself, takes a quarter of a second where nothing else runs.
  await page.keyboard.insertText('duration = "30000 s"');
  await page.locator(".asks").waitFor();
  expect(await page.locator(".asks").innerText()).toMatch(/would take about .* (s|minutes) here/);
  await page.getByRole("button", { name: "Run it" }).click();
  await page.locator(".running progress").waitFor();
  await page.getByRole("button", { name: "Stop" }).click();
  await line.click();
  await changing(page, async () => {
    await page.keyboard.press("Home");
    await page.keyboard.press("Shift+End");
    await page.keyboard.insertText('duration = "20 s"');
  });
});

test("a run that does not fit in memory says so, and the page goes on", async () => {
  const { page } = await opened(browser, "#preset=two-tcps");
  const before = await picture(page, "rate");
  await page.locator(".cm-content").click();
  await page.keyboard.press("Control+a");
  // 60 s of delay at 100 Gbit/s: more packets are on their way than a page may hold.
  await page.keyboard.insertText('duration = "60 s"\n[link.bottleneck]\nrate = "100 Gbit/s"\ndelay = "60 s"\n[access]\nrate = "100 Gbit/s"\n[flow.a]\ncc = "udp"\napp = { kind = "cbr", rate = "90 Gbit/s" }\n');
  await page.getByRole("button", { name: "Run it" }).click();
  await page.locator(".failed").waitFor();
  expect(await page.locator(".failed").innerText()).toMatch(/memory/);
  await expect.poll(() => picture(page, "rate")).toBe(before);
  await changing(page, () => page.locator('[data-path="preset"]').selectOption("film"));
  expect(await page.locator(".failed").count()).toBe(0);
});

test("own controllers are refused with what to do", async () => {
  const { page } = await opened(browser, "#preset=two-tcps");
  await page.locator(".cm-line", { hasText: 'cc = "cubic"' }).click();
  await page.keyboard.press("Home");
  await page.keyboard.press("Shift+End");
  await page.keyboard.insertText('cc = "python:mine.py:Mine"');
  await page.locator(".mistakes").waitFor();
  expect(await page.locator(".mistakes").innerText()).toMatch(/paceline run/);
});
