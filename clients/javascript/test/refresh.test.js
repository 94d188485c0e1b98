/** The refresher. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { BloomFilter, FormatError, KindError, Refresher } from '../src/index.js';

async function image(...keys) {
  const bf = await BloomFilter.create({ capacity: 1000 });
  bf.update(keys);
  return bf.toBytes();
}

/** A table with a filter in it. */
async function source(...keys) {
  const table = { etag: '1', bytes: await image(...keys), fetched: 0, error: null };
  table.fetch = async (etag) => {
    if (table.error !== null) {
      throw table.error;
    }
    if (etag === table.etag) {
      return null;
    }
    table.fetched += 1;
    return { etag: table.etag, bytes: table.bytes };
  };
  return table;
}

async function until(done) {
  const end = performance.now() + 10000;
  while (!done()) {
    assert.ok(performance.now() < end);
    await sleep(5);
  }
}

test('only when it has changed', async () => {
  const table = await source('a');
  const refresher = new Refresher(table.fetch);
  assert.ok(refresher.maybe('b'));      // nothing there yet
  assert.equal(await refresher.refresh(), true);
  assert.equal(await refresher.refresh(), false);
  assert.equal(table.fetched, 1);
  assert.equal(refresher.maybe('a'), true);
  assert.equal(refresher.maybe('b'), false);
  Object.assign(table, { etag: '2', bytes: await image('a', 'b') });
  const [one, two] = await Promise.all([refresher.refresh(), refresher.refresh()]);
  assert.ok(one && two && table.fetched === 2);
  assert.equal(refresher.etag, '2');
  assert.equal(refresher.maybe('b'), true);
});

test('errors leave the old one', async () => {
  const table = await source('a');
  const refresher = new Refresher(table.fetch, { maxAge: 50 });
  await refresher.refresh();
  table.error = new Error('no database');
  await assert.rejects(refresher.refresh(), /no database/);
  assert.equal(refresher.maybe('b'), false);
  await sleep(60);
  assert.equal(refresher.maybe('b'), true);     // too old to say no
  table.error = null;
  await refresher.refresh();
  assert.equal(refresher.maybe('b'), false);
  Object.assign(table, { etag: '2', bytes: table.bytes.slice(1) });
  await assert.rejects(refresher.refresh(), FormatError);
  assert.equal(refresher.etag, '1');
  assert.equal(refresher.maybe('b'), false);
  await assert.rejects(new Refresher(async () => null).refresh(), /no filter/);
});

test('added keys outlive a swap', async () => {
  const table = await source('a');
  const refresher = new Refresher(table.fetch, { keep: 50 });
  refresher.add('early');
  await refresher.refresh();
  refresher.add('new');
  assert.ok(refresher.maybe('early') && refresher.maybe('new'));
  Object.assign(table, { etag: '2', bytes: await image('a', 'c') });
  await refresher.refresh();
  assert.ok(refresher.maybe('early') && refresher.maybe('new') && !refresher.maybe('other'));
  assert.throws(() => refresher.add(5), KindError);
  await sleep(60);
  Object.assign(table, { etag: '3', bytes: await image('a', 'new') });
  await refresher.refresh();
  assert.ok(refresher.maybe('new') && !refresher.maybe('early'));
});

test('in the background', async () => {
  const table = await source('a');
  const errors = [];
  const refresher = new Refresher(table.fetch, { onError: (error) => errors.push(error) });
  refresher.start(5);
  assert.throws(() => refresher.start(5));
  await until(() => refresher.filter !== null);
  table.error = new Error('gone');
  await until(() => errors.length > 0);
  Object.assign(table, { error: null, etag: '2', bytes: await image('b') });
  await until(() => refresher.etag === '2');
  refresher.stop();
});
