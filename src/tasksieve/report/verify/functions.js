// Exponential and logarithm of balls. Math.exp and Math.log are not trusted: the first is not used, the second only guesses.
const LN2 = ball(0.6931471805599453, 2.3190468138462996e-17, 1e-33);
const EXP_TERMS = 14, HALVINGS = 8;

// x = k log 2 + 2^8 r with |r| < 0.0014: the series of r to the power 14 leaves less than 1e-50; then r is doubled eight times
const exponential = (x) => {
  if (!(x.e < 1 && x.h < 600)) return UNKNOWN;
  if (x.h <= -600) return ball(0, 0, 1e-250); // e^-599 < 1e-260
  const k = Math.round(x.h / LN2.h);
  const r = mul(sub(x, mul(ball(k), LN2)), ball(2 ** -HALVINGS));
  if (!(size(r) < 0.01)) return UNKNOWN;
  let sum = ONE;
  for (let n = EXP_TERMS; n > 0; n--) sum = add(ONE, div(mul(r, sum), ball(n)));
  sum = ball(sum.h, sum.l, sum.e + 1e-40); // 0.01^15 / 15! < 1e-42
  for (let n = 0; n < HALVINGS; n++) sum = mul(sum, sum);
  return mul(sum, ball(2 ** k));
};
// log a = g + log(a e^-g) for any g, and |log(1 + t) - t + t^2/2| <= |t|^3 for |t| < 1/2
const logarithm = (a) => {
  if (!(down(a) > 1e-250)) return UNKNOWN;
  const guess = Math.log(a.h), t = sub(mul(a, exponential(ball(-guess))), ONE), far = size(t);
  if (!(far < 0.1)) return UNKNOWN;
  const found = add(ball(guess), sub(t, mul(mul(t, t), ball(0.5))));
  return ball(found.h, found.l, (found.e + far * far * far) * WIDE);
};
// log(1 + e^-m)
const logisticLoss = (m) => m.h >= 0
  ? logarithm(add(ONE, exponential(negative(m))))
  : add(negative(m), logarithm(add(ONE, exponential(m))));
// x log x from above, of a number that is known to be in [0, 1]: it is never above 0
const entropyAbove = (x) => {
  if (isZero(x) || !(down(x) > 1e-240)) return ZERO;
  const found = mul(x, logarithm(x));
  return up(found) <= 0 ? found : ball(0, 0, 0);
};
