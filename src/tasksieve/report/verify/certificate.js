// The certificate: what it claims, checked for form. What is not known might change the problem and is refused.
class CannotCheck extends Error {} // the browser does not know this kind of model; the command does
const demand = (holds, words) => { if (!holds) throw new Unreadable(`the certificate: ${words}`); };
const isNumber = (value, low = -Infinity) => typeof value === "number" && Number.isFinite(value) && value >= low;
const isCount = (value) => Number.isSafeInteger(value) && value >= 0;
const HEADER = {
  needed: ["format", "version", "tasks", "rows", "n_features", "shared", "offset", "digests", "unit", "intercept", "standardize", "positive", "loss", "penalty"],
  other: ["classes", "task_weights", "class_weights", "features", "table", "about", "patterns"],
};
const known = (object, names, what) => {
  demand(object !== null && typeof object === "object" && !Array.isArray(object), `${what} must be an object`);
  for (const name of Object.keys(object)) demand(names.includes(name), `${what} has “${name}”, which is not known`);
};
// labels are compared as words, whole numbers without a point
const labelKey = (label) => label === true ? "True" : label === false ? "False" : String(label);

const readCertificate = async (file) => {
  const entries = await zipEntries(file);
  demand(entries.has("header.json"), "header.json is missing");
  let header;
  try {
    header = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(await zipMember(file, entries.get("header.json"))));
  } catch (error) { throw new Unreadable(`the certificate's header cannot be read: ${error.message}`); }
  checkHeader(header);
  const arrays = {};
  for (const [name, entry] of entries) {
    if (name === "header.json") continue;
    demand(entry.method === 0 && name.endsWith(".npy"), `${name} is not known`);
    const array = readNpy(await zipMember(file, entry), name);
    demand((array.type === "f8" || array.type === "i8") && !array.fortran && array.values.every(Number.isFinite), `${name} must hold finite numbers`);
    arrays[name.slice(0, -4)] = array;
  }
  checkSupport(header, arrays);
  return { header, ...checkArrays(header, arrays) };
};

const checkHeader = (header) => {
  known(header, [...HEADER.needed, ...HEADER.other], "the header");
  demand(header.format === "tasksieve-certificate", "it does not say that it is one");
  demand(header.version === 1, `version ${header.version} is not known here`);
  for (const name of HEADER.needed) demand(name in header, `“${name}” is missing`);
  for (const name of ["shared", "offset", "standardize", "positive"]) demand(typeof header[name] === "boolean", `“${name}” must be true or false`);
  const { tasks, rows, n_features: d, digests } = header;
  demand(Array.isArray(tasks) && tasks.length > 0 && tasks.every((label) => ["string", "number", "boolean"].includes(typeof label)), "“tasks” must be labels");
  demand(new Set(tasks.map(labelKey)).size === tasks.length, "a task is named twice");
  demand(Array.isArray(rows) && rows.length === tasks.length && rows.every(isCount), "“rows” must be counts");
  demand(!header.shared || new Set(rows).size === 1, "tasks that share a matrix have the same rows");
  demand(isCount(d) && d > 0, "“n_features” must be a count");
  demand(isNumber(header.unit, 0) && header.unit > 0, "“unit” must be positive");
  known(digests, ["matrices", "labels"], "“digests”");
  for (const [name, n] of [["matrices", header.shared ? 1 : tasks.length], ["labels", tasks.length]]) {
    demand(Array.isArray(digests[name]) && digests[name].length === n && digests[name].every((word) => /^[0-9a-f]{64}$/i.test(word)), `digests.${name} must be ${n} SHA-256 digests`);
  }
  const { classes = null, task_weights: byTask = null, class_weights: byClass = null } = header;
  if (classes !== null) {
    demand(Array.isArray(classes) && classes.length > 0, "“classes” must be labels");
    if (ownClasses(classes)) demand(classes.length === tasks.length && classes.every((own) => own === null || (Array.isArray(own) && own.length > 0)), "“classes” must be lists, one a task");
  }
  demand(byTask === null || (Array.isArray(byTask) && byTask.length === tasks.length && byTask.every((w) => isNumber(w, 0))), "“task_weights” must be numbers");
  demand(byClass === null || (classes !== null && Array.isArray(byClass) && byClass.length === tasks.length
    && byClass.every((row, t) => Array.isArray(row) && row.length === classesOf(header, t).length && row.every((w) => isNumber(w, 0)))), "“class_weights” must be numbers");
  demand(header.loss && header.penalty && typeof header.loss === "object" && typeof header.penalty === "object", "loss or penalty is missing");
};
const ownClasses = (classes) => classes.some((own) => own === null || Array.isArray(own));
const classesOf = (header, t) => (header.classes ?? null) !== null && ownClasses(header.classes) ? header.classes[t] : header.classes ?? null;

