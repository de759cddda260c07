// A server that holds the keys of the fuel dialect (docs/FUEL.md), as a port that can only read. One list has every
// command that it may send. Payloads are hashed as they arrive and dropped. A key of the wrong type is a finding about
// the node: the node has answered.
import { createHash } from 'node:crypto';
import {
  MOST_HEIGHT,
  type FuelEntry,
  type FuelProbeResult,
  type FuelPiece,
  type FuelPort,
  type IndexPiece,
  type UnreadableEntry,
  type WrongKey,
} from '../../dialect-fuel/types.js';
import type { NodeReply } from '../../protocol/types.js';
import {
  Connection,
  isErrorReply,
  send,
  type ConnectionSettings,
  type SentinelSettings,
  type TlsSettings,
} from '../connection.js';
import { list, parseInfo, readOrUnknown, text, UnreadableReply } from '../replies.js';
import { parseNodeUrl } from '../url.js';
import type { Wire } from '../wire/wire.js';

export interface FuelNodeOptions {
  id: string;
  url: string;
  leaseKey: string;
  username?: string;
  password?: string;
  tls?: TlsSettings;
  renew?: ConnectionSettings['renew'];
  sentinel?: SentinelSettings;
  /** false: ioredis writes the commands and reads the answers (SEQ_DISABLE=own-resp). */
  ownResp?: boolean;
}

type ReadCommand =
  'get' | 'pttl' | 'xlen' | 'xinfo' | 'xrange' | 'xrevrange' | 'zcard' | 'zrangebyscore' | 'zrevrange' | 'info';
const U64_MOST = 2n ** 64n - 1n;

export class FuelNode implements FuelPort {
  readonly id: string;
  readonly url: string;
  private readonly connection: Connection;
  private readonly keys: { lock: string; epoch: string; stream: string; index: string };

  constructor(options: FuelNodeOptions) {
    const address = parseNodeUrl(options.url);
    const { leaseKey: lock, username, password, tls, sentinel, ownResp, renew } = options;
    this.id = options.id;
    this.url = address.redacted;
    this.keys = { lock, epoch: `${lock}:epoch:token`, stream: `${lock}:block:stream`, index: `${lock}:heights:index` };
    this.connection = new Connection({
      address,
      ...(username === undefined ? {} : { username }),
      ...(password === undefined ? {} : { password }),
      ...(renew === undefined ? {} : { renew }),
      ...(tls === undefined ? {} : { tls }),
      ...(sentinel === undefined ? {} : { sentinel }),
      ...(ownResp === undefined ? {} : { ownResp }),
    });
  }

  async probe(limitMs: number): Promise<NodeReply<FuelProbeResult>> {
    const { lock, epoch, stream, index } = this.keys;
    const answer = await this.connection.run(limitMs, async (client) => {
      const asked = [
        read(client, 'get', [lock]),
        read(client, 'pttl', [lock]),
        read(client, 'get', [epoch]),
        read(client, 'xlen', [stream]),
        read(client, 'zcard', [index]),
        read(client, 'xinfo', ['STREAM', stream]).catch(serverSays),
        read(client, 'info', ['server']).catch(serverSays),
      ];
      const [owner, pttl, token, entries, indexed, about, info] = await Promise.all(
        asked.map((one, at) => one.catch(wrongType([lock, lock, epoch, stream, index][at] ?? ''))),
      );
      return { owner, pttl, token, entries, indexed, about, info };
    });
    if (!answer.answered) return answer.reply;
    return readOrUnknown((): NodeReply<FuelProbeResult> => ({
      outcome: 'accepted',
      incarnation: '',
      value: probeOf(answer.value, this.keys),
    }));
  }

  async entries(
    range: { after: string; count: number; newestFirst?: boolean },
    limitMs: number,
  ): Promise<NodeReply<FuelPiece>> {
    const { after, count, newestFirst = false } = range;
    const from = after === '' ? (newestFirst ? '+' : '-') : `(${after}`;
    const answer = await this.connection.run(limitMs, (client) =>
      (newestFirst
        ? read(client, 'xrevrange', [this.keys.stream, from, '-', 'COUNT', count])
        : read(client, 'xrange', [this.keys.stream, from, '+', 'COUNT', count])
      ).catch(wrongType(this.keys.stream)),
    );
    if (!answer.answered) return answer.reply;
    return readOrUnknown((): NodeReply<FuelPiece> => ({
      outcome: 'accepted',
      incarnation: '',
      value: pieceOf(answer.value instanceof WrongType ? [] : answer.value),
    }));
  }

  async index(
    range: { after: string; count: number; newest?: boolean },
    limitMs: number,
  ): Promise<NodeReply<IndexPiece>> {
    const { after, count, newest = false } = range;
    const answer = await this.connection.run(limitMs, (client) =>
      (newest
        ? read(client, 'zrevrange', [this.keys.index, 0, count - 1, 'WITHSCORES'])
        : read(client, 'zrangebyscore', [
            this.keys.index,
            after === '' ? '-inf' : `(${after}`,
            '+inf',
            'WITHSCORES',
            'LIMIT',
            0,
            count,
          ])
      ).catch(wrongType(this.keys.index)),
    );
    if (!answer.answered) return answer.reply;
    return readOrUnknown((): NodeReply<IndexPiece> => ({
      outcome: 'accepted',
      incarnation: '',
      value: indexOf(answer.value instanceof WrongType ? [] : answer.value, newest ? Infinity : count),
    }));
  }

  async close(): Promise<void> {
    this.connection.close();
  }
}

class WrongType {
  constructor(readonly key: string) {}
}

