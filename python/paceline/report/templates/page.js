"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const hidden = new Set();
  const tip = document.getElementById("tip");
  const SVG = "http://www.w3.org/2000/svg";
  const REACH_PX = 28;

  // Switching a series off hides it and those named after it: "vegas" also "vegas-red".
  const covers = (set, key) => [...set].some((one) => key === one || key.startsWith(`${one}-`));
  const isOff = (set, series, name) => covers(set, series) || set.has(name);

  // A number in its shortest form.
  function short(value) {
    const text = Math.abs(value) >= 1000 ? value.toFixed(0) : String(Number(value.toPrecision(3)));
    return text.replace("-", "\u2212");
  }

  // The vertices of a drawn line, converted back by its panel's scale: the page has no second copy of its data.
  function alongLines(element, panels) {
    const found = [];
    element.querySelectorAll("[data-panel]").forEach((group) => {
      const { from, to, unit } = panels[group.dataset.panel];
      const path = group.querySelector("path");
      for (const [, x, y] of (path ? path.getAttribute("d") : "").matchAll(/[ML]\s*([^\sML]+)\s+([^\sMLz]+)/g)) {
        const [t, v] = [x, y].map((at, i) => from[i + 2] + (at - from[i]) / (to[i] - from[i]) * (to[i + 2] - from[i + 2]));
        found.push([Number(x), Number(y), group.dataset.s, group.dataset.l,
          `${group.dataset.label}, ${short(t)} s: ${short(v)} ${unit}`.trim(), ""]);
      }
    });
    return found;
  }

  function figure(element) {
    const plot = data[element.dataset.plot];
    const svg = element.querySelector("svg");
    const picked = element.parentElement.querySelector(".picked");
    const own = new Set();
    let marks = null;
    let current = -1;
    const ring = document.createElementNS(SVG, "circle");
    ring.setAttribute("class", "ring");
    ring.setAttribute("r", "6");
    ring.setAttribute("visibility", "hidden");
    svg.append(ring);

    const off = (series, name) => isOff(hidden, series, name) || isOff(own, series, name);
    const all = () => (marks = marks || [...plot.marks, ...alongLines(element, plot.panels)]
      .sort((a, b) => (a[2] + a[3]).localeCompare(b[2] + b[3]) || a[0] - b[0]));

    function update() {
      element.querySelectorAll("[data-s]").forEach((part) => {
        part.toggleAttribute("data-off", off(part.dataset.s, part.dataset.l));
      });
      element.querySelectorAll("[data-key-l]").forEach((part) => {
        const gone = off(part.dataset.keyS, part.dataset.keyL);
        part.toggleAttribute("data-dim", gone);
        if (part.hasAttribute("role")) part.setAttribute("aria-pressed", String(!gone));
      });
      leave();
    }

    function leave() {
      current = -1;
      tip.hidden = true;
      ring.setAttribute("visibility", "hidden");
    }

    function show(index) {
      const [x, y, , , text] = all()[index];
      current = index;
      ring.setAttribute("cx", x);
      ring.setAttribute("cy", y);
      ring.setAttribute("visibility", "visible");
      tip.textContent = text;
      tip.hidden = false;
      const at = new DOMPoint(x, y).matrixTransform(svg.getScreenCTM());
      const left = Math.min(at.x + 12, document.documentElement.clientWidth - tip.offsetWidth - 6);
      const over = at.y - tip.offsetHeight - 12;
      tip.style.left = `${Math.max(4, left) + window.scrollX}px`;
      tip.style.top = `${(over > 0 ? over : at.y + 14) + window.scrollY}px`;
    }

    function nearest(event) {
      const matrix = svg.getScreenCTM();
      const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(matrix.inverse());
      let [best, least] = [-1, REACH_PX / matrix.a];
      all().forEach(([x, y, series, name], i) => {
        const far = Math.hypot(x - at.x, y - at.y);
        if (far < least && !off(series, name)) [best, least] = [i, far];
      });
      return best;
    }

    // A point's command is in its row of the table.
    function pick() {
      if (current < 0) return;
      const [, , , , text, row] = all()[current];
      const code = row && document.querySelector(`#${row} code`);
      if (!code) return;
      const name = document.createElement("b");
      name.textContent = `${text.split(": ")[0]}: `;
      const command = document.createElement("code");
      command.textContent = code.textContent;
      const link = document.querySelector(`#${row} a.to-playground`);
      const parts = link ? [name, command, " ", link.cloneNode(true)] : [name, command];
      picked.replaceChildren(...parts);
    }

    // Right and left move along a line, down and up from line to line.
    function step(key) {
      const there = all().map((mark, i) => [mark, i]).filter(([mark]) => !off(mark[2], mark[3]));
      if (!there.length) return;
      const place = there.findIndex(([, i]) => i === current);
      if (place < 0) { show(there[0][1]); return; }
      const [mark] = there[place];
      const line = (one) => one[2] + one[3];
      if (key === "ArrowRight" || key === "ArrowLeft") {
        const next = there[place + (key === "ArrowRight" ? 1 : -1)];
        if (next) show(next[1]);
        return;
      }
      const lines = [...new Set(there.map(([one]) => line(one)))];
      const other = lines[(lines.indexOf(line(mark)) + (key === "ArrowDown" ? 1 : lines.length - 1)) % lines.length];
      const [, index] = there.filter(([one]) => line(one) === other)
        .reduce((a, b) => (Math.abs(b[0][0] - mark[0]) < Math.abs(a[0][0] - mark[0]) ? b : a));
      show(index);
    }

    function key(event) {
      if (event.target !== element) return;
      if (event.key.startsWith("Arrow")) step(event.key);
      else if (event.key === "Enter" || event.key === " ") pick();
      else if (event.key === "Escape") leave();
      else return;
      event.preventDefault();
    }

    function entry(part) {
      const toggle = () => {
        const name = part.dataset.keyL;
        if (!own.delete(name)) own.add(name);
        update();
      };
      part.addEventListener("click", (event) => { event.stopPropagation(); toggle(); });
      if (!part.querySelector("text")) return;
      part.setAttribute("role", "button");
      part.setAttribute("tabindex", "0");
      part.setAttribute("aria-pressed", "true");
      part.addEventListener("keydown", (event) => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        toggle();
      });
    }

    element.tabIndex = 0;
    element.setAttribute("role", "group");
    element.setAttribute("aria-label", `${svg.getAttribute("aria-label")} Arrow keys go through the values, Enter shows a point's command.`);
    // A screen reader would not announce a button within a picture.
    svg.setAttribute("role", "group");
    element.addEventListener("pointermove", (event) => {
      const index = nearest(event);
      if (index < 0) leave(); else if (index !== current) show(index);
    });
    element.addEventListener("pointerleave", leave);
    element.addEventListener("focus", () => { if (element.matches(":focus-visible")) step("ArrowRight"); });
    element.addEventListener("blur", leave);
    element.addEventListener("click", (event) => {
      const index = nearest(event);
      if (index >= 0) { show(index); pick(); }
    });
    element.addEventListener("keydown", key);
    element.querySelectorAll("[data-key-l]").forEach(entry);
    return update;
  }

  const updates = [...document.querySelectorAll("[data-plot]")].map(figure);

  async function copy(button) {
    const text = button.closest("tr").querySelector("code").textContent;
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      // Pages opened from a file may lack access to the clipboard.
      const area = document.createElement("textarea");
      area.value = text;
      document.body.append(area);
      area.select();
      document.execCommand("copy");
      area.remove();
      button.focus();
    }
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  }

  document.addEventListener("click", (event) => {
    if (event.target.matches("[data-copy]")) copy(event.target);
  });
  document.querySelectorAll("[data-toggle]").forEach((box) => box.addEventListener("change", () => {
    if (box.checked) hidden.delete(box.dataset.toggle); else hidden.add(box.dataset.toggle);
    updates.forEach((update) => update());
  }));

  // A link to a folded element unfolds it.
  function unfold() {
    const target = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    for (let part = target; part; part = part.parentElement) if (part.tagName === "DETAILS") part.open = true;
    target.scrollIntoView();
  }
  window.addEventListener("hashchange", unfold);
  unfold();

  // Nothing can be unfolded on paper, so unfold everything.
  let closed = [];
  window.addEventListener("beforeprint", () => {
    closed = [...document.querySelectorAll("details.fold:not([open])")];
    closed.forEach((part) => { part.open = true; });
  });
  window.addEventListener("afterprint", () => closed.forEach((part) => { part.open = false; }));
  document.documentElement.dataset.drawn = String(updates.length);
})();
