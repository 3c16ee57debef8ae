// Asks the site's own search: node site_search.mjs WORKER INDEX < questions, a line each; prints a JSON list of the
// pages that it finds, best first, for each.
import { readFileSync } from "node:fs";

const [worker, index] = process.argv.slice(2);
const SETUP = 0;
const QUERY = 2;
const FOUND = 3;
let answered;
globalThis.self = globalThis;
globalThis.postMessage = (message) => answered(message);
(0, eval)(readFileSync(worker, "utf8")); // a script of a web worker's, not a module

const ask = (data) => new Promise((done) => { answered = done; self.onmessage({ data }); });
const data = JSON.parse(readFileSync(index, "utf8"));
await ask({ type: SETUP, data });
// The worker compiles a filter in place: each question has one of its own.
const all = () => ({ input: { type: "operator", data: { operator: "and", operands: [] } }, aggregation: { input: [] } });
const found = [];
for (const input of readFileSync(0, "utf8").trim().split("\n")) {
  const answer = await ask({ type: QUERY, data: { input, filter: all() } });
  if (answer.type !== FOUND) throw new Error(`no answer to "${input}": ${JSON.stringify(answer)}`);
  found.push(answer.data.items.map((item) => data.items[item.id].location));
}
console.log(JSON.stringify(found));
