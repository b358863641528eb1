// --- the value of alpha that is looked at -------------------------------------------------------------------------

let now = chosen;
const followers = []; // called when it changes
const look = (k) => {
  now = Math.max(0, Math.min(nValues - 1, k));
  for (const follow of followers) follow(now);
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
    this.host.append(plotTools(this.host, this.name.textContent));
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
