// Who led under which epoch, as a table (docs/PROTOCOL.md sections 2 and 8). A node's word: `r1: 5@1a 6@2b` holds height
// 5 under epoch 1 with a's token, and height 6 under epoch 2 with b's. `claimed 3c` behind it: the node's claimant.
import { expect, test } from 'vitest';
import { historyResult } from '../../src/cli/present/cluster/history.js';
import type { Term } from '../../src/core/report/history.js';
import { TermOwners } from '../../src/core/report/terms.js';
import type { Entry } from '../../src/core/protocol/types.js';
import type { ClusterView, NodeProbe } from '../../src/core/view/cluster-view.js';

function owners(lines: readonly string[]): TermOwners {
  const held = new Map<string, Entry[]>();
  const probes = lines.map((line): NodeProbe => {
    const [, id = '', words = '', epoch = '0', claimant = ''] =
      /^(\w+): (.*?)(?: claimed (\d+)(\w+))?$/.exec(line) ?? [];
    held.set(
      id,
      words.split(' ').map((word) => {
        const [, height, at, owner = ''] = /^(\d+)@(\d+)(\w+)$/.exec(word) ?? [];
        return { height: Number(height), epoch: Number(at), owner: `seq-${owner[0]}/${owner}`, hash: `h${height}`, parent: '', timestamp: 1, size: 0 }; // prettier-ignore
      }),
    );
    const value = { admission: 'admitted', claimant: claimant === '' ? '' : `seq-${claimant[0]}/${claimant}`, epoch: Number(epoch) }; // prettier-ignore
    return { id, url: '', rttMs: 1, reply: { outcome: 'accepted', incarnation: '', value } } as unknown as NodeProbe;
  });
  const terms = new TermOwners(probes, lines.length);
  terms.take(held);
  return terms;
}

// prettier-ignore
test.each([
  ['everybody holds the originals', ['r1: 5@1a 6@2b', 'r2: 5@1a 6@2b', 'r3: 5@1a 6@2b'], 'seq-a seq-b'],
  // r3 was wiped, and b filled it: its copies bear b's token under a's epoch
  ['one node was filled by the next leader', ['r1: 5@1a 6@2b', 'r2: 5@1a 6@2b', 'r3: 5@1b 6@2b'], 'seq-a seq-b'],
  ['the copier left nothing of its own yet', ['r1: 5@1a 6@1a', 'r2: 5@1a 6@1a', 'r3: 5@1b 6@1b'], 'seq-a ?'],
  // a recovery under epoch 4 filled two of three nodes
  ['most copies are the recovery\'s', ['r1: 5@1a 6@2b', 'r2: 5@1c 6@2c claimed 4c', 'r3: 5@1c 6@2c claimed 4c'], 'seq-a seq-b'],
  ['all copies are the recovery\'s', ['r1: 5@1c 6@2c claimed 4c', 'r2: 5@1c 6@2c', 'r3: 5@1c 6@2c'], '? ?'],
  ['two single copies that contradict each other', ['r1: 5@1a', 'r2: 5@1b', 'r3: 6@2b'], 'seq-a seq-b'],
  ['two single copies, and nothing that decides', ['r1: 5@1a', 'r2: 5@1b', 'r3: 5@1c'], '? ?'],
  // the same sequencer, two terms: two tokens
  ['one sequencer, two terms', ['r1: 5@1a 6@2aa', 'r2: 5@1a 6@2aa', 'r3: 5@1aa 6@2aa'], 'seq-a seq-a'],
])('history: %s → the leaders of epochs 1 and 2', (_what, lines, expected) => {
  const terms = owners(lines);
  expect(`${terms.leader(1)} ${terms.leader(2)}`).toBe(expected);
});

test.each([
  [1, '1-5', '5', '2026-01-01 12:00:00.000', '4.0s'],
  [100, '100-104', '≥ 5', '≤ 2026-01-01 12:00:00.000', '≥ 4.0s'],
])(
  'history: the nodes retain from height %i on → what was trimmed is told as a bound',
  (from, heights, blocks, began, lasted) => {
    const [at, to] = [Date.UTC(2026, 0, 1, 12), from + 4];
    const term: Term = {
      epoch: 3,
      leader: 'seq-a',
      trimmed: from > 1,
      heightFrom: from,
      heightTo: to,
      blocks: 5,
      firstAt: at,
      lastAt: at + 4000,
      gapBeforeMs: null,
      current: true,
      ended: '',
    };
    const view = { cluster: 'c.1', configured: 3, answered: 3, quorum: 2 } as ClusterView;
    const [row] = historyResult({ view, range: { from, to }, terms: [term], changes: [] }).tables![0]!.rows;
    expect([row!['heights'], String(row!['blocks']), row!['began'], row!['lasted']]).toEqual([
      heights,
      blocks,
      began,
      lasted,
    ]);
  },
);
