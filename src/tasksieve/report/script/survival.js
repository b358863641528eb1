// --- thirds of risk: the share of rows without an event over time, observed and expected ---------------------------

if (data.risk) {
  const { tasks, marks, groups, note } = data.risk;
  const host = byId("plot-risk"), pick = byId("risk-pick"), ROW = 18, height = 300, top = 10, plotted = 250;
  const image = svg("svg", { role: "img", "aria-label": note });
  const name = html("span", {}, "");
  host.append(html("figcaption", {}, name), image, plotTools(host, "survival by thirds of risk", () => [
    ["task", "group", "time", "observed", "expected"],
    ...groups.flatMap((own, t) => own.flatMap((group) => group.times.map((time, k) => [tasks[t], group.name, time, group.observed[k], group.expected[k]]))),
  ]));
  const CLASSES = ["in", "", "on"]; // low, middle and high risk
  let shown = 0;
  const draw = () => {
    const width = Math.round(host.clientWidth);
    if (!width) return;
    const own = groups[shown], left = 106, right = 14, whole_height = plotted + 48 + ROW * (own.length + 1);
    const last = Math.max(marks[marks.length - 1], ...own.flatMap((group) => group.times));
    const x = (time) => left + time / (last || 1) * (width - left - right), y = (share) => plotted - share * (plotted - top);
    image.setAttribute("viewBox", `0 0 ${width} ${Math.max(height, whole_height)}`);
    const frame = svg("g");
    for (const tick of [0, 0.25, 0.5, 0.75, 1]) {
      frame.append(svg("line", { class: "rule", x1: left, x2: width - right, y1: y(tick), y2: y(tick) }),
        svg("text", { x: left - 7, y: y(tick) + 4, "text-anchor": "end" }, `${100 * tick} %`));
    }
    frame.append(svg("line", { class: "axis", x1: left, x2: width - right, y1: plotted, y2: plotted }));
    for (const mark of marks) {
      frame.append(svg("line", { class: "axis", x1: x(mark), x2: x(mark), y1: plotted, y2: plotted + 4 }),
        svg("text", { x: x(mark), y: plotted + 18, "text-anchor": "middle" }, tickText(mark)));
    }
    frame.append(svg("text", { x: (left + width - right) / 2, y: plotted + 36, "text-anchor": "middle" }, "time"),
      svg("text", { x: left - 20, y: plotted + 36, "text-anchor": "end" }, "at risk"));
    const steps = (group, values) => group.times.reduce((text, time, k) => values[k] === null ? text
      : `${text}H${x(time).toFixed(1)}V${y(values[k]).toFixed(1)}`, `M${x(0).toFixed(1)} ${y(1).toFixed(1)}`);
    own.forEach((group, g) => {
      const kind = `curve risk ${CLASSES[g]}`;
      frame.append(svg("path", { class: kind, d: steps(group, group.observed) }),
        svg("path", { class: `${kind} expected`, d: steps(group, group.expected) }));
      const line = plotted + 36 + ROW * (g + 1);
      frame.append(svg("text", { class: `group ${CLASSES[g]}`, x: left - 20, y: line, "text-anchor": "end" }, group.name));
      marks.forEach((mark, k) => frame.append(svg("text", { x: x(mark), y: line, "text-anchor": "middle" }, whole(group.atRisk[k]))));
    });
    name.textContent = `Share without an event${tasks.length > 1 ? `, ${tasks[shown]}` : ""}: `
      + own.map((group) => `${group.name} ${count(group.events, "event")} of ${whole(group.rows)}`).join("; ");
    image.replaceChildren(frame);
  };
  if (tasks.length > 1) {
    tasks.forEach((task, t) => pick.append(html("option", { value: t }, cut(task, 40))));
    pick.addEventListener("change", () => { shown = Number(pick.value); draw(); });
    byId("risk-label").hidden = false;
  }
  draw();
  new ResizeObserver(draw).observe(host);
}
