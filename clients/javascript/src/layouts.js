/**
 * The four layouts: where an element's bits are. A digest is a Uint8Array of
 * 16 bytes; its halves h1 and h2 are read as pairs of 32 bits.
 */
import { FormatError } from './errors.js';

const GOLDEN_LOW = 0x7f4a7c15;
const GOLDEN_HIGH = 0x9e3779b9;

export const UNITS = { standard: 8, blocked: 512, counting: 32, cuckoo: 8 };
export const HASHES = { standard: [1, 64], blocked: [1, 16], counting: [1, 64], cuckoo: [4, 32] };
export const NAMES = { 1: 'standard', 2: 'blocked', 3: 'counting', 4: 'cuckoo' };
export const NUMBERS = { standard: 1, blocked: 2, counting: 3, cuckoo: 4 };

/** 32 bits, little-endian */
function word(bytes, at) {
  return (bytes[at] | (bytes[at + 1] << 8) | (bytes[at + 2] << 16) | (bytes[at + 3] << 24)) >>> 0;
}

/** (a * b) >> 32, of 32 bits each */
function mulHigh(a, b) {
  const low = (a & 0xffff) * b;
  return Math.floor(((a >>> 16) * b + Math.floor(low / 65536)) / 65536);
}

/** (high * 2^32 + low) mod m, of m up to 2^32 */
function mod64(high, low, m) {
  let rest = high % m;
  rest = (rest * 65536 + (low >>> 16)) % m;
  return (rest * 65536 + (low & 0xffff)) % m;
}

function countBits(bytes) {
  let total = 0;
  for (let i = 0; i < bytes.length; i++) {
    total += POPCOUNT[bytes[i]];
  }
  return total;
}

const POPCOUNT = new Uint8Array(256);
for (let i = 1; i < 256; i++) {
  POPCOUNT[i] = POPCOUNT[i >> 1] + (i & 1);
}

class Standard {
  constructor(bits, hashes, bytes) {
    this.bits = bits;
    this.hashes = hashes;
    this.bytes = bytes;
  }

  test(d) {
    const m = this.bits;
    const step = mod64(word(d, 12), (word(d, 8) | 1) >>> 0, m);
    let at = mod64(word(d, 4), word(d, 0), m);
    for (let i = 0; i < this.hashes; i++) {
      if (((this.bytes[Math.floor(at / 8)] >> (at & 7)) & 1) === 0) {
        return false;
      }
      at += step;
      if (at >= m) {
        at -= m;
      }
    }
    return true;
  }

  /** Returns by how much the number of bits set grew. */
  add(d) {
    const m = this.bits;
    const step = mod64(word(d, 12), (word(d, 8) | 1) >>> 0, m);
    let at = mod64(word(d, 4), word(d, 0), m);
    let grown = 0;
    for (let i = 0; i < this.hashes; i++) {
      const byte = Math.floor(at / 8);
      const bit = 1 << (at & 7);
      if ((this.bytes[byte] & bit) === 0) {
        this.bytes[byte] |= bit;
        grown += 1;
      }
      at += step;
      if (at >= m) {
        at -= m;
      }
    }
    return grown;
  }

  count() {
    return countBits(this.bytes);
  }
}

/** 9 bits of a 64-bit number, from bit on */
function piece(high, low, bit) {
  if (bit >= 32) {
    return (high >>> (bit - 32)) & 511;
  }
  return (bit <= 23 ? low >>> bit : (low >>> bit) | (high << (32 - bit))) & 511;
}

class Blocked {
  constructor(bits, hashes, bytes) {
    this.bits = bits;
    this.hashes = hashes;
    this.bytes = bytes;
    this.at = new Uint16Array(16);
  }

  /** The block's offset; the positions are in this.at */
  locate(d) {
    const low1 = word(d, 0);
    const high1 = word(d, 4);
    const low2 = word(d, 8);
    const high2 = word(d, 12);
    const k = this.hashes;
    for (let i = 0; i < k && i < 7; i++) {
      this.at[i] = piece(high2, low2, 9 * i);
    }
    for (let i = 7; i < k && i < 10; i++) {
      this.at[i] = piece(high1, low1, 9 * (i - 7));
    }
    if (k > 10) {
      const low = (low1 ^ high2) >>> 0;
      const high = (high1 ^ low2) >>> 0;
      const top = (mulHigh(low, GOLDEN_LOW) + Math.imul(low, GOLDEN_HIGH)
        + Math.imul(high, GOLDEN_LOW)) >>> 0;
      const bottom = (Math.imul(low, GOLDEN_LOW) ^ top) >>> 0;
      for (let i = 10; i < k; i++) {
        this.at[i] = piece(top, bottom, 9 * (i - 10));
      }
    }
    return mulHigh(high1, this.bits / 512) * 64;
  }

  test(d) {
    const block = this.locate(d);
    for (let i = 0; i < this.hashes; i++) {
      const at = this.at[i];
      if (((this.bytes[block + (at >> 3)] >> (at & 7)) & 1) === 0) {
        return false;
      }
    }
    return true;
  }

  add(d) {
    const block = this.locate(d);
    let grown = 0;
    for (let i = 0; i < this.hashes; i++) {
      const at = this.at[i];
      const bit = 1 << (at & 7);
      if ((this.bytes[block + (at >> 3)] & bit) === 0) {
        this.bytes[block + (at >> 3)] |= bit;
        grown += 1;
      }
    }
    return grown;
  }

  count() {
    return countBits(this.bytes);
  }
}

