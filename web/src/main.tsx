/** Begins: the page first, then the simulator. */
import { render } from "preact";
import { begin, status, trouble } from "./model/state.ts";
import "./style.css";
import { App } from "./view/App.tsx";

render(<App />, document.getElementById("app") as HTMLElement);
begin().catch((error: unknown) => {
  const message = error instanceof Error ? error.message : String(error);
  status.value = { kind: "ready" };
  trouble.value = `The simulator did not load: ${message}. It needs a browser of 2024 or later.`;
});
