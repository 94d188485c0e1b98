/**
 * An element. The filter's kind says how it is read:
 *
 * - number (a safe integer) or bigint: integer; any number: float
 * - string: text, uuid, date, time, timetz, timestamp, timestamptz, inet,
 *   macaddr, macaddr8, numeric, and an enum's label, in PostgreSQL's text form
 *   (ISO dates; timestamptz and timetz with an offset)
 * - Uint8Array: bytea; boolean: boolean; Date: timestamptz
 * - an array, with null for NULL: array or record
 *
 * What cannot be read so throws, and never is a wrong "no".
 */
export type Key = number | bigint | string | boolean | Uint8Array | Date | ReadonlyArray<Key | null>;

export type Layout = 'standard' | 'blocked' | 'counting' | 'cuckoo';
export type Hash = 'xxh3' | 'blake2b';

/** What the server's bloom_info tells. */
export interface Info {
  layout: Layout;
  hash: Hash;
  keyed: boolean;
  /** the kind by its name, as in docs/format.md; null while the filter is empty */
  element: string | null;
  /** false: only the server can probe it */
  portable: boolean;
  /** null: unsized */
  capacity: number | null;
  targetFpr: number;
  bits: number;
  /** null of cuckoo and scalable filters */
  hashes: number | null;
  expansion: number;
  layers: number;
  bitsSet: number;
  fill: number;
  /** about how many distinct elements */
  cardinality: number;
  /** as the filter is filled now */
  expectedFpr: number;
  /** of the image */
  bytes: number;
}

export interface Options {
  /** a whole number of elements */
  capacity: number;
  /** 0.01 where it is not given */
  fpr?: number;
  layout?: 'standard' | 'blocked';
  hash?: Hash;
  /** 1 to 32 bytes; only with blake2b */
  key?: Uint8Array | null;
  /** replaces k */
  hashes?: number | null;
  /** as in docs/format.md; where it is not given, the first element tells it */
  kind?: string | null;
}

export class BloomFilter {
  private constructor();

  /** An empty filter for so many elements, as the server sizes it. */
  static create(options: Options): Promise<BloomFilter>;
  /** The filter whose filter::bytea these are; FormatError if they are not. */
  static fromBytes(data: Uint8Array): Promise<BloomFilter>;
  /** The same of the text form. */
  static fromBase64(text: string): Promise<BloomFilter>;

  /** false: certainly not added. true: maybe. */
  has(key: Key): boolean;
  hasMany(keys: Iterable<Key>): boolean[];
  add(key: Key): void;
  update(keys: Iterable<Key>): void;
  /** What the server's filter::bytea of the same elements is. */
  toBytes(): Uint8Array;
  toBase64(): string;

  readonly info: Info;
  /** The elements' kind; null: not known yet. */
  readonly kind: string | null;
  /** The bytes that stand for an element. */
  encode(key: Key): Uint8Array;
  /** The server's bloom_hash of an element. */
  digest(key: Key): Uint8Array;
}

/** Bytes that are not a filter. */
export class FormatError extends Error {}
/** A value of another kind than the filter's elements. */
export class KindError extends TypeError {}

export interface RefresherOptions {
  /** milliseconds after which an unconfirmed filter is not trusted any more */
  maxAge?: number;
  /** milliseconds that added keys are remembered; 600000 */
  keep?: number;
  onError?: (error: unknown) => void;
}

/**
 * Holds the newest filter, and fetches it again when it has changed.
 *
 * fetch(etag) resolves to null if the filter's ETag is still this one. Without
 * a filter, or with one not confirmed for maxAge, every answer is "maybe".
 */
export class Refresher {
  constructor(
    fetch: (etag: string | null) => Promise<{ etag: string; bytes: Uint8Array } | null | undefined>,
    options?: RefresherOptions,
  );

  /** false: certainly not there. true: ask the database. */
  maybe(key: Key): boolean;
  /** maybe(key) is true from now on, whatever is fetched meanwhile: call it
   * before the key is committed. */
  add(key: Key): void;
  /** Fetch if it has changed; resolves to whether it had. A rejection changes
   * nothing. */
  refresh(): Promise<boolean>;
  /** Refresh every interval milliseconds or so. */
  start(interval: number): void;
  stop(): void;

  readonly filter: BloomFilter | null;
  readonly etag: string | null;
  /** milliseconds since the filter was last known to be the newest */
  readonly age: number;
}
