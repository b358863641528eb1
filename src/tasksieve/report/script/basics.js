// The numbers of one model, as they are packed.
const path = data.path;
const nTasks = data.tasks.length, nFeatures = data.features.length;
const nValues = path ? path.alphas.length : 1;
const PAGE_SIZES = [10, 25, 50, 100];
const CURVES = 80; // drawn in the path plot: more cannot be distinguished

const bytes = (text) => {
  const raw = atob(text), out = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) out[i] = raw.charCodeAt(i);
  return out.buffer;
};
const unpack = (part) => part && { scale: new Float32Array(bytes(part.scale)), values: new Int16Array(bytes(part.values)) };
const strengths = unpack(data.strengths); // features x values of alpha
const fixed = unpack(data.coefficients); // kept selected features x tasks
const along = unpack(data.pathCoefficients); // for each value, the rows of its features

const strength = (f, k) => strengths.values[f * nValues + k] * strengths.scale[f];
const present = (f, k) => strengths.values[f * nValues + k] !== 0;

// where, in `along`, the row of a feature at a value begins; -1 where the row is zero
const starts = along && new Array(nValues);
if (along) {
  let next = 0;
  for (let k = 0; k < nValues; k++) {
    starts[k] = new Int32Array(nFeatures).fill(-1);
    for (let f = 0; f < nFeatures; f++) if (present(f, k)) { starts[k][f] = next; next += nTasks; }
  }
}
const chosen = path ? path.chosen : 0;
const hasCoefficients = (k) => Boolean(along) || k === chosen;
const stored = (f, t, k) => {
  if (along) { const at = starts[k][f]; return at < 0 ? 0 : along.values[at + t] * along.scale[f]; }
  return f < data.nKept ? fixed.values[f * nTasks + t] * fixed.scale[f] : 0;
};
const rowScale = (t) => data.rowScales ? data.rowScales[t] : 1;
const coefficient = (f, t, k) => stored(f, t, k) * rowScale(t);
// of a fit that has standardised: deviations of features, in each task or on average
const scales = unpack(data.columnScales), oneScale = scales && scales.values.length === nFeatures;
const columnScale = (f, t) => scales ? scales.values[oneScale ? f : f * nTasks + t] * scales.scale[f] : 1;
// in units that can be compared between rows, and there between features: sizes and colours
const relative = (f, t, k) => stored(f, t, k) * columnScale(f, t);
const PER_DEVIATION = scales ? " per standard deviation" : "";
const measured = (f, t) => !data.absent || !data.absent[f].includes(t);
const coefficientWords = (f, t, k) => measured(f, t) ? quantity(coefficient(f, t, k), true) : "not measured";
const ROW_NOUN = data.rowNoun, ROW_NOUNS = plural(ROW_NOUN); // what the rows of coefficients are: tasks, or classes
