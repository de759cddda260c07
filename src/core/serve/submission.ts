// A submission's body → items, or the line that is wrong. Nothing is submitted unless the whole body is well-formed:
// the order of a half-taken batch would be unclear. It is strict on purpose: an unknown field (`Key`) or loose base64
// would silently change what is sequenced.
import { isUtf8 } from 'node:buffer';
import { keyProblem } from '../chain/items.js';
import type { Item } from '../ports.js';
import { HttpError, malformed } from './envelope.js';
import { maxItemBytes, type HttpLimits } from './limits.js';

const NEWLINE = 0x0a;
const LONE_SURROGATE = /\p{Surrogate}/u;

function checkKey(key: unknown, at: string, facts?: Record<string, number>): string {
  const problem = typeof key === 'string' ? keyProblem(key) : 'a key is a string';
  if (problem !== null) throw malformed(`${at}: this is no key`, problem, [], facts);
  return key as string;
}

function checkSize(item: Item, at: string, limits: HttpLimits, facts?: Record<string, number>): void {
  const most = maxItemBytes(limits.maxBlockBytes, item.key === undefined ? 0 : Buffer.byteLength(item.key));
  if (item.data.length <= most) return;
  throw new HttpError({
    status: 413,
    code: 'ITEM_TOO_LARGE',
    message: `${at} has ${item.data.length} bytes; at most ${most} fit into one block`,
    why: `a block holds ${limits.maxBlockBytes} bytes, less its framing and the key`,
    retryable: false,
    next: ['split the item, or raise --max-block-bytes on every sequencer'],
    facts: { ...facts, limit: most },
  });
}

/**
 * Header bytes reach a program as Latin-1. A key is UTF-8 wherever it is given, so that one key in a header and in a
 * line of NDJSON is one key.
 */
function headerText(value: string): string {
  const bytes = Buffer.from(value, 'latin1');
  if (isUtf8(bytes)) return bytes.toString('utf8');
  throw malformed('Idempotency-Key: this is no key', 'a key is UTF-8, and these bytes are not', [
    'send the key as UTF-8, or the item as NDJSON: {"key": …, "data": …}',
  ]);
}

/**
 * Throws when the body is a batch of lines that was sent as one item. It would be sequenced as one item, and the keys
 * of its lines would be part of the data. `application/octet-stream` says that the bytes are the item.
 */
export function refuseUndeclaredBatch(body: Buffer, type: string): void {
  if (type === 'application/octet-stream' || !isBatch(body, type)) return;
  throw malformed(
    `the body is NDJSON, and Content-Type is ${type === '' ? 'missing' : JSON.stringify(type.slice(0, 80))}`,
    'sent so it would be one item, and the keys in it would not count',
    [
      'send it with Content-Type: application/x-ndjson',
      'if these bytes are one item: Content-Type: application/octet-stream',
    ],
  );
}

/** Lines of items; or, where JSON is promised, lines of objects that are no JSON document together. */
function isBatch(body: Buffer, type: string): boolean {
  // `{`: nearly every other body is passed on after one byte.
  if (body[0] !== 0x7b) return false;
  const end = body.indexOf(NEWLINE);
  const first = objectOf(body.toString('utf8', 0, end < 0 ? body.length : end));
  if (first === null) return false;
  const names = Object.keys(first);
  if (names.every((name) => name === 'key' || name === 'data' || name === 'base64'))
    return typeof first['data'] === 'string' || typeof first['base64'] === 'string';
  if (end < 0 || !/[/+]json$/.test(type)) return false;
  const next = body.indexOf(NEWLINE, end + 1);
  return objectOf(body.toString('utf8', end + 1, next < 0 ? body.length : next)) !== null;
}

function objectOf(text: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : null;
  } catch {
    return null;
  }
}

