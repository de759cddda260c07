// Builds the JSON envelope `seq/v1`. Invariant: `ok` is false exactly when `error` is not null; 64-bit values are
// strings.
import type { SeqError } from '../../core/errors.js';
import type { Envelope, ErrorBody, Meta, Result } from './result.js';

/** Numbers with these names may exceed 2^53 in other people's parsers (jq, JavaScript), so they are always strings. */
const WIDE_NUMBER = /^(height|epoch|floor|head)(From|To)?$|(Height|Epoch|Floor|Head)$/;

/**
 * Makes a value fit for JSON: wide numbers and bigints → strings, bytes → base64, undefined → left out (null in
 * lists).
 */
export function wire(value: unknown, name = ''): unknown {
  if (typeof value === 'bigint') return value.toString();
  if (typeof value === 'number') {
    if (!Number.isFinite(value)) return null;
    return isWide(name) ? String(value) : value;
  }
  if (value === null || typeof value !== 'object') return value;
  if (value instanceof Uint8Array) return Buffer.from(value).toString('base64');
  if (value instanceof Date) return value.toISOString();
  if (Array.isArray(value)) return value.map((entry) => wire(entry, name) ?? null);
  const fields = value as Record<string, unknown>;
  const fit: Record<string, unknown> = {};
  // Plain loops for speed: a matrix has tens of thousands of fields.
  for (const key of Object.keys(fields))
    if (fields[key] !== undefined && key !== '__proto__') fit[key] = wire(fields[key], key);
  return fit;
}

const known = new Map<string, boolean>();
function isWide(name: string): boolean {
  let wide = known.get(name);
  if (wide === undefined) {
    wide = WIDE_NUMBER.test(name);
    if (known.size < 1000) known.set(name, wide);
  }
  return wide;
}

function errorBody(error: SeqError): ErrorBody {
  return {
    code: error.code,
    exit: error.exit,
    message: error.message,
    why: error.why,
    changed: error.changed,
    changedNodes: error.changedNodes,
    next: error.next,
    retryable: error.retryable,
  };
}

export function envelope(
  kind: string,
  meta: Meta,
  outcome: { result?: Result; error?: SeqError; warnings?: string[] },
): Envelope {
  const { result, error } = outcome;
  const judged =
    result?.verdict && result.data !== null && typeof result.data === 'object' && !Array.isArray(result.data)
      ? { ...result.verdict, ...(result.next ? { next: result.next } : {}), ...result.data }
      : result?.data;
  return {
    apiVersion: 'seq/v1',
    kind,
    ok: error === undefined,
    data: wire(judged ?? null),
    warnings: [...(outcome.warnings ?? []), ...(result?.warnings ?? [])],
    error: error ? errorBody(error) : null,
    meta: { ...meta, ...result?.meta },
  };
}
