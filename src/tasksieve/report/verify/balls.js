// Numbers that know how wrong they are. A ball {h, l, e} stands for a real number within e of h + l, where h + l is a
// double-double: |l| is at most half a unit in the last place of h. With u = 2^-53 the sum, product and quotient of double-doubles
// below are within 15 u^2 of the truth (Joldes, Muller, Popescu 2017); 2^-100 = 64 u^2 is charged. TINY is charged for what
// underflows, and WIDE for the rounding of the errors' own few operations. What overflows becomes NaN, and every comparison with
// NaN fails: a claim is accepted only where a comparison succeeds.
const EPS = 2 ** -100, TINY = 1e-290, WIDE = 1 + 2 ** -40, SPLITTER = 2 ** 27 + 1;
const ball = (h, l = 0, e = 0) => ({ h, l, e });
const ZERO = ball(0), ONE = ball(1), UNKNOWN = ball(NaN, NaN, NaN);
const isZero = (a) => a.h === 0 && a.l === 0 && a.e === 0;
const negative = (a) => ball(-a.h, -a.l, a.e);
// a b = p + productError(a, b, p) (Dekker 1971)
const productError = (a, b, p) => {
  let t = SPLITTER * a;
  const ah = t - (t - a), al = a - ah;
  t = SPLITTER * b;
  const bh = t - (t - b), bl = b - bh;
  return ((ah * bh - p) + ah * bl + al * bh) + al * bl;
};
const add = (a, b) => {
  if (isZero(a)) return b;
  if (isZero(b)) return a;
  const sh = a.h + b.h, k = sh - a.h, sl = (a.h - (sh - k)) + (b.h - k);
  const th = a.l + b.l, m = th - a.l, tl = (a.l - (th - m)) + (b.l - m);
  const c = sl + th, vh = sh + c, vl = c - (vh - sh), w = tl + vl, h = vh + w;
  return ball(h, w - (h - vh), (a.e + b.e + Math.abs(h) * EPS + TINY) * WIDE);
};
const sub = (a, b) => add(a, negative(b));
const mul = (a, b) => {
  if (isZero(a) || isZero(b)) return ZERO;
  const p = a.h * b.h, q = productError(a.h, b.h, p) + (a.h * b.l + a.l * b.h), h = p + q;
  const e = Math.abs(a.h) * b.e + Math.abs(b.h) * a.e + a.e * b.e + Math.abs(h) * EPS + TINY;
  return ball(h, q - (h - p), e * WIDE + 2 ** -50 * (Math.abs(a.h) * b.e + Math.abs(b.h) * a.e));
};
// a / b = q + (a - q b) / b for any q
const div = (a, b) => {
  if (isZero(a)) return ZERO;
  const least = Math.abs(b.h) * (1 - 2 ** -40) - b.e * WIDE;
  if (!(least > 1e-140)) return UNKNOWN;
  const q = a.h / b.h, r = sub(a, mul(ball(q), b)), more = r.h / b.h, h = q + more;
  const e = (Math.abs(r.l) + r.e) / least + Math.abs(r.h) * (Math.abs(b.l) + b.e) / (least * Math.abs(b.h));
  return ball(h, more - (h - q), (e + Math.abs(more) * 2 ** -52 + Math.abs(h) * EPS + TINY) * WIDE);
};
// the ends of a ball as doubles: up(a) is no less than any number in it, down(a) no more
const outwards = (x) => x + Math.abs(x) * 2 ** -51 + 2 ** -1074;
const up = (a) => outwards(a.h + outwards(a.l + a.e + (Math.abs(a.l) + a.e) * 2 ** -50));
const down = (a) => -up(negative(a));
const size = (a) => Math.max(up(a), up(negative(a)));
// sqrt(a) = s + (a - s^2) / (sqrt(a) + s) for any s > 0; of what may be negative by rounding, the part >= 0
const root = (a) => {
  if (isZero(a)) return ZERO;
  if (!(down(a) > 1e-250)) return up(a) >= 0 ? ball(0, 0, outwards(Math.sqrt(up(a)))) : UNKNOWN;
  const s = Math.sqrt(a.h), r = sub(a, mul(ball(s), ball(s))), more = r.h / (2 * s), h = s + more;
  const off = (Math.abs(r.h) + Math.abs(r.l) + r.e) / s;
  const e = (Math.abs(r.l) + r.e) / s + Math.abs(r.h) * off / (2 * s * s);
  return ball(h, more - (h - s), (e + Math.abs(more) * 2 ** -52 + Math.abs(h) * EPS + TINY) * WIDE);
};
