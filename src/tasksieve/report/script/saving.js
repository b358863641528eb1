// --- saving tables and pictures, copying text ---------------------------------------------------------------------

const saveBlob = (blob, name) => {
  const link = html("a", { href: URL.createObjectURL(blob), download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
};
const fileName = (name, ending) => `${name.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-+|-+$/g, "").slice(0, 60) || "tasksieve"}.${ending}`;

// A number as a number; text in quotes where it must be. Text that a spreadsheet would take for a formula gets an apostrophe.
const csvCell = (value) => {
  if (value === null || value === undefined || Number.isNaN(value)) return "";
  if (typeof value === "number") return String(Number(value.toPrecision(6)));
  const text = /^[=+\-@\t\r]/.test(value) && Number.isNaN(Number(value)) ? `'${value}` : String(value);
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
};
const csvText = (lines) => lines.map((line) => line.map(csvCell).join(",")).join("\r\n") + "\r\n";
const saveCsv = (name, lines) => saveBlob(new Blob(["\ufeff", csvText(lines)], { type: "text/csv" }), fileName(name, "csv"));

// What a cell of a table says, with numbers as a program reads them.
const LOWERED = Object.fromEntries(Object.entries(RAISED).map(([plain, raised]) => [raised, plain]));
const plainText = (text) => {
  const said = text.trim().replaceAll("\u00a0", " ");
  const number = said.replaceAll(MINUS, "-").replace(/^(-?[\d.]+) × 10([⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)$/, (_, factor, exponent) => `${factor}e${[...exponent].map((sign) => LOWERED[sign]).join("")}`);
  if (/^[+-]?\d{1,3}(,\d{3})+(\.\d+)?$/.test(number)) return number.replaceAll(",", "").replace(/^\+/, "");
  return /^[+-]?(\d+\.?\d*|\.\d+)(e-?\d+)?$/i.test(number) ? number.replace(/^\+/, "") : said;
};
const tableLines = (table) => [...table.rows].map((row) => [...row.cells].map((one) => plainText((one.querySelector("summary") ?? one).textContent)));

const saveButton = (words, label, act) => html("button", { type: "button", "aria-label": label, onclick: act }, words);
const csvButton = (name, lines) => saveButton("CSV", `Save ${name} as CSV`, () => saveCsv(name, lines()));

// Pictures: a copy with its styles written into it, on white, in dark mode too.
const STYLES = ["fill", "stroke", "stroke-width", "stroke-dasharray", "stroke-linejoin", "opacity", "font-size", "font-family", "font-weight", "text-anchor", "display"];
const onPaper = (image, title) => {
  const { width, height } = image.viewBox.baseVal;
  const room = html("div", { class: "paper", "aria-hidden": "true" }), copy = image.cloneNode(true);
  room.append(copy);
  document.body.append(room);
  const box = copy.getBBox(), x = Math.min(0, box.x) - 6, y = Math.min(0, box.y) - 6;
  const wide = Math.max(width, box.x + box.width) + 6 - x, high = Math.max(height, box.y + box.height) + 6 - y;
  for (const node of copy.querySelectorAll("*")) {
    const style = getComputedStyle(node);
    for (const name of STYLES) if (style[name] && !(name === "display" && style[name] === "inline")) node.setAttribute(name, style.getPropertyValue(name));
    node.removeAttribute("class");
    node.removeAttribute("style");
  }
  room.remove();
  copy.removeAttribute("class");
  copy.removeAttribute("style");
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copy.setAttribute("viewBox", `${x} ${y} ${wide} ${high}`);
  copy.setAttribute("width", wide);
  copy.setAttribute("height", high);
  copy.prepend(svg("title", {}, title), svg("rect", { x, y, width: wide, height: high, fill: "#ffffff" }));
  return copy;
};
const svgText = (image) => new XMLSerializer().serializeToString(image);
const saveSvg = (name, image) => saveBlob(new Blob([svgText(image)], { type: "image/svg+xml" }), fileName(name, "svg"));
const savePng = (name, image) => {
  const scale = 2, picture = new Image(), canvas = html("canvas");
  canvas.width = scale * image.getAttribute("width");
  canvas.height = scale * image.getAttribute("height");
  picture.onload = () => {
    const pen = canvas.getContext("2d");
    pen.drawImage(picture, 0, 0, canvas.width, canvas.height);
    canvas.toBlob((blob) => saveBlob(blob, fileName(name, "png")), "image/png");
  };
  picture.setAttribute("src", `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svgText(image))}`);
};
// `picture()` is an SVG ready for paper; `lines()`, where there are some, its numbers
const pictureTools = (name, picture, lines = null) => html("div", { class: "save screen", role: "group", "aria-label": `Save: ${name}` },
  saveButton("SVG", `Save ${name} as SVG`, () => saveSvg(name, picture())), saveButton("PNG", `Save ${name} as PNG`, () => savePng(name, picture())),
  lines && csvButton(name, lines));
const plotTools = (host, name, lines = null) => pictureTools(name, () => onPaper(host.querySelector("svg"), name), lines);

// To the clipboard; pages from a file may not reach it, and then the text is selected.
const copyFrom = async (node, said) => {
  try { await navigator.clipboard.writeText(node.innerText); said.textContent = "Copied."; } catch {
    const range = document.createRange(), chosenText = getSelection();
    range.selectNodeContents(node);
    chosenText.removeAllRanges();
    chosenText.addRange(range);
    said.textContent = document.execCommand("copy") ? "Copied." : "Selected: press Ctrl+C.";
  }
};
for (const host of document.querySelectorAll("[data-copy]")) {
  const node = byId(host.dataset.copy), said = html("span", { role: "status" });
  const title = host.parentElement.querySelector("h2, h3").textContent;
  host.append(said, html("button", { type: "button", "aria-label": `Copy: ${title}`, onclick: () => copyFrom(node, said) }, "Copy"));
}
for (const table of document.querySelectorAll("table[data-save]")) {
  table.parentElement.after(html("div", { class: "save screen" }, csvButton(table.dataset.save, () => tableLines(table))));
}
