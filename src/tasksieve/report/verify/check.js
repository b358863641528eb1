// The numbers: objective from above, dual value from below, and whether the claims hold.
const checkClaims = (cert, tasks, progress) => {
  const { header } = cert, d = header.n_features, Q = tasks.length;
  const N = ball(header.unit), alpha = ball(cert.alpha), ridge = ball(cert.ridge);
  let loss = ZERO, squares = ZERO, at = 0;
  const rowsOf = new Map(), U = new Float64Array(Q * d), points = [], reach = new Float64Array(d);
  const curved = cert.ridge > 0, products = [], coefficients = curved ? new Float64Array(Q * d) : null;
  const sizeOf = (m) => header.positive ? Math.max(0, up(m)) : size(m);
  tasks.forEach((task, q) => {
    progress(q / Q);
    const s = rowWeights(header, task, q), about = header.standardize || cert.open !== null ? spreads(header, task, s) : null;
    const sigma = header.standardize ? about.sigma : null;
    if (cert.open !== null) for (let j = 0; j < d; j++) {
      const norm = root(about.spread[j]);
      reach[j] = Math.max(reach[j], up(sigma ? div(norm, sigma[j]) : norm));
    }
    const p = projected(cert, task, q, s, cert.dual.subarray(at, at + task.n));
    at += task.n;
    const own = lossOf(header, q), unit = ball(unitOf(header, q));
    points.push({ task, s, p, own, sigma });
    for (let i = 0; i < task.n; i++) {
      if (isZero(s[i])) continue;
      if (own.labels && !own.labels(task.y[i])) differ(`task “${header.tasks[q]}”: the loss (${own.name}) has no label ${task.y[i]}`);
      let z = add(ball(cert.intercept[q]), ball(task.offset ? task.offset[i] : 0));
      for (const [j, w] of cert.outputs[q]) z = add(z, mul(ball(task.X[i * d + j]), ball(w)));
      // y - z may cancel: it is formed before it is divided by the unit
      const value = own.residual ? own.value(own.scaled(sub(ball(task.y[i]), z)), ZERO) : own.value(ball(task.y[i]), z);
      loss = add(loss, mul(s[i], value));
    }
    const m = productsWithRows(task, d, p.map((one, i) => mul(s[i], one)));
    for (let j = 0; j < d; j++) if (sigma) m[j] = div(m[j], sigma[j]);
    if (curved) products.push(m.slice());
    for (const [j, w] of cert.outputs[q]) {
      if (cert.u[j] === 0 || w === 0) continue;
      if (header.positive && w < 0) differ(`task “${header.tasks[q]}”, ${featureName(header, j)}: a negative coefficient, where none is allowed`);
      let scaled = sigma ? mul(sigma[j], ball(w)) : ball(w);
      if (unitOf(header, q) !== 1) scaled = div(scaled, unit);
      if (!rowsOf.has(j)) rowsOf.set(j, []);
      rowsOf.get(j).push(scaled);
      squares = add(squares, mul(scaled, scaled));
      if (curved) coefficients[q * d + j] = scaled.h;
      m[j] = sub(m[j], mul(mul(N, ridge), scaled));
    }
    for (let j = 0; j < d; j++) U[q * d + j] = sizeOf(m[j]);
  });
  let penalty = ZERO;
  for (const [j, row] of rowsOf) {
    let square = ZERO, sizes = ZERO;
    for (const w of row) {
      square = add(square, mul(w, w));
      sizes = add(sizes, w.h < 0 ? negative(w) : w);
    }
    penalty = add(penalty, mul(ball(cert.u[j]), add(mul(ball(cert.group), root(square)), mul(ball(cert.l1[j]), sizes))));
  }
  const half = mul(ball(0.5), mul(ridge, squares));
  const primal = add(add(div(loss, N), mul(alpha, penalty)), half);

  let found = dualOf(cert, points, U, half);
  if (curved && brokenClaims(cert, { primal, ...found }).length) {
    const other = leaningDual(cert, points, products, U, coefficients);
    if (down(other.dual) > down(found.dual)) found = other;
  }
  return { primal, ...found, U, reach, points, rowsOf };
};

