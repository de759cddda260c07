// A table on a small terminal: rows stay rows, the last column is broken at words, and the verdict is in sight at the
// end as well when the answer is longer than the screen.
import { table as drawTable } from 'table';
import { describe, expect, test } from 'vitest';
import { renderText, type TextStyle } from '../../src/cli/present/text.js';
import { wrapTo } from '../../src/cli/present/wrap.js';
import type { Result } from '../../src/cli/present/result.js';
import { historyResult } from '../../src/cli/present/cluster/history.js';
import type { Term } from '../../src/core/report/history.js';
import type { ClusterView } from '../../src/core/view/cluster-view.js';

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

const term = (epoch: number, more: Partial<Term> = {}): Term => ({
  epoch,
  leader: 'seq-a',
  trimmed: false,
  heightFrom: epoch * 1000,
  heightTo: epoch * 1000 + 200,
  blocks: 201,
  firstAt: Date.UTC(2026, 10, 29, 3, 36, 2, 316),
  lastAt: Date.UTC(2026, 10, 29, 3, 38, 2, 916),
  gapBeforeMs: 1200,
  current: false,
  ended: 'stepdown',
  ...more,
});
const admitted = (minute: number, more: Record<string, string> = {}): Record<string, string> => ({
  at: String(Date.UTC(2026, 10, 29, 3, minute)),
  what: 'admit',
  by: 'seq-a',
  reason: 'empty',
  outcome: 'done',
  ...more,
});
const historyOf = (terms: Term[], changes: Record<string, string>[] = []): Result =>
  historyResult({
    view: {
      verdict: 'OK',
      reason: 'seq-a leads',
      reasonCode: 'OK',
      next: [],
      cluster: 'c.1',
    } as unknown as ClusterView,
    range: { from: 1, to: 9000 },
    terms,
    changes,
  });

describe.each([80, 60])('history on %i columns', (width) => {
  test.each([
    ['short words', {}],
    ['it leads now', { current: true }],
    ['its first blocks are trimmed', { trimmed: true }],
    ['a long end', { ended: 'seq-a went on under epoch 4 after a repair that an operator asked for' }],
    ['a long name', { leader: 'sequencer-north-1' }],
    ['trimmed, and the end is not recorded', { trimmed: true, ended: '' }],
    ['all of it', { trimmed: true, leader: 'sequencer-n', ended: 'seq-a went on under epoch 4 after a repair' }],
  ] as [string, Partial<Term>][])('history: %s → a table, and no line is wider', (_name, more) => {
    const shown = lines(historyOf([term(4), term(3, more), term(2)]), width, 24);
    expect(shown.filter((line) => line.length > width)).toEqual([]);
    expect(shown.filter((line) => /^EPOCH +LEADER +HEIGHTS /.test(line)).length, shown.join('\n')).toBe(1);
    // Nothing is cut: each word of each cell is there.
    const { leader, ended, current } = term(3, more);
    const words = `${leader} ${current ? 'leads now' : ended || 'not recorded'} 3000-3200 11-29 03:36:02`.split(' ');
    expect(words.filter((word) => !shown.join('\n').includes(word))).toEqual([]);
  });

  test('history: changes in a sequence that differ in their time alone → one row; others stay rows', () => {
    const changes = [
      admitted(9),
      admitted(8),
      admitted(7),
      admitted(6, { outcome: 'failed' }),
      admitted(5),
      admitted(4, { by: 'seq-b' }),
    ];
    const rows = (format: TextStyle['format']) =>
      lines(historyOf([term(4)], changes), 120, 40, format).filter((line) => /admit/.test(line));
    expect(rows('table').map((row) => row.split(/ {2,}/).slice(0, 3).join('|'))).toEqual([
      '2026-11-29 03:07:00.000 to 2026-11-29 03:09:00.000 (x3)|admit|seq-a',
      '2026-11-29 03:06:00.000|admit|seq-a',
      '2026-11-29 03:05:00.000|admit|seq-a',
      '2026-11-29 03:04:00.000|admit|seq-b',
    ]);
    // Pipes and `-o wide` have every record.
    expect([rows('plain').length, rows('wide').length]).toEqual([6, 6]);
    expect(lines(historyOf([term(4)], changes), 80, 40).join('\n')).toContain('11-29 03:07:00 to 11-29 03:09:00 (x3)');
  });
});
