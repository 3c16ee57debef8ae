"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const hidden = new Set();
  const MARKERS = ["circle", "square", "triangle-up", "triangle-down", "cross", "x", "pentagon", "star"];
  const printing = window.matchMedia("print");
  const dark = window.matchMedia("(prefers-color-scheme: dark)");

  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  // As many colours in page.css as markers here.
  const colour = (i) => css(`--c${i % MARKERS.length}`);
  // A box hides its series and those named after it: "vegas" also "vegas-red".
  const shown = (key) => ![...hidden].some((one) => key === one || key.startsWith(`${one}-`));

  function axis(title, more) {
    return { title: { text: title }, gridcolor: css("--rule"), linecolor: css("--rule"), zerolinecolor: css("--rule"),
      automargin: true, ...more };
  }

  // A line's x axis has a tick at each level that was run, named as the level is.
  function levelTicks(plot) {
    const unit = / \(([^)]*)\)$/.exec(plot.x);
    const names = plot.levels.map((l) => (unit ? l.replace(` ${unit[1]}`, "") : l));
    return { tickmode: "array", tickvals: plot.ticks, ticktext: names };
  }

  function marks(plot, at) {
    if (hidden.has("published")) return [];
    const own = plot.published.filter((p) => shown(p.series));
    if (!own.length) return [];
    const symbols = { above: "triangle-up", below: "triangle-down" };
    // On bars a mark in the bar's own colour would not be seen.
    const pen = (p) => (plot.kind === "bars" ? css("--text") : colour(p.colour));
    return [{ type: "scatter", mode: "markers", name: "published", hovertemplate: "%{text}<extra></extra>",
      text: own.map((p) => p.text), ...at(own), cliponaxis: false,
      marker: { size: 11, symbol: own.map((p) => symbols[p.bound] || "diamond"),
        color: css("--page"), line: { width: 2, color: own.map(pen) } } }];
  }

  function hints(plot, s) {
    return s.level.map((n, i) => `${plot.levels[n]}: ${Number(s.y[i].toPrecision(4))} ± ${Number(s.half[i].toPrecision(2))}`);
  }

  // An interval is drawn within what the measure can be; that of a curve as it is.
  function interval(s) {
    return { type: "data", symmetric: false, array: s.up || s.half, arrayminus: s.down || s.half };
  }

  function line(plot) {
    const traces = plot.series.filter((s) => shown(s.key)).map((s) => ({
      type: "scatter", mode: s.mode || "lines+markers", name: s.label, x: s.x, y: s.y, customdata: s.level,
      error_y: { ...interval(s), thickness: 1.4, width: 4, color: colour(s.colour) },
      line: { color: colour(s.colour), width: 2, dash: s.dashed ? "dash" : "solid" },
      marker: { symbol: MARKERS[s.colour % MARKERS.length], size: 7 }, meta: s.key,
      text: hints(plot, s),
      hovertemplate: "%{text}<extra>%{fullData.name}</extra>" }));
    traces.push(...marks(plot, (own) => ({ x: own.map((p) => p.x), y: own.map((p) => p.y) })));
    const ticks = plot.ownX ? { exponentformat: "none" } : levelTicks(plot);
    return [traces, { xaxis: axis(plot.x, { ...ticks, type: plot.logX ? "log" : "linear" }),
      yaxis: axis(plot.y, plot.logY ? { type: "log" }
        : plot.from ? { range: [plot.from, null], autorange: "max" } : { rangemode: "tozero" }) }];
  }

  function bars(plot) {
    const lying = plot.levels.length > 4;
    const series = plot.series.filter((s) => shown(s.key));
    const width = 0.8 / series.length;
    const offset = (i) => (i - (series.length - 1) / 2) * width;
    const traces = series.map((s, i) => {
      const place = s.x.map((n) => n + offset(i));
      const error = { ...interval(s), thickness: 1.4, width: 4, color: css("--text") };
      return { type: "bar", name: s.label, orientation: lying ? "h" : "v", width: width * 0.92, customdata: s.level,
        x: lying ? s.y : place, y: lying ? place : s.y, [lying ? "error_x" : "error_y"]: error, meta: s.key,
        marker: { color: colour(s.colour), pattern: { shape: s.colour % 2 ? "/" : "", bgcolor: colour(s.colour), fgcolor: css("--page"), size: 6, solidity: 0.2 } },
        text: hints(plot, s), textposition: "none",
        hovertemplate: `%{text}<extra>%{fullData.name}</extra>` };
    });
    const keys = series.map((s) => s.key);
    traces.push(...marks(plot, (own) => {
      const place = own.map((p) => p.x + offset(keys.indexOf(p.series)));
      const value = own.map((p) => p.y);
      return lying ? { x: value, y: place } : { x: place, y: value };
    }));
    const names = { tickmode: "array", tickvals: plot.levels.map((_, n) => n), ticktext: plot.levels };
    const values = { rangemode: "tozero" };
    return [traces, lying
      ? { xaxis: axis(plot.y, values), yaxis: axis("", { ...names, autorange: "reversed" }) }
      : { xaxis: axis(plot.x, names), yaxis: axis(plot.y, values) }];
  }

  function trace(plot) {
    const layout = { grid: { rows: plot.panels.length, columns: 1, pattern: "coupled", roworder: "top to bottom" },
      xaxis: axis(plot.x), legend: { orientation: "h", y: 1.02, yanchor: "bottom", x: 0, traceorder: "reversed" } };
    // The longest run first, so that the shorter ones lie on top of it.
    const traces = [...plot.series].reverse().map((s) => ({ type: "scatter", mode: "lines", name: s.label, x: s.x, y: s.y,
      yaxis: s.panel ? `y${s.panel + 1}` : "y", legendgroup: s.label,
      showlegend: s.panel === 0 && plot.named,
      line: { color: colour(s.colour), width: 1.6, dash: s.dashed ? "dash" : "solid" },
      hovertemplate: "%{x:.1f} s: %{y:.4g}<extra>%{fullData.name}</extra>" }));
    plot.panels.forEach((name, i) => {
      const key = i ? `yaxis${i + 1}` : "yaxis";
      layout[key] = axis(`${name}<br>${plot.y}`, { rangemode: "tozero" });
    });
    return [traces, layout];
  }

  function scatter(plot) {
    const traces = plot.series.filter((s) => shown(s.key)).map((s) => ({
      type: "scatter", mode: "markers", name: s.label, x: s.x, y: s.y,
      marker: { color: colour(s.colour), symbol: `${MARKERS[s.colour % MARKERS.length]}-open`, size: 7, opacity: 0.75 },
      hovertemplate: "ratio %{x:.3g}, late %{y:.3g} %<extra>%{fullData.name}</extra>" }));
    const shapes = [];
    const annotations = [];
    if (plot.lines.length === 2 && !hidden.has("published")) {
      const [x, y] = plot.lines;
      const pen = { color: css("--quiet"), width: 1.5, dash: "dot" };
      shapes.push({ type: "line", xref: "x", yref: "paper", x0: x, x1: x, y0: 0, y1: 1, line: pen },
        { type: "line", xref: "paper", yref: "y", x0: 0, x1: 1, y0: y, y1: y, line: pen });
      annotations.push({ x: Math.log10(x), xref: "x", y: 1, yref: "paper", text: `published ${x}`, showarrow: false,
        xanchor: "left", xshift: 4 });
    }
    return [traces, { xaxis: axis(plot.x, { type: "log", tickmode: "array", tickvals: [0.125, 0.25, 0.5, 1, 1.5, 2, 4, 8, 16],
      ticktext: ["0.125", "0.25", "0.5", "1", "1.5", "2", "4", "8", "16"] }), yaxis: axis(plot.y, { rangemode: "tozero" }), shapes, annotations }];
  }

  // Each point of a study by itself, with intervals both ways.
  function spots(plot) {
    const reach = ([below, above], pen) => ({ type: "data", symmetric: false, array: [above], arrayminus: [below],
      thickness: 1.4, width: 4, color: pen });
    const traces = plot.series.filter((s) => shown(s.key)).map((s) => ({
      type: "scatter", mode: "markers", name: s.label, x: s.x, y: s.y, customdata: s.level, meta: s.key,
      error_x: reach(s.across, colour(s.colour)), error_y: reach(s.up, colour(s.colour)),
      marker: { color: colour(s.colour), symbol: `${MARKERS[s.marker]}${s.open ? "-open" : ""}`, size: 9 },
      text: [s.text], hovertemplate: "%{text}<extra>%{fullData.name}</extra>" }));
    const across = plot.logX ? { type: "log", exponentformat: "none" } : { rangemode: "tozero" };
    return [traces, { xaxis: axis(plot.x, across),
      yaxis: axis(plot.y, plot.from ? { range: [plot.from, null], autorange: "max" } : { rangemode: "tozero" }) }];
  }

  const KINDS = { line, bars, trace, scatter, spots, curves: line };

  function draw(plot) {
    const element = document.getElementById(plot.id);
    const [traces, layout] = KINDS[plot.kind](plot);
    const all = { paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", margin: { t: 30, r: 12, b: 40, l: 50 },
      font: { color: css("--text"), size: 12, family: "system-ui, sans-serif" }, hovermode: "closest",
      legend: { orientation: "h", y: 1.02, yanchor: "bottom", x: 0 }, ...layout };
    return Plotly.react(element, traces, all, { responsive: true, displaylogo: false, displayModeBar: false });
  }

  function drawAll() { return Promise.all(data.plots.map(draw)); }

  // A click on one of our points shows the command that runs it again.
  function listen(plot) {
    document.getElementById(plot.id).on("plotly_click", (event) => {
      const point = event.points[0];
      const [commands, keys] = data.commands[plot.study] || [[], []];
      const series = keys.indexOf(point.data.meta);
      const command = series < 0 ? undefined : commands[point.customdata * keys.length + series];
      if (command) document.querySelector(`[data-picked="${plot.study}"]`).innerHTML =
        `<b>${point.data.name}, ${plot.levels[point.customdata]}</b>: <code></code>`;
      if (command) document.querySelector(`[data-picked="${plot.study}"] code`).textContent = command;
    });
  }

  async function copy(button) {
    const text = button.dataset.copy;
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      // Pages opened from a file may not have the clipboard.
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
    drawAll();
  }));
  dark.addEventListener("change", drawAll);
  printing.addEventListener("change", drawAll);
  drawAll().then(() => {
    data.plots.forEach(listen);
    document.documentElement.dataset.drawn = String(data.plots.length);
  });
})();