// the largest scale up to `most` that keeps a row of these sizes in the dual ball
const rowScale = (cert, sizes, j, most) => {
  const { header } = cert, limit = mul(mul(ball(header.unit), ball(cert.alpha)), ball(cert.u[j])); // N alpha u_j
  const group = Math.max(0, down(mul(limit, ball(cert.group)))), entry = Math.max(0, down(mul(limit, ball(cert.l1[j]))));
  const inside = (c) => rowInside(sizes, j, header.n_features, header.tasks.length, c, group, entry);
  if (inside(most)) return most;
  let low = 0, high = most;
  for (let k = 0; k < 80; k++) {
    const middle = (low + high) / 2;
    if (inside(middle)) low = middle; else high = middle;
  }
  return low;
};
// the dual value of points whose rows of M - R V have these sizes; half: of the square of V
const dualOf = (cert, points, sizes, half) => {
  let scale = 1, tightest = -1;
  for (let j = 0; j < cert.header.n_features; j++) {
    if (cert.u[j] === 0) continue;
    const own = rowScale(cert, sizes, j, scale);
    if (own < scale) [scale, tightest] = [own, j];
  }
  const c = ball(scale);
  let gain = ZERO;
  for (const { task, s, p, own } of points) {
    for (let i = 0; i < task.n; i++) {
      if (isZero(s[i])) continue;
      const moved = mul(c, p[i]), cost = own.cost(own.scaled(ball(task.y[i])), moved);
      const shifted = task.offset ? add(cost, mul(moved, own.scaled(ball(task.offset[i])))) : cost;
      gain = sub(gain, mul(s[i], shifted));
    }
  }
  return { dual: sub(div(gain, ball(cert.header.unit)), mul(mul(c, c), half)), scale, tightest };
};
// Any matrix V may stand in the place of W in M - R V and in the square: the best has rows on the ball's boundary, or V = 0 inside of it. U: sizes of rows
// of M - R W, W from where to start.
const leaningDual = (cert, points, products, U, W) => {
  const { header } = cert, d = header.n_features, Q = header.tasks.length, N = ball(header.unit), ridge = ball(cert.ridge);
  const sizeOf = (m) => header.positive ? Math.max(0, up(m)) : size(m);
  const raw = new Float64Array(Q * d), strength = header.unit * cert.ridge, V = W.slice();
  for (let q = 0; q < Q; q++) for (let j = 0; j < d; j++) raw[q * d + j] = sizeOf(products[q][j]);
  for (let j = 0; j < d; j++) {
    if (cert.u[j] === 0) continue;
    const idle = rowScale(cert, raw, j, 1) === 1, share = idle ? 1 : rowScale(cert, U, j, 2);
    for (let at = j, q = 0; q < Q; q++, at += d) {
      const away = products[q][j].h - strength * V[at];
      V[at] = idle ? 0 : V[at] + (1 - share) * (header.positive ? Math.max(0, away) : away) / strength;
    }
  }
  const sizes = new Float64Array(Q * d);
  let squared = ZERO;
  for (let q = 0; q < Q; q++) for (let j = 0; j < d; j++) {
    const v = ball(V[q * d + j]);
    sizes[q * d + j] = sizeOf(sub(products[q][j], mul(mul(N, ridge), v)));
    squared = add(squared, mul(v, v));
  }
  return dualOf(cert, points, sizes, mul(ball(0.5), mul(ridge, squared)));
};
const featureName = (header, j) => header.features ? `feature “${header.features[j]}”` : `feature ${j + 1}`;

// || (c |m_j| - entry)_+ || <= group, every rounding against it
const rowInside = (U, j, d, Q, c, group, entry) => {
  let sum = 0;
  for (let q = 0; q < Q; q++) {
    const over = outwards(outwards(c * U[q * d + j]) - entry);
    if (Number.isNaN(over)) return false;
    if (over <= 0 || U[q * d + j] === 0) continue;
    if (group === 0) return false;
    const share = outwards(over / group);
    sum = outwards(sum + outwards(share * share));
  }
  return sum <= 1;
};

// What is wrong with the claims, in words; nothing if they are proved.
const brokenClaims = (cert, { primal, dual, scale, tightest }) => {
  const wrong = [], say = (x) => x.toPrecision(3);
  const at = tightest >= 0 && scale < 0.999 ? ` (${featureName(cert.header, tightest)} is outside the dual ball)` : "";
  const proved = up(sub(primal, dual));
  if (!Number.isFinite(proved)) return ["the numbers are too large or too small to be checked here"];
  const objective = ball(cert.objective);
  if (!(proved <= cert.gap)) wrong.push(`the certificate claims that no model is better by more than ${say(cert.gap)}; these data prove ${say(proved)}${at}`);
  if (!(cert.dualValue <= down(dual))) wrong.push(`the dual value is claimed to be ${cert.dualValue}; these data prove ${down(dual)}${at}`);
  if (!(up(sub(objective, dual)) <= cert.gap)) wrong.push(`the claimed objective ${cert.objective} is farther above the dual value than the gap`);
  if (!(up(sub(primal, objective)) <= cert.gap)) wrong.push(`the objective is ${up(primal)}, claimed is ${cert.objective}`);
  return wrong;
};
