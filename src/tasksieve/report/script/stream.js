// --- along the rows of a stream -----------------------------------------------------------------------------------

// Lines over the number of rows, which doubles from mark to mark.
const drawAlongRows = (id, { title, note, rows, curves, names = [], named = 0, whole: counts = false, label, lines }) => {
  const host = byId(id), height = 270, bottom = height - 40;
  const all = curves.flat().filter((value) => value !== null);
  const low = Math.min(0, ...all), high = Math.max(...all, low) || 1;
  const image = svg("svg", { role: "img", "aria-label": label });
  host.append(html("figcaption", {}, html("span", {}, title)), image, note ? html("p", { class: "note" }, note) : "", plotTools(host, title, lines));
  let width = 0, left = 40, right = 12;
  const first = Math.log(rows[0]), span = Math.log(rows[rows.length - 1]) - first || 1;
  const x = (n) => left + (Math.log(n) - first) / span * (width - left - right), y = (value) => bottom - (value - low) / (high - low) * (bottom - 10);
  const draw = () => {
    if (!host.clientWidth || width === Math.round(host.clientWidth)) return;
    width = Math.round(host.clientWidth);
    const ticks = linearTicks(low, high, 5).filter((tick) => !counts || Number.isInteger(tick));
    left = 14 + 7 * Math.max(...ticks.map((tick) => tickText(tick).length));
    const shown = names.slice(0, named);
    right = shown.length ? Math.min(130, 16 + 7 * Math.max(...shown.map((name) => Math.min(16, name.length)))) : 12;
    image.setAttribute("viewBox", `0 0 ${width} ${height}`);
    const frame = svg("g");
    for (const tick of ticks) frame.append(svg("line", { class: "rule", x1: left, x2: width - right, y1: y(tick), y2: y(tick) }), svg("text", { x: left - 7, y: y(tick) + 4, "text-anchor": "end" }, tickText(tick)));
    frame.append(svg("line", { class: "axis", x1: left, x2: width - right, y1: bottom, y2: bottom }));
    for (const tick of rows.length > 1 ? logTicks(rows[0], rows[rows.length - 1], Math.max(3, width / 110)) : rows) {
      frame.append(svg("line", { class: "axis", x1: x(tick), x2: x(tick), y1: bottom, y2: bottom + 4 }), svg("text", { x: x(tick), y: bottom + 18, "text-anchor": "middle" }, tickText(tick)));
    }
    frame.append(svg("text", { x: (left + width - right) / 2, y: height - 4, "text-anchor": "middle" }, "rows learned (logarithmic)"));
    curves.map((curve, i) => [curve, i]).reverse().forEach(([curve, i]) => {
      let text = "", pen = "M";
      curve.forEach((value, k) => {
        if (value === null) { pen = "M"; return; }
        text += `${pen}${x(rows[k]).toFixed(1)} ${y(value).toFixed(1)}`;
        pen = "L";
      });
      frame.append(svg("path", { class: curves.length === 1 ? "mean" : curve[curve.length - 1] ? "curve in" : "curve", d: text }, svg("title", {}, names[i] ?? title)));
      if (curves.length === 1) curve.forEach((value, k) => { if (value !== null) frame.append(svg("circle", { class: "point", r: 2.6, cx: x(rows[k]), cy: y(value) })); });
    });
    const places = shown.map((name, i) => [name, y(curves[i][rows.length - 1])]).sort((a, b) => a[1] - b[1]);
    let last = -Infinity, limit = bottom + 4;
    for (const place of places) last = place[1] = Math.max(place[1], last + 14);
    for (const place of places.slice().reverse()) { place[1] = Math.min(place[1], limit); limit = place[1] - 14; }
    for (const [name, at] of places) frame.append(svg("text", { class: "label", x: width - right + 8, y: at + 4 }, cut(name, 16)));
    image.replaceChildren(frame);
  };
  draw();
  new ResizeObserver(draw).observe(host);
};

if (data.stream) {
  const { rows, losses, loss, seen } = data.stream, last = losses.length - 1;
  if (rows.length) drawAlongRows("plot-losses", {
    title: `Mean ${loss} of the rows so far`, rows, curves: [losses], note: "Each row was predicted before it was learned. Smaller is better.",
    label: `Mean ${loss} of the rows so far: ${quantity(losses[0])} after ${count(rows[0], "row")}, ${quantity(losses[last])} after ${count(rows[last], "row")}`,
    lines: () => [["rows", `mean ${loss}`], ...rows.map((n, k) => [n, losses[k]])],
  });
  if (seen) {
    const { nSelected, names, curves, nEver } = data.stream, end = seen.length - 1;
    drawAlongRows("plot-used", {
      title: "Features in use", rows: seen, curves: [nSelected], whole: true, note: "Of the iterate after so many rows.",
      label: `Features in use: ${whole(nSelected[0])} after ${count(seen[0], "row")}, ${whole(nSelected[end])} after ${count(seen[end], "row")}`,
      lines: () => [["rows", "features in use"], ...seen.map((n, k) => [n, nSelected[k]])],
    });
    const still = curves.filter((curve) => curve[end]).length;
    if (curves.length) drawAlongRows("plot-strengths", {
      title: "How features came and went", rows: seen, curves, names, named: Math.min(8, still),
      note: `Length of a feature's coefficients over all ${ROW_NOUNS}. Blue: in use at the end; grey: not any more.${nEver > curves.length ? ` The ${curves.length} strongest of ${whole(nEver)} features that were ever in use.` : ""}`,
      label: `Strength of ${count(curves.length, "feature")} along the stream; ${still} of them are in use at the end`,
      lines: () => [["rows", ...names], ...seen.map((n, k) => [n, ...curves.map((curve) => curve[k])])],
    });
  }
}