// Losses that are sums over rows, one for all tasks or one for each; row penalties.
const PARAMETERS = { clipped: ["mu", "epsilon", "low", "high", "labels"], tweedie: ["power"], negative_binomial: ["size"], expectile: ["level"] };
const RANGES = { power: [1, 2], size: [0, Infinity], level: [0, 1] };
const NOT_ROWS = { cox: "Cox's partial likelihood", ordinal: "ordered classes", multinomial: "several classes", "square-root": "the square-root loss" };
const checkLoss = (header, t) => {
  const loss = lossesOf(header)[t], classes = classesOf(header, t);
  demand(loss !== null && typeof loss === "object" && typeof loss.name === "string", "a loss has no name");
  if (loss.name in NOT_ROWS) throw new CannotCheck(`this loss (${loss.name}: ${NOT_ROWS[loss.name]}) in the page`);
  demand(Object.hasOwn(rowLoss, loss.name), `the loss “${loss.name}” is not known`);
  known(loss, ["name", ...(PARAMETERS[loss.name] ?? [])], "“loss”");
  for (const name of PARAMETERS[loss.name] ?? []) {
    if (name in RANGES) demand(isNumber(loss[name]) && RANGES[name][0] < loss[name] && loss[name] < RANGES[name][1], `loss.${name} is out of range`);
  }
  if (loss.name === "clipped") {
    const plain = loss.labels === "numbers" && (loss.low ?? null) === null && (loss.high ?? null) === null && !(loss.epsilon ?? 0);
    if (!plain) throw new CannotCheck("this loss (bounded or with a margin)");
    demand(isNumber(loss.mu, 0) && loss.mu > 0 && loss.mu < 1e300, "loss.mu must be positive");
  }
  if (loss.name === "logistic") demand(classes !== null && classes.length <= 2, "the logistic loss has two classes");
  else demand(classes === null, "classes go with another loss");
  const unit = unitOf(header, t), factor = factorOf(header, t);
  demand(isNumber(unit, 0) && unit > 0 && isNumber(factor, 0) && factor > 0, "weights and scales of losses must be positive");
  demand(unit === 1 || rowLoss[loss.name](loss).residual, `the labels of the loss “${loss.name}” have no scale`);
};
const checkSupport = (header, arrays) => {
  const { loss, penalty, tasks } = header;
  if (loss.name === "mixed") {
    known(loss, ["name", "losses", "weights", "scales"], "“loss”");
    for (const list of [loss.losses, loss.weights, loss.scales ?? loss.weights]) demand(Array.isArray(list) && list.length === tasks.length, "a mixed loss has one for each task");
    demand((header.class_weights ?? null) === null, "unlike losses have no weights of classes");
    demand((header.classes ?? null) === null || ownClasses(header.classes), "“classes” must be lists, one a task");
  }
  tasks.forEach((_, t) => checkLoss(header, t));
  if (penalty.name !== "rows") throw new CannotCheck(`this penalty (${penalty.name})`);
  if ((header.patterns ?? null) !== null || "absent" in arrays) throw new CannotCheck("patterns of present columns");
  if ("edges" in arrays) throw new CannotCheck("a graph between the tasks");
  if (typeof header.intercept !== "boolean") throw new CannotCheck("a penalised intercept");
  known(penalty, ["name", "group", "l1"], "“penalty”");
  demand(isNumber(penalty.group ?? 1, 0) && isNumber(penalty.l1 ?? 0, 0), "penalty.group and penalty.l1 must be numbers >= 0");
};

