/** Values of the golden vectors: in JSON, a scalar in PostgreSQL's text form. */
import { parseKind } from '../src/kinds.js';

const SCALARS = {
  integer: (text) => (Number.isSafeInteger(Number(text)) ? Number(text) : BigInt(text)),
  float: Number,
  bytea: (text) => Uint8Array.from(text.match(/../g) ?? [], (hex) => Number.parseInt(hex, 16)),
  boolean: (text) => text === 'true',
};

/** An array's element, or one of its arrays */
function decodeElement(element, item) {
  return Array.isArray(item) && element.number < 17
    ? item.map((inner) => decodeElement(element, inner))
    : decodeBy(element, item);
}

function decodeBy(kind, value) {
  if (value === null) {
    return null;
  }
  if (kind.number === 18) {
    return value.map((item, i) => decodeBy(kind.parts[i], item));
  }
  if (kind.number === 17) {
    return value.map((item) => decodeElement(kind.parts[0], item));
  }
  return SCALARS[kind.name] === undefined ? value : SCALARS[kind.name](value);
}

/** The decoder of a kind's JSON values */
export function decoder(name) {
  const kind = parseKind(name);
  return (value) => decodeBy(kind, value);
}
