// What every page is made of: no library, plain SVG, canvas and DOM. All text enters a page as text nodes. The parts of the
// script are joined in the order of page.py, inside one function.
const data = JSON.parse(document.getElementById("data").textContent);
// orange and blue can be distinguished with every kind of colour vision; lighter ones in dark mode
const night = matchMedia("(prefers-color-scheme: dark)");
const dayHue = (value) => value < 0 ? [203, 88, 18] : [30, 104, 186];
const hue = (value) => night.matches ? (value < 0 ? [236, 130, 62] : [86, 158, 240]) : dayHue(value);
const byId = (id) => document.getElementById(id);

// --- numbers ------------------------------------------------------------------------------------------------------

const MINUS = "\u2212";
const RAISED = { "-": "⁻", 0: "⁰", 1: "¹", 2: "²", 3: "³", 4: "⁴", 5: "⁵", 6: "⁶", 7: "⁷", 8: "⁸", 9: "⁹" };
const power = (size, digits) => {
  const [factor, exponent] = size.toExponential(digits).split("e");
  const ten = "10" + [...String(Number(exponent))].map((sign) => RAISED[sign]).join("");
  return Number(factor) === 1 && digits === 0 ? ten : `${factor}\u00a0×\u00a0${ten}`;
};
// three significant digits, as a person would write them
const quantity = (value, sign = false) => {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  if (value === 0) return "0";
  const size = Math.abs(value), digits = Math.max(0, 2 - Math.floor(Math.log10(size)));
  const text = size >= 1e-4 && size < 1e5 ? size.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits }) : power(size, 2);
  return (value < 0 ? MINUS : sign ? "+" : "") + text;
};
// R², an accuracy: what is only rounding about zero is zero
const score = (value) => value !== null && Math.abs(value) < 1e-9 ? "0" : quantity(value);
const small = (value) => value === null ? "–" : value === 0 ? "0" : power(value, 1);
const whole = (value) => value.toLocaleString("en");
const plural = (noun) => noun + (noun.endsWith("s") ? "es" : "s");
const count = (n, noun) => `${whole(n)} ${n === 1 ? noun : plural(noun)}`;
const capital = (text) => text.slice(0, 1).toUpperCase() + text.slice(1);

// --- small helpers ------------------------------------------------------------------------------------------------

const make = (create) => (tag, attributes = {}, ...children) => {
  const node = create(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "style") Object.assign(node.style, value);
    else if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) node.setAttribute(name, value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
};
const html = make((tag) => document.createElement(tag));
const svg = make((tag) => document.createElementNS("http://www.w3.org/2000/svg", tag));
// long names often differ at their end only, so it is the middle that goes
const cut = (text, length) => text.length > length ? text.slice(0, Math.ceil(length / 2) - 1) + "…" + text.slice(-Math.floor(length / 2)) : text;

const tip = byId("tip");
const showTip = (event, text) => {
  tip.textContent = text;
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  tip.style.left = `${Math.max(4, Math.min(event.clientX + 14, innerWidth - box.width - 8))}px`;
  tip.style.top = `${event.clientY + 18 + box.height > innerHeight ? event.clientY - box.height - 10 : event.clientY + 18}px`;
};
const hideTip = () => { tip.hidden = true; };
