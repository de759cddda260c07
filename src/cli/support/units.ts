// Durations, sizes and counts as people write them. A bare number is never a duration: nobody should have to guess its
// unit.
import { EXIT, SeqError } from '../../core/errors.js';
import { masked } from '../../core/log/redact.js';

const DURATION_UNITS: Record<string, number> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };
const SIZE_UNITS: Record<string, number> = {
  B: 1,
  KB: 1000,
  MB: 1000 ** 2,
  GB: 1000 ** 3,
  KiB: 1024,
  MiB: 1024 ** 2,
  GiB: 1024 ** 3,
};

/** A value that cannot be parsed: 64 on the command line, 78 in a file. `meant`: the value that was probably meant. */
export function badValue(
  what: string,
  text: string,
  wanted: string,
  exit: 64 | 78 = EXIT.usage,
  meant?: string,
): SeqError {
  return new SeqError({
    code: 'BAD_VALUE',
    exit,
    message: `${what}: '${masked(text)}' is not ${wanted}${meant === undefined ? '' : `; did you mean ${meant}?`}`,
    why: 'the value cannot be read',
    changed: 'nothing',
    next: [meant === undefined ? `give ${what} as ${wanted}` : `${what} ${meant}`],
  });
}

/** `500ms`, `2s`, `1h30m` → ms. `0` needs no unit. */
export function parseDuration(text: string, what = 'duration'): number {
  const wanted = 'a duration like 500ms, 2s or 1h30m (a bare number has no unit)';
  if (text === '0') return 0;
  const parts = [...text.matchAll(/(\d+(?:\.\d+)?)(ms|s|m|h|d)/gy)];
  const read = parts.map((part) => part[0]).join('');
  const meant = /^\d+(\.\d+)?$/.test(text) ? `${text}s` : undefined;
  if (parts.length === 0 || read !== text) throw badValue(what, text, wanted, EXIT.usage, meant);
  const units = parts.map((part) => part[2] as string);
  const descending = units.every(
    (unit, at) => at === 0 || (DURATION_UNITS[unit] ?? 0) < (DURATION_UNITS[units[at - 1] as string] ?? 0),
  );
  const ms = Math.round(
    parts.reduce((sum, part) => sum + Number(part[1]) * (DURATION_UNITS[part[2] as string] ?? 0), 0),
  );
  if (!descending || !Number.isSafeInteger(ms)) throw badValue(what, text, wanted);
  return ms;
}

/** `1000`, `256KiB`, `16MiB` → bytes. Without a unit: bytes. */
export function parseSize(text: string, what = 'size'): number {
  const match = /^(\d+(?:\.\d+)?)(B|[KMG]B|[KMG]iB)?$/.exec(text);
  const bytes = match ? Number(match[1]) * (SIZE_UNITS[match[2] ?? 'B'] ?? 0) : NaN;
  if (!Number.isSafeInteger(bytes)) throw badValue(what, text, 'a size like 1000, 256KiB or 16MiB');
  return bytes;
}

/**
 * A whole number 0 … 2^53−1, digits only: heights, epochs, counts. `1e3`, `0x10`, `-1`, `+1` are refused.
 * `or`: words that are accepted instead of a number.
 */
export function parseCount(text: string, what = 'number', least = 0, or = ''): number {
  const value = /^\d{1,16}$/.test(text) ? Number(text) : NaN;
  if (!Number.isSafeInteger(value) || value < least)
    throw badValue(what, text, `${or}a whole number from ${least} to 9007199254740991, digits only`);
  return value;
}

/** 0 → `0ms`, 1500 → `1.5s`, 5400000 → `1h30m`. parseDuration reads this text back (rounded to 1 ms). */
export function formatDuration(ms: number): string {
  const whole = Math.round(ms);
  if (whole < 1000) return `${whole}ms`;
  if (whole < 60_000) return `${whole / 1000}s`;
  let rest = Math.round(whole / 1000);
  let text = '';
  for (const [unit, size] of [
    ['d', 86_400],
    ['h', 3600],
    ['m', 60],
    ['s', 1],
  ] as const) {
    const count = Math.floor(rest / size);
    rest -= count * size;
    if (count > 0) text += `${count}${unit}`;
  }
  return text;
}

/** 262144 → `256KiB`. */
export function formatSize(bytes: number): string {
  for (const unit of ['GiB', 'MiB', 'KiB'] as const) {
    const size = SIZE_UNITS[unit] as number;
    if (bytes >= size) return `${Math.round((bytes / size) * 10) / 10}${unit}`;
  }
  return `${bytes}B`;
}
