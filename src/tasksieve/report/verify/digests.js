// The data in the certificate's form, and whether their digests are the certificate's.
const PIECE = 1 << 22;
const digestOf = (values, progress = () => {}) => {
  const bytes = new Uint8Array(values.buffer, values.byteOffset, values.byteLength), hash = new Sha256();
  for (let at = 0; at < bytes.length; at += PIECE) {
    hash.update(bytes.subarray(at, at + PIECE));
    progress(Math.min(1, (at + PIECE) / bytes.length));
  }
  return hash.hex();
};
// One task: a matrix (perhaps shared), and y, weight, offset of its rows.
const byTask = (header, parts) => header.tasks.map((_, t) => {
  const part = parts[header.shared ? 0 : t], T = header.shared ? header.tasks.length : 1, q = header.shared ? t : 0;
  const pick = (values) => Float64Array.from({ length: part.n }, (_, i) => values[i * T + q] + 0);
  return { X: part.X, n: part.n, y: pick(part.y), weight: pick(part.weight), offset: header.offset ? pick(part.offset) : null };
});
const whatDiffers = (header, tasks, progress) => {
  const wrong = [];
  tasks.forEach((task, t) => {
    const named = `task “${header.tasks[t]}”`;
    if (task.n !== header.rows[t]) {
      wrong.push(`${header.shared ? "the file" : named} has ${task.n} rows, the certificate has ${header.rows[t]}`);
      return;
    }
    if (!header.shared || t === 0) {
      const found = digestOf(task.X, (share) => progress((t + share) / tasks.length));
      if (found !== header.digests.matrices[t].toLowerCase()) wrong.push(`${header.shared ? "the" : `${named}: the`} features (X) are not those of the certificate: a value, the order of the rows or that of the columns differs`);
    }
    const wide = task.offset ? 3 : 2, labels = new Float64Array(task.n * wide);
    for (let i = 0; i < task.n; i++) {
      labels[i * wide] = task.y[i];
      labels[i * wide + 1] = task.weight[i];
      if (task.offset) labels[i * wide + 2] = task.offset[i];
    }
    if (digestOf(labels) !== header.digests.labels[t].toLowerCase()) wrong.push(`${named}: labels, weights${task.offset ? ", offsets" : ""} are not those of the certificate`);
  });
  return wrong;
};
