/**
 * Element kinds: from a JavaScript value to the bytes that are hashed.
 *
 * The filter's kind says how a value is read: a string is a text for a text
 * filter, a uuid for a uuid filter. What cannot be read so is an error.
 */
import { KindError } from './errors.js';

const MAX_NAME = 512;
const MAX_DEPTH = 64;
const NUMERIC_DIGITS = 131072;
const NUMERIC_SCALE = 16383;

export const ENUM = 16;
const ARRAY = 17;
const RECORD = 18;
export const HASHED = 19;

const utf8 = new TextEncoder();

function typeName(value) {
  if (value === null) {
    return 'null';
  }
  return typeof value === 'object' ? (value.constructor?.name ?? 'object') : typeof value;
}

function mismatch(kind, value) {
  return new KindError(`filter holds ${kind} elements, not ${typeName(value)}`);
}

function malformed(kind, text) {
  return new KindError(`not a ${kind}: ${JSON.stringify(text)}`);
}

function string(kind, value) {
  if (typeof value !== 'string') {
    throw mismatch(kind, value);
  }
  return value;
}

/** The groups of the pattern, which must match the whole of it */
function match(kind, value, pattern) {
  const found = pattern.exec(string(kind, value));
  if (found === null) {
    throw malformed(kind, value);
  }
  return found;
}

function bigint(...values) {
  const out = new Uint8Array(8 * values.length);
  const view = new DataView(out.buffer);
  values.forEach((value, i) => view.setBigInt64(8 * i, value, true));
  return out;
}

/** A safe integer as 64 bits, without a BigInt */
function integer(value) {
  const out = new Uint8Array(8);
  const view = new DataView(out.buffer);
  view.setUint32(0, value % 2 ** 32, true);     // modulo 2^32 of negatives, too
  view.setInt32(4, Math.floor(value / 2 ** 32), true);
  return out;
}

// ---------------------------------------------------------------------------
// Simple kinds
// ---------------------------------------------------------------------------

function encodeInteger(value) {
  if (typeof value === 'number') {
    if (!Number.isSafeInteger(value)) {
      throw new KindError(`filter holds integer elements, and ${value} is no safe integer`);
    }
    return integer(value);
  }
  if (typeof value !== 'bigint') {
    throw mismatch('integer', value);
  }
  if (BigInt.asIntN(64, value) !== value) {
    throw new RangeError(`${value} is not a 64-bit integer`);
  }
  return bigint(value);
}

function encodeText(value) {
  string('text', value);
  if (/[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/.test(value)) {
    throw new KindError('a text with a lone surrogate has no UTF-8');
  }
  return utf8.encode(value);
}

function encodeFloat(value) {
  if (typeof value !== 'number') {
    throw mismatch('float', value);
  }
  const out = new Uint8Array(8);
  if (Number.isNaN(value)) {
    out[6] = 0xf8;
    out[7] = 0x7f;
  } else {
    new DataView(out.buffer).setFloat64(0, value + 0, true);    // -0 + 0 is 0
  }
  return out;
}

function encodeBytea(value) {
  if (!(value instanceof Uint8Array)) {
    throw mismatch('bytea', value);
  }
  return value;
}

function fromHex(hex) {
  const out = new Uint8Array(hex.length / 2);
  for (let i = 0; i < out.length; i++) {
    out[i] = Number.parseInt(hex.slice(2 * i, 2 * i + 2), 16);
  }
  return out;
}

function encodeUuid(value) {
  match('uuid', value, /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i);
  return fromHex(value.replaceAll('-', ''));
}

function encodeBoolean(value) {
  if (typeof value !== 'boolean') {
    throw mismatch('boolean', value);
  }
  return Uint8Array.of(value ? 1 : 0);
}

const macaddr = (kind, length) => {
  const pattern = new RegExp(`^[0-9a-f]{2}([:.-]?[0-9a-f]{2}){${length - 1}}$`, 'i');
  return (value) => {
    match(kind, value, pattern);
    return fromHex(value.replaceAll(/[:.-]/g, ''));
  };
};

// Dates and times, in BigInts of microseconds

const DATE = /(\d{4,7})-(\d\d)-(\d\d)/.source;
const TIME = /(\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,6}))?)?/.source;
const ZONE = /(Z|[+-]\d\d(?::?\d\d(?::?\d\d)?)?)/.source;
const ERA = /( BC)?/.source;
const DATE_ONLY = new RegExp(`^${DATE}${ERA}$`);
const TIME_ONLY = new RegExp(`^${TIME}$`);
const TIME_ZONE = new RegExp(`^${TIME}${ZONE}$`);
const DATE_TIME = new RegExp(`^${DATE}[ T]${TIME}${ERA}$`);
const DATE_TIME_ZONE = new RegExp(`^${DATE}[ T]${TIME} ?${ZONE}${ERA}$`);
const DAY = 86400000000n;

