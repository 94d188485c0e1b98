/** Bytes that are not a filter, or not one of a version known here. */
export class FormatError extends Error {
  constructor(what) {
    super(`not a bloom filter: ${what}`);
    this.name = 'FormatError';
  }
}

/** A value of another kind than the filter's elements, or a filter whose
 * elements only the server can hash. */
export class KindError extends TypeError {
  constructor(message) {
    super(message);
    this.name = 'KindError';
  }
}
