// What `stream diff` shows alike for both dialects.
import type { Table } from '../result.js';

export const DIFFERENCE_COLUMNS: Table['columns'] = [
  { key: 'height', align: 'right' },
  { key: 'node' },
  { key: 'kind' },
  { key: 'has' },
  { key: 'wanted' },
];
