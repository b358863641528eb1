// The data of a table of text (CSV), by the recipe in the certificate's header; and of a file of arrays.
class Differs extends Error {} // the file is not the certificate's, or what it claims is not so
const differ = (words) => { throw new Differs(words); };
const NUMBER = /^\s*[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?\s*$/;
const wordNumber = (word, where) => {
  const value = NUMBER.test(word) ? Number(word) : NaN;
  if (!Number.isFinite(value)) differ(`${where()}: “${word}” is not a finite number`);
  return value;
};

// Calls row(cells) for each line: cells may be quoted, a quote inside is doubled.
const readCsv = async (file, separator, row, progress) => {
  const decoder = new TextDecoder("utf-8", { fatal: true }), between = separator.charCodeAt(0);
  const CHUNK = 1 << 22;
  let cells = [], cell = "", quoted = false, wasQuote = false, carriage = false, touched = false;
  const endCell = () => { cells.push(cell); cell = ""; wasQuote = false; };
  const endRow = () => {
    if (touched) { endCell(); row(cells); }
    cells = []; cell = ""; touched = false; wasQuote = false;
  };
  for (let at = 0; at < file.size || at === 0; at += CHUNK) {
    const last = at + CHUNK >= file.size;
    let text;
    try { text = decoder.decode(await file.slice(at, at + CHUNK).arrayBuffer(), { stream: !last }); } catch { differ("the file is not UTF-8 text"); }
    let from = 0; // of the plain run of characters that is not yet in `cell`
    const n = text.length;
    for (let k = 0; k < n; k++) {
      const code = text.charCodeAt(k);
      if (quoted) {
        if (code === 34) { cell += text.slice(from, k); from = k + 1; quoted = false; wasQuote = true; }
        continue;
      }
      if (code === 34 && (wasQuote || (cell === "" && from === k))) {
        if (wasQuote && from === k) cell += '"';
        quoted = true; wasQuote = false; carriage = false; touched = true; from = k + 1;
      } else if (code === between) {
        cell += text.slice(from, k); from = k + 1; touched = true; carriage = false; endCell();
      } else if (code === 10 || code === 13) {
        cell += text.slice(from, k); from = k + 1;
        if (!(code === 10 && carriage)) endRow();
        carriage = code === 13;
      } else { touched = true; wasQuote = false; carriage = false; }
    }
    cell += text.slice(from);
    progress(Math.min(file.size, at + CHUNK) / file.size);
    if (last) break;
  }
  if (quoted) differ("the file ends inside quotes");
  endRow();
};

// Rows task by task. With a shared matrix there is one part, whose rows have a label for each task.
const readTable = async (header, file, progress) => {
  const recipe = header.table;
  if (!recipe) throw new Unreadable("the certificate does not say how a table is read; choose a file of arrays (npz)");
  const { columns, separator, drop } = recipe, missing = new Set(recipe.missing), d = header.n_features;
  demand(Array.isArray(columns) && columns.length === d && typeof separator === "string" && separator.length === 1, "“table” does not say how a table is read");
  for (const one of columns) {
    known(one, ["source", "equals", "fill", "missing"], "table.columns");
    if (Array.isArray(one.fill)) demand(!header.shared && (recipe.task ?? null) !== null && one.fill.length === header.tasks.length && one.fill.every(Number.isFinite), "table.columns.fill must have a number for each task");
    demand(!("missing" in one) || (one.missing === true && Object.keys(one).length === 2), "“table” does not say how a table is read");
  }
  const targets = Array.isArray(recipe.target) ? recipe.target : [recipe.target];
  demand(targets.length === (header.shared ? header.tasks.length : 1), "table.target must name a column, or one a task");
  const room = header.shared ? [header.rows[0]] : header.rows;
  if (room.reduce((a, b) => a + b, 0) > file.size) differ("the file has fewer rows than the certificate");
  const parts = room.map((n) => ({ X: new Float64Array(n * d), y: [], weight: [], offset: [], n: 0 }));
  const plain = !recipe.missing.some((word) => NUMBER.test(word)); // then what is a number is not missing
  const tasks = taskPlaces(header), entries = new Float64Array(d);
  const numeric = columns.map((one) => !("equals" in one || "missing" in one));
  const byTask = columns.flatMap((one, j) => Array.isArray(one.fill) ? [j] : []);
  let names = null, place, line = 0;
  const column = (name) => {
    const found = names.reduce((all, other, k) => other === name ? [...all, k] : all, []);
    if (found.length !== 1) differ(`the file has ${found.length} columns “${name}”, one is needed`);
    return found[0];
  };
  await readCsv(file, separator, (cells) => {
    line++;
    if (names === null) {
      names = cells;
      const counts = new Map(), places = new Map();
      names.forEach((name, k) => { counts.set(name, (counts.get(name) ?? 0) + 1); places.set(name, k); });
      place = columns.map(({ source }) => {
        if (counts.get(source) !== 1) differ(`the file has ${counts.get(source) ?? 0} columns “${source}”, one is needed`);
        return places.get(source);
      });
      for (const key of ["task", "weight", "offset"]) place[key] = (recipe[key] ?? null) === null ? null : column(recipe[key]);
      place.targets = targets.map(column);
      return;
    }
    if (cells.length !== names.length) differ(`row ${line}: ${cells.length} cells, not ${names.length}`);
    const where = (name) => () => `row ${line}, column “${name}”`;
    let whole = ["task", "weight", "offset"].every((key) => place[key] === null || !missing.has(cells[place[key]]));
    for (let j = 0; j < d; j++) {
      const word = cells[place[j]], one = columns[j];
      if (plain && numeric[j] && NUMBER.test(word)) {
        const value = Number(word);
        if (!Number.isFinite(value)) differ(`${where(one.source)()}: “${word}” is not a finite number`);
        entries[j] = value + 0;
        continue;
      }
      if ("missing" in one) entries[j] = missing.has(word) ? 1 : 0;
      else if (missing.has(word)) {
        if (Array.isArray(one.fill)) entries[j] = NaN; // once the task of the row is known
        else if ("fill" in one) entries[j] = one.fill;
        else if ("equals" in one && missing.has(one.equals)) entries[j] = 0;
        else whole = false;
      } else if (!("equals" in one)) entries[j] = wordNumber(word, where(one.source)) + 0;
      else if (typeof one.equals === "string") entries[j] = word === one.equals ? 1 : 0;
      else entries[j] = wordNumber(word, where(one.source)) === one.equals ? 1 : 0;
    }
    if (!whole) {
      if (drop) return;
      differ(`row ${line}: a value is missing, and nothing fills it`);
    }
    const t = place.task === null || header.shared ? 0 : tasks(cells[place.task], `row ${line}`, true);
    for (const j of byTask) if (Number.isNaN(entries[j])) entries[j] = columns[j].fill[t];
    if (place.task === null && !header.shared && header.tasks.length > 1) differ("the certificate does not say which column is the task");
    const weight = place.weight === null ? 1 : wordNumber(cells[place.weight], where(recipe.weight));
    const offset = place.offset === null ? 0 : wordNumber(cells[place.offset], where(recipe.offset));
    const labels = place.targets.map((k, q) => missing.has(cells[k]) ? null
      : classesOf(header, header.shared ? q : t) ? classPlace(header, header.shared ? q : t, cells[k], true) : wordNumber(cells[k], where(targets[q])));
    if (header.shared && labels.length > 1 && labels.every((label) => label === null)) return; // no label at all
    addRow(header, parts[t], t, entries, labels, weight, offset);
  }, progress);
  return parts;
};

// Finds the task of a label; a word of a table is a number where all labels are.
const asNumberKey = (word) => NUMBER.test(word) ? labelKey(Number(word)) : word;
const taskPlaces = (header) => {
  const places = new Map(header.tasks.map((label, t) => [labelKey(label), t]));
  const numbers = header.tasks.every((label) => typeof label !== "string");
  return (label, where, text) => {
    const t = places.get(text && numbers ? asNumberKey(label) : labelKey(label));
    if (t === undefined) differ(`${where}: task “${label}” is not in the certificate`);
    return t;
  };
};
const classPlace = (header, t, label, text) => {
  const classes = classesOf(header, t);
  const key = text && classes.every((one) => typeof one !== "string") ? asNumberKey(label) : labelKey(label);
  const c = classes.findIndex((one) => labelKey(one) === key);
  if (c < 0) differ(`task “${header.tasks[t]}”: the class “${label}” is not in the certificate`);
  return c;
};
// Rows without a label, or of weight 0, are not there; with a shared matrix they are, with weight 0 and label 0.
const addRow = (header, part, t, entries, labels, weight, offset) => {
  if (!(Number.isFinite(weight) && weight >= 0)) differ(`task “${header.tasks[t]}”: a weight is not a number >= 0`);
  if (!header.shared && (labels[0] === null || weight === 0)) return;
  if ((part.n + 1) * entries.length > part.X.length) differ(`${header.shared ? "the file" : `task “${header.tasks[t]}”`} has more rows than the ${part.X.length / entries.length} of the certificate`);
  part.X.set(entries, part.n * entries.length);
  part.n++;
  for (const label of labels) {
    part.y.push(label ?? 0);
    part.weight.push(label === null ? 0 : weight);
    part.offset.push(offset);
  }
};

const readArrays = async (header, file, weighted) => {
  const entries = await zipEntries(file), arrays = {}, d = header.n_features;
  for (const name of ["X", "y", "task", "sample_weight", "offset"]) {
    if (entries.has(`${name}.npy`)) arrays[name] = readNpy(await zipMember(file, entries.get(`${name}.npy`)), name);
  }
  const { X, y, task, offset } = arrays, weight = weighted ? arrays.sample_weight : undefined;
  if (!X || !y) throw new Unreadable("the file must hold arrays X and y");
  if (X.shape.length !== 2) throw new Unreadable("X must be a matrix");
  const [n, width] = X.shape, T = header.tasks.length;
  if (width !== d) differ(`X has ${width} columns, the certificate has ${d} features`);
  if (header.offset && !offset) differ("the certificate is for a model with an offset: the file must hold an array offset");
  if (!header.shared && T > 1 && !task) differ(`the certificate has ${T} tasks: the file must hold an array task`);
  const across = header.shared ? T : 1;
  const perRow = (array, name, wide) => {
    if (array && array.values.length !== n * wide) differ(`${name} has ${array.values.length} entries, X has ${n} rows`);
    return array && ((i, q) => array.values[wide === 1 ? i : array.fortran ? q * n + i : i * wide + q]);
  };
  const labelOf = perRow(y, "y", across), weightOf = perRow(weight, "sample_weight", 1);
  const offsetOf = header.offset ? perRow(offset, "offset", 1) : undefined, taskOf = T > 1 && !header.shared ? perRow(task, "task", 1) : undefined;
  const places = taskPlaces(header), which = new Int32Array(n), entriesOfRow = new Float64Array(d);
  const room = header.shared ? [header.rows[0]] : header.rows;
  if (room.reduce((a, b) => a + b, 0) > n) differ(`X has ${n} rows, the certificate has more`);
  if (taskOf) for (let i = 0; i < n; i++) which[i] = places(taskOf(i, 0), `row ${i + 1}`, false);
  const parts = room.map((rows) => ({ X: new Float64Array(rows * d), y: [], weight: [], offset: [], n: 0 }));
  for (let i = 0; i < n; i++) {
    for (let j = 0; j < d; j++) {
      const value = Number(X.values[X.fortran ? j * n + i : i * d + j]) + 0;
      if (!Number.isFinite(value)) differ(`X, row ${i + 1}, column ${j + 1} is not a finite number`);
      entriesOfRow[j] = value;
    }
    const labels = Array.from({ length: across }, (_, q) => {
      const label = labelOf(i, q);
      if (Number.isNaN(label)) return null;
      if (classesOf(header, header.shared ? q : which[i])) return classPlace(header, header.shared ? q : which[i], label, false);
      if (!Number.isFinite(Number(label))) differ(`y, row ${i + 1} is not a finite number`);
      return Number(label);
    });
    addRow(header, parts[which[i]], which[i], entriesOfRow, labels, weightOf ? Number(weightOf(i, 0)) : 1, offsetOf ? Number(offsetOf(i, 0)) : 0);
  }
  return parts;
};
