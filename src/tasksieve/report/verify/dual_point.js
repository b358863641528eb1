// The stored dual vector stands for its exact projection on what is orthogonal to the intercept and the free features.
const rowWeights = (header, task, t) => Array.from(task.weight, (weight, i) => {
  let own = header.task_weights ? mul(ball(weight), ball(header.task_weights[t])) : ball(weight);
  if (factorOf(header, t) !== 1) own = mul(own, ball(factorOf(header, t)));
  return header.class_weights ? mul(own, ball(header.class_weights[t][task.y[i]])) : own;
});
// Gauss's elimination in balls: an enclosure of the solution, or null where a pivot may be zero.
const solve = (matrix, right) => {
  const k = right.length, rows = matrix.map((row, i) => [...row, right[i]]);
  for (let c = 0; c < k; c++) {
    let best = c;
    for (let r = c + 1; r < k; r++) if (Math.abs(rows[r][c].h) > Math.abs(rows[best][c].h)) best = r;
    [rows[c], rows[best]] = [rows[best], rows[c]];
    if (!(Math.abs(rows[c][c].h) > 2 * rows[c][c].e)) return null;
    for (let r = c + 1; r < k; r++) {
      const share = div(rows[r][c], rows[c][c]);
      for (let m = c; m <= k; m++) rows[r][m] = sub(rows[r][m], mul(share, rows[c][m]));
    }
  }
  const found = Array(k);
  for (let c = k - 1; c >= 0; c--) {
    let rest = rows[c][k];
    for (let m = c + 1; m < k; m++) rest = sub(rest, mul(rows[c][m], found[m]));
    found[c] = div(rest, rows[c][c]);
  }
  return found;
};
// A column as whole numbers: times a power of two, which changes nothing here.
const wholeNumbers = (values) => {
  const view = new DataView(new ArrayBuffer(8));
  const parts = values.map((value) => {
    view.setFloat64(0, value);
    const bits = view.getBigUint64(0), exponent = Number((bits >> 52n) & 0x7ffn), fraction = bits & 0xfffffffffffffn;
    return [(exponent ? fraction | 0x10000000000000n : fraction) * (value < 0 ? -1n : 1n), exponent || 1];
  });
  const least = parts.reduce((low, [whole, exponent]) => whole === 0n ? low : Math.min(low, exponent), 2047);
  return parts.map(([whole, exponent]) => whole === 0n ? 0n : whole << BigInt(exponent - least));
};
// Free features none of which is a combination of the constant and those before it in this task: what is orthogonal to the others is orthogonal to them.
// Decided in whole numbers, by elimination without fractions (Bareiss 1968) on the matrix of products, where a pivot of 0 is a combination.
const independentOf = (header, task, s, free) => {
  if (!free.length) return free;
  const d = header.n_features, rows = [];
  for (let i = 0; i < task.n; i++) if (!isZero(s[i])) rows.push(i);
  const columns = free.map((j) => wholeNumbers(rows.map((i) => task.X[i * d + j])));
  if (header.intercept) columns.unshift(rows.map(() => 1n));
  const A = columns.map((a) => columns.map((b) => a.reduce((sum, one, i) => sum + one * b[i], 0n)));
  const kept = [];
  let before = 1n;
  for (let k = 0; k < A.length; k++) {
    const pivot = A[k][k];
    if (pivot === 0n) continue;
    if (!header.intercept || k > 0) kept.push(free[header.intercept ? k - 1 : k]);
    for (let i = k + 1; i < A.length; i++) {
      const head = A[i][k];
      for (let j = k; j < A.length; j++) A[i][j] = (A[i][j] * pivot - head * A[k][j]) / before;
    }
    before = pivot;
  }
  return kept;
};
// p of one task, projected: balls; zeros where that fails, which always are a dual point.
const projected = (cert, task, t, s, stored) => {
  const { header } = cert, d = header.n_features, n = task.n, loss = lossOf(header, t), zeros = () => Array(n).fill(ZERO);
  const p = Array.from({ length: n }, (_, i) => isZero(s[i]) ? ZERO : ball(stored[i] + 0));
  if (!p.every((one, i) => isZero(s[i]) || loss.starts(task.y[i], one.h))) return zeros();
  const free = independentOf(header, task, s, cert.u.flatMap((weight, j) => weight === 0 ? [j] : []));
  const width = free.length + (header.intercept ? 1 : 0);
  if (!width) return p;
  // with the constant among them, columns may be taken about their first entry: they span the same
  const z = (i, k) => k === free.length ? ONE : header.intercept ? sub(ball(task.X[i * d + free[k]]), ball(task.X[free[k]])) : ball(task.X[i * d + free[k]]);
  const H = Array.from({ length: width }, () => Array(width).fill(ZERO)), delta = Array(width).fill(ZERO);
  for (let i = 0; i < n; i++) {
    if (isZero(s[i])) continue;
    const sp = mul(s[i], p[i]), sh = mul(s[i], loss.room(ball(task.y[i]), p[i]));
    for (let a = 0; a < width; a++) {
      const za = z(i, a);
      delta[a] = add(delta[a], mul(za, sp));
      for (let b = 0; b <= a; b++) H[a][b] = H[b][a] = add(H[a][b], mul(mul(za, sh), z(i, b)));
    }
  }
  if (delta.every(isZero)) return p;
  const c = solve(H, delta);
  if (c === null) return zeros();
  const found = p.map((one, i) => {
    if (isZero(s[i])) return ZERO;
    let shift = ZERO;
    for (let k = 0; k < width; k++) shift = add(shift, mul(z(i, k), c[k]));
    return loss.moved(ball(task.y[i]), one, shift);
  });
  return found.includes(null) ? zeros() : found;
};