class Counting {
  constructor(bits, hashes, bytes) {
    this.counters = bits / 4;
    this.hashes = hashes;
    this.bytes = bytes;
  }

  test(d) {
    const m = this.counters;
    const step = mod64(word(d, 12), (word(d, 8) | 1) >>> 0, m);
    let at = mod64(word(d, 4), word(d, 0), m);
    for (let i = 0; i < this.hashes; i++) {
      if (((this.bytes[Math.floor(at / 2)] >> ((at & 1) * 4)) & 15) === 0) {
        return false;
      }
      at += step;
      if (at >= m) {
        at -= m;
      }
    }
    return true;
  }

  count() {
    let total = 0;
    for (const byte of this.bytes) {
      total += ((byte & 15) !== 0) + (byte >> 4 !== 0);
    }
    return total;
  }
}

/** A bucket's number stands for the sorted low parts of its fingerprints. */
const SORTED = [];
for (let d = 0; d < 16; d++) {
  for (let c = 0; c <= d; c++) {
    for (let b = 0; b <= c; b++) {
      for (let a = 0; a <= b; a++) {
        SORTED.push([a, b, c, d]);
      }
    }
  }
}

class Cuckoo {
  constructor(bits, hashes, bytes) {
    this.hashes = hashes;
    this.bytes = bytes;
    this.width = 4 * hashes - 4;
    this.buckets = Cuckoo.bucketsOf(bits, hashes);
    this.stash = bytes.length - 64;
    this.found = new Float64Array(4);
  }

  static bucketsOf(bits, hashes) {
    return Math.floor((bits - 512) / (4 * hashes - 4) / 2) * 2;
  }

  static fits(bits, hashes) {
    const buckets = Cuckoo.bucketsOf(bits, hashes);
    return buckets > 0 && Math.ceil((buckets * (4 * hashes - 4)) / 8) * 8 + 512 === bits;
  }

  /** Up to 28 bits from a bit on */
  piece(bit, width) {
    let byte = Math.floor(bit / 8);
    let shift = bit % 8;
    let got = -shift;
    let value = 0;
    let scale = 1;
    while (got < width) {
      value += (this.bytes[byte] >> shift) * scale;
      scale *= 2 ** (8 - shift);
      got += 8;
      shift = 0;
      byte += 1;
    }
    return value % 2 ** width;
  }

  /** Its four fingerprints, in this.found */
  bucket(i) {
    const bit = i * this.width;
    const low = SORTED[this.piece(bit, 12)];
    if (low === undefined) {
      throw new FormatError('bucket has no such number');
    }
    const rest = this.hashes - 4;
    for (let j = 0; j < 4; j++) {
      this.found[j] = low[j] + (rest > 0 ? this.piece(bit + 12 + j * rest, rest) * 16 : 0);
    }
  }

  holds(i, x) {
    this.bucket(i);
    const found = this.found;
    return found[0] === x || found[1] === x || found[2] === x || found[3] === x;
  }

  test(d) {
    const buckets = this.buckets;
    const x = 1 + mulHigh(word(d, 12), 2 ** this.hashes - 1);
    const i = mulHigh(word(d, 4), buckets);
    if (this.holds(i, x)) {
      return true;
    }
    const y = (mulHigh(x, GOLDEN_LOW) + Math.imul(x, GOLDEN_HIGH)) >>> 0;
    const g = 2 * mulHigh(y, buckets / 2) + 1;
    const j = (g - i + buckets) % buckets;
    if (this.holds(j, x)) {
      return true;
    }
    const even = i % 2 === 0 ? i : j;
    for (let at = this.stash; at < this.stash + 64; at += 8) {
      if (word(this.bytes, at + 4) === x && word(this.bytes, at) === even) {
        return true;
      }
    }
    return false;
  }

  count() {
    let total = 0;
    for (let i = 0; i < this.buckets; i++) {
      this.bucket(i);
      for (let j = 0; j < 4; j++) {
        const x = this.found[j];
        total += x !== 0;
        if (j > 0) {
          const before = this.found[j - 1];
          if (before % 16 === x % 16 && before > x) {
            throw new FormatError('bucket is not in order');
          }
        }
      }
    }
    const used = this.buckets * this.width;
    if (used % 8 !== 0 && this.bytes[Math.floor(used / 8)] >> (used % 8) !== 0) {
      throw new FormatError('bits past the last bucket are set');
    }
    let free = false;
    for (let at = this.stash; at < this.stash + 64; at += 8) {
      const bucket = word(this.bytes, at);
      const x = word(this.bytes, at + 4);
      if (x === 0) {
        free = true;
        if (bucket !== 0) {
          throw new FormatError('free stash entry is not zero');
        }
      } else if (free || bucket % 2 !== 0 || bucket >= this.buckets || x >= 2 ** this.hashes) {
        throw new FormatError('bad stash entry');
      } else {
        total += 1;
      }
    }
    return total;
  }
}

const LAYOUTS = { standard: Standard, blocked: Blocked, counting: Counting, cuckoo: Cuckoo };

export function shapeIsPossible(layout, bits, hashes) {
  const [low, high] = HASHES[layout];
  return bits > 0 && bits <= 2 ** 32 && bits % UNITS[layout] === 0
    && hashes >= low && hashes <= high
    && (layout !== 'cuckoo' || Cuckoo.fits(bits, hashes));
}

/** A payload with its shape. */
export function openLayer(layout, bits, hashes, bytes) {
  return new LAYOUTS[layout](bits, hashes, bytes);
}
