export { BloomFilter } from './filter.js';
export { FormatError, KindError } from './errors.js';
export { Refresher } from './refresh.js';
