// SHA-256 (FIPS 180-4) of bytes that come in pieces.
const firstPrimes = (n) => {
  const found = [];
  for (let k = 2; found.length < n; k++) if (found.every((p) => k % p)) found.push(k);
  return found;
};
// the first 32 bits of a root's fraction; integers, since Math.cbrt need not be right in every bit
const rootBits = (prime, degree) => {
  const target = BigInt(prime) << BigInt(32 * degree);
  let low = 0n, high = 1n << 40n;
  while (high - low > 1n) {
    const middle = (low + high) >> 1n;
    if (middle ** BigInt(degree) <= target) low = middle; else high = middle;
  }
  return Number(low & 0xffffffffn);
};
const SHA_ROUNDS = Int32Array.from(firstPrimes(64), (p) => rootBits(p, 3));
const SHA_START = Int32Array.from(firstPrimes(8), (p) => rootBits(p, 2));

class Sha256 {
  constructor() {
    this.state = SHA_START.slice();
    this.rest = new Uint8Array(64);
    this.held = 0;
    this.length = 0;
    this.words = new Int32Array(64);
  }
  update(bytes) {
    this.length += bytes.length;
    let at = 0;
    if (this.held) {
      at = Math.min(64 - this.held, bytes.length);
      this.rest.set(bytes.subarray(0, at), this.held);
      this.held += at;
      if (this.held < 64) return this;
      this.block(this.rest, 0);
      this.held = 0;
    }
    for (; at + 64 <= bytes.length; at += 64) this.block(bytes, at);
    this.rest.set(bytes.subarray(at), 0);
    this.held = bytes.length - at;
    return this;
  }
  block(bytes, at) {
    const w = this.words, s = this.state;
    for (let i = 0; i < 16; i++, at += 4) w[i] = (bytes[at] << 24) | (bytes[at + 1] << 16) | (bytes[at + 2] << 8) | bytes[at + 3];
    for (let i = 16; i < 64; i++) {
      const x = w[i - 15], y = w[i - 2];
      const p = ((x >>> 7) | (x << 25)) ^ ((x >>> 18) | (x << 14)) ^ (x >>> 3);
      const q = ((y >>> 17) | (y << 15)) ^ ((y >>> 19) | (y << 13)) ^ (y >>> 10);
      w[i] = (w[i - 16] + p + w[i - 7] + q) | 0;
    }
    let [a, b, c, d, e, f, g, h] = s;
    for (let i = 0; i < 64; i++) {
      const big = ((e >>> 6) | (e << 26)) ^ ((e >>> 11) | (e << 21)) ^ ((e >>> 25) | (e << 7));
      const one = (h + big + ((e & f) ^ (~e & g)) + SHA_ROUNDS[i] + w[i]) | 0;
      const low = ((a >>> 2) | (a << 30)) ^ ((a >>> 13) | (a << 19)) ^ ((a >>> 22) | (a << 10));
      const two = (low + ((a & b) ^ (a & c) ^ (b & c))) | 0;
      h = g; g = f; f = e; e = (d + one) | 0; d = c; c = b; b = a; a = (one + two) | 0;
    }
    s[0] += a; s[1] += b; s[2] += c; s[3] += d; s[4] += e; s[5] += f; s[6] += g; s[7] += h;
  }
  hex() {
    const bits = BigInt(this.length) * 8n;
    const end = new Uint8Array((this.held < 56 ? 64 : 128) - this.held);
    end[0] = 0x80;
    new DataView(end.buffer).setBigUint64(end.length - 8, bits);
    this.update(end);
    return [...this.state].map((word) => (word >>> 0).toString(16).padStart(8, "0")).join("");
  }
}
