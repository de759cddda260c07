// Raw stream entries → entries and damaged entries (docs/PROTOCOL.md sections 2 and 8). With payloads every hash is recomputed: a node
// cannot check SHA-256 itself, so this is where a flipped byte or a hand-edited entry is found. Damaged ones are listed, never dropped.
import { blockHash } from '../chain/block.js';
import type { DamagedEntry, EntriesRead, Entry } from '../protocol/words.js';
import { list, text, UnreadableReply, whole } from './replies.js';

const ID = /^(0|[1-9]\d{0,19})-(0|[1-9]\d{0,19})$/;
export const HASH = /^[0-9a-f]{64}$/;

function number(fields: Map<string, Buffer>, name: string): number {
  const raw = fields.get(name);
  if (raw === undefined) throw new UnreadableReply(`field ${name} is missing`);
  try {
    return whole(raw);
  } catch {
    throw new UnreadableReply(`field ${name} is not a whole number below 2^53`);
  }
}

function hash(fields: Map<string, Buffer>, name: string): string {
  const value = fields.get(name)?.toString('latin1');
  if (value === undefined) throw new UnreadableReply(`field ${name} is missing`);
  if (!HASH.test(value)) throw new UnreadableReply(`field ${name} is not 64 hex digits`);
  return value;
}

/**
 * Blocks whose hash was checked a moment ago. Nodes hold the same blocks: a copy that equals one of these byte for byte needs no second SHA-256,
 * and comparing is ten times as fast. Emptied when full, so what it holds is bounded.
 */
const checked = new Map<string, { height: number; parent: string; timestamp: number; data: Buffer }>();
let checkedBytes = 0;
const MOST_CHECKED = 2048;
const MOST_CHECKED_BYTES = 8 * 1024 * 1024;

function isItsHash({ height, hash: name, parent, timestamp }: Entry, data: Buffer): boolean {
  const known = checked.get(name);
  if (known !== undefined && known.height === height && known.parent === parent && known.timestamp === timestamp && known.data.equals(data)) return true;
  if (blockHash({ height, parent, timestamp, data }) !== name) return false;
  if (checked.size >= MOST_CHECKED || checkedBytes + data.length > MOST_CHECKED_BYTES) {
    checked.clear();
    checkedBytes = 0;
  }
  if (data.length <= MOST_CHECKED_BYTES) {
    checked.set(name, { height, parent, timestamp, data });
    checkedBytes += data.length;
  }
  return true;
}

function readEntry(id: string, fields: Map<string, Buffer>, withData: boolean): Entry {
  const height = number(fields, 'height');
  const epoch = number(fields, 'epoch');
  if (id !== `${height}-${epoch}`) throw new UnreadableReply(`its fields say ${height}-${epoch}`);
  const data = fields.get('data');
  if (data === undefined) throw new UnreadableReply('field data is missing');
  const owner = fields.get('owner');
  if (owner === undefined) throw new UnreadableReply('field owner is missing');
  const entry: Entry = {
    height, hash: hash(fields, 'hash'), parent: hash(fields, 'parent'), timestamp: number(fields, 'timestamp'),
    epoch, owner: owner.toString(), size: data.length,
  };
  if (!withData) return entry;
  if (!isItsHash(entry, data)) {
    throw new UnreadableReply('its hash is not that of its content');
  }
  return { ...entry, data };
}

/** The answer of XRANGE, XREVRANGE, or of one stream of XREAD. Throws UnreadableReply when it is no such answer. */
export function parseEntries(raw: unknown, options: { data: boolean }): EntriesRead {
  const entries: Entry[] = [];
  const damaged: DamagedEntry[] = [];
  let lastId = '';
  for (const one of list(raw)) {
    const [rawId, rawFields] = list(one);
    const id = text(rawId);
    const parts = ID.exec(id);
    if (parts === null) throw new UnreadableReply(`'${id.slice(0, 50)}' is not a stream id`);
    lastId = id;
    try {
      const flat = list(rawFields);
      const fields = new Map<string, Buffer>();
      for (let i = 0; i + 1 < flat.length; i += 2) {
        const value = flat[i + 1];
        if (Buffer.isBuffer(value)) fields.set(text(flat[i]), value);
      }
      entries.push(readEntry(id, fields, options.data));
    } catch (error) {
      if (!(error instanceof UnreadableReply)) throw error;
      const height = Number(parts[1]);
      damaged.push({ id, height: Number.isSafeInteger(height) ? height : null, why: error.message });
    }
  }
  return { entries, damaged, lastId };
}
