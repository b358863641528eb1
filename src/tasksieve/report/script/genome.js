// --- strengths along the genome: each selected variant where it lies ---------------------------------------------

if (data.genome) {
  const { chromosomes, chromosome, position } = data.genome;
  const host = byId("plot-genome"), height = 300, right = 12, bottom = height - 40;
  const gap = 0.004; // of the whole, between chromosomes
  const lengths = chromosomes.map(([, first, last]) => Math.max(1, last - first));
  const whole_length = lengths.reduce((sum, length) => sum + length, 0);
  const begins = [];
  chromosomes.forEach((_, c) => begins.push(c === 0 ? 0 : begins[c - 1] + lengths[c - 1] / whole_length + gap));
  const span = begins[begins.length - 1] + lengths[lengths.length - 1] / whole_length;
  const placed = [...chromosome.keys()].filter((f) => chromosome[f] >= 0);
  const share = (f) => (begins[chromosome[f]] + (position[f] - chromosomes[chromosome[f]][1]) / whole_length) / span;
  let top = 0;
  for (const f of placed) for (let k = 0; k < nValues; k++) top = Math.max(top, strength(f, k));
  const output = html("output", { "aria-live": "off" });
  const title = nTasks === 1 ? "Size of the coefficient of each variant" : `Strength of each variant over all ${ROW_NOUNS}`;
  const image = svg("svg", { role: "img", "aria-label": `${title}, by its place on the genome` });
  host.append(html("figcaption", {}, html("span", {}, title), output), image, plotTools(host, title));
  let width = 0, left = 40, spots = [];
  const stable = (f) => data.stable && data.trust && data.trust.stability && data.stable[f] >= data.trust.stability.threshold;

  const draw = (k) => {
    width = Math.round(host.clientWidth);
    if (!width) return;
    const ticks = linearTicks(0, top || 1, 5);
    left = 14 + 7 * Math.max(...ticks.map((tick) => tickText(tick).length));
    const x = (at) => left + at * (width - left - right), y = (value) => bottom - value / (top || 1) * (bottom - 24);
    image.setAttribute("viewBox", `0 0 ${width} ${height}`);
    const frame = svg("g");
    for (const tick of ticks) {
      frame.append(svg("line", { class: "rule", x1: left, x2: width - right, y1: y(tick), y2: y(tick) }),
        svg("text", { x: left - 7, y: y(tick) + 4, "text-anchor": "end" }, tickText(tick)));
    }
    let free = -Infinity;
    chromosomes.forEach(([name], c) => {
      const low = x(begins[c] / span), high = x((begins[c] + lengths[c] / whole_length) / span), middle = (low + high) / 2;
      if (c % 2 === 0) frame.append(svg("rect", { class: "stripe", x: low, y: 10, width: Math.max(1, high - low), height: bottom - 10 }));
      const half = 3.6 * name.length + 2;
      if (middle - half > free) { frame.append(svg("text", { x: middle, y: bottom + 18, "text-anchor": "middle" }, name)); free = middle + half; }
    });
    frame.append(svg("line", { class: "axis", x1: left, x2: width - right, y1: bottom, y2: bottom }),
      svg("text", { x: (left + width - right) / 2, y: height - 4, "text-anchor": "middle" }, "chromosome"));
    spots = placed.filter((f) => present(f, k)).map((f) => [f, x(share(f)), y(strength(f, k))]);
    for (const [f, at, up] of spots) {
      frame.append(svg("line", { class: "stem", x1: at, x2: at, y1: bottom, y2: up }),
        svg("circle", { class: stable(f) ? "mark" : "point", r: stable(f) ? 5 : 3.2, cx: at, cy: up }));
    }
    const named = spots.slice().sort((a, b) => a[2] - b[2]).slice(0, 12), taken = [];
    for (const [f, at, up] of named) { // the strongest have their name, where there is room
      const text = cut(data.features[f], 16), half = 3.5 * text.length, middle = Math.max(left + half, Math.min(width - right - half, at));
      if (taken.some(([m, h, v]) => Math.abs(m - middle) < h + half + 4 && Math.abs(v - up) < 14)) continue;
      taken.push([middle, half, up]);
      frame.append(svg("text", { class: "label", x: middle, y: up - 8, "text-anchor": "middle" }, text));
    }
    image.replaceChildren(frame);
    output.textContent = `${count(spots.length, "variant")}`;
  };
  image.addEventListener("pointermove", (event) => {
    const box = image.getBoundingClientRect();
    const px = (event.clientX - box.left) * width / box.width, py = (event.clientY - box.top) * height / box.height;
    let best = null, distance = 14;
    for (const spot of spots) {
      const off = Math.hypot(spot[1] - px, spot[2] - py);
      if (off < distance) { best = spot; distance = off; }
    }
    if (!best) { hideTip(); return; }
    const f = best[0];
    showTip(event, `${data.features[f]}, chromosome ${chromosomes[chromosome[f]][0]}, position ${whole(position[f])}: ${quantity(strength(f, now))}${PER_DEVIATION}`
      + (data.stable && data.stable[f] !== null ? `, selected on ${Math.round(100 * data.stable[f])} % of halves` : ""));
  });
  image.addEventListener("pointerleave", hideTip);
  followers.push(draw);
  new ResizeObserver(() => { if (Math.round(host.clientWidth) !== width) draw(now); }).observe(host);
}
