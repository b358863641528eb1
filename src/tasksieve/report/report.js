// The report's plots and tables: plain SVG, canvas and DOM, no library. All text enters the page as text nodes.
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const path = data.path;
  const nTasks = data.tasks.length, nFeatures = data.features.length;
  const nValues = path ? path.alphas.length : 1;
  const PAGE_SIZES = [10, 25, 50, 100];
  const CURVES = 80; // drawn in the path plot: more cannot be told apart
  // orange and blue are told apart by every kind of colour vision; lighter ones by night
  const night = matchMedia("(prefers-color-scheme: dark)");
  const hue = (value) => night.matches ? (value < 0 ? [236, 130, 62] : [86, 158, 240]) : (value < 0 ? [203, 88, 18] : [30, 104, 186]);
  const byId = (id) => document.getElementById(id);

  // --- numbers ------------------------------------------------------------------------------------------------------

  const bytes = (text) => {
    const raw = atob(text), out = new Uint8Array(raw.length);
    for (let i = 0; i < raw.length; i++) out[i] = raw.charCodeAt(i);
    return out.buffer;
  };
  const unpack = (part) => part && { scale: new Float32Array(bytes(part.scale)), values: new Int16Array(bytes(part.values)) };
  const strengths = unpack(data.strengths); // features x values of alpha
  const fixed = unpack(data.coefficients); // kept selected features x tasks
  const along = unpack(data.pathCoefficients); // for each value, the rows of its features

  const strength = (f, k) => strengths.values[f * nValues + k] * strengths.scale[f];
  const present = (f, k) => strengths.values[f * nValues + k] !== 0;

  // where, in `along`, the row of a feature at a value begins; -1 where the row is zero
  const starts = along && new Array(nValues);
  if (along) {
    let next = 0;
    for (let k = 0; k < nValues; k++) {
      starts[k] = new Int32Array(nFeatures).fill(-1);
      for (let f = 0; f < nFeatures; f++) if (present(f, k)) { starts[k][f] = next; next += nTasks; }
    }
  }
  const chosen = path ? path.chosen : 0;
  const hasCoefficients = (k) => Boolean(along) || k === chosen;
  const coefficient = (f, t, k) => {
    if (along) { const at = starts[k][f]; return at < 0 ? 0 : along.values[at + t] * along.scale[f]; }
    return f < data.nKept ? fixed.values[f * nTasks + t] * fixed.scale[f] : 0;
  };

  const MINUS = "\u2212";
  const RAISED = { "-": "⁻", 0: "⁰", 1: "¹", 2: "²", 3: "³", 4: "⁴", 5: "⁵", 6: "⁶", 7: "⁷", 8: "⁸", 9: "⁹" };
  const power = (size, digits) => {
    const [factor, exponent] = size.toExponential(digits).split("e");
    const ten = "10" + [...String(Number(exponent))].map((sign) => RAISED[sign]).join("");
    return Number(factor) === 1 && digits === 0 ? ten : `${factor}\u00a0×\u00a0${ten}`;
  };
  // three significant digits, as a person would write them
  const quantity = (value, sign = false) => {
    if (value === null || value === undefined || Number.isNaN(value)) return "–";
    if (value === 0) return "0";
    const size = Math.abs(value), digits = Math.max(0, 2 - Math.floor(Math.log10(size)));
    const text = size >= 1e-4 && size < 1e5 ? size.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits }) : power(size, 2);
    return (value < 0 ? MINUS : sign ? "+" : "") + text;
  };
  const small = (value) => value === null ? "–" : value === 0 ? "0" : power(value, 1);
  const whole = (value) => value.toLocaleString("en");
  const plural = (noun) => noun + (noun.endsWith("s") ? "es" : "s");
  const count = (n, noun) => `${whole(n)} ${n === 1 ? noun : plural(noun)}`;
  const ROW_NOUN = data.rowNoun, ROW_NOUNS = plural(ROW_NOUN); // what the rows of coefficients are: tasks, or classes
  const capital = (text) => text.slice(0, 1).toUpperCase() + text.slice(1);

  // --- small helpers ------------------------------------------------------------------------------------------------

  const make = (create) => (tag, attributes = {}, ...children) => {
    const node = create(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (name === "style") Object.assign(node.style, value);
      else if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
      else if (value === true) node.setAttribute(name, "");
      else if (value !== false && value !== null && value !== undefined) node.setAttribute(name, value);
    }
    node.append(...children.filter((child) => child !== null && child !== undefined));
    return node;
  };
  const html = make((tag) => document.createElement(tag));
  const svg = make((tag) => document.createElementNS("http://www.w3.org/2000/svg", tag));
  // long names often differ at their end only, so it is the middle that goes
  const cut = (text, length) => text.length > length ? text.slice(0, Math.ceil(length / 2) - 1) + "…" + text.slice(-Math.floor(length / 2)) : text;

  const tip = byId("tip");
  const showTip = (event, text) => {
    tip.textContent = text;
    tip.hidden = false;
    const box = tip.getBoundingClientRect();
    tip.style.left = `${Math.max(4, Math.min(event.clientX + 14, innerWidth - box.width - 8))}px`;
    tip.style.top = `${event.clientY + 18 + box.height > innerHeight ? event.clientY - box.height - 10 : event.clientY + 18}px`;
  };
  const hideTip = () => { tip.hidden = true; };

  // --- the value of alpha that is looked at -------------------------------------------------------------------------

  let now = chosen;
  const followers = []; // called when it changes
  const look = (k) => {
    now = Math.max(0, Math.min(nValues - 1, k));
    for (const follow of followers) follow(now);
  };

  // --- axes ---------------------------------------------------------------------------------------------------------

  const niceStep = (span, parts) => {
    const raw = span / parts, power = 10 ** Math.floor(Math.log10(raw));
    return [1, 2, 5, 10].find((m) => m * power >= raw * 0.7) * power;
  };
  const linearTicks = (low, high, parts) => {
    if (!(high > low)) return [low];
    const step = niceStep(high - low, parts), out = [];
    for (let i = Math.ceil(low / step - 1e-9); i * step <= high + 1e-9 * step; i++) out.push(i * step);
    return out;
  };
  const logTicks = (low, high, most) => {
    const from = Math.floor(Math.log10(low)), to = Math.ceil(Math.log10(high));
    const tries = [[1, 2, 5], [1, 3], [1]].map((digits) => {
      const out = [];
      for (let e = from; e <= to; e++) for (const d of digits) {
        const value = d * 10 ** e;
        if (value >= low * 0.999 && value <= high * 1.001) out.push(value);
      }
      return out;
    });
    let found = tries.find((ticks) => ticks.length <= most);
    if (!found) { const every = Math.ceil(tries[2].length / most); found = tries[2].filter((_, i) => i % every === 0); }
    return found.length > 1 ? found : [low, high];
  };
  const tickText = (value) => {
    const size = Math.abs(value);
    if (size !== 0 && (size < 1e-3 || size >= 1e6)) return (value < 0 ? MINUS : "") + power(size, 0);
    return (value < 0 ? MINUS : "") + Number(size.toPrecision(6)).toLocaleString("en", { maximumFractionDigits: 6 });
  };

  // A plot over alpha, falling from left to right as the path runs. `draw(frame)` adds what is special to it.
  class PathPlot {
    // options: title, note, height, low, high, log, right (margin), readout(k), value(k), draw, update, hover, leave
    constructor(id, options) {
      this.host = byId(id);
      Object.assign(this, { log: false, right: 12, note: "" }, options);
      this.name = html("span", {}, this.title);
      this.output = html("output", { "aria-live": "off" }); // the slider says it
      this.image = svg("svg", { role: "img", "aria-label": `${this.title}. ${this.note}` });
      this.host.append(html("figcaption", {}, this.name, this.output), this.image);
      if (this.note) this.host.append(html("p", { class: "note" }, this.note));
      const pick = (event) => {
        const box = this.image.getBoundingClientRect();
        const at = (event.clientX - box.left) * this.width / box.width;
        let best = 0;
        for (let k = 1; k < nValues; k++) if (Math.abs(this.x(k) - at) < Math.abs(this.x(best) - at)) best = k;
        return best;
      };
      this.image.addEventListener("pointerdown", (event) => { if (event.button === 0) look(pick(event)); });
      this.image.addEventListener("pointermove", (event) => {
        if (event.buttons & 1) look(pick(event));
        if (this.hover) this.hover(event, pick(event), this);
      });
      this.image.addEventListener("pointerleave", () => { if (this.leave) this.leave(); });
      followers.push((k) => this.follow(k));
      new ResizeObserver(() => this.render()).observe(this.host);
      this.render();
    }

    change(options) {
      Object.assign(this, options);
      this.name.textContent = this.title;
      this.image.setAttribute("aria-label", `${this.title}. ${this.note}`);
      this.width = 0;
      this.render();
    }

    x(k) {
      const first = Math.log(path.alphas[0]), last = Math.log(path.alphas[nValues - 1]);
      const share = first === last ? 0.5 : (first - Math.log(path.alphas[k])) / (first - last);
      return this.left + share * (this.width - this.left - this.right);
    }

    y(value) {
      const at = this.log ? Math.log(Math.max(value, this.low) / this.low) / Math.log(this.high / this.low)
        : (value - this.low) / (this.high - this.low || 1);
      return this.bottom - at * (this.bottom - 10);
    }

    line(values) {
      let text = "", pen = "M";
      values.forEach((value, k) => {
        if (value === null) { pen = "M"; return; }
        text += `${pen}${this.x(k).toFixed(1)} ${this.y(value).toFixed(1)}`;
        pen = "L";
      });
      return text;
    }

    render() {
      const width = Math.round(this.host.clientWidth);
      if (!width || width === this.width) return;
      this.width = width;
      this.bottom = this.height - 40;
      const ticks = this.log ? logTicks(this.low, this.high, 6) : linearTicks(this.low, this.high, 5);
      this.left = 14 + 7 * Math.max(...ticks.map((tick) => tickText(tick).length));
      this.image.setAttribute("viewBox", `0 0 ${width} ${this.height}`);
      const frame = svg("g");
      for (const tick of ticks) {
        const y = this.y(tick);
        frame.append(svg("line", { class: "rule", x1: this.left, x2: width - this.right, y1: y, y2: y }),
          svg("text", { x: this.left - 7, y: y + 4, "text-anchor": "end" }, tickText(tick)));
      }
      const middle = (this.left + width - this.right) / 2;
      frame.append(svg("line", { class: "axis", x1: this.left, x2: width - this.right, y1: this.bottom, y2: this.bottom }));
      const first = Math.log(path.alphas[0]), last = Math.log(path.alphas[nValues - 1]);
      for (const tick of logTicks(path.alphas[nValues - 1], path.alphas[0], Math.max(3, width / 90))) {
        const x = this.left + (first - Math.log(tick)) / (first - last || 1) * (width - this.left - this.right);
        frame.append(svg("line", { class: "axis", x1: x, x2: x, y1: this.bottom, y2: this.bottom + 4 }),
          svg("text", { x, y: this.bottom + 18, "text-anchor": "middle" }, tickText(tick)));
      }
      frame.append(svg("text", { x: middle, y: this.height - 4, "text-anchor": "middle" }, "strong penalty  ←  α  →  weak penalty"));
      const shown = this.x(chosen);
      frame.append(svg("line", { class: "chosen", x1: shown, x2: shown, y1: 10, y2: this.bottom }));
      this.draw(frame, this);
      this.cursor = svg("line", { class: "cursor", y1: 4, y2: this.bottom });
      this.mark = svg("circle", { class: "mark", r: 4.5 });
      frame.append(this.cursor, this.mark);
      this.image.replaceChildren(frame);
      this.follow(now);
    }

    follow(k) {
      if (!this.cursor) return;
      const x = this.x(k);
      this.cursor.setAttribute("x1", x);
      this.cursor.setAttribute("x2", x);
      const value = this.value ? this.value(k) : null;
      this.mark.style.display = value === null ? "none" : "";
      if (value !== null) { this.mark.setAttribute("cx", x); this.mark.setAttribute("cy", this.y(value)); }
      this.output.textContent = this.readout ? this.readout(k) : "";
      if (this.update) this.update(k, this);
    }
  }

  // --- the path of coefficients -------------------------------------------------------------------------------------

  let chosenTask = nTasks === 1 && along ? 0 : -1; // -1: strength over all tasks
  let pathPlot = null, highlighted = -1;
  const pathValue = (f, k) => chosenTask < 0 ? strength(f, k) : coefficient(f, chosenTask, k);

  const drawnFeatures = () => {
    const peak = new Float64Array(nFeatures);
    for (let f = 0; f < nFeatures; f++) for (let k = 0; k < nValues; k++) peak[f] = Math.max(peak[f], Math.abs(pathValue(f, k)));
    return [...peak.keys()].filter((f) => peak[f] > 0).sort((a, b) => peak[b] - peak[a]).slice(0, CURVES);
  };

  const highlight = (f) => {
    highlighted = f;
    if (pathPlot && pathPlot.curves) for (const [g, curve] of pathPlot.curves) curve.classList.toggle("on", g === f);
    if (pathPlot && pathPlot.labels) for (const [g, label] of pathPlot.labels) label.classList.toggle("on", g === f);
  };

  const NAMED = 8; // curves with their name at the right end
  const pathScene = () => {
    const drawn = drawnFeatures();
    let low = 0, high = 0;
    for (const f of drawn) for (let k = 0; k < nValues; k++) {
      const value = pathValue(f, k);
      low = Math.min(low, value);
      high = Math.max(high, value);
    }
    const ends = drawn.filter((f) => pathValue(f, nValues - 1) !== 0)
      .sort((a, b) => Math.abs(pathValue(b, nValues - 1)) - Math.abs(pathValue(a, nValues - 1))).slice(0, NAMED);
    byId("path-note").replaceChildren((drawn.length < nFeatures ? `The ${drawn.length} strongest of ${whole(nFeatures)} features. ` : "")
      + "Blue: in the model at the marked α; grey: not. The dashed line is the chosen model. ",
    html("span", { class: "screen" }, "Click or drag in a plot, or use the slider."));
    return {
      title: nTasks === 1 ? "Coefficient of each feature" : chosenTask < 0 ? `Strength of each feature over all ${ROW_NOUNS}` : `Coefficients in ${ROW_NOUN} ${cut(data.tasks[chosenTask], 40)}`,
      drawn, ends, low, high: high || 1,
      right: Math.min(130, 16 + 7 * Math.max(0, ...ends.map((f) => Math.min(16, data.features[f].length)))),
    };
  };

  const drawPath = (frame, plot) => {
    plot.curves = new Map();
    plot.labels = new Map();
    if (plot.low < 0) frame.append(svg("line", { class: "axis", x1: plot.left, x2: plot.width - plot.right, y1: plot.y(0), y2: plot.y(0) }));
    for (const f of plot.drawn.slice().reverse()) {
      const curve = svg("path", { class: "curve", d: plot.line(Array.from({ length: nValues }, (_, k) => pathValue(f, k))) });
      plot.curves.set(f, curve);
      frame.append(curve);
    }
    // names are moved apart where they would overlap, first downwards, then back up from the bottom
    const places = plot.ends.map((f) => [f, plot.y(pathValue(f, nValues - 1))]).sort((a, b) => a[1] - b[1]);
    let last = -Infinity, limit = plot.bottom + 4;
    for (const place of places) last = place[1] = Math.max(place[1], last + 14);
    for (const place of places.slice().reverse()) { place[1] = Math.min(place[1], limit); limit = place[1] - 14; }
    for (const [f, y] of places) {
      const label = svg("text", { class: "label", x: plot.width - plot.right + 8, y: y + 4 }, cut(data.features[f], 16));
      plot.labels.set(f, label);
      frame.append(label);
    }
  };

  const makePathPlot = () => {
    pathPlot = new PathPlot("plot-path", {
      ...pathScene(), height: 380, readout: (k) => `α = ${quantity(path.alphas[k])}`, draw: drawPath,
      update(k, plot) {
        for (const [f, curve] of plot.curves) curve.classList.toggle("in", present(f, k));
        highlight(highlighted);
      },
      hover(event, k, plot) {
        const box = plot.image.getBoundingClientRect();
        const at = (event.clientY - box.top) * plot.height / box.height;
        let best = -1, distance = 14;
        for (const f of plot.drawn) {
          const off = Math.abs(plot.y(pathValue(f, k)) - at);
          if (off < distance && pathValue(f, k) !== 0) { best = f; distance = off; }
        }
        highlight(best);
        if (best < 0) hideTip();
        else showTip(event, `${data.features[best]}: ${quantity(pathValue(best, k), chosenTask >= 0)} at α = ${quantity(path.alphas[k])}`);
      },
      leave() { highlight(-1); hideTip(); },
    });
  };

  if (path) {
    if (along && nTasks > 1) {
      const pick = byId("pick");
      pick.append(html("option", { value: -1 }, `strength over all ${ROW_NOUNS}`));
      data.tasks.forEach((name, t) => pick.append(html("option", { value: t }, `${ROW_NOUN} ${cut(name, 40)}`)));
      pick.addEventListener("change", () => { chosenTask = Number(pick.value); pathPlot.change(pathScene()); });
      byId("pick-label").hidden = false;
    }
    makePathPlot();

    const slider = byId("alpha");
    slider.addEventListener("input", () => look(Number(slider.value)));
    byId("back").addEventListener("click", () => { look(chosen); slider.focus(); });
    followers.push((k) => {
      slider.value = k;
      const selected = `${count(path.nSelected[k], "feature")} selected`;
      slider.setAttribute("aria-valuetext", `alpha ${quantity(path.alphas[k])}, ${selected}`);
      byId("alpha-now").textContent = `α = ${quantity(path.alphas[k])}`;
      byId("selected-now").textContent = selected;
      byId("back").disabled = k === chosen;
    });

    if (path.cv) {
      const { mean, error, folds, measure } = path.cv;
      const tops = mean.map((m, k) => m + error[k]), bottoms = mean.map((m, k) => m - error[k]);
      const low = Math.min(...bottoms), high = Math.max(...tops), room = 0.05 * (high - low || Math.abs(high) || 1);
      new PathPlot("plot-cv", {
        title: measure, height: 270, low: low - room, high: high + room,
        note: `Mean over ${ROW_NOUN === "task" && nTasks > 1 ? "tasks and " : ""}${folds} folds, and one standard error. Smaller is better.`,
        readout: (k) => `${quantity(mean[k])} ± ${quantity(error[k])}`, value: (k) => mean[k],
        draw(frame, plot) {
          const back = bottoms.map((value, k) => `L${plot.x(k).toFixed(1)} ${plot.y(value).toFixed(1)}`).reverse().join("");
          frame.append(svg("path", { class: "band", d: plot.line(tops) + back + "Z" }), svg("path", { class: "mean", d: plot.line(mean) }));
          const right = plot.x(chosen) > plot.width * 0.7;
          frame.append(svg("text", { x: plot.x(chosen) + (right ? -6 : 6), y: 20, "text-anchor": right ? "end" : "start" }, "chosen"));
        },
      });
    }
    new PathPlot("plot-count", {
      title: "Features selected", height: 270, low: 0, high: Math.max(1, ...path.nSelected),
      readout: (k) => `${whole(path.nSelected[k])} of ${whole(data.nFeatures)}`, value: (k) => path.nSelected[k],
      note: "Features with a non-zero coefficient in at least one " + ROW_NOUN + ".",
      draw: (frame, plot) => frame.append(svg("path", { class: "mean", d: plot.line(path.nSelected) })),
    });
    if (path.rejection) new PathPlot("plot-rejection", {
      title: "Rejection ratio", height: 270, low: 0, high: 1, readout: (k) => quantity(path.rejection[k]), value: (k) => path.rejection[k],
      note: "Share of the unused features that the safe rule ruled out before the model was solved.",
      draw: (frame, plot) => frame.append(svg("path", { class: "mean", d: plot.line(path.rejection) })),
    });
    if (path.gaps) {
      const seen = path.gaps.filter((gap) => gap > 0);
      const tolerance = data.tolerance || 1e-6; // a gap far below it says no more than "far below": it is drawn on the axis
      const floor = 10 ** Math.floor(Math.log10(Math.max(1e-17, 1e-4 * tolerance, Math.min(tolerance, ...seen))));
      const top = 10 ** Math.ceil(Math.log10(Math.max(data.tolerance || 0, ...seen, floor) * 1.5));
      new PathPlot("plot-gap", {
        title: "Duality gap of each model", height: 270, low: floor, high: top, log: true, readout: (k) => small(path.gaps[k]), value: (k) => path.gaps[k],
        note: "Relative to the empty model: no model can be better by more." + (data.tolerance ? " Dashed: the tolerance asked for." : "")
          + (path.gaps.some((gap) => gap !== null && gap < floor) ? " Points on the axis are smaller still." : ""),
        draw(frame, plot) {
          if (data.tolerance) frame.append(svg("line", { class: "limit", x1: plot.left, x2: plot.width - plot.right, y1: plot.y(data.tolerance), y2: plot.y(data.tolerance) }));
          path.gaps.forEach((gap, k) => { if (gap !== null) frame.append(svg("circle", { class: "point", r: 2.6, cx: plot.x(k), cy: plot.y(gap) })); });
        },
      });
    }
  }

  // --- a table with sorting, a filter and pages ---------------------------------------------------------------------

  class PagedTable {
    // columns: {label, note, sort(row), down, cell(row), head(), class, number}; rows(): ids; text(row): what the filter reads
    constructor(host, { caption, noun, columns, rows, text, size, sorted, down, detail, after, describe }) {
      Object.assign(this, { noun, columns, rows, text, size, sorted, down, detail, after, describe });
      this.page = 0;
      this.open = new Set();
      this.search = html("input", { type: "search", placeholder: "part of a name", oninput: () => { this.page = 0; this.show(); } });
      this.status = html("span", { class: "status", role: "status" });
      this.body = html("tbody");
      this.row = html("tr");
      this.heads = columns.map((column, c) => {
        const content = column.sort
          ? html("button", { type: "button", title: column.note, onclick: () => this.sortBy(c) }, column.label)
          : html("span", {}, column.label || "");
        return html("th", { scope: "col", class: [column.class, column.number && "number"].filter(Boolean).join(" ") || null }, content);
      });
      this.row.append(...this.heads);
      this.table = html("table", {}, html("caption", { class: "hidden" }, caption), html("thead", {}, this.row), this.body);
      this.scroll = html("div", { class: "scroll" }, this.table);
      const turn = (by) => () => { this.page += by; this.show(); };
      this.back = html("button", { type: "button", onclick: turn(-1) }, "Previous");
      this.next = html("button", { type: "button", onclick: turn(1) }, "Next");
      this.place = html("span");
      this.sizes = html("select", { onchange: () => { this.size = Number(this.sizes.value); this.page = 0; this.show(); } },
        ...PAGE_SIZES.map((n) => html("option", { value: n, selected: n === size }, String(n))));
      this.pager = html("div", { class: "pager" }, this.back, this.place, this.next, html("label", {}, "Rows per page ", this.sizes));
      this.tools = html("div", { class: "tools" }, html("label", {}, `Filter ${plural(noun)} `, this.search), this.status);
      host.replaceChildren(this.tools, this.scroll, this.pager);
      this.show();
    }

    sortBy(c) {
      this.down = this.sorted === c ? !this.down : Boolean(this.columns[c].down);
      this.sorted = c;
      this.page = 0;
      this.show();
    }

    show() {
      const wanted = this.search.value.trim().toLowerCase();
      const all = this.rows();
      const keys = new Map(), key = this.columns[this.sorted].sort, sign = this.down ? -1 : 1;
      for (const row of all) keys.set(row, key(row));
      this.found = (wanted ? all.filter((row) => this.text(row).toLowerCase().includes(wanted)) : all.slice()).sort((a, b) => {
        const p = keys.get(a), q = keys.get(b);
        if (p === null || q === null) return (p === null) - (q === null) || a - b; // what is missing comes last
        const order = typeof p === "string" ? p.localeCompare(q, "en", { numeric: true }) : p - q;
        return sign * order || a - b;
      });
      const pages = Math.max(1, Math.ceil(this.found.length / this.size));
      this.page = Math.max(0, Math.min(pages - 1, this.page));
      const first = this.page * this.size, shown = this.found.slice(first, first + this.size);
      this.heads.forEach((head, c) => {
        if (c === this.sorted) head.setAttribute("aria-sort", this.down ? "descending" : "ascending");
        else head.removeAttribute("aria-sort");
      });
      this.table.setAttribute("aria-rowcount", this.found.length);
      this.lines = [];
      this.body.replaceChildren();
      shown.forEach((row, i) => {
        const line = html("tr", { "aria-rowindex": first + i + 1 }, ...this.columns.map((column) => column.cell(row, this)));
        this.lines.push([row, line]);
        this.body.append(line);
        if (this.detail && this.open.has(row)) this.body.append(this.detail(row));
      });
      if (!shown.length) this.body.append(html("tr", {}, html("td", { colspan: this.columns.length }, all.length ? "Nothing matches." : `No ${this.noun} is selected at this α.`)));
      this.status.textContent = wanted ? `${whole(this.found.length)} of ${count(all.length, this.noun)}` : count(all.length, this.noun);
      this.place.textContent = `Page ${whole(this.page + 1)} of ${whole(pages)}`;
      this.back.disabled = this.page === 0;
      this.next.disabled = this.page === pages - 1;
      this.pager.hidden = all.length <= PAGE_SIZES[0];
      this.tools.hidden = all.length <= 5;
      if (this.after) this.after(this);
    }

    toggle(row) {
      if (!this.open.delete(row)) this.open.add(row);
      this.show();
      const line = this.lines.find(([other]) => other === row);
      if (line) line[1].querySelector("button").focus();
    }
  }

  const cell = (content, kind) => html("td", { class: kind }, content);
  const meter = (share, text, low = false) => html("div", { class: "meter" },
    html("div", { class: "track", "aria-hidden": "true" }, html("i", { class: low ? "low" : null, style: { width: `${(100 * Math.max(0, Math.min(1, share))).toFixed(1)}%` } })),
    html("span", { class: "amount" }, text));

  // --- features and their heat map ----------------------------------------------------------------------------------

  const ROW = 28, LEAST = 3, MOST = 44;
  let heatScale = 0;
  for (let f = 0; f < data.nKept; f++) for (let t = 0; t < nTasks; t++) heatScale = Math.max(heatScale, Math.abs(coefficient(f, t, chosen)));
  if (!heatScale && along) for (let f = 0; f < nFeatures; f++) for (let t = 0; t < nTasks; t++) heatScale = Math.max(heatScale, Math.abs(coefficient(f, t, nValues - 1)));
  // Strong colours for large coefficients, none for zero: it reads on paper, by day and by night.
  const opacity = (value) => value === 0 ? 0 : Math.max(0.1, Math.min(1, Math.abs(value) / (heatScale || 1)) ** 0.65);
  const colour = (value) => `rgba(${hue(value).join(",")},${opacity(value).toFixed(3)})`;

  const summary = new Map(); // feature -> tasks in use and the largest coefficient, at `now`
  const about = (f) => {
    if (!hasCoefficients(now)) return null;
    let known = summary.get(f);
    if (!known) {
      let used = 0, at = 0;
      for (let t = 0; t < nTasks; t++) {
        const value = coefficient(f, t, now);
        if (value !== 0) used++;
        if (Math.abs(value) > Math.abs(coefficient(f, at, now))) at = t;
      }
      known = { used, at, largest: coefficient(f, at, now) };
      summary.set(f, known);
    }
    return known;
  };
  const ranks = new Map();
  let strongest = 1;
  const selectedNow = () => {
    const limit = path ? nFeatures : data.nKept, out = [];
    for (let f = 0; f < limit; f++) if (present(f, now)) out.push(f);
    return out;
  };
  const rank = () => {
    summary.clear();
    ranks.clear();
    const order = selectedNow().sort((a, b) => strength(b, now) - strength(a, now) || a - b);
    order.forEach((f, i) => ranks.set(f, i + 1));
    strongest = order.length ? strength(order[0], now) : 1;
  };
  rank();

  let cellWidth = 0;
  const heatCanvas = (f) => {
    const canvas = html("canvas", { "aria-hidden": "true" });
    canvas.feature = f;
    canvas.addEventListener("pointermove", (event) => {
      const t = Math.max(0, Math.min(nTasks - 1, Math.floor((event.clientX - canvas.getBoundingClientRect().left) / cellWidth)));
      showTip(event, `${cut(data.features[f], 60)}, ${ROW_NOUN} ${cut(data.tasks[t], 60)}: ${quantity(coefficient(f, t, now), true)}`);
    });
    canvas.addEventListener("pointerleave", hideTip);
    return canvas;
  };

  const taskHeader = (width) => {
    const longest = Math.max(...data.tasks.map((name) => name.length));
    const every = Math.max(1, cellWidth >= 14 ? 1 : Math.ceil(24 / cellWidth));
    const flat = longest * 7.2 < cellWidth - 4;
    const height = flat ? 18 : Math.min(92, 10 + 6.6 * Math.min(12, longest));
    const head = svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true", style: { height: `${height}px` } });
    for (let t = 0; t < nTasks; t += every) {
      const x = (t + 0.5) * cellWidth, name = cut(data.tasks[t], 12);
      head.append(flat ? svg("text", { x, y: height - 4, "text-anchor": "middle" }, name)
        : svg("text", { transform: `translate(${x + 4} ${height - 3}) rotate(-90)` }, name));
    }
    return head;
  };

  const drawHeat = (table) => {
    if (nTasks === 1) return; // the column "Coefficient" says it
    const head = table.heads[table.heads.length - 1];
    head.replaceChildren(html("span", { class: "hidden" }, `Coefficient in each ${ROW_NOUN}`));
    const shown = hasCoefficients(now);
    const room = Math.max(110, head.clientWidth - 2);
    cellWidth = Math.min(MOST, Math.max(LEAST, room / nTasks));
    const width = Math.max(1, Math.round(cellWidth * nTasks));
    head.append(shown ? taskHeader(width) : html("span", { class: "explain" }, "The coefficients of each " + ROW_NOUN + " are stored for the chosen model only"));
    table.scroll.classList.toggle("wide", width > room);
    // what scrolls must be reachable by keyboard
    if (width > room) { table.scroll.tabIndex = 0; table.scroll.setAttribute("role", "region"); table.scroll.setAttribute("aria-label", "Coefficients, scrollable"); }
    else { table.scroll.removeAttribute("tabindex"); table.scroll.removeAttribute("role"); table.scroll.removeAttribute("aria-label"); }
    const ratio = Math.min(3, Math.max(2, devicePixelRatio || 1));
    for (const canvas of table.body.querySelectorAll("td.heat canvas")) {
      canvas.hidden = !shown;
      if (!shown) continue;
      canvas.width = width * ratio;
      canvas.height = ROW * ratio;
      canvas.style.width = `${width}px`;
      canvas.style.height = `${ROW}px`;
      const pen = canvas.getContext("2d");
      pen.scale(ratio, ratio);
      const gap = cellWidth >= 8 ? 1 : 0;
      for (let t = 0; t < nTasks; t++) {
        const value = coefficient(canvas.feature, t, now);
        if (value === 0) continue;
        pen.fillStyle = colour(value);
        pen.fillRect(t * cellWidth, 1, cellWidth - gap, ROW - 2);
      }
    }
  };

  // All features at a glance, where they do not fit a page: a pixel row for several features shows the largest.
  let mapOrder = null;
  const drawMap = () => {
    const host = byId("map"), order = selectedNow().sort((a, b) => ranks.get(a) - ranks.get(b));
    host.hidden = order.length <= 50 || nTasks === 1 || !hasCoefficients(now);
    if (host.hidden) return;
    if (!host.firstChild) {
      const canvas = html("canvas", { role: "img", "aria-label": "Heat map of all selected features, strongest at the top, by " + ROW_NOUN });
      const place = (event) => {
        const box = canvas.getBoundingClientRect();
        return [Math.min(mapOrder.length - 1, Math.max(0, Math.floor((event.clientY - box.top) / box.height * mapOrder.length))),
          Math.min(nTasks - 1, Math.max(0, Math.floor((event.clientX - box.left) / box.width * nTasks)))];
      };
      canvas.addEventListener("pointermove", (event) => {
        const [i, t] = place(event);
        showTip(event, `Rank ${whole(i + 1)}, ${cut(data.features[mapOrder[i]], 60)}, ${ROW_NOUN} ${cut(data.tasks[t], 60)}: ${quantity(coefficient(mapOrder[i], t, now), true)}`);
      });
      canvas.addEventListener("pointerleave", hideTip);
      canvas.addEventListener("click", (event) => {
        const [i] = place(event);
        features.search.value = "";
        features.sorted = 2;
        features.down = true;
        features.page = Math.floor(i / features.size);
        features.show();
      });
      host.append(canvas, html("p", {}));
    }
    if (mapOrder && mapOrder.at === now) return;
    mapOrder = order;
    mapOrder.at = now;
    const canvas = host.firstChild;
    const width = Math.min(nTasks, 1200), height = Math.min(order.length, 260);
    canvas.width = width;
    canvas.height = height;
    canvas.style.height = `${Math.max(120, Math.min(260, order.length * 2))}px`;
    canvas.style.imageRendering = "pixelated";
    const pen = canvas.getContext("2d"), image = pen.createImageData(width, height);
    for (let i = 0; i < order.length; i++) {
      const row = Math.floor(i * height / order.length);
      for (let t = 0; t < nTasks; t++) {
        const at = 4 * (row * width + Math.floor(t * width / nTasks)), value = coefficient(order[i], t, now);
        const level = Math.round(255 * opacity(value));
        if (level <= image.data[at + 3]) continue;
        image.data.set(hue(value), at);
        image.data[at + 3] = level;
      }
    }
    pen.putImageData(image, 0, 0);
    host.lastChild.textContent = `All ${whole(order.length)} features at a glance, strongest at the top; one column per ${ROW_NOUN}. Click to go there in the table.`;
  };

  const details = (f) => {
    const box = html("td", { colspan: featureColumns.length });
    if (path) {
      const first = Array.from({ length: nValues }, (_, k) => k).find((k) => present(f, k));
      box.append(html("p", {}, `Enters the model at α = ${quantity(path.alphas[first])}; strength ${quantity(strength(f, now))} at α = ${quantity(path.alphas[now])}.`));
    }
    if (!hasCoefficients(now)) {
      box.append(html("p", {}, "The coefficient of each " + ROW_NOUN + " is stored for the chosen model only."));
      return html("tr", { class: "detail" }, box);
    }
    const order = [...data.tasks.keys()].map((t) => [t, coefficient(f, t, now)]).sort((a, b) => Math.abs(b[1]) - Math.abs(a[1]));
    const list = order.slice(0, 60), largest = Math.abs(order[0][1]) || 1;
    box.append(html("ul", {}, ...list.map(([t, value]) => {
      const share = 50 * Math.abs(value) / largest;
      const bar = html("i", { style: { width: `${share}%`, left: value < 0 ? `${50 - share}%` : "50%", background: `rgb(${hue(value).join(",")})` } });
      return html("li", {}, html("span", { title: data.tasks[t] }, cut(data.tasks[t], 26)), html("div", { class: "both", "aria-hidden": "true" }, bar), html("span", {}, quantity(value, true)));
    })));
    if (order.length > list.length) box.append(html("p", { class: "explain" }, `The other ${count(order.length - list.length, ROW_NOUN)} have coefficients of at most ${quantity(Math.abs(order[list.length][1]))} in size.`));
    return html("tr", { class: "detail" }, box);
  };

  const featureColumns = [
    { label: "Rank", number: true, class: "optional", sort: (f) => ranks.get(f), cell: (f) => cell(whole(ranks.get(f)), "number optional") },
    {
      label: "Feature", sort: (f) => data.features[f],
      cell: (f, table) => {
        const button = html("button", { type: "button", title: data.features[f], "aria-expanded": String(table.open.has(f)), onclick: () => table.toggle(f) }, cut(data.features[f], 32));
        button.addEventListener("focus", () => highlight(f));
        button.addEventListener("blur", () => highlight(-1));
        return html("th", { scope: "row", onpointerenter: () => highlight(f), onpointerleave: () => highlight(-1) }, button);
      },
    },
    { label: "Strength", number: true, down: true, note: `Length of the vector of coefficients over all ${ROW_NOUNS}`, sort: (f) => strength(f, now), cell: (f) => cell(meter(strength(f, now) / strongest, quantity(strength(f, now))), "number") },
  ];
  if (nTasks > 1) featureColumns.push({
    label: capital(ROW_NOUNS), number: true, down: true, class: "optional", note: `${capital(ROW_NOUNS)} in which the coefficient is not zero`, sort: (f) => (about(f) || { used: null }).used,
    cell: (f) => cell(about(f) ? whole(about(f).used) : "–", "number optional"),
  });
  featureColumns.push({
    label: nTasks > 1 ? "Largest" : "Coefficient", class: nTasks > 1 ? "optional" : null, down: true, note: nTasks > 1 ? `The largest coefficient in size, and its ${ROW_NOUN}` : null, sort: (f) => about(f) && about(f).largest,
    cell: (f) => {
      const known = about(f);
      return html("td", { class: nTasks > 1 ? "optional name" : null, title: known && data.tasks[known.at] }, known ? `${quantity(known.largest, true)}${nTasks > 1 ? ` in ${cut(data.tasks[known.at], 14)}` : ""}` : "–");
    },
  });
  if (nTasks > 1) featureColumns.push({ label: `Coefficient in each ${ROW_NOUN}`, class: "heat", cell: (f) => cell(heatCanvas(f), "heat") });

  const features = new PagedTable(byId("feature-table"), {
    caption: `Selected features with their strength and the coefficient in each ${ROW_NOUN}`, noun: "feature", columns: featureColumns, rows: selectedNow,
    text: (f) => data.features[f], size: 25, sorted: 2, down: true, detail: details, after: (table) => { drawHeat(table); drawMap(); },
  });
  followers.push(() => { rank(); features.show(); });
  let seenWidth = features.scroll.clientWidth;
  new ResizeObserver(() => {
    if (features.scroll.clientWidth === seenWidth) return;
    seenWidth = features.scroll.clientWidth;
    drawHeat(features);
  }).observe(features.scroll);

  if (heatScale && nTasks > 1) {
    const bar = html("canvas", { width: 240, height: 20, style: { width: "120px", height: "10px" } });
    const pen = bar.getContext("2d");
    const paint = () => {
      pen.clearRect(0, 0, 240, 20);
      for (let i = 0; i < 240; i++) { pen.fillStyle = colour((i / 239 * 2 - 1) * heatScale); pen.fillRect(i, 0, 1, 20); }
    };
    paint();
    night.addEventListener("change", () => { paint(); mapOrder = null; features.show(); });
    byId("legend").append(html("span", {}, `coefficient  ${quantity(-heatScale)}`), bar, html("span", {}, quantity(heatScale, true)));
    byId("legend").hidden = false;
  }

  // --- tasks --------------------------------------------------------------------------------------------------------

  const used = new Int32Array(nTasks);
  const leading = new Int32Array(nTasks).fill(-1);
  if (hasCoefficients(chosen)) for (let f = 0; f < nFeatures; f++) for (let t = 0; t < nTasks; t++) {
    const value = coefficient(f, t, chosen);
    if (value === 0) continue;
    used[t]++;
    if (leading[t] < 0 || Math.abs(value) > Math.abs(coefficient(leading[t], t, chosen))) leading[t] = f;
  }
  const taskColumns = [{ label: capital(ROW_NOUN), sort: (t) => data.tasks[t], cell: (t) => html("th", { scope: "row" }, html("div", { class: "name", title: data.tasks[t] }, cut(data.tasks[t], 32))) }];
  if (data.quality.length) taskColumns.push({ label: "Rows", number: true, down: true, sort: (t) => data.quality[0].rows[t], cell: (t) => cell(whole(data.quality[0].rows[t]), "number") });
  for (const quality of data.quality) {
    const best = Math.max(1, ...quality.values.filter((value) => value !== null));
    taskColumns.push({
      label: quality.measure, number: true, down: false, class: "wrap", sort: (t) => quality.values[t],
      cell: (t) => cell(meter((quality.values[t] || 0) / best, quantity(quality.values[t]), quality.values[t] < 0), "number"),
    });
  }
  taskColumns.push(
    { label: "Features in use", number: true, down: true, class: "optional", sort: (t) => used[t], cell: (t) => cell(whole(used[t]), "number optional") },
    {
      label: "Its largest", class: "optional", note: "The feature with the largest coefficient here", sort: (t) => leading[t] < 0 ? null : data.features[leading[t]],
      cell: (t) => html("td", { class: "optional name" }, leading[t] < 0 ? "–" : `${cut(data.features[leading[t]], 24)} (${quantity(coefficient(leading[t], t, chosen), true)})`),
    },
    { label: "Intercept", number: true, down: true, class: "optional", sort: (t) => data.intercept[t], cell: (t) => cell(quantity(data.intercept[t], true), "number optional") },
  );
  new PagedTable(byId("task-table"), {
    caption: `${capital(ROW_NOUNS)}: rows, quality of fit, features in use`, noun: ROW_NOUN, columns: taskColumns, rows: () => [...data.tasks.keys()], text: (t) => data.tasks[t],
    size: nTasks <= 25 ? 25 : 10, sorted: data.quality.length ? 1 + data.quality.length : 0, down: false,
  });

  // Many tasks: how their quality is distributed.
  if (nTasks > 25 && data.quality.length) {
    const host = byId("plot-quality"), quality = data.quality[data.quality.length - 1];
    const values = quality.values.filter((value) => value !== null);
    const draw = () => {
      const width = host.clientWidth, height = 190, bottom = height - 38;
      if (!width || !values.length) return;
      let low = Math.min(...values), high = Math.max(...values);
      if (low === high) { low -= 0.5; high += 0.5; }
      const step = niceStep(high - low, 24), from = Math.floor(low / step + 1e-9) * step, bins = Math.max(1, Math.ceil((high - from) / step + 1e-9));
      const counts = new Array(bins).fill(0);
      for (const value of values) counts[Math.min(bins - 1, Math.floor((value - from) / step + 1e-9))]++;
      const most = Math.max(...counts), left = 44;
      const x = (value) => left + (value - from) / (bins * step) * (width - left - 12), y = (n) => bottom - n / most * (bottom - 8);
      const image = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `Histogram: ${quality.measure}, ${count(values.length, ROW_NOUN)}, from ${quantity(low)} to ${quantity(high)}` });
      for (const tick of linearTicks(0, most, 3)) if (Number.isInteger(tick)) image.append(svg("line", { class: "rule", x1: left, x2: width - 12, y1: y(tick), y2: y(tick) }), svg("text", { x: left - 7, y: y(tick) + 4, "text-anchor": "end" }, tickText(tick)));
      counts.forEach((n, i) => { if (n) image.append(svg("rect", { class: "bar", x: x(from + i * step) + 1, width: Math.max(1, x(from + step) - x(from) - 2), y: y(n), height: bottom - y(n) })); });
      image.append(svg("line", { class: "axis", x1: left, x2: width - 12, y1: bottom, y2: bottom }));
      for (const tick of linearTicks(from, from + bins * step, Math.max(3, Math.floor(width / 110)))) image.append(svg("text", { x: x(tick), y: bottom + 17, "text-anchor": "middle" }, tickText(tick)));
      image.append(svg("text", { x: (left + width) / 2, y: height - 4, "text-anchor": "middle" }, `${quality.measure} (height: number of ${ROW_NOUNS})`));
      host.replaceChildren(image);
    };
    host.hidden = false;
    draw();
    new ResizeObserver(draw).observe(host);
  }

  look(chosen);
  document.documentElement.dataset.ready = "true";
})();
