// --- several runs side by side ------------------------------------------------------------------------------------

// A run has a colour and a shape, so that colour is never all there is.
const SHAPES = ["circle", "square", "diamond", "triangle"];
const runClass = (r) => `run-${r % 6}`;
const marker = (r, x, y, size = 5) => {
  const shape = SHAPES[r % SHAPES.length], common = { class: `dot ${runClass(r)}` };
  if (shape === "circle") return svg("circle", { ...common, cx: x, cy: y, r: size });
  if (shape === "square") return svg("rect", { ...common, x: x - size * 0.9, y: y - size * 0.9, width: 1.8 * size, height: 1.8 * size });
  const d = shape === "diamond" ? `M${x} ${y - 1.2 * size}l${1.2 * size} ${1.2 * size}l${-1.2 * size} ${1.2 * size}l${-1.2 * size} ${-1.2 * size}z`
    : `M${x} ${y - 1.15 * size}l${1.15 * size} ${2 * size}h${-2.3 * size}z`;
  return svg("path", { ...common, d });
};
const key = (r) => html("span", { class: "key" }, svg("svg", { viewBox: "0 0 14 14", width: 14, height: 14, "aria-hidden": "true" }, marker(r, 7, 7)), data.runs[r]);
byId("legend").append(...data.runs.map((_, r) => key(r)));

const picture = (id, title, label, note, height, draw, lines = null) => {
  const host = byId(id), image = svg("svg", { role: "img", "aria-label": label });
  host.append(html("figcaption", {}, html("span", {}, title)), image, note ? html("p", { class: "note" }, note) : "", plotTools(host, title, lines));
  let width = 0;
  const render = () => {
    if (!host.clientWidth || width === Math.round(host.clientWidth)) return;
    width = Math.round(host.clientWidth);
    image.setAttribute("viewBox", `0 0 ${width} ${height}`);
    const frame = svg("g");
    draw(frame, width, height);
    image.replaceChildren(frame);
  };
  render();
  new ResizeObserver(render).observe(host);
};

// A line for each name with a mark for each run.
const dots = (id, title, label, note, rows, names, value, low, high, lines) => {
  const step = 22, height = 14 + step * rows.length + 34;
  picture(id, title, label, note, height, (frame, width) => {
    const left = Math.min(width * 0.4, 16 + 7 * Math.max(...rows.map((row) => Math.min(24, row.name.length)))), bottom = 14 + step * rows.length;
    const x = (amount) => left + (amount - low) / (high - low || 1) * (width - left - 16);
    for (const tick of linearTicks(low, high, Math.max(3, Math.floor(width / 110)))) {
      frame.append(svg("line", { class: "rule", x1: x(tick), x2: x(tick), y1: 8, y2: bottom }), svg("text", { x: x(tick), y: bottom + 18, "text-anchor": "middle" }, tickText(tick)));
    }
    rows.forEach((row, i) => {
      const y = 14 + step * (i + 0.5);
      frame.append(svg("line", { class: "rule", x1: left, x2: width - 16, y1: y, y2: y }), svg("text", { class: "label", x: left - 8, y: y + 4, "text-anchor": "end" }, cut(row.name, 24)));
      data.runs.forEach((name, r) => {
        const amount = value(row, r);
        if (amount === null) return;
        const mark = marker(r, x(amount), y + (r - (data.runs.length - 1) / 2) * Math.min(4, 14 / data.runs.length), 4.4); // beside each other where they are equal
        mark.append(svg("title", {}, `${row.name}, ${name}: ${quantity(names(row, r))}`));
        frame.append(mark);
      });
    });
  }, lines);
};

