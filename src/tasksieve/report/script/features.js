// --- features and their heat map ----------------------------------------------------------------------------------

const ROW = 28, LEAST = 3, MOST = 44;
let heatScale = 0;
for (let f = 0; f < data.nKept; f++) for (let t = 0; t < nTasks; t++) heatScale = Math.max(heatScale, Math.abs(relative(f, t, chosen)));
if (!heatScale && along) for (let f = 0; f < nFeatures; f++) for (let t = 0; t < nTasks; t++) heatScale = Math.max(heatScale, Math.abs(relative(f, t, nValues - 1)));
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
      const value = relative(f, t, now);
      if (value !== 0) used++;
      if (Math.abs(value) > Math.abs(relative(f, at, now))) at = t;
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

// what a row of the heat map shows, for those who do not see it
const heatWords = (f) => {
  const known = about(f);
  if (!known) return `${data.features[f]}: coefficients are stored for the chosen model only`;
  let low = 0, high = 0;
  for (let t = 0; t < nTasks; t++) { low = Math.min(low, coefficient(f, t, now)); high = Math.max(high, coefficient(f, t, now)); }
  return `${data.features[f]}: not zero in ${whole(known.used)} of ${count(nTasks, ROW_NOUN)}, from ${quantity(low)} to ${quantity(high)}, largest in ${data.tasks[known.at]}`;
};

// The coefficients of some features as one picture: a path for each level of colour, so that it stays small.
const heatPicture = (list, title) => {
  const most = 400, shown = list.slice(0, most), named = shown.length <= 100;
  const wide = Math.max(2, Math.min(28, 900 / nTasks)), high = named ? 18 : Math.max(1.5, 900 / shown.length);
  const names = named ? Math.min(220, 12 + 6.6 * Math.max(0, ...shown.map((f) => Math.min(32, data.features[f].length)))) : 10;
  const heads = wide >= 9 ? 10 + 6.6 * Math.min(24, Math.max(...data.tasks.map((name) => name.length))) : 14;
  const width = names + wide * nTasks + 10, height = heads + high * shown.length + 46;
  const image = svg("svg", { xmlns: "http://www.w3.org/2000/svg", viewBox: `0 0 ${width} ${height}`, width, height, "font-family": "sans-serif", "font-size": 11, fill: "#1a2230" },
    svg("title", {}, title), svg("rect", { x: 0, y: 0, width, height, fill: "#ffffff" }));
  const levels = new Map();
  shown.forEach((f, i) => {
    if (named) image.append(svg("text", { x: names - 6, y: heads + (i + 0.5) * high + 4, "text-anchor": "end" }, cut(data.features[f], 32)));
    for (let t = 0; t < nTasks; t++) {
      const value = relative(f, t, now);
      if (value === 0) continue;
      const key = `rgb(${dayHue(value).join(",")}) ${(Math.ceil(20 * opacity(value)) / 20).toFixed(2)}`;
      levels.set(key, `${levels.get(key) ?? ""}M${(names + t * wide).toFixed(1)} ${(heads + i * high).toFixed(1)}h${(wide > 6 ? wide - 1 : wide).toFixed(1)}v${(high > 6 ? high - 1 : high).toFixed(1)}h-${(wide > 6 ? wide - 1 : wide).toFixed(1)}z`);
    }
  });
  for (const [key, d] of levels) { const [fill, level] = key.split(" "); image.append(svg("path", { d, fill, "fill-opacity": level })); }
  if (wide >= 9) data.tasks.forEach((name, t) => image.append(svg("text", { transform: `translate(${names + (t + 0.5) * wide + 4} ${heads - 5}) rotate(-90)` }, cut(name, 24))));
  const base = heads + high * shown.length + 22, step = 6;
  for (let i = 0; i < 20; i++) { const value = (i / 19 * 2 - 1) * heatScale; image.append(svg("rect", { x: names + i * step, y: base, width: step, height: 10, fill: `rgb(${dayHue(value).join(",")})`, "fill-opacity": opacity(value).toFixed(2) })); }
  image.append(svg("text", { x: names, y: base + 21 }, quantity(-heatScale)), svg("text", { x: names + 120, y: base + 21, "text-anchor": "end" }, quantity(heatScale, true)));
  if (list.length > shown.length) image.append(svg("text", { x: names + 140, y: base + 9 }, `the first ${most} of ${whole(list.length)}`));
  return image;
};