const ARRAYS = ["alpha", "ridge", "objective", "dual_value", "gap", "intercept", "start", "feature", "output", "coef", "dual", "feature_weights", "l1", "open_start", "open", "sure_start", "sure",
  "need_value", "need_start", "need", "need_delta", "need_dual"];
const checkArrays = (header, arrays) => {
  for (const name of Object.keys(arrays)) demand(ARRAYS.includes(name), `the array “${name}” is not known here`);
  const d = header.n_features, Q = header.tasks.length, total = header.rows.reduce((a, b) => a + b, 0);
  const take = (name, ...shape) => {
    demand(name in arrays, `the array “${name}” is missing`);
    demand(arrays[name].shape.join() === shape.join(), `“${name}” has shape ${arrays[name].shape}, not ${shape}`);
    return arrays[name].values;
  };
  const one = (name, low) => {
    const [value] = take(name, 1);
    demand(value >= low, `“${name}” must be at least ${low}`);
    return value;
  };
  const list = (name) => {
    if (!(name in arrays) && !(`${name}_start` in arrays)) return null;
    const bounds = take(`${name}_start`, 2), found = take(name, bounds[1]);
    demand(bounds[0] === 0 && found.every((j) => isCount(j) && j < d), `“${name}” must list features`);
    return Array.from(found);
  };
  const n = arrays.coef ? arrays.coef.values.length : 0, start = take("start", 2);
  demand(start[0] === 0 && start[1] === n, "“start” does not fit “coef”");
  const coef = take("coef", n), feature = take("feature", n), output = take("output", n), seen = new Set();
  const outputs = Array.from({ length: Q }, () => []);
  for (let k = 0; k < n; k++) {
    demand(isCount(feature[k]) && feature[k] < d && isCount(output[k]) && output[k] < Q, "a coefficient of no feature or task");
    const place = feature[k] * Q + output[k];
    demand(!seen.has(place), "a coefficient is given twice");
    seen.add(place);
    outputs[output[k]].push([feature[k], coef[k]]);
  }
  const u = arrays.feature_weights ? take("feature_weights", d) : new Float64Array(d).fill(1);
  const l1 = arrays.l1 ? take("l1", d) : new Float64Array(d).fill(header.penalty.l1 ?? 0);
  demand(u.every((w) => w >= 0) && l1.every((w) => w >= 0), "weights must not be negative");
  demand(!header.positive || u.every((w) => w > 0), "free features are not combined with “positive”");
  const needs = [];
  if (["need_value", "need_start", "need", "need_delta", "need_dual"].some((name) => name in arrays)) {
    const count = "need_value" in arrays ? arrays.need_value.values.length : 0, bounds = take("need_start", count + 1);
    demand(take("need_value", count).every((k) => k === 0), "“need_value” names a value that is not there");
    const listed = take("need", bounds[count]), delta = take("need_delta", count), duals = take("need_dual", count, total);
    demand(bounds[0] === 0, "“need_start” must rise from 0");
    for (let k = 0; k < count; k++) {
      demand(bounds[k + 1] > bounds[k] && delta[k] > 0, "a claim of need is about no feature, or says nothing");
      const features = Array.from(listed.subarray(bounds[k], bounds[k + 1]));
      demand(features.every((j, i) => isCount(j) && j < d && (i === 0 || j > features[i - 1])), "“need” must list features");
      needs.push({ features, delta: delta[k], dual: duals.subarray(k * total, (k + 1) * total) });
    }
  }
  const b = take("intercept", 1, Q);
  demand(header.intercept || b.every((value) => value === 0), "intercepts without “intercept”");
  return {
    alpha: one("alpha", 0), ridge: one("ridge", 0), gap: one("gap", 0), objective: one("objective", -Infinity), dualValue: one("dual_value", -Infinity),
    intercept: b, outputs, dual: take("dual", 1, total), u: Array.from(u), l1, group: header.penalty.group ?? 1, open: list("open"), sure: list("sure"), needs,
  };
};
