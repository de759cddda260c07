// Turns raw answers of a server into the three values of docs/PROTOCOL.md section 1. A refusal proves that nothing was
// executed. An answer that cannot be read is unknown, with an alarm. It never counts as "no" or "empty".
import { InvariantError } from '../errors.js';
import {
  SCRIPT_REASONS,
  SERVER_REASONS,
  type NodeReply,
  type RefusalDetail,
  type RefusalReason,
  type Refused,
  type Unknown,
} from '../protocol/types.js';

const scriptReasons: ReadonlySet<string> = new Set(SCRIPT_REASONS);
/**
 * Errors of Redis that prove that nothing was executed, by their first word. NOSCRIPT is handled where calls are sent.
 */
const serverReasons: ReadonlyMap<string, RefusalReason> = new Map<string, RefusalReason>([
  ...SERVER_REASONS.map((reason) => [reason, reason] as const),
  ['WRONGPASS', 'NOAUTH'],
]);
/**
 * Redis 7 gives this answer, without an error code of its own, when the user may not run a command inside a script. Our
 * scripts pass the error on only before their first write. After their first write they answer `half done`.
 */
const DENIED_IN_SCRIPT = /^ERR (The user executing the script can't|ACL failure in script)/;

/** Thrown by the readers below. It becomes `unknown` with an alarm. */
export class UnreadableReply extends Error {}

export function text(raw: unknown): string {
  if (Buffer.isBuffer(raw)) return raw.toString();
  if (typeof raw === 'string') return raw;
  if (typeof raw === 'number') return String(raw);
  throw new UnreadableReply(`a text was expected, not ${kindOf(raw)}`);
}

/** Digits only, at most 2^53−1. */
export function whole(raw: unknown): number {
  const digits = text(raw);
  if (!/^(0|[1-9]\d{0,15})$/.test(digits))
    throw new UnreadableReply(`a whole number was expected, not '${digits.slice(0, 40)}'`);
  const value = Number(digits);
  if (!Number.isSafeInteger(value)) throw new UnreadableReply(`${digits} is above 2^53-1`);
  return value;
}

/** The answer of PTTL: −1 without an expiry, −2 without a key. */
export function pttl(raw: unknown): number {
  const digits = text(raw);
  return /^-[12]$/.test(digits) ? Number(digits) : whole(digits);
}

export function list(raw: unknown): unknown[] {
  if (Array.isArray(raw)) return raw as unknown[];
  throw new UnreadableReply(`a list was expected, not ${kindOf(raw)}`);
}

/** A flat list of names and values. */
export function record(raw: unknown): Map<string, unknown> {
  const flat = list(raw);
  if (flat.length % 2 !== 0) throw new UnreadableReply('a list of pairs has an odd length');
  const map = new Map<string, unknown>();
  for (let i = 0; i < flat.length; i += 2) map.set(text(flat[i]), flat[i + 1]);
  return map;
}

function kindOf(raw: unknown): string {
  return raw === null ? 'nothing' : Array.isArray(raw) ? 'a list' : typeof raw;
}

function detailOf(raw: unknown[]): RefusalDetail {
  const detail: RefusalDetail = {};
  for (const [name, value] of record(raw)) {
    switch (name) {
      case 'check': {
        const check = text(value);
        if (check !== 'lock' && check !== 'epoch') throw new UnreadableReply(`check '${check.slice(0, 20)}'`);
        detail.check = check;
        break;
      }
      case 'pttlMs':
        detail.pttlMs = pttl(value);
        break;
      case 'epoch':
        detail.epoch = whole(value);
        break;
      case 'head':
        detail.head = whole(value);
        break;
      case 'floor':
        detail.floor = whole(value);
        break;
      case 'holder':
      case 'hash':
      case 'to':
      case 'by':
      case 'why':
      case 'actual':
      case 'message':
        detail[name] = text(value);
        break;
      default:
        throw new UnreadableReply(`a detail named '${name.slice(0, 40)}'`);
    }
  }
  return detail;
}

/** Runs a reader of raw data. The reply is unknown when the reader throws. */
export function readOrUnknown<T>(read: () => NodeReply<T>): NodeReply<T> {
  try {
    return read();
  } catch (error) {
    if (error instanceof InvariantError) throw error;
    return {
      outcome: 'unknown',
      step: 'reply',
      cause: `the answer cannot be read: ${error instanceof Error ? error.message : String(error)}`,
      alarm: true,
    };
  }
}

/** A script's answer. `parse` gets the values after the incarnation. */
export function parseReply<T>(raw: unknown, parse: (values: unknown[]) => T): NodeReply<T> {
  return readOrUnknown(() => {
    const parts = list(raw);
    const word = text(parts[0]);
    if (word === 'accepted') return { outcome: 'accepted', incarnation: text(parts[1]), value: parse(parts.slice(2)) };
    if (word !== 'refused') throw new UnreadableReply(`it starts with '${word.slice(0, 40)}'`);
    const reason = text(parts[1]);
    if (!scriptReasons.has(reason)) throw new UnreadableReply(`it was refused with '${reason.slice(0, 40)}'`);
    return { outcome: 'refused', reason: reason as RefusalReason, detail: detailOf(parts.slice(2)) };
  });
}

/** An error reply of Redis. The server has answered, so the connection is fine. */
export function parseErrorReply(message: string): Refused | Unknown {
  const word = DENIED_IN_SCRIPT.test(message) ? 'NOPERM' : (/^[A-Z]+/.exec(message)?.[0] ?? '');
  const reason = serverReasons.get(word);
  // The server's sentence may quote arguments. Keep one line of bounded length.
  const sentence = message.split('\n', 1)[0]?.slice(0, 200) ?? '';
  if (reason !== undefined) return { outcome: 'refused', reason, detail: { message: sentence } };
  return { outcome: 'unknown', step: 'reply', cause: sentence === '' ? 'an empty error' : sentence, alarm: true };
}

/** `name:value` lines of INFO. */
export function parseInfo(raw: string): Record<string, string> {
  const info: Record<string, string> = {};
  for (const line of raw.split(/\r?\n/)) {
    const colon = line.indexOf(':');
    if (colon > 0 && !line.startsWith('#')) info[line.slice(0, colon)] = line.slice(colon + 1);
  }
  return info;
}

/**
 * Whose memory a server has, from INFO server and replication, in the form of the scripts (lua, "common: run id"). ''
 * for a replica. `noted` is the name in a record; a record of version 0.1.0 has another form.
 */
export function memoryOf(info: Record<string, string>, noted = '+'): string {
  if (info['role'] === 'slave') return '';
  const run = info['run_id'] ?? '';
  if (noted.includes('+')) return `${run}+${info['master_replid'] ?? ''}`;
  const former = info['master_replid2'] ?? '';
  return /[^0]/.test(former) ? `${run}/${former}:${/^\d+/.exec(info['second_repl_offset'] ?? '')?.[0] ?? ''}` : run;
}
