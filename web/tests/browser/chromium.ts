/** A real browser around the built page, which is opened from its folder as anyone may. */
import { existsSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { execFileSync } from "node:child_process";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { type Browser, type BrowserContextOptions, chromium, type Page } from "playwright-core";
import { onTestFinished } from "vitest";
import { WHY_MS } from "../../src/model/why.ts";
import { WAIT_MS } from "./wait.ts";

const ROOT = join(dirname(fileURLToPath(import.meta.url)), "../../..");
export const PAGE = join(ROOT, "python/paceline/playground.html");
const CHROMIUM = "/usr/bin/chromium";
const DEVELOPED = resolve(ROOT, process.env.CARGO_TARGET_DIR ?? "target", "dev-python/bin/paceline");
const PACELINE = process.env.PACELINE ?? (existsSync(DEVELOPED) ? DEVELOPED : join(ROOT, ".venv/bin/paceline"));

/** So long a page of a test that failed is asked what it shows. */
const ANSWER_MS = 10_000;

const QUIET = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];

export async function launched(): Promise<Browser> {
  if (!existsSync(PAGE)) throw new Error(`${PAGE} is not there: run web/build`);
  return chromium.launch({ executablePath: CHROMIUM, args: QUIET, timeout: WAIT_MS });
}

/** What a page did that it should not have. */
export interface Watched {
  page: Page;
  /** Errors in it, and what it wanted from beyond its own file. */
  faults: string[];
}

/**
 * A fresh profile with the page open at a fragment, and its first curves drawn unless it is told not to wait. It is closed when the
 * test ends; of a test that failed it is told first what the page showed.
 */
export async function opened(browser: Browser, fragment: string, options: BrowserContextOptions = {}, wait = true): Promise<Watched> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 860 }, acceptDownloads: true, ...options });
  context.setDefaultTimeout(WAIT_MS);
  const page = await context.newPage();
  const faults: string[] = [];
  page.on("pageerror", (error) => faults.push(error.message));
  page.on("crash", () => faults.push("the page crashed"));
  page.on("console", (message) => {
    if (message.type() === "error") faults.push(message.text());
  });
  page.on("request", (request) => {
    if (!/^(file|blob|data):/.test(request.url())) faults.push(`asked for ${request.url()}`);
  });
  onTestFinished(async ({ task }) => {
    const [error] = (task.result?.state === "fail" && task.result.errors) || [];
    if (error) error.message += await testimony({ page, faults }, `${task.name} ${fragment}`);
    await context.close();
  });
  await page.goto(`${pathToFileURL(PAGE).href}${fragment}`);
  if (wait) await settled(page);
  return { page, faults };
}

/** What a page shows and did, in words, with a picture of it in web/out. */
async function testimony({ page, faults }: Watched, name: string): Promise<string> {
  const seen = () => {
    const state = document.querySelector<HTMLElement>("[data-status]");
    const curves = performance.getEntriesByType("measure").map(({ name, startTime, duration }) => `${name}, from ${Math.round(startTime)} ms for ${Math.round(duration)} ms`);
    return [`status ${state?.dataset.status}, "${state?.innerText}", ${Math.round(performance.now())} ms after it was opened`, ...curves];
  };
  // It may be the page that hangs.
  const silent = new Promise<string[]>((done) => setTimeout(done, ANSWER_MS, [`it does not answer within ${ANSWER_MS} ms`]));
  const said = await Promise.race([page.evaluate(seen).catch((error: Error) => [error.message]), silent]);
  const path = join(ROOT, "web/out", `${name.replace(/\W+/g, "-").slice(0, 80)}.png`);
  const pictured = await page.screenshot({ path, timeout: ANSWER_MS }).then(
    () => path,
    (error: Error) => `none: ${error.message}`,
  );
  return [``, `The page ${page.url().slice(0, 200)}`, ...said, `errors: ${faults.join("; ") || "none"}`, `picture: ${pictured}`].join("\n  ");
}

/**
 * Waits until the scenario as it stands is drawn, from a change that was made after an instant of the page's clock (ms).
 * A page that is slow for now asks whether it shall begin a run of more than five seconds: as a visitor would, it says yes.
 */
export async function settled(page: Page, after = 0): Promise<void> {
  const how = ({ since, asked }: { since: number; asked: boolean }) => {
    const status = document.querySelector("[data-status]")?.getAttribute("data-status");
    if (status === "asks" && !asked) return "asks";
    const curves = performance.getEntriesByName("paceline: from a change to its curves");
    return status === "ready" && document.querySelector(".panel canvas") && curves.some(({ startTime }) => startTime >= since) ? "drawn" : "";
  };
  const found = await page.waitForFunction(how, { since: after, asked: false });
  if ((await found.jsonValue()) === "drawn") return;
  await page.getByRole("button", { name: "Run it" }).click();
  await page.waitForFunction(how, { since: after, asked: true });
}

/** Does something that changes the scenario once, and waits until its curves are drawn. */
export async function changing(page: Page, act: () => Promise<unknown>): Promise<void> {
  // Not by how many have been drawn: what was drawn last may yet have to be counted.
  const before = await page.evaluate(() => performance.now());
  await act();
  await settled(page, before);
}

/** The first reason that the page gives. It looks for none after a run that took long, so that it is opened anew until one did not. */
export async function reason(page: Page): Promise<string> {
  const slow = (most: number) => performance.getEntriesByName("paceline: a run").some(({ duration }) => duration > most);
  while (await page.evaluate(slow, WHY_MS)) {
    await page.reload();
    await settled(page);
  }
  return page.locator(".why").first().innerText();
}

/** The canvas of a panel as numbers that tell its picture from another. */
export const picture = (page: Page, panel: string) =>
  page.evaluate((id) => (document.querySelector(`[data-panel="${id}"] canvas`) as HTMLCanvasElement).toDataURL(), panel);

/** The text in the editor. */
export const toml = (page: Page) =>
  page.evaluate(() => Array.from(document.querySelectorAll(".cm-line"), (line) => line.textContent).join("\n"));

/** A file that a click gives. */
export async function download(page: Page, button: string): Promise<{ name: string; text: string }> {
  const [file] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: button }).click()]);
  return { name: file.suggestedFilename(), text: readFileSync(await file.path(), "utf8") };
}

/** What the command line measures of a scenario. */
export function terminal(text: string, name: string, ...more: string[]): unknown {
  const folder = mkdtempSync(join(tmpdir(), "paceline-"));
  writeFileSync(join(folder, name), text);
  const said = execFileSync(PACELINE, ["run", name, "--json", ...more], { cwd: folder, encoding: "utf8", maxBuffer: 1e9 });
  const { versions, ...measures } = JSON.parse(said);
  if (!versions) throw new Error("the summary names no versions");
  return measures;
}
