import { BloomFilter } from './filter.js';

/**
 * Holds the newest filter, and fetches it again when it has changed. The types
 * are documented in index.d.ts.
 */
export class Refresher {
  #fetch;
  #maxAge;
  #keep;
  #onError;
  #filter = null;
  #etag = null;
  #confirmed = -Infinity;
  #recent = [];                 // [until, key]
  #overlay = new Set();         // the bytes of recent keys, as strings
  #running = null;
  #timer = null;

  constructor(fetch, { maxAge = Infinity, keep = 600_000, onError = () => {} } = {}) {
    this.#fetch = fetch;
    this.#maxAge = maxAge;
    this.#keep = keep;
    this.#onError = onError;
  }

  get filter() {
    return this.#filter;
  }

  get etag() {
    return this.#etag;
  }

  get age() {
    return performance.now() - this.#confirmed;
  }

  maybe(key) {
    const filter = this.#filter;
    if (filter === null || this.age > this.#maxAge) {
      return true;
    }
    return filter.has(key)
      || (this.#overlay.size > 0 && this.#overlay.has(String(filter.encode(key))));
  }

  add(key) {
    if (this.#filter !== null) {
      this.#overlay.add(String(this.#filter.encode(key)));  // throws at another kind
    }
    this.#prune();
    this.#recent.push([performance.now() + this.#keep, key]);
  }

  #prune() {
    const now = performance.now();
    if (this.#recent.length > 0 && this.#recent[0][0] <= now) {
      this.#recent = this.#recent.filter(([until]) => until > now);
    }
  }

  refresh() {
    // one at a time: who comes meanwhile gets the same answer
    this.#running ??= this.#refresh().finally(() => {
      this.#running = null;
    });
    return this.#running;
  }

  async #refresh() {
    const began = performance.now();
    const answer = await this.#fetch(this.#etag);
    const changed = answer !== null && answer !== undefined;
    if (!changed && this.#filter === null) {
      throw new Error('fetch returned nothing, but there is no filter yet');
    }
    const filter = changed ? await BloomFilter.fromBytes(answer.bytes) : this.#filter;
    this.#prune();
    this.#overlay = new Set(this.#recent.map(([, key]) => String(filter.encode(key))));
    this.#filter = filter;
    this.#confirmed = began;
    if (changed) {
      this.#etag = answer.etag;
    }
    return changed;
  }

  start(interval) {
    if (this.#timer !== null) {
      throw new Error('already started');
    }
    const timer = { next: null };
    this.#timer = timer;
    const run = async () => {
      try {
        await this.refresh();
      } catch (error) {
        this.#onError(error);
      }
      if (this.#timer === timer) {
        // not all processes at the same moment
        timer.next = setTimeout(run, interval * (0.9 + 0.2 * Math.random()));
        timer.next.unref?.();
      }
    };
    run();
  }

  stop() {
    clearTimeout(this.#timer?.next ?? undefined);
    this.#timer = null;
  }
}
