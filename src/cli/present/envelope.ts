// Builds the JSON envelope `seq/v1`. Invariant: `ok` is false exactly when `error` is not null; 64-bit values are strings.
import type { SeqError } from '../../core/errors.js';
import type { Envelope, ErrorBody, Meta, Result } from './result.js';

/** Numbers under these names may pass 2^53 in other people's parsers (jq, JavaScript): always strings. */
const WIDE_NUMBER = /^(height|epoch|floor|head)(From|To)?$|(Height|Epoch|Floor|Head)$/;

/** Makes a value fit for JSON: wide numbers and bigints → strings, bytes → base64, undefined → left out (null in lists). */
export function wire(value: unknown, name = ''): unknown {
  if (typeof value === 'bigint') return value.toString();
  if (typeof value === 'number') {
    if (!Number.isFinite(value)) return null;
    return WIDE_NUMBER.test(name) ? String(value) : value;
  }
  if (value === null || typeof value !== 'object') return value;
  if (value instanceof Uint8Array) return Buffer.from(value).toString('base64');
  if (value instanceof Date) return value.toISOString();
  if (Array.isArray(value)) return value.map((entry) => wire(entry, name) ?? null);
  return Object.fromEntries(Object.entries(value).filter(([, entry]) => entry !== undefined).map(([key, entry]) => [key, wire(entry, key)]));
}

export function errorBody(error: SeqError): ErrorBody {
  return {
    code: error.code, exit: error.exit, message: error.message, why: error.why, changed: error.changed,
    changedNodes: error.changedNodes, next: error.next, retryable: error.retryable,
  };
}

export function envelope(kind: string, meta: Meta, outcome: { result?: Result; error?: SeqError; warnings?: string[] }): Envelope {
  const { result, error } = outcome;
  const judged = result?.verdict && result.data !== null && typeof result.data === 'object' && !Array.isArray(result.data)
    ? { ...result.verdict, ...result.data } : result?.data;
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
