// Was every line sequenced exactly once, in order, byte for byte? Pure: compares what was sent with what was read and
// returns the differences with a witness. Repeated lines of the file are counted. A line is lost when it came out fewer
// times than it went in.

export interface Comparison {
  sent: number;
  read: number;
  /** How many copies of lines are missing in total. */
  lost: number;
  /** How many copies of lines are too many in total. */
  duplicates: number;
  /** Items that are not a line of the file. */
  unexpected: number;
  /** True when the items, in their order, are the file. */
  identical: boolean;
  /**
   * First position (0-based) where the two differ, with both sides; null when identical. A side that has ended is null.
   */
  firstDifference: { at: number; sent: Uint8Array | null; read: Uint8Array | null } | null;
}

export function compareItems(sent: readonly Uint8Array[], read: readonly Uint8Array[]): Comparison {
  const balance = new Map<string, number>();
  for (const line of sent) balance.set(keyOf(line), (balance.get(keyOf(line)) ?? 0) + 1);
  const inFile = new Set(balance.keys());
  let duplicates = 0;
  let unexpected = 0;
  for (const item of read) {
    const key = keyOf(item);
    const left = balance.get(key) ?? 0;
    if (left > 0) balance.set(key, left - 1);
    else if (inFile.has(key)) duplicates += 1;
    else unexpected += 1;
  }
  const lost = [...balance.values()].reduce((sum, left) => sum + left, 0);
  const firstDifference = differenceOf(sent, read);
  return {
    sent: sent.length,
    read: read.length,
    lost,
    duplicates,
    unexpected,
    identical: firstDifference === null,
    firstDifference,
  };
}

/** The items of a file: the parts between newlines. A newline at the very end starts no further item. */
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

/** A text for bytes. Two texts are equal exactly when the bytes are. */
function keyOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1');
}
