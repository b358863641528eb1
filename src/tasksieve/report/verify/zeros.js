// Claim 4: features that are zero in every solution (those not listed as open), and in none (those listed as sure).
const MOST_PRODUCTS = 1e8; // of balls: about ten seconds

// With G the claimed gap, every dual optimum is within sqrt(2 N G k) of the scaled dual point, k the largest curvature of a row. A feature is zero where its row,
// moved by that times the norm of its column, stays strictly inside the dual ball.
const notProvedZero = (cert, { U, reach, scale, points }) => {
  const { header, open } = cert, d = header.n_features, Q = header.tasks.length, listed = new Set(open), wrong = [];
  if (listed.size === d) return wrong;
  const N = ball(header.unit), total = mul(ball(cert.gap), N);
  let steepest = 0;
  for (const { task, s, p, own } of points) for (let i = 0; i < task.n; i++) {
    if (!isZero(s[i])) steepest = Math.max(steepest, up(own.curvature(ball(task.y[i]), mul(ball(scale), p[i]), div(total, s[i]))));
  }
  const radius = up(root(mul(mul(ball(2), total), ball(steepest))));
  for (let j = 0; j < d; j++) {
    if (listed.has(j)) continue;
    if (cert.u[j] === 0 || cert.ridge > 0) { wrong.push(j); continue; }
    const bound = mul(mul(N, ball(cert.alpha)), ball(cert.u[j]));
    const group = Math.max(0, down(mul(bound, ball(cert.group)))), entry = Math.max(0, down(mul(bound, ball(cert.l1[j]))));
    const moved = outwards(radius * reach[j]), room = -outwards(moved - group);
    let zero = room > 0 && rowInside(U, j, d, Q, scale, room, entry);
    if (!zero) {
      zero = true;
      for (let q = 0; q < Q; q++) if (!(outwards(outwards(scale * U[q * d + j]) + moved) < entry)) zero = false;
    }
    if (!zero) wrong.push(j);
  }
  return wrong;
};

// With a ridge rho every solution is within sqrt(2 G / rho) of the coefficients. Without one, for the squared loss: within sqrt(2 mu N G / kappa) in a
// task where the matrix of products of the open and free features has no eigenvalue below kappa. null: more work than a page should do.
const notProvedNonzero = (cert, tasks, points, rowsOf) => {
  const { header } = cert, proved = new Set();
  if (cert.ridge > 0) {
    for (const j of cert.sure) {
      let squares = ZERO;
      for (const w of rowsOf.get(j) ?? []) squares = add(squares, mul(w, w));
      if (down(mul(ball(cert.ridge), squares)) > 2 * cert.gap) proved.add(j);
    }
  }
  const left = () => cert.sure.filter((j) => !proved.has(j));
  if (!left().length || !isSquared(header.loss) || cert.open === null) return left();
  const support = [...new Set([...cert.open, ...cert.u.flatMap((weight, j) => weight === 0 ? [j] : [])])].sort((a, b) => a - b);
  const within = new Set(support), k = support.length;
  if (!cert.outputs.every((row) => row.every(([j, w]) => w === 0 || within.has(j)))) return left();
  const work = tasks.reduce((sum, task) => sum + task.n * k * k + k * k * k, 0);
  if (work > MOST_PRODUCTS) return null;
  const far = up(mul(mul(ball(2 * cert.gap), ball(header.unit)), ball(header.loss.mu)));
  tasks.forEach((task, t) => {
    const bound = left().length ? leastEigenvalue(header, task, points[t].s, support) : null;
    if (bound === null) return;
    const place = new Map(support.map((j, a) => [j, a]));
    for (const [j, w] of cert.outputs[t]) {
      const scaled = div(ball(w), ball(bound.scales[place.get(j)]));
      if (down(mul(ball(bound.kappa), mul(scaled, scaled))) > far) proved.add(j);
    }
  });
  return left();
};

