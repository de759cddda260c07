// Was every line sequenced exactly once, in order, byte for byte? Pure: what was sent and what was read → what is
// off, with its witness. Lines that occur several times in the file are counted: a line is lost when it came out
// fewer times than it went in.

export interface Comparison {
  sent: number;
  read: number;
  /** Lines that came out fewer times than they went in, how many times in all. */
  lost: number;
  /** Lines that came out more often than they went in, how many times in all. */
  duplicates: number;
  /** Items that are no line of the file. */
  foreign: number;
  /** True when the items, in their order, are the file. */
  identical: boolean;
  /** First place (0-based) where the two differ, null when identical; with both sides, null where one has ended. */
  firstDifference: { at: number; sent: Uint8Array | null; read: Uint8Array | null } | null;
}

export function compareItems(sent: readonly Uint8Array[], read: readonly Uint8Array[]): Comparison {
  const balance = new Map<string, number>();
  for (const line of sent) balance.set(keyOf(line), (balance.get(keyOf(line)) ?? 0) + 1);
  const inFile = new Set(balance.keys());
  let duplicates = 0;
  let foreign = 0;
  for (const item of read) {
    const key = keyOf(item);
    const left = balance.get(key) ?? 0;
    if (left > 0) balance.set(key, left - 1);
    else if (inFile.has(key)) duplicates += 1;
    else foreign += 1;
  }
  const lost = [...balance.values()].reduce((sum, left) => sum + left, 0);
  const firstDifference = differenceOf(sent, read);
  return {
    sent: sent.length,
    read: read.length,
    lost,
    duplicates,
    foreign,
    identical: firstDifference === null,
    firstDifference,
  };
}

/** The items of a file: what stands between newlines; a newline at the very end begins no further item. */
export function linesOf(bytes: Uint8Array): Uint8Array[] {
  const lines: Uint8Array[] = [];
  let from = 0;
  while (from < bytes.length) {
    const newline = bytes.indexOf(10, from);
    const to = newline < 0 ? bytes.length : newline;
    lines.push(bytes.subarray(from, to));
    from = to + 1;
  }
  return lines;
}

function differenceOf(sent: readonly Uint8Array[], read: readonly Uint8Array[]): Comparison['firstDifference'] {
  const length = Math.max(sent.length, read.length);
  for (let at = 0; at < length; at++) {
    const one = sent[at] ?? null;
    const other = read[at] ?? null;
    if (one === null || other === null || Buffer.compare(one, other) !== 0) return { at, sent: one, read: other };
  }
  return null;
}

/** Bytes as a text that is equal exactly when the bytes are. */
function keyOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1');
}
