// --- effects with intervals: a forest plot of one feature, its coefficient in every task --------------------------

if (data.trust && data.trust.intervals && data.trust.intervals.rows.length) {
  const { level, rows } = data.trust.intervals, percent = `${Math.round(1000 * level) / 10} %`;
  const [FEATURE, TASK, ESTIMATE, ERROR, LOWER, UPPER, P, ROW_P] = rows[0].keys();
  const p = (value) => value === null ? "–" : value < 1e-3 ? small(value) : value.toPrecision(2);
  const range = (row) => row[LOWER] === null ? "–" : `${quantity(row[LOWER])}\u00a0to ${quantity(row[UPPER])}`;
  const names = [...new Set(rows.map((row) => row[FEATURE]))];
  const alone = new Set(rows.map((row) => row[TASK])).size === 1; // one task: its features are the lines
  const host = byId("plot-intervals"), pick = byId("intervals-pick"), LINE = 24, MOST = 40;
  const image = svg("svg", { role: "img" }), title = html("span"), note = html("p", { class: "note" });
  let shown = names[0];
  const lines = () => (alone ? rows : rows.filter((row) => row[FEATURE] === shown)).filter((row) => row[ESTIMATE] !== null);
  host.append(html("figcaption", {}, title), image, note, plotTools(host, "effects with intervals", () => [
    ["feature", "task", "estimate", "std_error", "lower", "upper", "pvalue", "row_pvalue"], ...(alone ? rows : rows.filter((row) => row[FEATURE] === shown)),
  ]));
  const draw = () => {
    const width = Math.round(host.clientWidth);
    if (!width) return;
    const all = lines(), drawn = all.slice(0, MOST), label = alone ? FEATURE : TASK;
    const longest = Math.min(22, Math.max(4, ...drawn.map((row) => row[label].length)));
    const right = 14, left = Math.min(0.42 * width, 16 + 7 * longest), bottom = 8 + LINE * drawn.length, room = Math.max(4, Math.floor(left / 7) - 1);
    const ends = drawn.flatMap((row) => [row[ESTIMATE], row[LOWER] ?? row[ESTIMATE], row[UPPER] ?? row[ESTIMATE]]);
    let low = Math.min(0, ...ends), high = Math.max(0, ...ends);
    if (low === high) high = 1;
    const margin = 0.03 * (high - low);
    [low, high] = [low - margin, high + margin];
    const x = (value) => left + (value - low) / (high - low) * (width - left - right);
    image.setAttribute("viewBox", `0 0 ${width} ${bottom + 40}`);
    const frame = svg("g");
    for (const tick of linearTicks(low, high, Math.max(3, Math.floor((width - left) / 110)))) frame.append(
      svg("line", { class: "rule", x1: x(tick), x2: x(tick), y1: 4, y2: bottom }), svg("text", { x: x(tick), y: bottom + 17, "text-anchor": "middle" }, tickText(tick)));
    frame.append(svg("line", { class: "axis", x1: left, x2: width - right, y1: bottom, y2: bottom }), svg("line", { class: "limit", x1: x(0), x2: x(0), y1: 4, y2: bottom }),
      svg("text", { x: (left + width - right) / 2, y: bottom + 35, "text-anchor": "middle" }, "coefficient, in the units of the data"));
    drawn.forEach((row, i) => {
      const y = 8 + LINE * (i + 0.5), line = svg("g");
      if (row[LOWER] !== null) line.append(svg("line", { class: "span", x1: x(row[LOWER]), x2: x(row[UPPER]), y1: y, y2: y }));
      line.append(svg("rect", { x: left, width: width - left - right, y: y - LINE / 2, height: LINE, opacity: 0 }), svg("circle", { class: "point", cx: x(row[ESTIMATE]), cy: y, r: 4.5 }),
        svg("text", { class: "label", x: left - 9, y: y + 4, "text-anchor": "end" }, cut(row[label], room)));
      line.addEventListener("pointermove", (event) => showTip(event, `${row[FEATURE]}, ${row[TASK]}: ${quantity(row[ESTIMATE])} (${range(row)}), p = ${p(row[P])}`));
      line.addEventListener("pointerleave", hideTip);
      frame.append(line);
    });
    const together = all.length && !alone ? `, p = ${p(all[0][ROW_P])} in all tasks together` : "";
    title.textContent = alone ? `Coefficients of ${rows[0][TASK]}` : `Coefficient of ${shown}${together}`;
    note.textContent = `Points: estimates. Lines: ${percent} intervals. Dashed: no effect.${all.length > MOST ? ` The first ${MOST} of ${whole(all.length)}.` : ""}`;
    image.setAttribute("aria-label", `${title.textContent}: ${drawn.map((row) => `${row[label]} ${quantity(row[ESTIMATE])}, ${range(row)}`).join("; ")}`);
    image.replaceChildren(frame);
  };
  if (!alone && names.length > 1) {
    names.forEach((name, i) => pick.append(html("option", { value: i }, cut(name, 40))));
    pick.addEventListener("change", () => { shown = names[Number(pick.value)]; draw(); });
    byId("intervals-label").hidden = false;
  }
  draw();
  new ResizeObserver(draw).observe(host);
  const name = (k, at) => html("div", { class: "name", title: rows[k][at] }, cut(rows[k][at], 32));
  new PagedTable(byId("intervals-table"), {
    caption: "Effects with intervals", noun: "coefficient", rows: () => [...rows.keys()], text: (k) => `${rows[k][FEATURE]} ${rows[k][TASK]}`, size: 10, sorted: alone ? 4 : 6, down: false,
    columns: [
      { label: "Feature", sort: (k) => rows[k][FEATURE], cell: (k) => html("th", { scope: "row" }, name(k, FEATURE)) },
      ...(alone ? [] : [{ label: "Task", sort: (k) => rows[k][TASK], cell: (k) => cell(name(k, TASK)) }]),
      { label: "Estimate", number: true, down: true, sort: (k) => rows[k][ESTIMATE], cell: (k) => cell(quantity(rows[k][ESTIMATE], true), "number") },
      { label: "Std. error", number: true, class: "optional", sort: (k) => rows[k][ERROR], cell: (k) => cell(quantity(rows[k][ERROR]), "number optional") },
      { label: `${percent} interval`, number: true, more: [["lower", (k) => rows[k][LOWER]], ["upper", (k) => rows[k][UPPER]]], cell: (k) => cell(range(rows[k]), "number") },
      { label: "p", number: true, sort: (k) => rows[k][P], cell: (k) => cell(p(rows[k][P]), "number") },
      ...(alone ? [] : [{ label: "p, all tasks", number: true, class: "optional", sort: (k) => rows[k][ROW_P], cell: (k) => cell(p(rows[k][ROW_P]), "number optional") }]),
    ],
  });
}
