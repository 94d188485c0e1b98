/**
 * Digests. The hashes are WebAssembly: loading them is asynchronous, and
 * hashing is not.
 */
import { createBLAKE2b, createXXHash128, createXXHash3 } from 'hash-wasm';

const loaded = new Map();

function once(name, load) {
  if (!loaded.has(name)) {
    loaded.set(name, load());
  }
  return loaded.get(name);
}

function hasher(state) {
  return (bytes) => {
    state.init();
    state.update(bytes);
    return state.digest('binary');
  };
}

/** The function from an element's bytes to its 16 bytes of digest. */
export async function loadDigest(hash, key) {
  if (hash === 'xxh3') {
    return hasher(await once('xxh3', () => createXXHash128(0, 0)));
  }
  if (key.length === 0) {
    return hasher(await once('blake2b', () => createBLAKE2b(128)));
  }
  return hasher(await createBLAKE2b(128, key));
}

/** The function from bytes to their XXH3-64, as a big-endian DataView. */
export async function loadChecksum() {
  const digest = hasher(await once('checksum', () => createXXHash3(0, 0)));
  return (bytes) => {
    const sum = digest(bytes);
    return new DataView(sum.buffer, sum.byteOffset, 8);
  };
}
