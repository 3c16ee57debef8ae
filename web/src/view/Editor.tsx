/** The scenario as text: completion and marks of what is wrong; a slider's change goes into it as a change of those letters alone. */
import { autocompletion, closeBrackets, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { HighlightStyle, StreamLanguage, syntaxHighlighting } from "@codemirror/language";
import { toml } from "@codemirror/legacy-modes/mode/toml";
import { type Diagnostic, lintGutter, setDiagnostics } from "@codemirror/lint";
import { searchKeymap } from "@codemirror/search";
import { EditorState } from "@codemirror/state";
import { drawSelection, EditorView, highlightActiveLine, keymap, lineNumbers } from "@codemirror/view";
import { useSignalEffect } from "@preact/signals";
import { tags } from "@lezer/highlight";
import { useEffect, useRef } from "preact/hooks";
import type { Mistake } from "../core/protocol.ts";
import { mistakes, opened, text, typed } from "../model/state.ts";
import { complete } from "./complete.ts";

const colours = HighlightStyle.define([
  { tag: tags.comment, color: "var(--quiet)", fontStyle: "italic" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--string)" },
  { tag: [tags.number, tags.bool, tags.atom], color: "var(--number)" },
  { tag: [tags.propertyName, tags.definition(tags.propertyName), tags.labelName], color: "var(--text)" },
]);

/** Where two texts differ. */
function difference(old: string, now: string): { from: number; to: number; insert: string } {
  let from = 0;
  while (from < old.length && from < now.length && old[from] === now[from]) from++;
  let [end, made] = [old.length, now.length];
  while (end > from && made > from && old[end - 1] === now[made - 1]) {
    end--;
    made--;
  }
  return { from, to: end, insert: now.slice(from, made) };
}

function diagnosticsOf(view: EditorView, wrong: Mistake[]): Diagnostic[] {
  return wrong.map((mistake) => {
    const line = view.state.doc.line(Math.min(view.state.doc.lines, Math.max(1, mistake.line ?? 1)));
    const from = Math.min(line.to, line.from + Math.max(0, (mistake.column ?? 1) - 1));
    const said = mistake.key ? `${mistake.key}: ${mistake.problem}` : mistake.problem;
    return { from: mistake.column ? from : line.from, to: line.to, severity: "error", message: said };
  });
}

export function Editor() {
  const place = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView | undefined>(undefined);
  const begun = useRef<((doc: string) => EditorState) | undefined>(undefined);
  const taken = useRef(opened.peek());

  useEffect(() => {
    const listen = EditorView.updateListener.of((update) => {
      if (update.docChanged) typed(update.state.doc.toString());
    });
    const extensions = [
      lineNumbers(),
      lintGutter(),
      history(),
      drawSelection(),
      highlightActiveLine(),
      closeBrackets(),
      autocompletion({ override: [complete] }),
      StreamLanguage.define(toml),
      syntaxHighlighting(colours),
      // Tab leaves the text, so that a keyboard can go on.
      keymap.of([...completionKeymap, ...searchKeymap, ...historyKeymap, ...defaultKeymap]),
      EditorView.contentAttributes.of({ "aria-label": "The scenario as TOML" }),
      EditorView.lineWrapping,
      listen,
    ];
    begun.current = (doc) => EditorState.create({ doc, extensions });
    view.current = new EditorView({ state: begun.current(text.peek()), parent: place.current as HTMLDivElement });
    return () => view.current?.destroy();
  }, []);

  useSignalEffect(() => {
    const now = text.value;
    const editor = view.current;
    if (!editor) return;
    const old = editor.state.doc.toString();
    if (taken.current !== opened.value) {
      // another scenario: its text cannot be undone into the one before
      taken.current = opened.value;
      editor.setState((begun.current as (doc: string) => EditorState)(now));
    } else if (old !== now) editor.dispatch({ changes: difference(old, now) });
  });

  useSignalEffect(() => {
    const wrong = mistakes.value;
    const editor = view.current;
    if (editor) editor.dispatch(setDiagnostics(editor.state, diagnosticsOf(editor, wrong)));
  });

  return <div class="editor" ref={place} />;
}