let cellWidth = 0;
const heatCanvas = (f) => {
  const canvas = html("canvas", { role: "img", "aria-label": heatWords(f), width: 1, height: 1 }); // drawHeat gives it the room there is
  canvas.feature = f;
  canvas.addEventListener("pointermove", (event) => {
    const t = Math.max(0, Math.min(nTasks - 1, Math.floor((event.clientX - canvas.getBoundingClientRect().left) / cellWidth)));
    showTip(event, `${cut(data.features[f], 60)}, ${ROW_NOUN} ${cut(data.tasks[t], 60)}: ${coefficientWords(f, t, now)}`);
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
      const value = relative(canvas.feature, t, now);
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
      showTip(event, `Rank ${whole(i + 1)}, ${cut(data.features[mapOrder[i]], 60)}, ${ROW_NOUN} ${cut(data.tasks[t], 60)}: ${coefficientWords(mapOrder[i], t, now)}`);
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
    const name = `All features by ${ROW_NOUN}`;
    host.append(canvas, html("figcaption", {}), pictureTools(name, () => heatPicture(mapOrder, name)));
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
      const at = 4 * (row * width + Math.floor(t * width / nTasks)), value = relative(order[i], t, now);
      const level = Math.round(255 * opacity(value));
      if (level <= image.data[at + 3]) continue;
      image.data.set(hue(value), at);
      image.data[at + 3] = level;
    }
  }
  pen.putImageData(image, 0, 0);
  host.querySelector("figcaption").textContent = `All ${whole(order.length)} features at a glance, strongest at the top; one column per ${ROW_NOUN}. Click to go there in the table, or turn its pages.`;
};

const details = (f) => {
  const box = html("td", { colspan: featureColumns.length });
  if (path) {
    const first = Array.from({ length: nValues }, (_, k) => k).find((k) => present(f, k));
    box.append(html("p", {}, `Enters the model at α = ${quantity(path.alphas[first])}; strength ${quantity(strength(f, now))}${PER_DEVIATION} at α = ${quantity(path.alphas[now])}.`));
  }
  if (!hasCoefficients(now)) {
    box.append(html("p", {}, "The coefficient of each " + ROW_NOUN + " is stored for the chosen model only."));
    return html("tr", { class: "detail" }, box);
  }
  const order = [...data.tasks.keys()].map((t) => [t, relative(f, t, now)]).sort((a, b) => Math.abs(b[1]) - Math.abs(a[1]));
  const list = order.slice(0, 60), largest = Math.abs(order[0][1]) || 1;
  box.append(html("ul", {}, ...list.map(([t, value]) => {
    const share = 50 * Math.abs(value) / largest;
    const bar = html("i", { style: { width: `${share}%`, left: value < 0 ? `${50 - share}%` : "50%", background: `rgb(${hue(value).join(",")})` } });
    return html("li", {}, html("span", { title: data.tasks[t] }, cut(data.tasks[t], 26)), html("div", { class: "both", "aria-hidden": "true" }, bar), html("span", {}, coefficientWords(f, t, now)));
  })));
  if (order.length > list.length) box.append(html("p", { class: "explain" }, `The other ${count(order.length - list.length, ROW_NOUN)} have smaller coefficients${PER_DEVIATION}.`));
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
  { label: `Strength${PER_DEVIATION}`, number: true, down: true, class: "wrap", note: `Length of the vector of coefficients${PER_DEVIATION} over all ${ROW_NOUNS}`, sort: (f) => strength(f, now), cell: (f) => cell(meter(strength(f, now) / strongest, quantity(strength(f, now))), "number") },
];
if (data.stable) featureColumns.push({
  label: "Stable in % of halves", number: true, down: true, class: "wrap", note: "Share of the random halves of the data that selected the feature, too", sort: (f) => data.stable[f],
  cell: (f) => cell(data.stable[f] === null ? "–" : html("span", { class: data.stable[f] >= data.trust.stability.threshold - 1e-9 ? "good" : null }, `${Math.round(100 * data.stable[f])} %`), "number"),
});
const NEEDED = { 1: "yes", 2: "one of several", "-1": "no", 0: "undecided" };
const need = (f) => data.needs ? data.needs[f] : null;
const claims = (words) => words?.split(", ").map((claim) => claim.replaceAll(" ", "\u00a0")).join(", "); // lines end between them
const needed = (f) => now === chosen ? data.proven[f] : null; // known of the chosen model only
const neededWords = (f) => needed(f) === null ? null : need(f)?.words ?? NEEDED[needed(f)];
if (data.proven) featureColumns.push({
  label: "Needed by this optimum", down: true, class: "wrap", note: "Whether all coefficients with the smallest penalised loss use the feature, or none, and how much worse models without it are; not whether it matters", sort: (f) => needed(f) === null ? null : need(f) ? 2 + need(f).delta : needed(f), saved: neededWords,
  cell: (f) => needed(f) === null ? cell("–") : html("td", { title: need(f)?.note ?? null }, claims(neededWords(f))),
});
if (nTasks > 1) featureColumns.push({
  label: capital(ROW_NOUNS), number: true, down: true, class: "optional", note: `${capital(ROW_NOUNS)} in which the coefficient is not zero`, sort: (f) => (about(f) || { used: null }).used,
  cell: (f) => cell(about(f) ? whole(about(f).used) : "–", "number optional"),
});
featureColumns.push({
  label: nTasks > 1 ? "Largest" : "Coefficient", more: nTasks > 1 ? [`its ${ROW_NOUN}`, (f) => about(f) && data.tasks[about(f).at]] : null, class: nTasks > 1 ? "optional" : null, down: true, note: nTasks > 1 ? `The largest coefficient in size, and its ${ROW_NOUN}` : null, sort: (f) => about(f) && about(f).largest,
  cell: (f) => {
    const known = about(f);
    return html("td", { class: nTasks > 1 ? "optional name" : null, title: known && data.tasks[known.at] }, known ? `${quantity(known.largest, true)}${nTasks > 1 ? ` in ${cut(data.tasks[known.at], 14)}` : ""}` : "–");
  },
});
if (nTasks > 1) featureColumns.push({
  label: `Coefficient in each ${ROW_NOUN}`, class: "heat", more: data.tasks.map((name, t) => [`${ROW_NOUN} ${name}`, (f) => !hasCoefficients(now) ? null : measured(f, t) ? coefficient(f, t, now) : "not measured"]), cell: (f) => cell(heatCanvas(f), "heat"),
});

