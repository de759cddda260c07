// Whose word is an answer? Only a sequencer's own JSON is its word: receipts, blocks, its status, or the envelope of
// its errors. Proxies, balancers and login pages answer too. What they say is named with its status and its first
// words, and decides nothing.
import type { HttpAnswer } from './http-call.js';

export type Answered = Extract<HttpAnswer, { outcome: 'answered' }>;

/** The error that a sequencer tells. */
export interface ErrorWord {
  code: string;
  message: string;
  why: string;
  /** More facts, such as `line` and `head`. */
  facts: Record<string, unknown>;
}

export function parseObject(body: Buffer | string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(body.toString());
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : undefined;
  } catch {
    return undefined;
  }
}

/** A sequencer's envelope always has these fields. The JSON errors of gateways have others. */
export function errorWord(value: Record<string, unknown> | undefined): ErrorWord | undefined {
  const error = value?.['error'];
  if (typeof error !== 'object' || error === null) return undefined;
  const { code, message, why, retryable } = error as Record<string, unknown>;
  return typeof code === 'string' &&
    /^[A-Z][A-Z0-9_]*$/.test(code) &&
    typeof message === 'string' &&
    typeof why === 'string' &&
    typeof retryable === 'boolean'
    ? { code, message: message.slice(0, 500), why: why.slice(0, 500), facts: error as Record<string, unknown> }
    : undefined;
}

/**
 * True when a request with this answer of somebody in between certainly did not reach a sequencer. A proxy refuses with
 * 3xx and 4xx before it passes a request on. With any other status it may have passed it on first.
 */
export function refusedOnTheWay({ status }: Pick<Answered, 'status'>): boolean {
  return status >= 300 && status < 500;
}

/** `somebody in between answered 502, text/html: "Bad Gateway"`. */
export function inBetween({ status, headers, body }: Pick<Answered, 'status' | 'headers' | 'body'>): string {
  const type = headers['content-type']?.split(';', 1)[0]?.trim() ?? '';
  const words = firstWords(body);
  return (
    `somebody in between answered ${status}` +
    (type === '' ? '' : `, ${type.slice(0, 60)}`) +
    (words === '' ? ', without a word' : `: "${words}"`) +
    (headers.location === undefined ? '' : `; it names ${headers.location.slice(0, 200)}`)
  );
}

const MOST_WORDS = 80;

/** What a person would read first: the text of a page without its tags. */
function firstWords(body: Buffer): string {
  const text = body
    .toString('utf8', 0, 4096)
    .replace(/<(script|style|head)\b[\s\S]*?<\/\1>/gi, ' ')
    .replace(/<[^>]*>/g, ' ')
    .replace(/[\s\p{C}]+/gu, ' ')
    .trim();
  return text.length > MOST_WORDS ? `${text.slice(0, MOST_WORDS)}…` : text;
}
