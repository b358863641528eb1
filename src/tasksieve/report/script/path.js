// --- the path of coefficients -------------------------------------------------------------------------------------

let chosenTask = nTasks === 1 && along ? 0 : -1; // -1: strength over all tasks
let pathPlot = null, highlighted = -1;
const pathValue = (f, k) => chosenTask < 0 ? strength(f, k) : relative(f, chosenTask, k) * rowScale(chosenTask);

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
    title: (nTasks === 1 ? "Coefficient of each feature" : chosenTask < 0 ? `Strength of each feature over all ${ROW_NOUNS}` : `Coefficients in ${ROW_NOUN} ${cut(data.tasks[chosenTask], 40)}`) + PER_DEVIATION.replace(" ", ", "),
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
  byId("choice-save").append(csvButton("path", () => {
    const columns = [["alpha", path.alphas], ["features selected", path.nSelected], ["relative gap", path.gaps], ["rejection ratio", path.rejection], ...(path.cv ? [[path.cv.measure, path.cv.mean], ["standard error", path.cv.error]] : [])].filter(([, values]) => values);
    return [columns.map(([name]) => name), ...path.alphas.map((_, k) => columns.map(([, values]) => values[k]))];
  }));
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
  for (const button of document.querySelectorAll("[data-look]")) {
    button.hidden = false;
    button.addEventListener("click", () => {
      look(Number(button.dataset.look));
      if (button.dataset.go) byId(button.dataset.go).scrollIntoView();
    });
  }
  const shownSet = document.getElementById("shown-set"), chosenWords = shownSet && shownSet.textContent;
  const ruleAt = (k) => k === path.careful ? "at one standard error" : k === path.best ? "at the best score" : `at α = ${quantity(path.alphas[k])}`;
  if (shownSet) followers.push((k) => {
    shownSet.textContent = k === chosen ? chosenWords : `Shown are the ${count(path.nSelected[k], "feature")} ${ruleAt(k)}; predictions use those ${ruleAt(chosen)}.`;
  });
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
      note: `Mean over ${ROW_NOUN === "task" && nTasks > 1 ? "tasks and " : ""}${folds} folds, and one standard error between them: what α was chosen by.${measure.endsWith("(greater is better)") ? "" : " Smaller is better."}${data.quality.some((part) => part.unseen && part.loss) ? ` Below, by ${ROW_NOUN}, the same rows count one by one, and errors are wider, since folds share most of the rows that they learn from.` : ""}`,
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
    note: "Features with a non-zero coefficient in at least one " + ROW_NOUN + (data.covariates.length ? `; ${count(data.covariates.length, "covariate")} not counted.` : "."),
    draw: (frame, plot) => frame.append(svg("path", { class: "mean", d: plot.line(path.nSelected) })),
  });
  if (path.rejection) new PathPlot("plot-rejection", {
    title: "Rejection ratio", height: 270, low: 0, high: 1, readout: (k) => quantity(path.rejection[k]), value: (k) => path.rejection[k],
    note: "Share of the unused features that Wang & Ye's rule rejected before the model was solved.",
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
