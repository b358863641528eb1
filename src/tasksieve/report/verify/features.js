// Sums over the rows for every feature of a task: X'v, sums of squares and standard deviations.
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

// Sums of squares, weighted: about the mean with an intercept, else about 0; and standard deviations, 1 where a column does not vary. Sums are taken about the
// first entry, x - first = f + r exactly (Knuth), so that columns far from 0 lose nothing. With a = |f| + |r|, v = s or s f in
// double-doubles, each term is split without error but for 2^-100 of its size, and the sums are those of `productsWithRows`.
const spreads = (header, task, s) => {
  const d = header.n_features, X = task.X, rows = [], first = new Float64Array(d), varies = new Uint8Array(d);
  for (let i = 0; i < task.n; i++) if (!isZero(s[i])) rows.push(i);
  let total = ZERO;
  for (const i of rows) total = add(total, s[i]);
  if (rows.length && header.intercept) first.set(X.subarray(rows[0] * d, (rows[0] + 1) * d));
  const sums = new Running(d, rows.length), squares = new Running(d, rows.length);
  for (const i of rows) {
    const weight = s[i];
    for (let j = 0, at = i * d; j < d; j++, at++) {
      const x = X[at], begin = first[j];
      if (x === begin) continue;
      varies[j] = 1;
      const f = x - begin, k = f - x, r = (x - (f - k)) + (-begin - k);
      // far = f + r; weighted = far s = a + b; its square a far = g + h
      const a = f * weight.h, b = productError(f, weight.h, a) + (f * weight.l + r * weight.h);
      const g = a * f, h = productError(a, f, g) + (a * r + b * f);
      sums.put(j, a, b, Math.abs(f) * weight.e);
      squares.put(j, g, h, f * f * weight.e);
    }
  }
  const spread = Array.from({ length: d }, (_, j) => {
    if (!varies[j]) return ZERO;
    if (!header.intercept) return squares.at(j);
    const sum = sums.at(j);
    return sub(squares.at(j), div(mul(sum, sum), total));
  });
  return { spread, sigma: spread.map((square, j) => varies[j] ? root(div(square, total)) : ONE) };
};

// Many sums of double-doubles at once, each term known up to 2^-98 of its size and a given error.
class Running {
  constructor(d, n) {
    [this.H, this.L, this.A, this.E] = Array.from({ length: 4 }, () => new Float64Array(d));
    this.n = n;
  }
  put(j, high, low, error) {
    const before = this.H[j], s = before + high, k = s - before;
    this.H[j] = s;
    this.L[j] += ((before - (s - k)) + (high - k)) + low;
    this.A[j] += Math.abs(high);
    this.E[j] += error;
  }
  at(j) {
    const g = unitGamma(3 * this.n + 16), sum = add(ball(this.H[j]), ball(this.L[j]));
    const wrong = 1.01 * ((g * g + 2 ** -98) * this.A[j] + this.E[j]) + this.n * TINY;
    return ball(sum.h, sum.l, (sum.e + wrong) * WIDE);
  }
}