/** Days since 2000-01-01, in the Gregorian calendar */
function days(kind, text, year, month, day, era) {
  const y = era ? 1 - Number(year) : Number(year);
  const m = Number(month);
  const d = Number(day);
  // 400 years are 146097 days, and Date is good for some around 2000
  const shifted = 2000 + (((y - 2000) % 400) + 400) % 400;
  const date = new Date(Date.UTC(shifted, m - 1, d));
  if (Number(year) === 0 || date.getUTCMonth() !== m - 1 || date.getUTCDate() !== d) {
    throw malformed(kind, text);
  }
  return Math.round((date.getTime() - Date.UTC(2000, 0, 1)) / 86400000)
    + ((y - shifted) / 400) * 146097;
}

function micros(kind, text, hour, minute, second = '0', fraction = '') {
  const whole = (Number(hour) * 60 + Number(minute)) * 60 + Number(second);
  if (Number(minute) > 59 || Number(second) > 59 || whole > 86400
    || (whole === 86400 && Number(fraction) > 0)) {
    throw malformed(kind, text);
  }
  return BigInt(whole) * 1000000n + BigInt(fraction.padEnd(6, '0'));
}

/** Seconds east of Greenwich */
function zone(kind, text, offset) {
  if (offset === 'Z') {
    return 0;
  }
  const [hours, minutes, seconds] = offset.slice(1).replaceAll(':', '').match(/../g).map(Number);
  if (hours > 15 || (minutes ?? 0) > 59 || (seconds ?? 0) > 59) {
    throw malformed(kind, text);
  }
  const total = (hours * 60 + (minutes ?? 0)) * 60 + (seconds ?? 0);
  return offset[0] === '-' ? -total : total;
}

function infinite(value, bits) {
  if (value === 'infinity') {
    return bigint(2n ** BigInt(bits - 1) - 1n);
  }
  return value === '-infinity' ? bigint(-(2n ** BigInt(bits - 1))) : null;
}

function encodeDate(value) {
  return infinite(value, 32) ?? integer(days('date', value,
    ...match('date', value, DATE_ONLY).slice(1)));
}

function encodeTime(value) {
  return bigint(micros('time', value, ...match('time', value, TIME_ONLY).slice(1)));
}

function encodeTimetz(value) {
  const found = match('timetz', value, TIME_ZONE);
  return bigint(micros('timetz', value, ...found.slice(1, 5)),
    BigInt(-zone('timetz', value, found[5])));
}

function encodeTimestamp(value) {
  const infinity = infinite(value, 64);
  if (infinity !== null) {
    return infinity;
  }
  const found = match('timestamp', value, DATE_TIME);
  return bigint(BigInt(days('timestamp', value, found[1], found[2], found[3], found[8])) * DAY
    + micros('timestamp', value, ...found.slice(4, 8)));
}

function encodeTimestamptz(value) {
  if (value instanceof Date) {
    if (Number.isNaN(value.getTime())) {
      throw new KindError('an invalid Date is no element');
    }
    return bigint(BigInt(value.getTime() - Date.UTC(2000, 0, 1)) * 1000n);
  }
  const infinity = infinite(value, 64);
  if (infinity !== null) {
    return infinity;
  }
  const found = match('timestamptz', value, DATE_TIME_ZONE);
  return bigint(BigInt(days('timestamptz', value, found[1], found[2], found[3], found[9])) * DAY
    + micros('timestamptz', value, ...found.slice(4, 8))
    - BigInt(zone('timestamptz', value, found[8])) * 1000000n);
}

function inet4(text) {
  const found = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})$/.exec(text);
  const bytes = found?.slice(1).map(Number);
  return bytes?.every((byte) => byte < 256) ? bytes : null;
}

function inet6(text) {
  const halves = text.split('::');
  if (halves.length > 2) {
    return null;
  }
  const parsed = halves.map((half, i) => {
    const bytes = [];
    const groups = half === '' ? [] : half.split(':');
    groups.forEach((group, j) => {
      const last = i === halves.length - 1 && j === groups.length - 1;
      if (/^[0-9a-f]{1,4}$/i.test(group)) {
        const value = Number.parseInt(group, 16);
        bytes.push(value >> 8, value & 255);
      } else if (last && inet4(group)) {
        bytes.push(...inet4(group));
      } else {
        bytes.push(NaN);
      }
    });
    return bytes;
  });
  const [first, second] = parsed;
  if (parsed.flat().some(Number.isNaN)) {
    return null;
  }
  if (second === undefined) {
    return first.length === 16 ? first : null;
  }
  const gap = 16 - first.length - second.length;
  return gap >= 2 ? [...first, ...new Array(gap).fill(0), ...second] : null;
}

