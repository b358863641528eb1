// --- a table with sorting, a filter and pages ---------------------------------------------------------------------

class PagedTable {
  // columns: {label, note, sort(row), saved(row), down, cell(row), more, class, number}; rows(): ids; text(row): what the filter reads
  constructor(host, { caption, noun, columns, rows, text, size, sorted, down, detail, after, empty = "Nothing." }) {
    Object.assign(this, { noun, columns, rows, text, size, sorted, down, detail, after, empty });
    this.page = 0;
    this.open = new Set();
    this.search = html("input", { type: "search", placeholder: "part of a name", oninput: () => { this.page = 0; this.show(); } });
    this.status = html("span", { class: "status", role: "status" });
    this.body = html("tbody");
    this.row = html("tr");
    this.heads = columns.map((column, c) => {
      const content = column.sort
        ? html("button", { type: "button", title: column.note, onclick: () => this.sortBy(c) }, column.label)
        : html("span", {}, column.label || "");
      return html("th", { scope: "col", class: [column.class, column.number && "number"].filter(Boolean).join(" ") || null }, content);
    });
    this.row.append(...this.heads);
    this.table = html("table", {}, html("caption", { class: "hidden" }, caption), html("thead", {}, this.row), this.body);
    this.scroll = html("div", { class: "scroll" }, this.table);
    const turn = (by) => () => { this.page += by; this.show(); };
    this.back = html("button", { type: "button", onclick: turn(-1) }, "Previous");
    this.next = html("button", { type: "button", onclick: turn(1) }, "Next");
    this.place = html("span");
    this.sizes = html("select", { onchange: () => { this.size = Number(this.sizes.value); this.page = 0; this.show(); } },
      ...PAGE_SIZES.map((n) => html("option", { value: n, selected: n === size }, String(n))));
    this.pager = html("div", { class: "pager" }, this.back, this.place, this.next, html("label", {}, "Rows per page ", this.sizes));
    this.tools = html("div", { class: "tools" }, html("label", {}, `Filter ${plural(noun)} `, this.search), this.status);
    this.saving = html("div", { class: "save screen" }, csvButton(caption.split(/[:,]/)[0], () => this.csvLines()));
    host.replaceChildren(this.tools, this.scroll, this.pager, this.saving);
    this.show();
  }

  // the rows found, all pages, in their order; a column may add others (more: pairs of a name and a value of the row)
  csvLines() {
    const more = (column) => !column.more ? [] : typeof column.more[0] === "string" ? [column.more] : column.more;
    const exported = this.columns.flatMap((column) => [...(column.sort ? [[column.label, column.saved ?? column.sort]] : []), ...more(column)]);
    return [exported.map(([name]) => name), ...this.found.map((row) => exported.map(([, value]) => value(row)))];
  }

  sortBy(c) {
    this.down = this.sorted === c ? !this.down : Boolean(this.columns[c].down);
    this.sorted = c;
    this.page = 0;
    this.show();
  }

  show() {
    const wanted = this.search.value.trim().toLowerCase();
    const all = this.rows();
    const keys = new Map(), key = this.columns[this.sorted].sort, sign = this.down ? -1 : 1;
    for (const row of all) keys.set(row, key(row));
    this.found = (wanted ? all.filter((row) => this.text(row).toLowerCase().includes(wanted)) : all.slice()).sort((a, b) => {
      const p = keys.get(a), q = keys.get(b);
      if (p === null || q === null) return (p === null) - (q === null) || a - b; // what is missing comes last
      const order = typeof p === "string" ? p.localeCompare(q, "en", { numeric: true }) : p - q;
      return sign * order || a - b;
    });
    const pages = Math.max(1, Math.ceil(this.found.length / this.size));
    this.page = Math.max(0, Math.min(pages - 1, this.page));
    const first = this.page * this.size, shown = this.found.slice(first, first + this.size);
    this.heads.forEach((head, c) => {
      if (c === this.sorted) head.setAttribute("aria-sort", this.down ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    });
    this.table.setAttribute("aria-rowcount", this.found.length);
    this.lines = [];
    this.body.replaceChildren();
    shown.forEach((row, i) => {
      const line = html("tr", { "aria-rowindex": first + i + 1 }, ...this.columns.map((column) => column.cell(row, this)));
      this.lines.push([row, line]);
      this.body.append(line);
      if (this.detail && this.open.has(row)) this.body.append(this.detail(row));
    });
    if (!shown.length) this.body.append(html("tr", {}, html("td", { colspan: this.columns.length }, all.length ? "Nothing matches." : this.empty)));
    this.status.textContent = wanted ? `${whole(this.found.length)} of ${count(all.length, this.noun)}` : count(all.length, this.noun);
    this.place.textContent = `Page ${whole(this.page + 1)} of ${whole(pages)}`;
    this.back.disabled = this.page === 0;
    this.next.disabled = this.page === pages - 1;
    this.pager.hidden = all.length <= PAGE_SIZES[0];
    this.tools.hidden = all.length <= 5;
    if (this.after) this.after(this);
  }

  toggle(row) {
    if (!this.open.delete(row)) this.open.add(row);
    this.show();
    const line = this.lines.find(([other]) => other === row);
    if (line) line[1].querySelector("button").focus();
  }
}

const cell = (content, kind) => html("td", { class: kind }, content);
const meter = (share, text, kind = "", spread = false) => html("div", { class: "meter" },
  html("div", { class: "track", "aria-hidden": "true" }, html("i", { class: kind || null, style: { width: `${(100 * Math.max(0, Math.min(1, share))).toFixed(1)}%` } })),
  html("span", { class: spread ? "amount spread" : "amount" }, text));
