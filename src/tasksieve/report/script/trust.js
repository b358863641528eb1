// --- how far it can be trusted ------------------------------------------------------------------------------------

// Shuffled labels: where the data stand among them.
const drawNull = (host, { statistic, null: values }) => {
  const tools = plotTools(host, "shuffled labels", () => [["labels", "strongest relation"], ["data", statistic], ...values.map((value) => ["shuffled", value])]);
  const draw = () => {
    const width = host.clientWidth, height = 170, bottom = height - 38;
    if (!width || !values.length) return;
    const all = [...values, statistic], low = Math.min(...all), high = Math.max(...all), room = 0.04 * (high - low || high || 1);
    const from = Math.max(0, low - room), step = niceStep(high + room - from, 36), bins = Math.max(1, Math.ceil((high + room - from) / step));
    const counts = new Array(bins).fill(0);
    for (const value of values) counts[Math.min(bins - 1, Math.floor((value - from) / step))]++;
    const most = Math.max(...counts), left = 12, x = (value) => left + (value - from) / (bins * step) * (width - left - 12), y = (n) => bottom - n / most * (bottom - 24);
    const image = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `Histogram of the strongest relation after ${count(values.length, "shuffle")}, ${quantity(Math.min(...values))} to ${quantity(Math.max(...values))}; the data have ${quantity(statistic)}` });
    counts.forEach((n, i) => { if (n) image.append(svg("rect", { class: "bar idle", x: x(from + i * step) + 0.5, width: Math.max(1, x(from + step) - x(from) - 1), y: y(n), height: bottom - y(n) })); });
    image.append(svg("line", { class: "axis", x1: left, x2: width - 12, y1: bottom, y2: bottom }), svg("line", { class: "cursor", x1: x(statistic), x2: x(statistic), y1: 18, y2: bottom }));
    const end = x(statistic) > width - 90;
    image.append(svg("text", { class: "label", x: x(statistic) + (end ? -6 : 6), y: 20, "text-anchor": end ? "end" : "start" }, "these data"));
    for (const tick of linearTicks(from, from + bins * step, Math.max(3, Math.floor(width / 130)))) image.append(svg("text", { x: x(tick), y: bottom + 17, "text-anchor": "middle" }, tickText(tick)));
    image.append(svg("text", { x: (left + width) / 2, y: height - 4, "text-anchor": "middle" }, width > 460 ? "strongest relation of a feature with the labels (α that leaves nothing)" : "strongest relation (α that leaves nothing)"));
    host.replaceChildren(html("figcaption", {}, html("span", {}, `The data, and ${count(values.length, "shuffle")} of their labels`)), image, tools);
  };
  draw();
  new ResizeObserver(draw).observe(host);
};

