/** Sizes, rates and estimates, as the server computes them. */

export const MAX_BITS = 2 ** 32;
export const MAX_CAPACITY = 2 ** 53;
export const MIN_FPR = { standard: 1e-6, blocked: 1e-6, counting: 1e-6, cuckoo: 1e-8 };
const BLOCK = 512;

const nearest = (x) => Math.floor(x + 0.5);

/** The first number from low on that is good; all after it are. */
function lowest(good, low) {
  let step = 1;
  let high = low;
  while (!good(high)) {
    low = high + 1;
    high += step;
    step *= 2;
  }
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    if (good(middle)) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

// ---------------------------------------------------------------------------
// standard (and counting)
// ---------------------------------------------------------------------------

const standardIdeal = (m, k, n) => (-Math.expm1((-k * n) / m)) ** k;

const standardRate = (m, k, n) => Math.min(1, standardIdeal(m, k, n) + (16 * n) / (m * m));

function standardSize(n, p) {
  const start = Math.ceil(Math.ceil((-n * Math.log(p)) / (Math.LN2 * Math.LN2)) / 8);
  let m = start * 8;
  if (m > MAX_BITS) {
    return { bits: m, hashes: 1 };
  }
  const k = Math.min(64, Math.max(1, nearest((m / n) * Math.LN2)));
  if (n < 5000 || p < 0.001) {
    const target = 1.003 * Math.max(p, standardIdeal(m, k, n));
    m = 8 * lowest((size) =>
      standardIdeal(8 * size, k, n) + (16 * n) / (64 * size * size) <= target, start);
  }
  return { bits: m, hashes: k };
}

// ---------------------------------------------------------------------------
// blocked
// ---------------------------------------------------------------------------

/** numerator / denominator of two BigInts, to the last bit or so */
function quotient(numerator, denominator) {
  const sign = numerator < 0n ? -1 : 1;
  const top = numerator < 0n ? -numerator : numerator;
  if (top === 0n) {
    return 0;
  }
  // 64 significant bits, then one rounding
  const shift = BigInt(64 + denominator.toString(2).length - top.toString(2).length);
  const scaled = shift >= 0n ? (top << shift) / denominator : top / (denominator << -shift);
  return sign * Number(scaled) * 2 ** -Number(shift);
}

function choose(n, k) {
  let c = 1n;
  for (let i = 1; i <= k; i++) {
    c = (c * BigInt(n - k + i)) / BigInt(i);
  }
  return c;
}

const termsOf = new Map();

/** For each l: c(k, l) and 1 - (1 - l/512)^k */
function blockedTerms(k) {
  if (termsOf.has(k)) {
    return termsOf.get(k);
  }
  // stirling[i] is S(k, i)
  let stirling = [1n];
  for (let j = 0; j < k; j++) {
    const next = [];
    for (let i = 0; i <= stirling.length; i++) {
      next.push((i > 0 ? stirling[i - 1] : 0n) + BigInt(i) * (stirling[i] ?? 0n));
    }
    stirling = next;
  }
  const all = BigInt(BLOCK) ** BigInt(k);
  let falling = 1n;
  const distinct = stirling.map((s, i) => {
    const ways = s * falling;
    falling *= BigInt(BLOCK - i);
    return ways;
  });
  const terms = [];
  for (let l = 0; l <= k; l++) {
    let c = 0n;
    for (let i = Math.max(l, 1); i <= k; i++) {
      c += distinct[i] * choose(i, l);
    }
    terms.push([
      quotient(l % 2 === 0 ? c : -c, all),
      quotient(all - BigInt(BLOCK - l) ** BigInt(k), all),
    ]);
  }
  termsOf.set(k, terms);
  return terms;
}

function blockedRate(blocks, k, n) {
  // The terms nearly cancel: their sum keeps what additions round off
  let sum = 0;
  let lost = 0;
  for (const [c, hit] of blockedTerms(k)) {
    const term = hit < blocks ? c * Math.exp(n * Math.log1p(-hit / blocks)) : n === 0 ? c : 0;
    const next = sum + term;
    lost += Math.abs(sum) >= Math.abs(term) ? sum - next + term : term - next + sum;
    sum = next;
  }
  return Math.min(1, Math.max(0, sum + lost));
}

function blockedSize(n, p) {
  const met = (blocks) => {
    const found = [];
    for (let k = 1; k <= 16; k++) {
      if (blockedRate(blocks, k, n) <= p) {
        found.push(k);
      }
    }
    return found;
  };
  const good = (blocks) => {
    for (let k = 16; k >= 1; k--) {
      if (blockedRate(blocks, k, n) <= p) {
        return true;
      }
    }
    return false;
  };
  if (!good(MAX_BITS / BLOCK)) {
    return { bits: MAX_BITS + BLOCK, hashes: 1 };
  }
  const blocks = lowest(good, 1);
  const best = nearest(-Math.log2(p));
  const found = met(blocks);
  const below = found.filter((k) => k <= best);
  return { bits: blocks * BLOCK, hashes: below.length > 0 ? below[below.length - 1] : found[0] };
}

/** m and k for n elements at rate p. */
export function sizeFor(layout, n, p) {
  const size = layout === 'standard' ? standardSize(n, p) : blockedSize(n, p);
  if (size.bits > MAX_BITS) {
    throw new RangeError('a filter is at most 512 MiB');
  }
  return size;
}

// ---------------------------------------------------------------------------
// Any layout
// ---------------------------------------------------------------------------

export function cuckooBuckets(bits, f) {
  return Math.floor((bits - 512) / (4 * f - 4) / 2) * 2;
}

/** About how many distinct elements set so many bits. */
export function cardinality(layout, bits, hashes, nset) {
  if (nset === 0) {
    return 0;
  }
  if (layout === 'cuckoo') {
    return nset;
  }
  const m = layout === 'counting' ? bits / 4 : bits;
  if (nset >= m) {
    return Infinity;
  }
  if (layout === 'blocked') {
    return Math.log1p(-nset / m)
      / Math.log1p(Math.expm1(hashes * Math.log1p(-1 / BLOCK)) / (m / BLOCK));
  }
  return (-m / hashes) * Math.log1p(-nset / m);
}

/** The false-positive rate with n distinct elements. */
export function rateOf(layout, bits, hashes, n) {
  if (n === 0) {
    return 0;
  }
  if (n === Infinity) {
    return 1;
  }
  if (layout === 'blocked') {
    return blockedRate(bits / BLOCK, hashes, n);
  }
  if (layout === 'cuckoo') {
    return -Math.expm1(((2 * n) / cuckooBuckets(bits, hashes)) * Math.log1p(-1 / (2 ** hashes - 1)));
  }
  return standardRate(layout === 'counting' ? bits / 4 : bits, hashes, n);
}