/** The only function of this file that sends a command. */
function read(client: Wire, command: ReadCommand, args: (string | number)[]): Promise<unknown> {
  return send(client, command, args);
}

function wrongType(key: string): (error: unknown) => WrongType {
  return (error) => {
    if (isErrorReply(error) && error.message.startsWith('WRONGTYPE')) return new WrongType(key);
    throw error;
  };
}

/** For answers that help but are not required. Null when the server refuses (old, restricted, no such key). */
function serverSays(error: unknown): null {
  if (isErrorReply(error)) return null;
  throw error;
}

function probeOf(
  raw: Record<'owner' | 'pttl' | 'token' | 'entries' | 'indexed' | 'about' | 'info', unknown>,
  keys: { lock: string; epoch: string },
): FuelProbeResult {
  const wrong: WrongKey[] = [];
  for (const one of [raw.owner, raw.token, raw.entries, raw.indexed])
    if (one instanceof WrongType) wrong.push({ key: one.key, why: 'it is of another type' });
  const known = (value: unknown): unknown => (value instanceof WrongType ? null : value);
  const owner = known(raw.owner);
  const pttlMs = Number(text(known(raw.pttl) ?? -2));
  if (owner !== null && pttlMs === -1) wrong.push({ key: keys.lock, why: 'it has no time to live: it never expires' });
  const token = known(raw.token);
  let epoch: bigint | null = null;
  if (token !== null) {
    epoch = u64(text(token));
    if (epoch === null) wrong.push({ key: keys.epoch, why: 'it is not a whole number' });
  }
  const info = raw.info === null ? {} : parseInfo(text(raw.info));
  const entries = Number(text(known(raw.entries) ?? 0));
  const indexed = Number(text(known(raw.indexed) ?? 0));
  return {
    lock: owner === null ? null : { owner: text(owner).slice(0, 200), pttlMs: Math.max(0, pttlMs) },
    epoch,
    entries,
    indexed: indexed === 0 ? null : indexed,
    trimmed: trimmedOf(raw.about, entries),
    wrong,
    runId: info['run_id'] ?? '',
    version: info['valkey_version'] ?? info['redis_version'] ?? '',
  };
}

function trimmedOf(about: unknown, entries: number): boolean | null {
  if (!Array.isArray(about)) return entries === 0 ? false : null;
  for (let at = 0; at + 1 < about.length; at += 2)
    if (text(about[at]) === 'entries-added') return Number(text(about[at + 1])) > entries;
  return null;
}

function u64(digits: string): bigint | null {
  if (!/^\d{1,20}$/.test(digits)) return null;
  const value = BigInt(digits);
  return value > U64_MOST ? null : value;
}

function heightOf(digits: string): number | null {
  if (!/^\d{1,10}$/.test(digits)) return null;
  const value = Number(digits);
  return value > MOST_HEIGHT ? null : value;
}

function pieceOf(raw: unknown): FuelPiece {
  const entries: FuelEntry[] = [];
  const unreadable: UnreadableEntry[] = [];
  let lastId = '';
  let largest = 0;
  const all = list(raw);
  for (const one of all) {
    const [rawId, rawFields] = list(one);
    const id = text(rawId);
    if (!/^\d+-\d+$/.test(id)) throw new UnreadableReply(`'${id.slice(0, 50)}' is not a stream id`);
    lastId = id;
    const flat = list(rawFields);
    const fields = new Map<string, Buffer>();
    for (let at = 0; at + 1 < flat.length; at += 2)
      if (Buffer.isBuffer(flat[at + 1])) fields.set(text(flat[at]), flat[at + 1] as Buffer);
    largest = Math.max(largest, ...[...fields.values()].map((value) => value.length));
    const entry = entryOf(id, fields);
    if ('why' in entry) unreadable.push(entry);
    else entries.push(entry);
  }
  return { entries, unreadable, lastId, count: all.length, largest };
}

function entryOf(id: string, fields: Map<string, Buffer>): FuelEntry | UnreadableEntry {
  const [height, data, epoch, timestamp] = ['height', 'data', 'epoch', 'timestamp'].map((name) => fields.get(name));
  if (height === undefined || data === undefined)
    return { id, why: `field ${height === undefined ? 'height' : 'data'} is missing` };
  const at = heightOf(height.toString('latin1'));
  if (at === null)
    return {
      id,
      why: `its height '${height
        .toString('latin1')
        .slice(0, 20)
        .replace(/[^\x20-\x7e]/g, '?')}' is not a whole number below 2^32`,
    };
  const term = epoch === undefined ? 0n : u64(epoch.toString('latin1'));
  const seconds = timestamp === undefined ? null : u64(timestamp.toString('latin1'));
  return {
    id,
    height: at,
    digest: createHash('sha256').update(data).digest('hex').slice(0, 32),
    epoch: term ?? 0n,
    size: data.length,
    timestamp: seconds === null || seconds > 8_640_000_000_000n ? null : Number(seconds) * 1000,
    malformed: term === null ? 'its epoch is not a whole number below 2^64' : '',
  };
}

function indexOf(raw: unknown, asked: number): IndexPiece {
  const flat = list(raw);
  const heights: number[] = [];
  const wrong: string[] = [];
  for (let at = 0; at + 1 < flat.length; at += 2) {
    const [member, score] = [text(flat[at]), text(flat[at + 1])];
    const height = heightOf(member);
    if (height === null || Number(score) !== height)
      wrong.push(`member ${member.slice(0, 40).replace(/[^\x20-\x7e]/g, '?')} with score ${score}`);
    else heights.push(height);
  }
  return { heights, wrong, next: flat.length / 2 < asked ? null : text(flat[flat.length - 1]) };
}
