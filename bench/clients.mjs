/**
 * The JavaScript half of clients.py: node --expose-gc bench/clients.mjs [KEYS]
 */
import { BloomFilter } from '../clients/javascript/src/index.js';

const KEYS = Number(process.argv[2] ?? 1e6);
const PROBES = 200_000;
const ROUNDS = 5;

function best(run, n) {
  let least = Infinity;
  for (let i = 0; i < ROUNDS; i++) {
    const began = performance.now();
    run();
    least = Math.min(least, performance.now() - began);
  }
  return (least * 1e6) / n;
}

/** Buffers are freed a little after they are found to be garbage */
async function memory() {
  for (let i = 0; i < 3; i++) {
    globalThis.gc();
    await new Promise((resolve) => {
      setImmediate(resolve);
    });
  }
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

function line(what, nanoseconds, size) {
  console.log(`  ${what.padEnd(44)}${nanoseconds.toFixed(0).padStart(8)} ns `
    + (size === undefined ? '' : `${(size / 1e6).toFixed(1).padStart(10)} MB`));
}

let hits = 0;

async function measure(kind, keyOf) {
  const probes = [];
  for (let i = 0; i < PROBES; i++) {
    probes.push(keyOf(i % 2 === 0 ? (i * 7919) % KEYS : KEYS + i));
  }
  console.log(`\nJavaScript, ${KEYS.toLocaleString('en')} ${kind} keys, half of the probes absent`);
  let before = await memory();
  let set = new Set();
  for (let i = 0; i < KEYS; i++) {
    set.add(keyOf(i));
  }
  const size = (await memory()) - before;
  line('Set', best(() => {
    for (const key of probes) {
      hits += set.has(key);
    }
  }, PROBES), size);
  set = null;
  for (const [hash, layout] of [['xxh3', 'blocked'], ['xxh3', 'standard'], ['blake2b', 'blocked']]) {
    const built = await BloomFilter.create({ capacity: KEYS, layout, hash });
    const began = performance.now();
    for (let i = 0; i < KEYS; i++) {
      built.add(keyOf(i));
    }
    const add = ((performance.now() - began) * 1e6) / KEYS;
    const bytes = built.toBytes();
    before = await memory();
    const bf = await BloomFilter.fromBytes(bytes);
    const taken = (await memory()) - before;
    const what = `BloomFilter, ${layout}, ${hash}`;
    line(`${what}: has`, best(() => {
      for (const key of probes) {
        hits += bf.has(key);
      }
    }, PROBES), taken);
    line(`${what}: add`, add);
  }
}

// flattened, as keys from outside are, and not the two halves of a sum
const code = (i) => Buffer.from(`SP-${String(i).padStart(10, '0')}`).toString();
await measure('text', code);
await measure('integer', (i) => i * 7919 + 2 ** 40);
console.log(`\n  ${hits > 0 ? `node ${process.version}` : ''}`);