function encodeInet(value) {
  const [, address, mask] = match('inet', value, /^([0-9a-f:.]+)(?:\/(\d{1,3}))?$/i);
  const bytes = address.includes(':') ? inet6(address) : inet4(address);
  if (!bytes || Number(mask ?? 0) > bytes.length * 8) {
    throw malformed('inet', value);
  }
  return Uint8Array.of(bytes.length === 4 ? 4 : 6, mask ?? bytes.length * 8, ...bytes);
}

function encodeNumeric(value) {
  const special = /^(nan|([+-]?)inf(?:inity)?)$/i.exec(string('numeric', value));
  if (special) {
    return utf8.encode(special[2] === undefined ? 'NaN' : special[2] === '-' ? '-Infinity' : 'Infinity');
  }
  const [, sign, whole, fraction = '', exponent = '0'] = match('numeric', value,
    /^([+-]?)(?=\.?\d)(\d*)(?:\.(\d*))?(?:e([+-]?\d{1,6}))?$/i);
  let digits = whole + fraction;
  let point = whole.length + Number(exponent);
  const zeros = /^0*/.exec(digits)[0].length;
  digits = digits.slice(zeros);
  point -= zeros;
  while (digits.endsWith('0')) {
    digits = digits.slice(0, /0*$/.exec(digits).index);
  }
  if (digits === '') {
    return utf8.encode('0');
  }
  if (point > NUMERIC_DIGITS || digits.length - point > NUMERIC_SCALE) {
    throw new RangeError('value overflows numeric');
  }
  const before = point > 0 ? digits.slice(0, point).padEnd(point, '0') : '0';
  const after = point > 0 ? digits.slice(point) : '0'.repeat(-point) + digits;
  return utf8.encode((sign === '-' ? '-' : '') + before + (after === '' ? '' : `.${after}`));
}

export const SIMPLE = new Map();
export const BY_NUMBER = new Map();
[
  ['integer', encodeInteger],
  ['text', encodeText],
  ['float', encodeFloat],
  ['bytea', encodeBytea],
  ['uuid', encodeUuid],
  ['boolean', encodeBoolean],
  ['date', encodeDate],
  ['time', encodeTime],
  ['timestamp', encodeTimestamp],
  ['timestamptz', encodeTimestamptz],
  ['timetz', encodeTimetz],
  ['macaddr', macaddr('macaddr', 6)],
  ['macaddr8', macaddr('macaddr8', 8)],
  ['inet', encodeInet],
  ['numeric', encodeNumeric],
].forEach(([name, encode], i) => {
  const kind = { number: i + 1, name, encode, portable: true };
  SIMPLE.set(name, kind);
  BY_NUMBER.set(kind.number, kind);
});

// ---------------------------------------------------------------------------
// Kinds with a name
// ---------------------------------------------------------------------------

function concat(parts) {
  const out = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    out.set(part, at);
    at += part.length;
  }
  return out;
}

function uint32(...values) {
  const out = new Uint8Array(4 * values.length);
  const view = new DataView(out.buffer);
  values.forEach((value, i) => view.setUint32(4 * i, value, true));
  return out;
}

function encodeParts(parts) {
  return concat(parts.flatMap((part) => (
    part === null ? [Uint8Array.of(0)] : [Uint8Array.of(1), uint32(part.length), part])));
}

/** Dimensions and elements. nested: where elements are arrays themselves, so
 * that there is one dimension. */
function flatten(value, nested) {
  if (value.length === 0) {
    return { lengths: [], items: [] };
  }
  const lengths = [value.length];
  let items = value;
  while (!nested && items.some(Array.isArray)) {
    const { length } = items.find(Array.isArray);
    if (length === 0 || !items.every((item) => Array.isArray(item) && item.length === length)) {
      throw new KindError("an array's arrays differ in length or are empty");
    }
    lengths.push(length);
    if (lengths.length > 6) {
      throw new KindError('an array has at most 6 dimensions');
    }
    items = items.flat();
  }
  return { lengths, items };
}

function enumKind(name) {
  const encode = (value) => {
    string(name, value);
    return encodeText(value);
  };
  return { number: ENUM, name, encode, portable: true };
}

function hashedKind(name) {
  const encode = () => {
    throw new KindError(`filter holds ${name} elements, which only the server can hash`);
  };
  return { number: HASHED, name, encode, portable: false };
}

