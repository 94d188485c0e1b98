/** JavaScript's own: types, errors, and what the vectors do not reach. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { BloomFilter, FormatError, KindError } from '../src/index.js';

async function filled(keys, options = {}) {
  const bf = await BloomFilter.create({ capacity: 100, ...options });
  bf.update(keys);
  return bf;
}

const UUID = '01234567-89ab-cdef-0123-456789abcdef';
const SAMPLES = {
  integer: 42,
  text: 'SP-00042',
  float: 0.5,
  bytea: Uint8Array.of(0, 1),
  uuid: UUID,
  boolean: true,
  date: '2024-02-29',
  time: '12:30:00',
  timestamp: '2024-02-29 12:00:00',
  timestamptz: new Date('2024-02-29T12:00:00Z'),
  timetz: '12:30:00+01',
  macaddr: '08:00:2b:01:02:03',
  macaddr8: '08-00-2b-01-02-03-04-05',
  inet: '::1/64',
  numeric: '1.50',
  'enum:public.mood': 'sad',
  'integer[]': [1, null, 2n],
  '(integer,text)': [1, 'a'],
};

test('a kind for each value', async () => {
  for (const [kind, key] of Object.entries(SAMPLES)) {
    const bf = await filled([key], { kind });
    assert.ok(bf.has(key), kind);
    const again = await BloomFilter.fromBytes(bf.toBytes());
    assert.equal(again.kind, kind);
    assert.equal(again.info.element, kind);
    assert.ok(again.has(key), kind);
  }
});

test('kinds told by the first element', async () => {
  for (const kind of ['integer', 'text', 'bytea', 'boolean', 'timestamptz', 'integer[]']) {
    assert.equal((await filled([SAMPLES[kind]])).kind, kind);
  }
  for (const key of [0.5, NaN, 2 ** 53, [], [null], null, undefined, {}, Symbol('a')]) {
    await assert.rejects(filled([key]), KindError);
  }
});

test('another kind is an error', async () => {
  const strings = new Set(['text', 'enum:public.mood']);
  for (const [kind, key] of Object.entries(SAMPLES)) {
    const bf = await filled([key], { kind });
    for (const [other, probe] of Object.entries(SAMPLES)) {
      const fine = other === kind || (strings.has(kind) && typeof probe === 'string')
        || (kind === 'float' && other === 'integer')
        || (kind === 'timestamptz' && other === 'timestamptz');
      if (!fine) {
        assert.throws(() => bf.has(probe), TypeError, `${kind}, ${other}`);
        assert.throws(() => bf.add(probe), TypeError);
        assert.throws(() => bf.hasMany([key, probe]), TypeError);
      }
    }
    for (const probe of [null, undefined, {}]) {
      assert.throws(() => bf.has(probe), KindError);
    }
    assert.deepEqual(bf.toBytes(), (await filled([key], { kind })).toBytes());
  }
});

test('values that cannot be', async () => {
  const cases = {
    integer: [0.5, 2 ** 53, 2n ** 63n, '1'],
    text: ['\ud800', '\udc00a'],
    uuid: ['x', `${UUID}0`, UUID.slice(1)],
    date: ['2023-02-29', '2024-13-01', '0000-01-01', '24-01-01', new Date()],
    time: ['25:00:00', '24:00:01', '12:60', '12:00:00+01'],
    timestamp: ['2024-01-01', '2024-01-01 12:00:00Z', '2024-01-01T12:00:00+01'],
    timestamptz: ['2024-01-01 12:00:00', new Date(NaN), 5],
    timetz: ['12:00:00'],
    inet: ['1.2.3', '1.2.3.256', '1.2.3.4/33', ':::', '1::2::3', '::1/129', 'g::', '1:2:3:4:5:6:7:8:9'],
    macaddr: ['08:00:2b:01:02', 'x'],
    numeric: ['', '.', '1e', '0x1', 'e5', '1e999999', 1],
    'integer[]': [[[1], [2, 3]], [[], []], 1, 'a'],
    '(integer,text)': [[1], [1, 'a', 2], ['a', 1]],
  };
  for (const [kind, bad] of Object.entries(cases)) {
    const bf = await BloomFilter.create({ capacity: 10, kind });
    for (const value of bad) {
      assert.throws(() => bf.encode(value), (error) => error instanceof KindError
        || error instanceof RangeError, `${kind}: ${String(value)}`);
    }
  }
});

test('equal values are one', async () => {
  const equal = {
    integer: [[5, 5n], [-1, -1n], [-(2 ** 40) - 1, -(2n ** 40n) - 1n]],
    float: [[0, -0]],
    uuid: [[UUID, UUID.toUpperCase()]],
    timestamptz: [[new Date('2024-01-01T12:00:00.5Z'), '2024-01-01 13:00:00.5+01'],
      ['2024-01-01T12:00Z', '2024-01-01 12:00:00.000000+00']],
    numeric: [['5', '5.00', '+5', '0.5e1', '05', '50e-1'], ['0', '-0', '0.000', '0e5'],
      ['Infinity', 'inf'], ['-.001', '-1e-3']],
    inet: [['1.2.3.4', '1.2.3.4/32'], ['::ffff:1.2.3.4', '::ffff:102:304'],
      ['1::', '1:0:0:0:0:0:0:0', '1::0']],
    macaddr: [['08:00:2b:01:02:03', '08002B010203', '08-00-2b-01-02-03']],
    timestamp: [['0001-01-01 00:00', '0001-01-01T00:00:00']],
  };
  for (const [kind, groups] of Object.entries(equal)) {
    const bf = await BloomFilter.create({ capacity: 10, kind });
    for (const [first, ...others] of groups) {
      for (const other of others) {
        assert.deepEqual(bf.encode(other), bf.encode(first), `${kind}: ${first}, ${other}`);
      }
    }
  }
});

test('days before and after those of Date', async () => {
  const bf = await BloomFilter.create({ capacity: 10, kind: 'date' });
  const days = (text) => new DataView(bf.encode(text).buffer).getBigInt64(0, true);
  assert.equal(days('2000-01-01'), 0n);
  assert.equal(days('1999-12-31'), -1n);
  assert.equal(days('0001-01-01'), -730119n);
  assert.equal(days('0001-12-31 BC'), -730120n);
  assert.equal(days('4713-01-01 BC'), -2451507n);
  assert.equal(days('5874897-12-31'), 2145031948n);
  assert.equal(days('infinity'), 2n ** 31n - 1n);
});

test('kinds that cannot be', async () => {
  for (const kind of ['hash:jsonb', '(integer,hash:public.citext)', '', 'int', 'integer[',
    '(integer', '(integer,)', 'enum:', '('.repeat(500), `integer${'[]'.repeat(200)}`,
    `enum:${'x'.repeat(512)}`, 'text ', 5]) {
    await assert.rejects(BloomFilter.create({ capacity: 10, kind }), KindError, String(kind));
  }
  const odd = 'enum:a."b ""c""[],("[]';
  assert.equal((await BloomFilter.create({ capacity: 10, kind: odd })).kind, odd);
  assert.equal((await BloomFilter.create({ capacity: 10, kind: '()' })).encode([]).length, 0);
});

test('parameters', async () => {
  for (const bad of [{ capacity: 0 }, { capacity: 1.5 }, { capacity: 2 ** 54 }, { capacity: '5' },
    { capacity: 1e10 }, { fpr: 0 }, { fpr: 1 }, { fpr: 1e-7 }, { fpr: NaN }, { layout: 'cuckoo' },
    { hash: 'md5' }, { hash: 'toString' }, { key: Uint8Array.of(1) },
    { hash: 'blake2b', key: new Uint8Array(0) }, { hash: 'blake2b', key: new Uint8Array(33) },
    { hash: 'blake2b', key: 'secret' }, { hashes: 0 }, { hashes: 17 }, { hashes: 1.5 }]) {
    await assert.rejects(BloomFilter.create({ capacity: 10, ...bad }), RangeError,
      JSON.stringify(bad));
  }
  assert.throws(() => new BloomFilter({ capacity: 10 }), TypeError);
});

test('an empty filter takes no memory', async () => {
  const bf = await BloomFilter.create({ capacity: 1e8 });
  assert.equal(bf.toBytes().length, 60);
  assert.equal(bf.has('x'), false);
  bf.update([]);
  assert.equal(bf.toBytes().length, 60);
});

test('rate', async () => {
  for (const layout of ['blocked', 'standard']) {
    const bf = await BloomFilter.create({ capacity: 10000, fpr: 0.02, layout });
    for (let i = 0; i < 10000; i++) {
      bf.add(i);
    }
    let hits = 0;
    for (let i = 10000; i < 110000; i++) {
      hits += bf.has(i);
    }
    assert.ok(hits > 1600 && hits < 2400, String(hits));
    const { cardinality, expectedFpr } = bf.info;
    assert.ok(cardinality > 9700 && cardinality < 10300);
    assert.ok(expectedFpr > 0.016 && expectedFpr < 0.024);
  }
});

test('what is given stays as it is', async () => {
  const image = Buffer.from((await filled(['a'])).toBytes());
  const copy = Buffer.from(image);
  const bf = await BloomFilter.fromBytes(image);
  assert.deepEqual(image, copy);
  bf.add('b');
  assert.deepEqual(image, copy);
  image.fill(0);
  assert.ok(bf.has('a'));
  const out = bf.toBytes();
  out.fill(0);
  assert.ok(bf.has('a') && bf.toBytes()[0] === 0x42);
  await assert.rejects(BloomFilter.fromBytes('QkYB'), TypeError);
  await assert.rejects(BloomFilter.fromBytes(image.buffer), TypeError);
});

test('base64', async () => {
  const bf = await filled(['a']);
  const text = bf.toBase64();
  assert.equal((await BloomFilter.fromBase64(text)).toBase64(), text);
  for (const bad of ['', 'Qk', 'Qk==Qk==', `${text}\n`, 'é'.repeat(80), text.slice(4)]) {
    await assert.rejects(BloomFilter.fromBase64(bad), FormatError, bad);
  }
  await assert.rejects(BloomFilter.fromBase64(5), TypeError);
});

test('every flipped bit, and every length', async () => {
  const image = (await filled([1, 2, 3], { hash: 'blake2b', key: Uint8Array.of(1, 2) })).toBytes();
  for (let bit = 0; bit < 8 * image.length; bit++) {
    const bad = image.slice();
    bad[bit >> 3] ^= 1 << (bit & 7);
    await assert.rejects(BloomFilter.fromBytes(bad), FormatError);
  }
  for (let length = 0; length < image.length; length++) {
    await assert.rejects(BloomFilter.fromBytes(image.subarray(0, length)), FormatError);
  }
});

test('adding to what was read', async () => {
  const numbers = Array.from({ length: 200 }, (_, i) => i);
  for (const options of [{}, { layout: 'standard', hash: 'blake2b' }]) {
    const bf = await BloomFilter.fromBytes(
      (await filled(numbers.slice(0, 100), options)).toBytes());
    bf.update(numbers.slice(100));
    assert.deepEqual(bf.toBytes(), (await filled(numbers, options)).toBytes());
  }
});
