// What a node keeps as evidence (docs/PROTOCOL.md section 2): superseded entries, newest first, and the one stream that
// was set aside. Entries are read a few at a time, and a payload is dropped as soon as its hash is checked. A node
// keeps up to 32 MiB, and this process never holds all of it in memory.
import { blockHash } from '../chain/block.js';
import type { OrphanEntry, OrphansRead } from '../ports.js';
import type { Block } from '../protocol/types.js';
import { send } from './connection.js';
import type { NodeKeys } from './keys.js';
import { list, pttl, text, UnreadableReply, whole } from './replies.js';
import type { Wire } from './wire/wire.js';

const PIECE = 16;
/** Time beyond the node timeout that 32 MiB may take. */
export const ORPHAN_MS = 700;

/** Resolves to a reader of the raw answers. The reader throws when the answers cannot be read. */
export async function readOrphans(client: Wire, keys: NodeKeys, limit: number): Promise<() => OrphansRead> {
  const [total, aside] = await Promise.all([
    send(client, 'xlen', [keys.orphans]),
    send(client, 'hget', [keys.admission, 'aside']),
  ]);
  const superseded: OrphanEntry[] = [];
  let before = '+';
  while (superseded.length < limit) {
    const piece = list(
      await send(client, 'xrevrange', [keys.orphans, before, '-', 'COUNT', Math.min(PIECE, limit - superseded.length)]),
    );
    for (const one of piece) superseded.push(orphanOf(one));
    if (piece.length === 0 || superseded.length >= limit) break;
    before = `(${superseded.at(-1)?.id ?? ''}`;
  }
  const setAside = aside === null ? null : await asideOf(client, `${keys.orphans}:${text(aside)}`, text(aside));
  return () => ({ superseded, total: whole(total), setAside });
}

async function asideOf(client: Wire, key: string, nonce: string): Promise<OrphansRead['setAside']> {
  const [length, left, first, last] = await Promise.all([
    send(client, 'xlen', [key]),
    send(client, 'pttl', [key]),
    send(client, 'xrange', [key, '-', '+', 'COUNT', 1]),
    send(client, 'xrevrange', [key, '+', '-', 'COUNT', 1]),
  ]);
  const expiresMs = pttl(left);
  // The stream has expired. Only its name is left in the record.
  if (expiresMs === -2) return null;
  return {
    nonce,
    entries: whole(length),
    from: heightOf(first),
    to: heightOf(last),
    expiresMs: expiresMs < 0 ? null : expiresMs,
  };
}

function heightOf(answer: unknown): number | null {
  const [entry] = list(answer);
  if (entry === undefined) return null;
  const height = Number(text(list(entry)[0]).split('-')[0]);
  return Number.isSafeInteger(height) ? height : null;
}

/** The block that an entry holds. Throws when the entry is gone or damaged. */
export function orphanBlock(raw: unknown): Block {
  const entry = orphanOf(raw);
  const { data } = fieldsOf(raw);
  if (entry.damage !== '' || entry.height === null || entry.timestamp === null || data === undefined)
    throw new UnreadableReply(`an orphan that is damaged: ${entry.damage}`);
  return { height: entry.height, hash: entry.hash, parent: entry.parent, timestamp: entry.timestamp, data };
}

function fieldsOf(raw: unknown): { id: unknown; fields: Map<string, Buffer>; data: Buffer | undefined } {
  const [id, rawFields] = list(raw);
  const flat = list(rawFields);
  const fields = new Map<string, Buffer>();
  for (let at = 0; at + 1 < flat.length; at += 2) {
    const value = flat[at + 1];
    if (Buffer.isBuffer(value)) fields.set(text(flat[at]), value);
  }
  return { id, fields, data: fields.get('data') };
}

/** Does not throw for damaged fields, so that evidence is shown as far as it can be read. */
function orphanOf(raw: unknown): OrphanEntry {
  const { id, fields, data } = fieldsOf(raw);
  const of = (name: string): string => fields.get(name)?.toString('latin1') ?? '';
  const number = (name: string): number | null => {
    const value = of(name);
    return /^(0|[1-9]\d{0,15})$/.test(value) && Number.isSafeInteger(Number(value)) ? Number(value) : null;
  };
  const [height, timestamp] = [number('height'), number('timestamp')];
  const entry = {
    id: text(id),
    height,
    epoch: number('epoch'),
    hash: of('hash'),
    parent: of('parent'),
    owner: fields.get('owner')?.toString() ?? '',
    timestamp,
    size: data?.length ?? 0,
    supersededBy: of('superseded_by'),
    at: number('at'),
  };
  const readable = height !== null && timestamp !== null && data !== undefined && /^[0-9a-f]{64}$/.test(entry.parent);
  const damage = !readable
    ? 'a field is missing or cannot be read'
    : blockHash({ height, parent: entry.parent, timestamp, data }) === entry.hash
      ? ''
      : 'its hash is not that of its content';
  return { ...entry, damage };
}