function arrayKind(element) {
  const name = `${element.name}[]`;
  const encode = (value) => {
    if (!Array.isArray(value)) {
      throw mismatch(name, value);
    }
    // an element that is an array itself, of a record or of an array
    const { lengths, items } = flatten(value, element.number === ARRAY || element.number === RECORD);
    return concat([
      uint32(lengths.length, ...lengths.flatMap((length) => [length, 1])),
      encodeParts(items.map((item) => (item === null ? null : element.encode(item)))),
    ]);
  };
  return { number: ARRAY, name, encode, portable: element.portable, parts: [element] };
}

function recordKind(columns) {
  const name = `(${columns.map((column) => column.name).join(',')})`;
  const encode = (value) => {
    if (!Array.isArray(value)) {
      throw mismatch(name, value);
    }
    if (value.length !== columns.length) {
      throw new KindError(`filter holds ${name} elements, which have ${columns.length} columns,`
        + ` not ${value.length}`);
    }
    return encodeParts(value.map((item, i) => (item === null ? null : columns[i].encode(item))));
  };
  const portable = columns.every((column) => column.portable);
  return { number: RECORD, name, encode, portable, parts: columns };
}

// A type's name is quoted as in SQL, and perhaps qualified
const PART = /(?:"(?:[^"]|"")+"|[^\s".,()[\]]+)/.source;
const NAMED = new RegExp(`(enum|hash):${PART}(?:\\.${PART})?`, 'y');
const WORD = /[a-z0-9]+/y;

function unknown(name) {
  return new KindError(`unknown element kind: ${JSON.stringify(name)}`);
}

/** A kind by its name. */
export function parseKind(name) {
  let at = 0;

  const skip = (token) => {
    const found = name.startsWith(token, at);
    at += found ? token.length : 0;
    return found;
  };

  const sticky = (pattern) => {
    pattern.lastIndex = at;
    const found = pattern.exec(name);
    return found;
  };

  const parse = (depth) => {
    if (depth > MAX_DEPTH) {
      throw unknown(name);
    }
    let kind;
    if (skip('(')) {
      const columns = [];
      while (!skip(')')) {
        if (columns.length > 0 && !skip(',')) {
          throw unknown(name);
        }
        columns.push(parse(depth + 1));
      }
      kind = recordKind(columns);
    } else {
      const named = sticky(NAMED);
      const word = named ?? sticky(WORD);
      if (word === null || (!named && !SIMPLE.has(word[0]))) {
        throw unknown(name);
      }
      at += word[0].length;
      if (!named) {
        kind = SIMPLE.get(word[0]);
      } else {
        kind = named[1] === 'enum' ? enumKind(named[0]) : hashedKind(named[0]);
      }
    }
    let level = depth;
    while (skip('[]')) {
      level += 1;
      if (level > MAX_DEPTH) {
        throw unknown(name);
      }
      kind = arrayKind(kind);
    }
    return kind;
  };

  if (typeof name !== 'string') {
    throw unknown(name);
  }
  const kind = parse(0);
  if (at !== name.length || utf8.encode(name).length > MAX_NAME) {
    throw unknown(name);
  }
  return kind;
}

/** A kind by what an image's header says. Where that is not known here, the
 * filter is one all the same, but not to be probed. */
export function kindOfImage(number, name, portable) {
  try {
    const kind = parseKind(name);
    if (kind.number === number && kind.portable === portable) {
      return kind;
    }
  } catch (error) {
    if (!(error instanceof KindError)) {
      throw error;
    }
  }
  const encode = () => {
    throw new KindError(`filter holds ${name} elements, which ${
      portable ? 'are not known here' : 'only the server can hash'}`);
  };
  return { number, name, encode, portable };
}

/** The kind of a filter to which this value is added first. */
export function inferKind(value) {
  switch (typeof value) {
    case 'number':
      if (!Number.isSafeInteger(value)) {
        throw new KindError(`${value} is no safe integer: say kind: 'float' or 'numeric'`);
      }
      return SIMPLE.get('integer');
    case 'bigint': return SIMPLE.get('integer');
    case 'string': return SIMPLE.get('text');
    case 'boolean': return SIMPLE.get('boolean');
    default:
  }
  if (value instanceof Uint8Array) {
    return SIMPLE.get('bytea');
  }
  if (value instanceof Date) {
    return SIMPLE.get('timestamptz');
  }
  if (Array.isArray(value)) {
    const first = flatten(value, false).items.find((item) => item !== null);
    if (first !== undefined) {
      return parseKind(`${inferKind(first).name}[]`);
    }
  }
  throw new KindError(`${typeName(value)} does not tell its element kind: say kind: '...'`);
}
