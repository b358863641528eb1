// --- axes ---------------------------------------------------------------------------------------------------------

const niceStep = (span, parts) => {
  const raw = span / parts, power = 10 ** Math.floor(Math.log10(raw));
  return [1, 2, 5, 10].find((m) => m * power >= raw * 0.7) * power;
};
const linearTicks = (low, high, parts) => {
  if (!(high > low)) return [low];
  const step = niceStep(high - low, parts), out = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + 1e-9 * step; i++) out.push(i * step);
  return out;
};
const logTicks = (low, high, most) => {
  const from = Math.floor(Math.log10(low)), to = Math.ceil(Math.log10(high));
  const tries = [[1, 2, 5], [1, 3], [1]].map((digits) => {
    const out = [];
    for (let e = from; e <= to; e++) for (const d of digits) {
      const value = d * 10 ** e;
      if (value >= low * 0.999 && value <= high * 1.001) out.push(value);
    }
    return out;
  });
  let found = tries.find((ticks) => ticks.length <= most);
  if (!found) { const every = Math.ceil(tries[2].length / most); found = tries[2].filter((_, i) => i % every === 0); }
  return found.length > 1 ? found : [low, high].map((value) => Number(value.toPrecision(3)));
};
const tickText = (value) => {
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e6)) return (value < 0 ? MINUS : "") + power(size, 0);
  return (value < 0 ? MINUS : "") + Number(size.toPrecision(6)).toLocaleString("en", { maximumFractionDigits: 6 });
};