if (data.features.length) {
  const largest = data.runs.map((_, r) => Math.max(...data.features.map((row) => row.strengths[r]), 0) || 1);
  dots("plot-features", "Strength of each feature", `Strength of ${count(data.features.length, "feature")} in ${count(data.runs.length, "run")}, relative to the strongest of its run`,
    "Relative to the strongest feature of the same run; no mark: not in use.", data.features, (row, r) => row.strengths[r],
    (row, r) => row.strengths[r] ? row.strengths[r] / largest[r] : null, 0, 1,
    () => [["feature", ...data.runs], ...data.features.map((row) => [row.name, ...row.strengths])]);
}
if (data.tasks.length) {
  const all = data.tasks.flatMap((row) => row.scores).filter((value) => value !== null);
  if (all.length) {
    const low = Math.min(...all), high = Math.max(...all), room = 0.06 * (high - low || Math.abs(high) || 1);
    dots("plot-scores", "Score of each task", `${data.measure}: ${count(data.tasks.length, "task")} in ${count(data.runs.length, "run")}, from ${quantity(low)} to ${quantity(high)}`,
      "", data.tasks, (row, r) => row.scores[r], (row, r) => row.scores[r], low - room, high + room,
      () => [["task", ...data.runs], ...data.tasks.map((row) => [row.name, ...row.scores])]);
  }
}
data.scatters.forEach((points, i) => {
  const r = i + 1, title = `${data.runs[r]} against ${data.runs[0]}`, height = 300, bottom = height - 40;
  const all = points.flat(), low = Math.min(0, ...all), high = Math.max(0, ...all) || 1;
  picture(`plot-scatter-${i}`, title, `${count(points.length, "coefficient")} of ${data.runs[r]} by those of ${data.runs[0]}`, points.length ? "" : "No coefficient to compare.", height, (frame, width) => {
    const ticks = linearTicks(low, high, 5), left = 14 + 7 * Math.max(...ticks.map((tick) => tickText(tick).length));
    const share = (value) => (value - low) / (high - low || 1), x = (value) => left + share(value) * (width - left - 14), y = (value) => bottom - share(value) * (bottom - 12);
    for (const tick of ticks) frame.append(svg("line", { class: "rule", x1: left, x2: width - 14, y1: y(tick), y2: y(tick) }), svg("text", { x: left - 7, y: y(tick) + 4, "text-anchor": "end" }, tickText(tick)),
      svg("text", { x: x(tick), y: bottom + 17, "text-anchor": "middle" }, tickText(tick)));
    frame.append(svg("line", { class: "chosen", x1: x(low), y1: y(low), x2: x(high), y2: y(high) }), svg("line", { class: "axis", x1: left, x2: width - 14, y1: bottom, y2: bottom }));
    for (const [a, b] of points) frame.append(marker(r, x(a), y(b), 3.4));
    frame.append(svg("text", { x: (left + width) / 2, y: height - 4, "text-anchor": "middle" }, `in ${cut(data.runs[0], 30)}`));
  }, () => [[data.runs[0], data.runs[r]], ...points]);
});
if (data.curves.some(Boolean)) {
  const drawn = data.curves.map((curve, r) => [curve, r]).filter(([curve]) => curve), least = Math.min(...drawn.flatMap(([curve]) => curve.shares));
  const all = drawn.flatMap(([curve]) => curve.mean).filter((value) => value !== null), low = Math.min(...all), high = Math.max(...all), height = 300, bottom = height - 40;
  picture("plot-curves", drawn[0][0].measure || "Held-out loss", `Held-out loss of ${count(drawn.length, "run")} along the path`, "The mark is the model that was chosen. Smaller is better; comparable where loss and data are the same.", height, (frame, width) => {
    const ticks = linearTicks(low, high, 5), left = 14 + 7 * Math.max(...ticks.map((tick) => tickText(tick).length));
    const x = (share) => left + Math.log(share) / Math.log(Math.min(least, 0.999)) * (width - left - 14), y = (value) => bottom - (value - low) / (high - low || 1) * (bottom - 12);
    for (const tick of ticks) frame.append(svg("line", { class: "rule", x1: left, x2: width - 14, y1: y(tick), y2: y(tick) }), svg("text", { x: left - 7, y: y(tick) + 4, "text-anchor": "end" }, tickText(tick)));
    frame.append(svg("line", { class: "axis", x1: left, x2: width - 14, y1: bottom, y2: bottom }));
    for (const tick of logTicks(least, 1, Math.max(3, width / 110))) frame.append(svg("text", { x: x(tick), y: bottom + 17, "text-anchor": "middle" }, tickText(tick)));
    frame.append(svg("text", { x: (left + width) / 2, y: height - 4, "text-anchor": "middle" }, "α / the largest of its path: strong  →  weak penalty"));
    for (const [curve, r] of drawn) {
      frame.append(svg("path", { class: `trace ${runClass(r)}`, d: curve.mean.map((value, k) => value === null ? "" : `${k && curve.mean[k - 1] !== null ? "L" : "M"}${x(curve.shares[k]).toFixed(1)} ${y(value).toFixed(1)}`).join("") }));
      if (curve.mean[curve.chosen] !== null) frame.append(marker(r, x(curve.shares[curve.chosen]), y(curve.mean[curve.chosen]), 6));
    }
  }, () => [["run", "alpha / largest", "loss"], ...drawn.flatMap(([curve, r]) => curve.shares.map((share, k) => [data.runs[r], share, curve.mean[k]]))]);
}
document.documentElement.dataset.ready = "true";
