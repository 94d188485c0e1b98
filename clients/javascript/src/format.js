/** The header: from bytes, with every check there is, and back. */
import { FormatError } from './errors.js';
import { BY_NUMBER, ENUM, HASHED, kindOfImage } from './kinds.js';
import { HASHES, NAMES, NUMBERS, shapeIsPossible } from './layouts.js';
import { MAX_BITS, MAX_CAPACITY, MIN_FPR } from './sizes.js';

const FIXED = 60;
const VERSION = 1;
export const MAX_KEY = 32;
const MAX_NAME = 512;
const MAX_LAYERS = 32;
const MAX_EXPANSION = 16;
const HASHES_GIVEN = 1;
const NOT_PORTABLE = 2;
const HASH_NAMES = { 1: 'xxh3', 2: 'blake2b' };
export const HASH_NUMBERS = { xxh3: 1, blake2b: 2 };

const utf8 = new TextEncoder();

export function headerSize(key, name, layers) {
  return Math.floor((FIXED + key + name + 32 * layers + 3) / 64) * 64 + 60;
}

function require(ok, what) {
  if (!ok) {
    throw new FormatError(what);
  }
}

/** A u64 that must be below 2^53 or so: more becomes Infinity */
function number(view, at) {
  const value = view.getBigUint64(at, true);
  return value > 2n ** 53n ? Infinity : Number(value);
}

/** UTF-8, or nothing where it is none */
function decode(bytes) {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return '';
  }
}

/** The payload's checksum, a BigInt */
export function payloadChecksum(checksum, payload) {
  const sum = checksum(payload).getBigUint64(0);
  return sum === 0n ? 1n : sum;
}

/** Of a filter of fixed size. */
export function writeHeader(h, checksum) {
  const held = h.nset > 0;
  const name = held && h.kind.number >= ENUM ? utf8.encode(h.kind.name) : new Uint8Array(0);
  const size = headerSize(h.key.length, name.length, 0);
  const out = new Uint8Array(size);
  const view = new DataView(out.buffer);
  out.set([0x42, 0x46, VERSION, NUMBERS[h.layout], HASH_NUMBERS[h.hash], h.hashes]);
  view.setUint16(6, size, true);
  out[8] = h.key.length;
  out[9] = held ? h.kind.number : 0;
  view.setUint16(10, name.length, true);
  view.setBigUint64(12, BigInt(h.bits), true);
  view.setBigUint64(20, BigInt(h.capacity), true);
  view.setFloat64(28, h.fpr, true);
  view.setBigUint64(36, BigInt(h.nset), true);
  out[44] = h.hashesGiven ? HASHES_GIVEN : 0;
  out[45] = h.expansion;
  view.setBigUint64(48, held ? h.checksum : 0n, true);
  out.set(h.key, FIXED);
  out.set(name, FIXED + h.key.length);
  view.setUint32(56, checksum(out).getUint32(4), true);
  return out;
}

/** The header of an image. Everything but the payload has been checked then,
 * the image's length included. */