const features = new PagedTable(byId("feature-table"), {
  caption: `${data.selects ? "Selected features" : "Features"}, with their strength and the coefficient in each ${ROW_NOUN}`, noun: "feature", columns: featureColumns, rows: selectedNow,
  text: (f) => data.features[f], size: 25, sorted: 2, down: true, detail: details, after: (table) => { drawHeat(table); drawMap(); },
  empty: path ? "No feature is selected at this α." : "No feature is selected: the model is empty.",
});
if (nTasks > 1) {
  const name = `Coefficients by ${ROW_NOUN}`;
  features.saving.append(html("span", { class: "explain" }, "Heat map:"), ...pictureTools(name, () => heatPicture(features.found, name)).children);
}
followers.push(() => { rank(); features.show(); });
let seenWidth = features.scroll.clientWidth;
new ResizeObserver(() => {
  if (features.scroll.clientWidth === seenWidth) return;
  seenWidth = features.scroll.clientWidth;
  drawHeat(features);
}).observe(features.scroll);

if (heatScale && nTasks > 1) {
  const bar = html("canvas", { width: 240, height: 20, role: "img", "aria-label": `Colours of coefficients${PER_DEVIATION}: orange from ${quantity(-heatScale)}, none at 0, blue to ${quantity(heatScale, true)}`, style: { width: "120px", height: "10px" } });
  const pen = bar.getContext("2d");
  const paint = () => {
    pen.clearRect(0, 0, 240, 20);
    for (let i = 0; i < 240; i++) { pen.fillStyle = colour((i / 239 * 2 - 1) * heatScale); pen.fillRect(i, 0, 1, 20); }
  };
  paint();
  night.addEventListener("change", () => { paint(); mapOrder = null; features.show(); });
  byId("legend").append(html("span", {}, `coefficient${PER_DEVIATION}  ${quantity(-heatScale)}`), bar, html("span", {}, quantity(heatScale, true)));
  byId("legend").hidden = false;
}
