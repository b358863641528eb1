// Losses that are sums over rows: f of a label y and a score z (in balls), and what a dual point p = -f' costs. Each has
//   starts(y, p)      whether the stored number is in the domain
//   room(y, p)        h of the projection p - h x
//   moved(y, p, x)    p - h x, or null where it may leave the domain
//   cost(y, p)        f*(-p) from above
//   curvature(y, p, g)  k: f* is strongly convex by 1/k from the dual point p to every dual optimum, whose value is at most s g higher
// A loss of y - z is told y in the unit of its task, `residual`; others have the unit 1.
const lossesOf = (header) => header.tasks.map((_, t) => header.loss.name === "mixed" ? header.loss.losses[t] : header.loss);
const factorOf = (header, t) => header.loss.name === "mixed" ? header.loss.weights[t] : 1;
const unitOf = (header, t) => header.loss.name === "mixed" ? (header.loss.scales ?? [])[t] ?? 1 : 1;
const isSquared = (loss) => loss.name === "clipped";
const square = (x) => mul(x, x);
const twice = (x) => add(x, x);
// x log x from above, of a number that is known not to be negative
const xLogX = (x) => down(x) > 1e-240 ? mul(x, logarithm(x)) : up(x) < 1 ? ZERO : UNKNOWN;
const entropies = (pi) => add(entropyAbove(pi), entropyAbove(sub(ONE, pi)));
const notNegative = (x) => down(x) >= 0;
// The k of means: by KL(m || m*) >= (m - m*)^2 / (2 k), k = m/3 + 2 m*/3, and that divergence is at most g
const meanCurvature = (m, g) => {
  const third = div(ball(2), ball(3)), part = mul(third, g);
  return add(m, mul(third, add(part, root(add(square(part), mul(ball(3), mul(part, m)))))));
};
const smallerOf = (a, b) => up(a) <= up(b) ? a : b;
const anything = { starts: () => true, room: () => ONE, moved: (_, p, x) => sub(p, x) };

