// Blocks and items as lines. Pure, and on the hot path: a million items pass through here. An item that is printable
// UTF-8 is shown unchanged. Any other item, and one that itself starts with `base64:`, becomes `base64:…`. So every
// line can be read back to the same bytes.
import { decodeBlockData } from '../../../core/chain/items.js';
import { EXIT, SeqError } from '../../../core/errors.js';
import type { CommittedBlock } from '../../../core/ports.js';
import type { Column } from '../result.js';

export interface ShownItem {
  index: number;
  key: string | undefined;
  bytes: Buffer;
}

export const BLOCK_COLUMNS: Column[] = [
  { key: 'height' },
  { key: 'epoch' },
  { key: 'hash' },
  { key: 'timestamp' },
  { key: 'items' },
  { key: 'bytes' },
  { key: 'parent', wide: true },
];
export const ITEM_COLUMNS: Column[] = [{ key: 'height' }, { key: 'index' }, { key: 'item' }];

/**
 * The items of a block in order. A block of an exec child keeps only digests of the items that it took: the block's own
 * data is the one item shown.
 */
export function itemsOf(block: CommittedBlock): ShownItem[] {
  const content = decodeBlockData(block.data);
  if (content.format === 'items')
    return content.items.map((item, index) => ({ index, key: item.key, bytes: asBuffer(item.data) }));
  if (content.format === 'exec')
    return content.data.length === 0 ? [] : [{ index: 0, key: undefined, bytes: asBuffer(content.data) }];
  throw new SeqError({
    code: 'MALFORMED_BLOCK',
    exit: EXIT.data,
    message: `block ${block.height} holds no items that this version can read`,
    why: content.why,
    changed: 'nothing',
    next: [
      `seq stream tail --from ${block.height} --limit 1 -o ndjson`,
      `seq stream tail --items --from ${block.height + 1}`,
    ],
  });
}

export function itemText(bytes: Buffer): string {
  const plain = printable(bytes);
  return plain === null || plain.startsWith('base64:') ? `base64:${bytes.toString('base64')}` : plain;
}

/** The text when the bytes are UTF-8 without control characters, else null. */
function printable(bytes: Buffer): string | null {
  let ascii = true;
  for (let at = 0; at < bytes.length; at += 1) {
    const byte = bytes[at] as number;
    if (byte < 0x20 || byte === 0x7f) return null;
    if (byte > 0x7f) ascii = false;
  }
  if (ascii) return bytes.toString('latin1');
  const text = bytes.toString('utf8');
  // C1 controls and line separators would act on a terminal or split a line. Replacement characters would not read back
  // to the same bytes.
  return /[\u0080-\u009f\u2028\u2029\ufeff]/.test(text) || !Buffer.from(text).equals(bytes) ? null : text;
}

export function itemLine(height: number, item: ShownItem): string {
  return `${height}\t${item.index}\t${itemText(item.bytes)}\n`;
}

export function itemData(height: number, item: ShownItem): Record<string, unknown> {
  const text = printable(item.bytes);
  const value = text === null ? { base64: item.bytes.toString('base64') } : { data: text };
  return { height: String(height), index: item.index, ...(item.key === undefined ? {} : { key: item.key }), ...value };
}

export function blockCells(block: CommittedBlock): Record<string, string | number> {
  const content = decodeBlockData(block.data);
  const items =
    content.format === 'items' ? content.items.length : content.format === 'exec' ? content.taken.length : 0;
  return {
    height: block.height,
    epoch: block.epoch,
    hash: block.hash,
    timestamp: block.timestamp,
    items,
    bytes: block.data.length,
    parent: block.parent,
  };
}

export function blockData(block: CommittedBlock): Record<string, unknown> {
  const { height, epoch, ...rest } = blockCells(block);
  return { height: String(height), epoch: String(epoch), ...rest, data: asBuffer(block.data).toString('base64') };
}

function asBuffer(data: Uint8Array): Buffer {
  return Buffer.isBuffer(data) ? data : Buffer.from(data.buffer, data.byteOffset, data.byteLength);
}
