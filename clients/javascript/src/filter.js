import { FormatError, KindError } from './errors.js';
import { HASH_NUMBERS, MAX_KEY, headerSize, payloadChecksum, readHeader, writeHeader } from './format.js';
import { loadChecksum, loadDigest } from './hash.js';
import { ENUM, inferKind, parseKind } from './kinds.js';
import { HASHES, openLayer } from './layouts.js';
import { MAX_CAPACITY, MIN_FPR, cardinality, cuckooBuckets, rateOf, sizeFor } from './sizes.js';

const TOKEN = Symbol('made by a factory');

function base64(bytes) {
  if (typeof Buffer !== 'undefined') {
    return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64');
  }
  let text = '';
  for (let at = 0; at < bytes.length; at += 32766) {    // a multiple of 3
    text += btoa(String.fromCharCode(...bytes.subarray(at, at + 32766)));
  }
  return text;
}

function fromBase64(text) {
  if (typeof text !== 'string') {
    throw new TypeError('a string is needed');
  }
  // Node's decoder skips what is none: look first
  if (text.length % 4 !== 0 || /[^A-Za-z0-9+/]/.test(text.replace(/={1,2}$/, ''))) {
    throw new FormatError('no base64');
  }
  if (typeof Buffer !== 'undefined') {
    return Buffer.from(text, 'base64');
  }
  return Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
}

/**
 * A set of elements in a few bits each: "no" is exact, "yes" means maybe.
 * The types are documented in index.d.ts.
 */
export class BloomFilter {
  #h;
  #kind;
  #layers = [];
  #digest;
  #checksum;
  #image = null;        // as it was read, until something is added
  #owned = false;

  constructor(token, h, digest, checksum) {
    if (token !== TOKEN) {
      throw new TypeError('use await BloomFilter.create({ capacity, ... }): its hash has to be loaded');
    }
    this.#h = h;
    this.#kind = h.kind;
    this.#digest = digest;
    this.#checksum = checksum;
  }

  static async create({
    capacity, fpr = 0.01, layout = 'blocked', hash = 'xxh3', key = null, hashes = null, kind = null,
  }) {
    if (layout !== 'standard' && layout !== 'blocked') {
      throw new RangeError(`only standard and blocked filters can be built here, not ${layout}`);
    }
    if (!Object.hasOwn(HASH_NUMBERS, hash)) {
      throw new RangeError(`unknown hash ${hash}`);
    }
    if (!Number.isInteger(capacity) || capacity < 1 || capacity > MAX_CAPACITY) {
      throw new RangeError('capacity must be a whole number of 1 to 2^53');
    }
    if (!(fpr >= MIN_FPR[layout] && fpr < 1)) {
      throw new RangeError('fpr must be at least 0.000001 and less than 1');
    }
    if (key !== null) {
      if (hash !== 'blake2b') {
        throw new RangeError("a key needs hash: 'blake2b'");
      }
      if (!(key instanceof Uint8Array) || key.length < 1 || key.length > MAX_KEY) {
        throw new RangeError('key must have 1 to 32 bytes');
      }
    }
    const [low, high] = HASHES[layout];
    if (hashes !== null && !(Number.isInteger(hashes) && hashes >= low && hashes <= high)) {
      throw new RangeError(`hashes must be ${low} to ${high}`);
    }
    const parsed = kind === null ? null : parseKind(kind);
    if (parsed !== null && !parsed.portable) {
      throw new KindError(`only the server can hash ${kind}`);
    }
    const size = sizeFor(layout, capacity, fpr);
    const copy = Uint8Array.from(key ?? []);
    const h = {
      layout,
      hash,
      hashes: hashes ?? size.hashes,
      key: copy,
      kind: null,
      bits: size.bits,
      capacity,
      fpr,
      nset: 0,
      hashesGiven: hashes !== null,
      expansion: 0,
      layers: [],
      checksum: 0n,
    };
    const filter = new BloomFilter(TOKEN, h, await loadDigest(hash, copy), await loadChecksum());
    filter.#kind = parsed;
    return filter;
  }

  static async fromBytes(data) {
    if (!(data instanceof Uint8Array)) {
      throw new TypeError('a Uint8Array is needed');
    }
    const checksum = await loadChecksum();
    // a copy of our own, and not a Buffer, whose slice() is none
    const image = new Uint8Array(data);
    const h = readHeader(image, checksum);
    const layers = [];
    if (h.kind !== null) {
      if (payloadChecksum(checksum, image.subarray(h.size)) !== h.checksum) {
        throw new FormatError('checksum differs');
      }
      let at = h.size;
      for (const entry of h.layers.length > 0 ? h.layers : [h]) {
        const layer = openLayer(h.layout, entry.bits, entry.hashes,
          image.subarray(at, at + entry.bits / 8));
        if (layer.count() !== entry.nset) {
          throw new FormatError('bits set differ');
        }
        layers.push(layer);
        at += entry.bits / 8;
      }
    }
    const filter = new BloomFilter(TOKEN, h, await loadDigest(h.hash, h.key), checksum);
    filter.#layers = layers;
    filter.#image = image;
    return filter;
  }