// A number that no eigenvalue of D X' diag(s) X D is below (the constant projected out), and the powers of two in D. A guess kappa from plain arithmetic
// is proved by elimination in balls: A - kappa I is positive definite if all its pivots are positive.
const leastEigenvalue = (header, task, s, support) => {
  const d = header.n_features, k = support.length, rows = [];
  for (let i = 0; i < task.n; i++) if (!isZero(s[i])) rows.push(i);
  if (k > rows.length) return null;
  const from = (j) => header.intercept ? ball(task.X[rows[0] * d + j]) : ZERO;
  const scales = support.map((j) => { // near the inverse norms: the bound is best where all columns have about the same
    let mass = 0, sum = 0, squares = 0;
    for (const i of rows) {
      const x = sub(ball(task.X[i * d + j]), from(j)).h;
      mass += s[i].h;
      sum += s[i].h * x;
      squares += s[i].h * x * x;
    }
    const norm = Math.sqrt(header.intercept ? squares - sum * sum / mass : squares);
    return norm > 0 ? 2 ** -(Math.floor(Math.log2(norm)) + 1) : 0;
  });
  if (!scales.every((scale) => scale > 1e-100 && scale < 1e100)) return null;
  let total = ZERO;
  const A = support.map((_, a) => Array(a + 1).fill(ZERO)), first = Array(k).fill(ZERO);
  for (const i of rows) {
    const x = support.map((j, a) => mul(sub(ball(task.X[i * d + j]), from(j)), ball(scales[a])));
    total = add(total, s[i]);
    for (let a = 0; a < k; a++) {
      const weighted = mul(s[i], x[a]);
      first[a] = add(first[a], weighted);
      for (let b = 0; b <= a; b++) A[a][b] = add(A[a][b], mul(weighted, x[b]));
    }
  }
  if (header.intercept) for (let a = 0; a < k; a++) for (let b = 0; b <= a; b++) A[a][b] = sub(A[a][b], div(mul(first[a], first[b]), total));
  let low = 0, high = Math.min(...A.map((row, a) => row[a].h));
  for (let step = 0; step < 60 && high - low > 1e-4 * high; step++) {
    const middle = (low + high) / 2;
    if (positiveDefinite(A, middle)) low = middle; else high = middle;
  }
  for (const kappa of [0.9999 * low, 0.95 * low]) if (kappa > 0 && provedDefinite(A, kappa)) return { kappa, scales };
  return null;
};
// both: elimination on the lower half of A - kappa I
const positiveDefinite = (A, kappa) => {
  const L = A.map((row, a) => Float64Array.from(row, (one, b) => one.h - (a === b ? kappa : 0)));
  for (let c = 0; c < L.length; c++) {
    if (!(L[c][c] > 0)) return false;
    for (let r = c + 1; r < L.length; r++) {
      const share = L[r][c] / L[c][c];
      for (let m = r; m < L.length; m++) L[m][r] -= share * L[m][c];
    }
  }
  return true;
};
const provedDefinite = (A, kappa) => {
  const L = A.map((row, a) => row.map((one, b) => a === b ? sub(one, ball(kappa)) : one));
  for (let c = 0; c < L.length; c++) {
    if (!(down(L[c][c]) > 0)) return false;
    for (let r = c + 1; r < L.length; r++) {
      if (isZero(L[r][c])) continue;
      const share = div(L[r][c], L[c][c]);
      for (let m = r; m < L.length; m++) L[m][r] = sub(L[m][r], mul(share, L[m][c]));
    }
  }
  return true;
};

// What is wrong with the lists, in words, and whether all of them were checked.
const brokenLists = (cert, tasks, numbers) => {
  const wrong = [], name = (found, what) => found.length
    && wrong.push(`${featureName(cert.header, found[0])}${found.length > 1 ? ` and ${found.length - 1} others are` : " is"} not proved to be ${what} in every solution`);
  if (cert.open !== null) name(notProvedZero(cert, numbers), "zero");
  const others = cert.sure === null ? [] : notProvedNonzero(cert, tasks, numbers.points, numbers.rowsOf);
  name(others ?? [], "non-zero");
  return { wrong, complete: others !== null };
};