/** The whole body is the item. `keys` are the values of the Idempotency-Key header. */
export function parseSingle(body: Buffer, keys: readonly string[], limits: HttpLimits): Item {
  if (keys.length > 1) throw malformed('there is more than one Idempotency-Key header', 'one item has one key');
  const key = keys[0] === undefined ? undefined : checkKey(headerText(keys[0]), 'Idempotency-Key');
  const item: Item = key === undefined ? { data: body } : { key, data: body };
  checkSize(item, 'the item', limits);
  return item;
}

function dataOf(
  fields: Record<string, unknown>,
  escaped: boolean,
  at: string,
  facts: Record<string, number>,
): Uint8Array {
  const { data, base64 } = fields;
  if ((data === undefined) === (base64 === undefined))
    throw malformed(`${at}: exactly one of "data" and "base64" is needed`, 'data is text, base64 is bytes', [], facts);
  if (base64 === undefined) {
    if (typeof data !== 'string')
      throw malformed(`${at}: "data" is not a string`, 'send other values as the text that stands for them', [], facts);
    // Encoding half of a surrogate pair would silently become U+FFFD. It can only come from an escape: the body
    // itself is valid UTF-8.
    if (escaped && LONE_SURROGATE.test(data))
      throw malformed(
        `${at}: "data" is not valid Unicode`,
        'it holds half of a surrogate pair; send such bytes as base64',
        [],
        facts,
      );
    return Buffer.from(data, 'utf8');
  }
  if (typeof base64 !== 'string')
    throw malformed(`${at}: "base64" is not a string`, 'standard base64 with padding is needed', [], facts);
  const bytes = Buffer.from(base64, 'base64');
  if (bytes.toString('base64') !== base64)
    throw malformed(`${at}: "base64" is not canonical base64`, 'standard alphabet, padding, nothing else', [], facts);
  return bytes;
}

/** One `{key?, data|base64}` a line. Line numbers count from 1. */
export function parseLines(body: Buffer, limits: HttpLimits): Item[] {
  if (!isUtf8(body)) throw malformed('the body is not valid UTF-8', 'NDJSON is UTF-8; send bytes as base64');
  const items: Item[] = [];
  let start = 0;
  while (start < body.length) {
    const found = body.indexOf(NEWLINE, start);
    const end = found < 0 ? body.length : found;
    const number = items.length + 1;
    const at = `line ${number}`;
    const facts = { line: number };
    if (number > limits.maxBatchItems) {
      throw new HttpError({
        status: 413,
        code: 'BATCH_TOO_LARGE',
        message: `more than ${limits.maxBatchItems} items in one request`,
        why: 'a request is held in memory until it is committed',
        next: ['send fewer items per request'],
        retryable: false,
        facts: { limit: limits.maxBatchItems },
      });
    }
    const text = body.toString('utf8', start, end);
    let value: unknown;
    try {
      value = JSON.parse(text);
    } catch (error) {
      throw malformed(`${at} is not JSON`, (error as Error).message.slice(0, 200), [], facts);
    }
    if (typeof value !== 'object' || value === null || Array.isArray(value))
      throw malformed(
        `${at} is not an object`,
        'each line is {"key"?: …, "data": …} or {"key"?: …, "base64": …}',
        [],
        facts,
      );
    const fields = value as Record<string, unknown>;
    for (const name in fields) {
      if (name !== 'key' && name !== 'data' && name !== 'base64')
        throw malformed(
          `${at} has the unknown field ${JSON.stringify(name.slice(0, 40))}`,
          'only key, data and base64 are known; a misspelt key would switch de-duplication off',
          [],
          facts,
        );
    }
    const data = dataOf(fields, text.includes('\\u'), at, facts);
    const item: Item = fields.key === undefined ? { data } : { key: checkKey(fields.key, at, facts), data };
    checkSize(item, at, limits, facts);
    items.push(item);
    start = end + 1;
  }
  if (items.length === 0) throw malformed('the body is empty', 'an NDJSON submission has at least one line');
  return items;
}