const rowLoss = {
  clipped: ({ mu }) => ({
    ...anything, residual: true,
    value: (y, z) => div(square(sub(y, z)), ball(2 * mu)),
    cost: (y, p) => sub(mul(mul(ball(0.5), ball(mu)), square(p)), mul(p, y)),
    curvature: () => div(ONE, ball(mu)),
  }),
  expectile: ({ level }) => ({
    ...anything, residual: true,
    value: (y, z) => {
      const r = sub(y, z), above = ball(level), below = sub(ONE, ball(level));
      const weight = notNegative(r) ? above : up(r) <= 0 ? below : level < 0.5 ? below : above; // of what may have either sign the larger one
      return mul(ball(0.5), mul(weight, square(r)));
    },
    cost: (y, p) => {
      const above = ball(level), below = sub(ONE, ball(level));
      const weight = notNegative(p) ? above : up(p) <= 0 ? below : level < 0.5 ? above : below;
      return sub(div(square(p), twice(weight)), mul(p, y));
    },
    curvature: () => level < 0.5 ? sub(ONE, ball(level)) : ball(level),
  }),
  log_cosh: () => ({
    residual: true,
    starts: (_, p) => Math.abs(p) <= 1,
    room: (_, p) => mul(sub(ONE, p), add(ONE, p)),
    // 1 + p' = (1 + p) (1 - (1 - p) x) and 1 - p' = (1 - p) (1 + (1 + p) x)
    moved: (_, p, x) => {
      const less = sub(ONE, p), more = add(ONE, p);
      const inside = (p.h === -1 || notNegative(sub(ONE, mul(less, x)))) && (p.h === 1 || notNegative(add(ONE, mul(more, x))));
      return inside ? sub(p, mul(mul(less, more), x)) : null;
    },
    value: (y, z) => { const r = sub(y, z); return sub(add(r, logisticLoss(twice(r))), LN2); },
    cost: (y, p) => sub(add(entropies(mul(ball(0.5), add(ONE, p))), LN2), mul(p, y)),
    curvature: () => ONE,
  }),
  logistic: () => { // labels are places of classes, 0 and 1
    const sign = (y) => 2 * y.h - 1, pi = (y, p) => mul(ball(sign(y)), p);
    return {
      starts: (y, p) => p * (2 * y - 1) >= 0 && p * (2 * y - 1) <= 1,
      room: (y, p) => mul(pi(y, p), sub(ONE, pi(y, p))),
      // pi' = pi (1 - (1 - pi) y x) and 1 - pi' = (1 - pi) (1 + pi y x)
      moved: (y, p, x) => {
        const own = pi(y, p), way = mul(ball(sign(y)), x), keep = sub(ONE, mul(sub(ONE, own), way));
        if (isZero(own) || own.h === 1) return p;
        return notNegative(keep) && notNegative(add(ONE, mul(own, way))) ? mul(p, keep) : null;
      },
      value: (y, z) => logisticLoss(mul(ball(sign(y)), z)),
      cost: (y, p) => entropies(pi(y, p)),
      curvature: () => ball(0.25),
    };
  },
  poisson: () => ({ // m = y - p
    starts: (y, p) => p <= y,
    room: (y, p) => sub(y, p),
    moved: (y, p, x) => p.h === y.h ? p : notNegative(add(ONE, x)) ? sub(p, mul(sub(y, p), x)) : null,
    value: (y, z) => sub(exponential(z), mul(y, z)),
    cost: (y, p) => { const m = sub(y, p); return sub(xLogX(m), m); },
    curvature: (y, p, g) => meanCurvature(sub(y, p), g),
    labels: (y) => y >= 0,
  }),
  gamma: () => ({ // m = 1 + p
    starts: (_, p) => p >= -1,
    room: (_, p) => add(ONE, p),
    moved: (_, p, x) => p.h === -1 ? p : notNegative(sub(ONE, x)) ? sub(p, mul(add(ONE, p), x)) : null,
    value: (y, z) => add(mul(y, exponential(negative(z))), z),
    cost: (y, p) => { const m = add(ONE, p); return sub(sub(xLogX(m), m), mul(m, logarithm(y))); },
    curvature: (_, p, g) => meanCurvature(add(ONE, p), g),
    labels: (y) => y > 0,
  }),
  negative_binomial: ({ size: given }) => { // m = y - p, between 0 and y + size
    const count = ball(given), log = logarithm(count);
    return {
      starts: (y, p) => p <= y && p >= -given,
      room: (y, p) => mul(sub(y, p), add(count, p)),
      moved: (y, p, x) => {
        const m = sub(y, p), rest = add(count, p);
        const inside = (p.h === y.h || notNegative(add(ONE, mul(rest, x)))) && (p.h === -given || notNegative(sub(ONE, mul(m, x))));
        return inside ? sub(p, mul(mul(m, rest), x)) : null;
      },
      value: (y, z) => sub(mul(add(y, count), logisticLoss(sub(log, z))), mul(y, z)),
      cost: (y, p) => {
        const m = sub(y, p), mass = add(y, count);
        return add(mul(mass, add(entropyAbove(div(m, mass)), entropyAbove(div(add(count, p), mass)))), mul(m, log));
      },
      curvature: (y, p, g) => smallerOf(meanCurvature(sub(y, p), g), mul(ball(0.25), add(y, count))),
      labels: (y) => y >= 0,
    };
  },
  tweedie: ({ power }) => { // p = a - b, a = y e^(-k z), b = e^(l z); k and l are exact
    const k = ball(power - 1), l = ball(2 - power);
    const smaller = (y, p) => { // about the smaller one of the best a and b: any will do
      let low = -1e4, high = 1e4;
      for (let n = 0; n < 120; n++) {
        const z = (low + high) / 2;
        if (y * Math.exp(-k.h * z) - Math.exp(l.h * z) > p) low = z; else high = z;
      }
      const found = p >= 0 ? Math.exp(l.h * high) : y * Math.exp(-k.h * high);
      return Number.isFinite(found) ? found : 0;
    };
    const parts = (y, p) => { // about the best a and b, of a label > 0
      const less = ball(smaller(y.h, p.h));
      return p.h >= 0 ? { a: add(less, p), b: less } : { a: less, b: sub(less, p) };
    };
    return {
      starts: (y, p) => y > 0 || p <= 0,
      room: (y, p) => y.h > 0 ? add(ONE, p.h < 0 ? negative(p) : p) : negative(p),
      moved: (y, p, x) => {
        if (y.h > 0) return sub(p, mul(add(ONE, p.h < 0 ? negative(p) : p), x));
        return isZero(p) ? p : notNegative(add(ONE, x)) ? mul(p, add(ONE, x)) : null;
      },
      value: (y, z) => {
        const mean = div(exponential(mul(l, z)), l);
        return y.h > 0 ? add(mean, div(mul(y, exponential(negative(mul(k, z)))), k)) : mean;
      },
      cost: (y, p) => {
        if (!(y.h > 0)) { const b = negative(p); return div(sub(xLogX(b), b), l); }
        const { a, b } = parts(y, p);
        if (!(notNegative(a) && notNegative(b))) return UNKNOWN;
        return add(div(sub(sub(xLogX(a), a), mul(a, logarithm(y))), k), div(sub(xLogX(b), b), l));
      },
      // both parts are means, of the weights 1/k and 1/l: by Cauchy and Schwarz what they add to p is added
      curvature: (y, p, g) => {
        const { a, b } = y.h > 0 ? parts(y, p) : { a: ZERO, b: negative(p) };
        const later = mul(l, meanCurvature(b, mul(l, g)));
        return y.h > 0 ? add(mul(k, meanCurvature(a, mul(k, g))), later) : later;
      },
      labels: (y) => y >= 0,
    };
  },
};
// The loss of a task, and its label of a row in balls.
const lossOf = (header, t) => {
  const words = lossesOf(header)[t], unit = unitOf(header, t), own = rowLoss[words.name](words);
  const scaled = (x) => own.residual && unit !== 1 ? div(x, ball(unit)) : x;
  return { ...own, name: words.name, scaled };
};
