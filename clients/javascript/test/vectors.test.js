/** The golden vectors of test/vectors.txt. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import test from 'node:test';
import { BloomFilter, FormatError } from '../src/index.js';
import { decoder } from './values.js';

const lines = readFileSync(new URL('../../../test/vectors.txt', import.meta.url), 'utf8')
  .split('\n').filter((line) => line !== '' && !line.startsWith('#'));

/** A line's fields, the last of which is the rest */
function fields(line, n) {
  const parts = line.split(' ');
  return [...parts.slice(0, n - 1), parts.slice(n - 1).join(' ')];
}

const unhex = (hex) => Uint8Array.from(hex === '-' ? [] : Buffer.from(hex, 'hex'));
const hex = (bytes) => Buffer.from(bytes).toString('hex');

const images = [];
for (const line of lines) {
  const [word] = line.split(' ', 1);
  if (word === 'image') {
    const [, name, options, image] = fields(line, 4);
    images.push({
      name, options: JSON.parse(options), image: unhex(image), yes: [], no: [],
    });
  } else if (word === 'yes' || word === 'no') {
    const { options, [word]: keys } = images[images.length - 1];
    keys.push(decoder(options.kind)(JSON.parse(fields(line, 3)[2])));
  }
}

test('digests', async () => {
  let count = 0;
  for (const line of lines.filter((l) => l.startsWith('digest '))) {
    const [, hash, key, digest, bytes, kind, json] = fields(line, 7);
    const name = kind.replaceAll('\\u0020', ' ');
    const bf = await BloomFilter.create({
      capacity: 1, hash, key: key === '-' ? null : unhex(key), kind: name,
    });
    const value = decoder(name)(JSON.parse(json));
    assert.equal(hex(bf.encode(value)) || '-', bytes, line);
    assert.equal(hex(bf.digest(value)), digest, line);
    count += 1;
  }
  assert.ok(count > 100);
});

test('images', async () => {
  assert.ok(images.length > 30);
  for (const { name, image, yes, no } of images) {
    const bf = await BloomFilter.fromBytes(image);
    assert.ok(yes.every((key) => bf.has(key)), name);
    assert.deepEqual(bf.hasMany(no), no.map(() => false), name);
    assert.equal(hex(bf.toBytes()), hex(image), name);
  }
});

test('built', async () => {
  for (const { name, options, image, yes } of images.filter((i) => i.options.build)) {
    const bf = await BloomFilter.create({
      ...options, key: options.key ? unhex(options.key) : null,
    });
    bf.update(yes);
    assert.equal(hex(bf.toBytes()), hex(image), name);
  }
});

test('bad images', async () => {
  let count = 0;
  for (const line of lines.filter((l) => l.startsWith('bad '))) {
    const [, what, image] = fields(line, 3);
    await assert.rejects(BloomFilter.fromBytes(unhex(image)), FormatError, what);
    count += 1;
  }
  assert.ok(count > 40);
});
