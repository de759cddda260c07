// Keeps secrets out of every log line: passwords inside URLs, bearer tokens, and configured secret values. A configured
// value is masked wherever it occurs, for example in an error message of a library that quotes its input.
import { withoutPasswords } from '../url-password.js';

const BEARER = /\b(bearer\s+)[^\s"',]+/gi;
const NAMED = /\b((?:password|passwd|token|secret|authorization)["']?\s*[=:]\s*["']?)(?!bearer\b)[^\s"',&]+/gi;
const SECRET_FIELD = /^(password|passwd|token|secret|authorization|auth|key|cert)$/i;
const MAX_DEPTH = 4;
// eslint-disable-next-line no-control-regex
const CONTROL = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g;

export type Redact = <T>(value: T) => T;

/** `secrets`: configured values of at least 4 characters. Shorter values would mask ordinary words. */
export function redactor(secrets: readonly string[]): Redact {
  const known = [...new Set(secrets.flatMap((secret) => [secret, encodeURIComponent(secret)]))]
    .filter((secret) => secret.length >= 4)
    .sort((a, b) => b.length - a.length);
  const text = (value: string): string => {
    let clean = value;
    for (const secret of known) if (clean.includes(secret)) clean = clean.replaceAll(secret, '***');
    return withoutPasswords(clean).replace(BEARER, '$1***').replace(NAMED, '$1***');
  };
  const any = (value: unknown, depth: number): unknown => {
    if (typeof value === 'string') return text(value);
    if (typeof value !== 'object' || value === null) return value;
    if (depth >= MAX_DEPTH) return '…';
    if (value instanceof Error)
      return { name: value.name, message: text(value.message), stack: text(value.stack ?? '') };
    if (Array.isArray(value)) return value.map((each) => any(each, depth + 1));
    return Object.fromEntries(
      Object.entries(value).map(([name, each]) => [
        name,
        SECRET_FIELD.test(name) && typeof each === 'string' ? '***' : any(each, depth + 1),
      ]),
    );
  };
  return <T>(value: T): T => any(value, 0) as T;
}

/** For user input that a message quotes. An address in the wrong place may still hold a password, in any spelling. */
export function masked(typed: string): string {
  return redactor([])(typed).replace(/\S+/g, (word) => {
    const [colon, at] = [word.indexOf(':'), word.lastIndexOf('@')];
    return colon >= 0 && at > colon ? `${word.slice(0, colon)}:***${word.slice(at)}` : word;
  });
}

/**
 * For data that others wrote onto the nodes. It cleans every text at any depth, names included, and removes characters
 * that move a terminal's cursor.
 */
export function cleaner(secrets: readonly string[]): <T>(value: T) => T {
  const redact = redactor(secrets);
  const any = (value: unknown): unknown => {
    if (typeof value === 'string') return redact(value).replace(CONTROL, '\ufffd');
    if (value === null || typeof value !== 'object') return value;
    if (Array.isArray(value)) return value.map(any);
    return Object.fromEntries(Object.entries(value).map(([name, each]) => [any(name), any(each)]));
  };
  return <T>(value: T): T => any(value) as T;
}
