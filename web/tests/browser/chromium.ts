/** A real browser around the built page, which is opened from its folder as anyone may. */
import { existsSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { execFileSync } from "node:child_process";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { type Browser, type BrowserContextOptions, chromium, type Page } from "playwright-core";

const ROOT = join(dirname(fileURLToPath(import.meta.url)), "../../..");
export const PAGE = join(ROOT, "python/paceline/playground.html");
const CHROMIUM = "/usr/bin/chromium";
const PACELINE = process.env.PACELINE ?? join(ROOT, ".venv/bin/paceline");

const QUIET = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];

export async function launched(): Promise<Browser> {
  if (!existsSync(PAGE)) throw new Error(`${PAGE} is not there: run web/build`);
  return chromium.launch({ executablePath: CHROMIUM, args: QUIET });
}

/** What a page did that it should not have. */
export interface Watched {
  page: Page;
  /** Errors in it, and what it wanted from beyond its own file. */
  faults: string[];
}

/** A fresh profile with the page open at a fragment, and its first curves drawn unless it is told not to wait. */
export async function opened(browser: Browser, fragment: string, options: BrowserContextOptions = {}, wait = true): Promise<Watched> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 860 }, acceptDownloads: true, ...options });
  const page = await context.newPage();
  const faults: string[] = [];
  page.on("pageerror", (error) => faults.push(error.message));
  page.on("console", (message) => {
    if (message.type() === "error") faults.push(message.text());
  });
  page.on("request", (request) => {
    if (!/^(file|blob|data):/.test(request.url())) faults.push(`asked for ${request.url()}`);
  });
  await page.goto(`${pathToFileURL(PAGE).href}${fragment}`);
  if (wait) await settled(page);
  return { page, faults };
}

/** Waits until the scenario as it stands is drawn. */
export async function settled(page: Page): Promise<void> {
  await page.waitForSelector(".panel canvas");
  await page.waitForFunction(() => document.querySelector("[data-status]")?.getAttribute("data-status") === "ready");
}

/** Does something that changes the scenario, and waits until new curves are drawn. */
export async function changing(page: Page, act: () => Promise<unknown>): Promise<void> {
  const before = await page.evaluate(() => performance.getEntriesByName("paceline: from a change to its curves").length);
  await act();
  const more = (many: number) => performance.getEntriesByName("paceline: from a change to its curves").length > many;
  await page.waitForFunction(more, before);
  await settled(page);
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
