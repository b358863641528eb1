// --- tasks --------------------------------------------------------------------------------------------------------

const used = new Int32Array(nTasks);
const leading = new Int32Array(nTasks).fill(-1);
if (hasCoefficients(chosen)) for (let f = 0; f < nFeatures; f++) for (let t = 0; t < nTasks; t++) {
  const value = coefficient(f, t, chosen);
  if (value === 0) continue;
  used[t]++;
  if (leading[t] < 0 || Math.abs(value) > Math.abs(coefficient(leading[t], t, chosen))) leading[t] = f;
}
const withError = (quality, t) => score(quality.values[t])
  + (quality.errors && quality.errors[t] !== null && quality.values[t] !== null ? ` ± ${quality.errors[t] >= 100 ? quantity(quality.errors[t]) : quality.errors[t].toPrecision(2)}` : "");
// the null model stands below, so that columns of several measures have room side by side; a bar has the first measure
const qualityCell = (quality, t, best) => {
  const small = quality.null && quality.null[t] !== null ? html("small", {}, `null ${score(quality.null[t])}`) : "";
  const value = html("span", { class: "measured" }, withError(quality, t), small);
  return quality === qualities[0] ? meter((quality.values[t] || 0) / best, value, quality.values[t] < 0 ? "low" : "", Boolean(quality.errors)) : value;
};
const taskColumns = [{ label: capital(ROW_NOUN), sort: (t) => data.tasks[t], cell: (t) => html("th", { scope: "row" }, html("div", { class: "name", title: data.tasks[t] }, cut(data.tasks[t], 32))) }];
if (data.quality.length) taskColumns.push({ label: "Rows", number: true, down: true, sort: (t) => data.quality[0].rows[t], cell: (t) => cell(whole(data.quality[0].rows[t]), "number") });
// what was predicted unseen comes first, and on a small screen alone
const qualities = data.quality.length ? [data.quality[data.headline], ...data.quality.filter((_, i) => i !== data.headline)] : [];
for (const quality of qualities) {
  const best = Math.max(quality.loss ? 0 : 1, ...quality.values.filter((value) => value !== null));
  taskColumns.push({
    label: quality.measure, number: true, note: quality.null ? "Below it that of the null model, which has intercepts and covariates only" : undefined,
    more: [...(quality.errors ? [[`${quality.measure}: standard error`, (t) => quality.errors[t]]] : []), ...(quality.null ? [[`${quality.measure}: null model`, (t) => quality.null[t]]] : [])], down: false, class: qualities[0].unseen && !quality.unseen ? "wrap optional" : "wrap", sort: (t) => quality.values[t],
    cell: (t) => cell(qualityCell(quality, t, best), qualities[0].unseen && !quality.unseen ? "number optional" : "number"),
  });
}
taskColumns.push(
  { label: "Features in use", number: true, down: true, class: "wrap optional", sort: (t) => used[t], cell: (t) => cell(whole(used[t]), "number optional") },
  {
    label: "Its largest", class: "optional", more: ["its coefficient", (t) => leading[t] < 0 ? null : coefficient(leading[t], t, chosen)], note: "The feature with the largest coefficient here", sort: (t) => leading[t] < 0 ? null : data.features[leading[t]],
    cell: (t) => html("td", { class: "optional name", title: leading[t] < 0 ? null : data.features[leading[t]] }, leading[t] < 0 ? "–" : `${cut(data.features[leading[t]], 18)} (${quantity(coefficient(leading[t], t, chosen), true)})`),
  },
  { label: "Intercept", number: true, down: true, class: "optional", sort: (t) => data.intercept[t], cell: (t) => cell(quantity(data.intercept[t], true), "number optional") },
);
new PagedTable(byId("task-table"), {
  caption: `${capital(ROW_NOUNS)}: rows, quality of fit, features in use`, noun: ROW_NOUN, columns: taskColumns, rows: () => [...data.tasks.keys()], text: (t) => data.tasks[t],
  size: nTasks <= 25 ? 25 : 10, sorted: data.quality.length ? 2 : 0, down: false,
});

// Many tasks: how their quality is distributed.
if (nTasks > 25 && data.quality.length) {
  const host = byId("plot-quality"), quality = data.quality[data.headline];
  const values = quality.values.filter((value) => value !== null), tools = plotTools(host, quality.measure);
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
    host.replaceChildren(html("figcaption", { class: "hidden" }, `How ${quality.measure} is distributed over the ${ROW_NOUNS}`), image, tools);
  };
  host.hidden = false;
  draw();
  new ResizeObserver(draw).observe(host);
}