export function readHeader(bytes, checksum) {
  require(bytes.length >= FIXED, 'too short');
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  require(bytes[0] === 0x42 && bytes[1] === 0x46, 'bad magic');
  require(bytes[2] === VERSION, `unknown version ${bytes[2]}`);
  const layout = NAMES[bytes[3]];
  const hash = HASH_NAMES[bytes[4]];
  require(layout !== undefined, 'unknown layout');
  require(hash !== undefined, 'unknown hash');

  // Sizes and the length, before any other field is trusted
  const hashes = bytes[5];
  const size = view.getUint16(6, true);
  const keyLength = bytes[8];
  const kindNumber = bytes[9];
  const nameLength = view.getUint16(10, true);
  const bits = number(view, 12);
  const capacity = number(view, 20);
  const fpr = view.getFloat64(28, true);
  const nset = number(view, 36);
  const flags = bytes[44];
  const expansion = bytes[45];
  const nlayers = bytes[46];
  const sum = view.getBigUint64(48, true);
  const empty = kindNumber === 0;
  require(keyLength <= MAX_KEY, 'key too long');
  require(nameLength <= MAX_NAME, 'kind name too long');
  require(nlayers <= MAX_LAYERS, 'too many layers');
  require(size === headerSize(keyLength, nameLength, nlayers), 'bad header size');
  require(bytes.length >= size, 'too short');
  require(bits <= MAX_BITS, 'too many bits');
  require(expansion <= MAX_EXPANSION, 'bad expansion');
  require((nlayers > 0) === (expansion > 0 && !empty), 'bad layers');
  const nameAt = FIXED + keyLength;
  const layersAt = nameAt + nameLength;
  const layers = [];
  for (let at = layersAt; layers.length < nlayers; at += 32) {
    layers.push({
      bits: number(view, at),
      capacity: number(view, at + 8),
      nset: number(view, at + 16),
      hashes: bytes[at + 24],
      reserved: bytes.subarray(at + 25, at + 32),
    });
  }
  let total = 0;
  if (!empty) {
    total = expansion > 0 ? layers.reduce((all, layer) => all + layer.bits, 0) : bits;
  }
  require(total <= MAX_BITS && total % 8 === 0, 'too many bits');
  require(bytes.length === size + total / 8, "length is not the header's");
  const whole = bytes.slice(0, size);
  whole.fill(0, 56, 60);
  require(checksum(whole).getUint32(4) === view.getUint32(56, true), 'header checksum differs');

  require(bytes.subarray(layersAt + 32 * nlayers, size).every((byte) => byte === 0),
    'padding is not zero');
  require(bytes[47] === 0 && flags <= 3, 'reserved bits are set');
  require(keyLength === 0 || hash === 'blake2b', 'a key needs blake2b');
  require(fpr >= MIN_FPR[layout] && fpr < 1, 'bad rate');
  require((nset === 0) === empty && (sum === 0n) === empty, 'empty, or not empty');
  require(capacity <= MAX_CAPACITY && (capacity === 0) === (bits === 0), 'bad capacity');
  require(expansion === 0 || layout !== 'counting', 'a counting filter does not grow');
  const hashesGiven = (flags & HASHES_GIVEN) !== 0;
  if (bits === 0) {
    require(empty, 'unsized, but not empty');
    require(hashesGiven ? hashes >= 1 && hashes <= HASHES[layout][1] : hashes === 0, 'bad hashes');
  } else {
    require(shapeIsPossible(layout, bits, hashes), 'bad size or hashes');
  }
  for (const layer of layers) {
    require(shapeIsPossible(layout, layer.bits, layer.hashes)
      && layer.capacity > 0 && layer.capacity <= MAX_CAPACITY
      && layer.nset > 0 && layer.nset <= layer.bits
      && layer.reserved.every((byte) => byte === 0), 'bad layer');
  }
  require(nlayers === 0 || layers.reduce((all, layer) => all + layer.nset, 0) === nset,
    "bits set are not the layers'");

  require(kindNumber <= HASHED, 'unknown kind');
  const portable = (flags & NOT_PORTABLE) === 0;
  require(portable || (kindNumber >= ENUM && keyLength === 0),
    'elements that are not portable, of this kind or with a key');
  let kind = BY_NUMBER.get(kindNumber) ?? null;
  if (kindNumber < ENUM) {
    require(nameLength === 0, 'kind has no name');
  } else {
    const name = decode(bytes.subarray(nameAt, layersAt));
    // eslint-disable-next-line no-control-regex
    require(name !== '' && !/[\x00-\x1f\x7f]/.test(name), 'bad kind name');
    kind = kindOfImage(kindNumber, name, portable);
  }
  return {
    size,
    layout,
    hash,
    hashes,
    key: bytes.slice(FIXED, nameAt),
    kind,
    bits,
    capacity,
    fpr,
    nset,
    hashesGiven,
    expansion,
    layers,
    checksum: sum,
  };
}