  static async fromBase64(text) {
    return BloomFilter.fromBytes(fromBase64(text));
  }

  toBytes() {
    if (this.#image !== null) {
      return this.#image.slice();
    }
    const h = this.#h;
    if (this.#layers.length === 0) {
      return writeHeader(h, this.#checksum);
    }
    const payload = this.#layers[0].bytes;
    h.checksum = payloadChecksum(this.#checksum, payload);
    const header = writeHeader(h, this.#checksum);
    const out = new Uint8Array(header.length + payload.length);
    out.set(header);
    out.set(payload, header.length);
    return out;
  }

  toBase64() {
    return base64(this.toBytes());
  }

  get kind() {
    return this.#kind === null ? null : this.#kind.name;
  }

  encode(key) {
    return (this.#kind ?? inferKind(key)).encode(key);
  }

  digest(key) {
    return this.#digest(this.encode(key)).slice();
  }

  has(key) {
    const bytes = this.encode(key);
    if (this.#layers.length === 0) {
      return false;
    }
    const digest = this.#digest(bytes);
    for (const layer of this.#layers) {
      if (layer.test(digest)) {
        return true;
      }
    }
    return false;
  }

  hasMany(keys) {
    return Array.from(keys, (key) => this.has(key));
  }

  add(key) {
    const kind = this.#kind ?? inferKind(key);
    const bytes = kind.encode(key);
    const h = this.#h;
    if (!this.#owned) {
      this.#own();
    }
    h.nset += this.#layers[0].add(this.#digest(bytes));
    h.kind = kind;
    this.#kind = kind;
  }

  update(keys) {
    for (const key of keys) {
      this.add(key);
    }
  }

  #own() {
    const h = this.#h;
    if ((h.layout !== 'standard' && h.layout !== 'blocked') || h.expansion > 0) {
      const what = h.expansion > 0 ? `scalable ${h.layout}` : h.layout;
      throw new TypeError(`a ${what} filter can be added to on the server only`);
    }
    if (h.bits === 0) {
      throw new RangeError('filter has no size: it cannot be added to');
    }
    if (this.#layers.length === 0) {
      this.#layers = [openLayer(h.layout, h.bits, h.hashes, new Uint8Array(h.bits / 8))];
    }
    // what was read is a copy of ours already
    this.#image = null;
    this.#owned = true;
  }

  get info() {
    const h = this.#h;
    const entries = h.layers.length > 0 ? h.layers : [h];
    const numbers = entries.map((e) => cardinality(h.layout, e.bits, e.hashes, e.nset));
    const rates = entries.map((e, i) => rateOf(h.layout, e.bits, e.hashes, numbers[i]));
    // what earlier layers seemed to have did not get into the later ones
    let passed = 1;
    const total = numbers.reduce((sum, n, i) => {
      const before = h.layout === 'cuckoo' ? 1 : passed;
      passed *= 1 - rates[i];
      return sum + n / before;
    }, 0);
    const places = entries.reduce((sum, e) => {
      if (h.layout === 'cuckoo' && e.bits > 0) {
        return sum + 4 * cuckooBuckets(e.bits, e.hashes);
      }
      return sum + (h.layout === 'counting' ? e.bits / 4 : e.bits);
    }, 0);
    const held = this.#layers.length > 0;
    const bits = entries.reduce((sum, e) => sum + e.bits, 0);
    const name = held && h.kind.number >= ENUM ? new TextEncoder().encode(h.kind.name).length : 0;
    return {
      layout: h.layout,
      hash: h.hash,
      keyed: h.key.length > 0,
      element: h.kind?.name ?? null,
      portable: h.kind?.portable ?? true,
      capacity: entries.reduce((sum, e) => sum + e.capacity, 0) || null,
      targetFpr: h.fpr,
      bits,
      hashes: h.layout === 'cuckoo' || h.expansion > 0 || h.hashes === 0 ? null : h.hashes,
      expansion: h.expansion,
      layers: this.#layers.length,
      bitsSet: h.nset,
      fill: places > 0 ? h.nset / places : 0,
      cardinality: total,
      expectedFpr: rates.length === 1 ? rates[0] : 1 - rates.reduce((all, rate) => all * (1 - rate), 1),
      bytes: headerSize(h.key.length, name, h.layers.length) + (held ? bits / 8 : 0),
    };
  }
}
