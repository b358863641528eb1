// Sums over the rows for every feature of a task: X'v, and standard deviations.
const unitGamma = (n) => n * 2 ** -53 / (1 - n * 2 ** -53);

// X'v with v in balls. Products and running sums are split without error (Dekker, Knuth) into a high part H and a rest that is
// summed in L. With g = gamma(3n + 16): the rests add up to at most (n + 4) u A, A the sum of |x||v|, and summing them loses at most g
// of that, so |H + L - X'v| <= g^2 A + sum |x| e. Both are in A when a row counts as |v| + e / g^2; 1.01 is for A's own rounding.
const productsWithRows = (task, d, v) => {
  const H = new Float64Array(d), L = new Float64Array(d), A = new Float64Array(d), X = task.X;
  const g = unitGamma(3 * task.n + 16), g2 = g * g;
  for (let i = 0, at = 0; i < task.n; i++, at += d) {
    const { h: vh, l: vl, e } = v[i];
    if (isZero(v[i])) continue;
    const cut = SPLITTER * vh, high = cut - (cut - vh), low = vh - high, counts = Math.abs(vh) + e / g2;
    for (let j = 0; j < d; j++) {
      const x = X[at + j], p = x * vh, t = SPLITTER * x, xh = t - (t - x), xl = x - xh;
      const lost = ((xh * high - p) + xh * low + xl * high) + xl * low;
      const before = H[j], s = before + p, k = s - before;
      H[j] = s;
      L[j] += ((before - (s - k)) + (p - k)) + (lost + x * vl);
      A[j] += Math.abs(x) * counts;
    }
  }
  return Array.from({ length: d }, (_, j) => {
    const sum = add(ball(H[j]), ball(L[j]));
    return ball(sum.h, sum.l, (sum.e + 1.01 * g2 * A[j] + task.n * TINY) * WIDE);
  });
};

// Standard deviations, weighted: about the mean with an intercept, else about 0; 1 where a column does not vary.
const deviations = (header, task, s) => {
  const d = header.n_features, X = task.X, rows = [];
  for (let i = 0; i < task.n; i++) if (!isZero(s[i])) rows.push(i);
  let total = ZERO;
  for (const i of rows) total = add(total, s[i]);
  return Array.from({ length: d }, (_, j) => {
    const first = rows.length && header.intercept ? X[rows[0] * d + j] : 0;
    if (rows.every((i) => X[i * d + j] === first)) return ONE;
    let sum = ZERO, squares = ZERO;
    for (const i of rows) {
      // about the first entry, so that columns far from 0 lose nothing
      const far = sub(ball(X[i * d + j]), ball(first)), weighted = mul(s[i], far);
      sum = add(sum, weighted);
      squares = add(squares, mul(weighted, far));
    }
    const variance = header.intercept ? sub(div(squares, total), mul(div(sum, total), div(sum, total))) : div(squares, total);
    return root(variance);
  });
};
