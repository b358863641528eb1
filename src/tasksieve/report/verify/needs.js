// Claim 5: every model without some features is worse than the coefficients. A dual point whose constraints hold for all *other* features bounds the objective
// of every such model from below: rows of M of the features left out count as 0. null: more work than a page should do.
const brokenNeeds = (cert, { primal, points }, progress) => {
  const { header, needs } = cert, d = header.n_features, Q = header.tasks.length, wrong = [];
  const rows = header.rows.reduce((a, b) => a + b, 0);
  if (needs.length * rows * d > MOST_PRODUCTS) return null;
  needs.forEach(({ features, delta, dual }, k) => {
    progress(k / needs.length);
    let at = 0;
    const products = [], U = new Float64Array(Q * d);
    const moved = points.map(({ task, s, own, sigma }, q) => {
      const p = projected(cert, task, q, s, dual.subarray(at, at + task.n));
      at += task.n;
      const m = productsWithRows(task, d, p.map((one, i) => mul(s[i], one)));
      for (let j = 0; j < d; j++) if (sigma) m[j] = div(m[j], sigma[j]);
      for (const j of features) m[j] = ZERO;
      for (let j = 0; j < d; j++) U[q * d + j] = header.positive ? Math.max(0, up(m[j])) : size(m[j]);
      products.push(m);
      return { task, s, p, own };
    });
    let bound = down(dualOf(cert, moved, U, ZERO).dual);
    if (cert.ridge > 0) bound = Math.max(bound, down(leaningDual(cert, moved, products, U, new Float64Array(Q * d)).dual));
    if (!(up(add(ball(up(primal)), ball(delta))) <= bound)) {
      wrong.push(`that models without ${featureName(header, features[0])}${features.length > 1 ? ` and ${features.length - 1} others` : ""} are worse by ${delta.toPrecision(3)} is not proved`);
    }
  });
  return wrong;
};