// How features become stable: on which share of the halves each is in use when the penalty has come down to alpha.
const drawStability = (host, { alphas, curves, names, stable, threshold }) => {
  const NAMES = 8, height = 330, bottom = height - 40, left = 46;
  const image = svg("svg", { role: "img", "aria-label": `Share of the halves that use a feature, by penalty strength: ${count(stable.filter(Boolean).length, "feature")} of those drawn end above the threshold of ${Math.round(100 * threshold)} percent` });
  host.append(html("figcaption", {}, html("span", {}, "Share of the halves that use a feature")), image,
    html("p", { class: "note" }, `Dashed: the threshold, ${Math.round(100 * threshold)} %. Blue: stable. The ${count(curves.length, "feature")} found most often.`), plotTools(host, "stability path"));
  let width = 0, right = 12, lines = [];
  const last = alphas.length - 1, first = Math.log(alphas[0]), span = first - Math.log(alphas[last]) || 1;
  const x = (k) => left + (first - Math.log(alphas[k])) / span * (width - left - right), y = (share) => bottom - share * (bottom - 10);
  const draw = () => {
    if (!host.clientWidth || width === Math.round(host.clientWidth)) return;
    width = Math.round(host.clientWidth);
    const named = curves.map((_, i) => i).filter((i) => stable[i]).slice(0, NAMES);
    right = named.length ? Math.min(width * 0.3, 16 + 7 * Math.max(...named.map((i) => Math.min(16, names[i].length)))) : 12;
    image.setAttribute("viewBox", `0 0 ${width} ${height}`);
    const frame = svg("g");
    for (const tick of [0, 0.25, 0.5, 0.75, 1]) frame.append(svg("line", { class: "rule", x1: left, x2: width - right, y1: y(tick), y2: y(tick) }), svg("text", { x: left - 7, y: y(tick) + 4, "text-anchor": "end" }, `${100 * tick} %`));
    frame.append(svg("line", { class: "axis", x1: left, x2: width - right, y1: bottom, y2: bottom }));
    for (const tick of logTicks(alphas[last], alphas[0], Math.max(3, width / 110))) {
      const at = left + (first - Math.log(tick)) / span * (width - left - right);
      frame.append(svg("line", { class: "axis", x1: at, x2: at, y1: bottom, y2: bottom + 4 }), svg("text", { x: at, y: bottom + 18, "text-anchor": "middle" }, tickText(tick)));
    }
    frame.append(svg("text", { x: (left + width - right) / 2, y: height - 4, "text-anchor": "middle" }, "strong penalty  ←  α  →  weak penalty"));
    lines = curves.map((curve, i) => svg("path", { class: stable[i] ? "curve in" : "curve", d: curve.map((share, k) => `${k ? "L" : "M"}${x(k).toFixed(1)} ${y(share).toFixed(1)}`).join("") }));
    frame.append(...lines.slice().reverse(), svg("line", { class: "limit", x1: left, x2: width - right, y1: y(threshold), y2: y(threshold) }));
    const places = named.map((i) => [i, y(curves[i][last])]).sort((a, b) => a[1] - b[1]);
    let lowest = -Infinity;
    for (const place of places) lowest = place[1] = Math.max(place[1], lowest + 14);
    for (const [i, at] of places) frame.append(svg("text", { class: "label", x: width - right + 8, y: at + 4 }, cut(names[i], 16)));
    image.replaceChildren(frame);
  };
  image.addEventListener("pointermove", (event) => {
    const box = image.getBoundingClientRect(), at = (event.clientX - box.left) * width / box.width, up = (event.clientY - box.top) * height / box.height;
    let k = 0, best = -1, distance = 14;
    for (let i = 1; i <= last; i++) if (Math.abs(x(i) - at) < Math.abs(x(k) - at)) k = i;
    curves.forEach((curve, i) => { const off = Math.abs(y(curve[k]) - up); if (curve[k] > 0 && off < distance) { best = i; distance = off; } });
    lines.forEach((line, i) => line.classList.toggle("on", i === best));
    if (best < 0) hideTip();
    else showTip(event, `${names[best]}: in use in ${Math.round(100 * curves[best][k])} % of the halves at α = ${quantity(alphas[k])}`);
  });
  image.addEventListener("pointerleave", () => { lines.forEach((line) => line.classList.remove("on")); hideTip(); });
  draw();
  new ResizeObserver(draw).observe(host);
};

if (data.trust && data.trust.permutation) drawNull(byId("plot-null"), data.trust.permutation);
if (data.trust && data.trust.stability) {
  const { list, curves } = data.trust.stability;
  if (curves.length) drawStability(byId("plot-stability"), data.trust.stability);
  if (list.length) new PagedTable(byId("stable-table"), {
    caption: "Features by the share of the halves that selected them", noun: "feature", rows: () => [...list.keys()], text: (i) => list[i].name,
    size: 10, sorted: 1, down: true,
    columns: [
      { label: "Feature", sort: (i) => list[i].name, cell: (i) => html("th", { scope: "row" }, html("div", { class: "name", title: list[i].name }, cut(list[i].name, 32))) },
      { label: "In % of halves", number: true, down: true, sort: (i) => list[i].share, cell: (i) => cell(meter(list[i].share, `${Math.round(100 * list[i].share)} %`, list[i].stable ? "" : "idle"), "number") },
      { label: "Stable", down: true, sort: (i) => Number(list[i].stable), cell: (i) => html("td", {}, list[i].stable ? html("span", { class: "good" }, "yes") : "no") },
    ],
  });
}
