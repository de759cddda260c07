// Turns raw stream entries into entries and damaged entries (docs/PROTOCOL.md sections 2 and 8). Every hash is
// recomputed when the payload is there. A node cannot check SHA-256 itself, so a flipped byte or a hand-edited entry is
// found here. Damaged entries are listed, never dropped.
import { blockHash } from '../chain/block.js';
import { MAX_NUMBER, type DamagedEntry, type EntriesRead, type Entry } from '../protocol/types.js';
import { list, text, UnreadableReply } from './replies.js';

const ID = /^(0|[1-9]\d{0,19})-(0|[1-9]\d{0,19})$/;
export const HASH = /^[0-9a-f]{64}$/;
const [ZERO, DASH] = [48, 45];

/**
 * A script takes no number above 2^48, so no term wrote such an entry. Nobody could take it over, because the scripts
 * of the other nodes would refuse it.
 */
function number(fields: Map<string, Buffer>, name: string): number {
  const raw = fields.get(name);
  if (raw === undefined) throw new UnreadableReply(`field ${name} is missing`);
  const value = digits(raw);
  if (value < 0) throw new UnreadableReply(`field ${name} is not a whole number of at most 2^48`);
  return value;
}

function hash(fields: Map<string, Buffer>, name: string): string {
  const value = fields.get(name)?.toString('latin1');
  if (value === undefined) throw new UnreadableReply(`field ${name} is missing`);
  if (!HASH.test(value)) throw new UnreadableReply(`field ${name} is not 64 hex digits`);
  return value;
}

/** A block whose hash was checked recently. Its Buffers belong to the answer that it came with. */
interface Checked {
  rawHash: Buffer;
  rawParent: Buffer;
  hash: string;
  parent: string;
  timestamp: number;
  data: Buffer;
}

/**
 * Nodes hold the same blocks. A copy that equals a checked block byte for byte needs no second SHA-256, and comparing
 * is ten times as fast. The cache is emptied when it is full, so that its size is bounded.
 */
const checked = new Map<number, Checked>();
let checkedBytes = 0;
const MOST_CHECKED = 2048;
const MOST_CHECKED_BYTES = 8 * 1024 * 1024;

function remember(height: number, one: Checked): void {
  const former = checked.get(height)?.data.length ?? 0;
  if (checked.size >= MOST_CHECKED || checkedBytes - former + one.data.length > MOST_CHECKED_BYTES) {
    checked.clear();
    checkedBytes = 0;
  } else {
    checkedBytes -= former;
    checked.delete(height);
  }
  if (one.data.length > MOST_CHECKED_BYTES) return;
  checked.set(height, one);
  checkedBytes += one.data.length;
}

/** Where each value is in an entry's list of names and values. As a rule, a stream has one order. */
interface Layout {
  names: Buffer[];
  at: Record<Field, number>;
}
type Field = 'height' | 'epoch' | 'timestamp' | 'parent' | 'hash' | 'owner' | 'data';

let layout: Layout = {
  names: [],
  at: { height: -1, epoch: -1, timestamp: -1, parent: -1, hash: -1, owner: -1, data: -1 },
};

function isLaidOut({ names }: Layout, flat: readonly unknown[]): boolean {
  if (flat.length !== 2 * names.length) return false;
  for (let i = 0; i < names.length; i += 1) {
    const name = flat[2 * i];
    if (name === names[i]) continue; // own-resp gives a repeated string as the same Buffer
    if (!Buffer.isBuffer(name) || !name.equals(names[i] as Buffer)) return false;
    names[i] = name;
  }
  return true;
}

function layoutOf(flat: readonly unknown[]): Layout | null {
  const names = flat.filter((_, at) => at % 2 === 0);
  const words = names.map((name) => (Buffer.isBuffer(name) ? name.toString('latin1') : ''));
  if (flat.length % 2 !== 0 || new Set(words).size < words.length) return null;
  const at = (field: Field): number => 2 * words.indexOf(field) + 1;
  const found = {
    height: at('height'),
    epoch: at('epoch'),
    timestamp: at('timestamp'),
    parent: at('parent'),
    hash: at('hash'),
    owner: at('owner'),
    data: at('data'),
  };
  return Object.values(found).includes(-1) ? null : { names: names as Buffer[], at: found };
}

/** Digits → number; −1 when they are not a whole number, or above 2^48. */
function digits(raw: Buffer): number {
  const { length } = raw;
  if (length === 0 || length > 16 || (length > 1 && raw[0] === ZERO)) return -1;
  let value = 0;
  for (let i = 0; i < length; i += 1) {
    const digit = (raw[i] as number) - ZERO;
    if (digit < 0 || digit > 9) return -1;
    value = value * 10 + digit;
  }
  return value <= MAX_NUMBER ? value : -1;
}

function isIdOf(id: Buffer, height: Buffer, epoch: Buffer): boolean {
  const dash = height.length;
  if (id.length !== dash + 1 + epoch.length || id[dash] !== DASH) return false;
  for (let i = 0; i < dash; i += 1) if (id[i] !== height[i]) return false;
  for (let i = 0; i < epoch.length; i += 1) if (id[dash + 1 + i] !== epoch[i]) return false;
  return true;
}

