// Filters as query parameters and results of node-postgres.  Run by
// test/py/test_drivers.py, which has made the table of codes and stored a
// filter built in Python.  A line a check: ok or FAILED, and what.
import fs from 'node:fs';
import pg from 'pg';

const TOP = new URL('../../', import.meta.url);
const { BloomFilter } = await import(new URL('clients/javascript/src/index.js', TOP));

function check(ok, what) {
  console.log(`${ok ? 'ok' : 'FAILED'} ${what}`);
}

const client = new pg.Client(process.env.PGOPTIONS ? { options: process.env.PGOPTIONS } : {});
await client.connect();

const { version } = JSON.parse(
  fs.readFileSync(new URL('node_modules/pg/package.json', import.meta.url)));
const codes = (await client.query('SELECT code FROM codes ORDER BY code')).rows.map((r) => r.code);
const wanted = codes.filter((code) => code.endsWith('0'));
const bf = await BloomFilter.create({ capacity: wanted.length, fpr: 0.001 });
bf.update(wanted);
const image = Buffer.from(bf.toBytes());
const expected = codes.filter((code) => bf.has(code));
check(wanted.length === 1000 && expected.length >= 1000 && expected.length < 1060,
  `pg ${version}: a filter of ${wanted.length} codes lets ${expected.length} of ${codes.length} pass`);

// node-postgres sends a Buffer in the binary format
const rows = (await client.query(
  'SELECT code FROM codes WHERE $1::bytea::bloomfilter @> code ORDER BY code', [image])).rows;
check(JSON.stringify(rows.map((r) => r.code)) === JSON.stringify(expected),
  'bytea parameter in binary: the client\'s answers');

// ... and so it can be of type bloomfilter itself
const same = (await client.query(
  'SELECT code FROM codes WHERE $1::bloomfilter @> code ORDER BY code', [image])).rows;
check(JSON.stringify(same) === JSON.stringify(rows), 'bloomfilter parameter in binary: the same');

const text = (await client.query('SELECT $1::bloomfilter::bytea AS b',
  [image.toString('base64')])).rows[0].b;
check(image.equals(text), 'bloomfilter parameter in text (base64), read as bytea');

// In the text format, which is the default, a bytea comes as a Buffer
const python = (await client.query(
  "SELECT filter::bytea AS image FROM filters WHERE name = 'python'")).rows[0].image;
check(image.equals(python),
  'built in Python and stored, read as bytea: the bytes that JavaScript builds');
const read = await BloomFilter.fromBytes(python);
check(wanted.every((code) => read.has(code)), 'and read, it has every code');

const base64 = (await client.query(
  "SELECT filter FROM filters WHERE name = 'python'")).rows[0].filter;
check(image.equals(Buffer.from(base64, 'base64')), 'read without a cast: base64');
// Results in binary are not for filters: node-postgres decodes every field as
// UTF-8 before a type parser sees it.

await client.query("INSERT INTO filters VALUES ('node', $1::bloomfilter)", [image]);
const { equal } = (await client.query(`
  SELECT a.filter = b.filter AND a.filter = (
    SELECT bloom_agg(code, 1000, 0.001) FROM codes WHERE code LIKE '%0') AS equal
  FROM filters a, filters b WHERE a.name = 'node' AND b.name = 'python'`)).rows[0];
check(equal === true, 'stored, it equals Python\'s and the server\'s own');

const broken = Buffer.from(image);
broken[200] ^= 1;
let code = 'none';
try {
  await client.query('SELECT $1::bloomfilter', [broken]);
} catch (error) {
  ({ code } = error);
}
check(/^(22P03|22P02)$/.test(code), `a changed image is refused: ${code}`);

await client.end();
console.log('done');
