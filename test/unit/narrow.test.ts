// A table on a small terminal: rows stay rows, the last column is broken at words, and the verdict is in sight at the
// end as well when the answer is longer than the screen.
import { table as drawTable } from 'table';
import { describe, expect, test } from 'vitest';
import { renderText, type TextStyle } from '../../src/cli/present/text.js';
import { wrapTo } from '../../src/cli/present/wrap.js';
import type { Result } from '../../src/cli/present/result.js';

const CHECKS: Result = {
  data: null,
  verdict: { verdict: 'WARN', reason: 'nobody would take over if seq-a fails', reasonCode: 'NO_STANDBY' },
  tables: [
    {
      columns: [{ key: 'check' }, { key: 'verdict' }, { key: 'code' }, { key: 'reason' }],
      rows: ['leader', 'quorum', 'epoch', 'stream', 'lag', 'nodes'].map((check) => ({
        check,
        verdict: 'OK',
        code: 'NO_STANDBY',
        reason: 'all 3 nodes are in order; restart: the next node may be restarted at any time',
      })),
    },
  ],
  next: ['seq status -c lab'],
};
const TERMS: Result = {
  data: null,
  tables: [
    {
      columns: [{ key: 'epoch', align: 'right' }, { key: 'began' }, { key: 'ended' }],
      rows: [{ epoch: 3, began: '2026-11-29 03:36:02.316', ended: 'seq-a went on under epoch 4 after a repair' }],
    },
  ],
};
const lines = (result: Result, width: number, height: number, format: TextStyle['format'] = 'table'): string[] =>
  renderText(result, {
    format,
    width,
    height,
    colour: false,
    quiet: false,
    fields: [],
    drawTable,
    wrap: wrapTo(width),
  })
    .trimEnd()
    .split('\n');

describe('narrow', () => {
  test.each([
    [80, 24],
    [60, 16],
  ])('narrow: six checks at %i×%i → a table, no line is wider, the verdict is on the last screen', (width, height) => {
    const shown = lines(CHECKS, width, height);
    expect(shown.filter((line) => line.length > width)).toEqual([]);
    expect(shown.filter((line) => /^(leader|quorum|epoch|stream|lag|nodes) /.test(line)).length).toBe(6);
    expect(shown[0]).toMatch(/^WARN {2}nobody would take over/);
    expect(shown.slice(-(height - 1)).join('\n')).toContain('WARN  nobody would take over');
  });

  test('narrow: an answer that fits → the verdict once', () => {
    expect(lines(CHECKS, 140, 40).filter((line) => line.startsWith('WARN')).length).toBe(1);
  });

  test('narrow: no room for words in the last column → a line for each cell, and the verdict again', () => {
    const shown = lines(CHECKS, 40, 16);
    expect(shown.filter((line) => /^CHECK /.test(line)).length).toBe(6);
    expect(shown.slice(-2)).toEqual(['WARN  nobody would take over if seq-a', '      fails']);
  });

  test('narrow: a date loses year and milliseconds before anything is broken', () => {
    expect(lines(TERMS, 66, 24)).toEqual(
      ['EPOCH  BEGAN           ENDED', '    3  11-29 03:36:02  seq-a went on under epoch 4 after a repair'].map(
        (line) => line.trimEnd(),
      ),
    );
    expect(lines(TERMS, 100, 24)[1]).toContain('2026-11-29 03:36:02.316');
    expect(lines(TERMS, 66, 24, 'wide')[1]).toContain('2026-11-29 03:36:02.316');
  });
});