let ownerBytes: Buffer = Buffer.alloc(0);
let ownerText = '';
function ownerOf(raw: Buffer): string {
  if (raw !== ownerBytes) [ownerBytes, ownerText] = [raw, raw.toString()];
  return ownerText;
}

/** Reads a sound entry of the usual form, and creates few strings. Null: `readEntry` must say what is wrong. */
function soundEntry(id: unknown, flat: readonly unknown[], withData: boolean): Entry | null {
  if (!isLaidOut(layout, flat)) {
    const found = layoutOf(flat);
    if (found === null) return null;
    layout = found;
  }
  const { at } = layout;
  const [rawHeight, rawEpoch, rawTimestamp] = [flat[at.height], flat[at.epoch], flat[at.timestamp]];
  const [rawHash, rawParent, rawOwner, data] = [flat[at.hash], flat[at.parent], flat[at.owner], flat[at.data]];
  if (
    !Buffer.isBuffer(id) ||
    !Buffer.isBuffer(rawHeight) ||
    !Buffer.isBuffer(rawEpoch) ||
    !Buffer.isBuffer(rawTimestamp)
  )
    return null;
  if (!Buffer.isBuffer(rawHash) || !Buffer.isBuffer(rawParent) || !Buffer.isBuffer(rawOwner) || !Buffer.isBuffer(data))
    return null;
  const [height, epoch, timestamp] = [digits(rawHeight), digits(rawEpoch), digits(rawTimestamp)];
  if (height < 0 || epoch < 0 || timestamp < 0 || !isIdOf(id, rawHeight, rawEpoch)) return null;
  const owner = ownerOf(rawOwner);
  const size = data.length;
  const known = checked.get(height);
  if (
    known !== undefined &&
    known.timestamp === timestamp &&
    known.rawHash.equals(rawHash) &&
    known.rawParent.equals(rawParent)
  ) {
    const { hash, parent } = known;
    if (!withData) return { height, hash, parent, timestamp, epoch, owner, size };
    if (known.data.equals(data)) return { height, hash, parent, timestamp, epoch, owner, size, data };
  }
  const hash = rawHash.toString('latin1');
  const parent = rawParent.toString('latin1');
  if (!HASH.test(hash) || !HASH.test(parent)) return null;
  if (!withData) return { height, hash, parent, timestamp, epoch, owner, size };
  if (blockHash({ height, parent, timestamp, data }) !== hash) return null;
  remember(height, { rawHash, rawParent, hash, parent, timestamp, data });
  return { height, hash, parent, timestamp, epoch, owner, size, data };
}

/** Reads any entry. Throws UnreadableReply, which says what is wrong with the entry. */
function readEntry(id: string, fields: Map<string, Buffer>, withData: boolean): Entry {
  const height = number(fields, 'height');
  const epoch = number(fields, 'epoch');
  if (id !== `${height}-${epoch}`) throw new UnreadableReply(`its fields say ${height}-${epoch}`);
  const data = fields.get('data');
  if (data === undefined) throw new UnreadableReply('field data is missing');
  const owner = fields.get('owner');
  if (owner === undefined) throw new UnreadableReply('field owner is missing');
  const entry: Entry = {
    height,
    hash: hash(fields, 'hash'),
    parent: hash(fields, 'parent'),
    timestamp: number(fields, 'timestamp'),
    epoch,
    owner: owner.toString(),
    size: data.length,
  };
  if (!withData) return entry;
  if (blockHash({ ...entry, data }) !== entry.hash) throw new UnreadableReply('its hash is not that of its content');
  return { ...entry, data };
}

/** Reads the answer of XRANGE, XREVRANGE, or of one stream of XREAD. Throws UnreadableReply for any other answer. */
export function parseEntries(raw: unknown, options: { data: boolean }): EntriesRead {
  const entries: Entry[] = [];
  const damaged: DamagedEntry[] = [];
  let last: unknown;
  for (const one of list(raw)) {
    const [rawId, rawFields] = list(one);
    const sound = Array.isArray(rawFields) ? soundEntry(rawId, rawFields, options.data) : null;
    last = rawId;
    if (sound !== null) {
      entries.push(sound);
      continue;
    }
    const id = text(rawId);
    const parts = ID.exec(id);
    if (parts === null) throw new UnreadableReply(`'${id.slice(0, 50)}' is not a stream id`);
    const fields = new Map<string, Buffer>();
    try {
      const flat = list(rawFields);
      for (let i = 0; i + 1 < flat.length; i += 2) {
        const value = flat[i + 1];
        if (Buffer.isBuffer(value)) fields.set(text(flat[i]), value);
      }
      entries.push(readEntry(id, fields, options.data));
    } catch (error) {
      if (!(error instanceof UnreadableReply)) throw error;
      const height = Number(parts[1]);
      const owner = fields.get('owner')?.toString();
      damaged.push({
        id,
        height: Number.isSafeInteger(height) ? height : null,
        why: error.message,
        ...(owner === undefined ? {} : { owner }),
      });
    }
  }
  return { entries, damaged, lastId: last === undefined ? '' : text(last) };
}
