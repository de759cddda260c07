// What `stream diff`, `inspect` and `verify` show alike, for both dialects.
import type { Table } from '../result.js';

export const DIFFERENCE_COLUMNS: Table['columns'] = [
  { key: 'height', align: 'right' },
  { key: 'node' },
  { key: 'kind' },
  { key: 'has' },
  { key: 'wanted' },
];

export function rangeData(range: { from: number; to: number } | null): { heightFrom: number; heightTo: number } | null {
  return range === null ? null : { heightFrom: range.from, heightTo: range.to };
}
