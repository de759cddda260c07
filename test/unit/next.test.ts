// A `next` line names the cluster and the lane of the command that shows it.
import { describe, expect, test } from 'vitest';
import { aimed } from '../../src/cli/support/next.js';
import { nextLines } from '../support/next-lines.js';

const LAB = { context: 'lab', lane: 'ledger' };
const NODES = { nodes: ['r1=redis://127.0.0.1:1', 'redis://:secret@127.0.0.1:2'] };

describe('next: completed with how the present command named its cluster', () => {
  test.each([
    ['seq status', LAB, 'seq status -c lab --lane ledger'],
    ['seq status', {}, 'seq status'],
    ['seq stream tail --items --from 7', { context: 'lab' }, 'seq stream tail --items --from 7 -c lab'],
    ['seq status -c prod', LAB, 'seq status -c prod --lane ledger'],
    ['seq status --lane a --context=prod', LAB, 'seq status --lane a --context=prod'],
    ['seq status', NODES, "seq status --node r1=redis://127.0.0.1:1 --node 'redis://:***@127.0.0.1:2'"],
    ['seq run --id a -- cat -c x', { context: 'lab' }, 'seq run --id a -c lab -- cat -c x'],
    ['seq status', { context: 'my lab' }, "seq status -c 'my lab'"],
    ['seq lane ls', LAB, 'seq lane ls -c lab'],
    ['seq lab start r1', LAB, 'seq lab start r1'],
    ['seq context ls', LAB, 'seq context ls'],
    ['seq explain NODE_DOWN', LAB, 'seq explain NODE_DOWN'],
    ['seq run --help', LAB, 'seq run --help'],
    ['seq status --from-bundle x', LAB, 'seq status --from-bundle x'],
    ['look at the log', LAB, 'look at the log'],
    ['redis-cli -c ping', LAB, 'redis-cli -c ping'],
  ])('%s, %j → %s', (line, target, complete) => {
    expect(aimed(line, target)).toBe(complete);
    expect(aimed(complete, target)).toBe(complete);
  });
});

describe('next: the check that every run in a test goes through', () => {
  test('the lines of an answer in each format', () => {
    expect(nextLines('{\n"data": {"next": ["seq status"]},\n"error": null}', '')).toEqual(['seq status']);
    expect(nextLines('{"error":{"next":["seq status -c a","wait"]}}\n{"next":["seq watch"]}\n', '')).toEqual([
      'seq status -c a',
      'seq watch',
    ]);
    expect(nextLines('OK  all well\n\nnext: seq status\n', '')).toEqual(['seq status']);
    expect(nextLines('verdict\tOK\nnext\tseq status\n', '')).toEqual(['seq status']);
    expect(nextLines('', 'X: y\n  why:     z\n  next:    seq status\n           seq doctor\n  x: seq watch\n')).toEqual(
      ['seq status', 'seq doctor'],
    );
  });
});
