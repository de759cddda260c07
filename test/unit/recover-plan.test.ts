// What a cluster below its quorum goes on with, row by row. A node is `state head`, e.g. `r 5`: restarted, blocks
// 1…5; `r 5b`: another block 5; `r 5b@7`: of epoch 7 (1 otherwise); `w`: wiped; `-`: silent; `a`: admitted; `m`:
// marked by a recovery that was broken off; `p`: being filled again by a leader. docs/PROTOCOL.md section 8.
import { describe, expect, test } from 'vitest';
import {
  decideRecovery,
  type Chain,
  type Evidence,
  type NodeEvidence,
  type StoreEvidence,
} from '../../src/core/recovery/plan.js';
import type { NodeView } from '../../src/core/protocol/types.js';

const hash = (height: number, fork = ''): string =>
  `${height.toString(16).padStart(8, '0')}${fork === '' ? '0' : fork}`.padEnd(64, '0');

function chain(head: number, fork: string, epoch: number, floor = 0, forkFrom = head): Chain {
  const links = Array.from({ length: head - floor }, (_, i) => {
    const height = floor + 1 + i;
    const mine = (at: number): string => hash(at, at >= forkFrom ? fork : '');
    return { height, hash: mine(height), parent: mine(height - 1), epoch: height === head ? epoch : 1 };
  });
  return { floor, floorHash: hash(floor), links };
}

function node(id: string, text: string): NodeEvidence {
  const base = { id, url: `redis://${id}`, chain: null, why: '' };
  const [state, what = ''] = text.split(' ');
  if (state === '-') return { ...base, view: null, why: 'no answer at connect' };
  const admission = {
    r: 'restarted',
    a: 'admitted',
    w: 'pristine',
    d: 'damaged',
    m: 'foreign',
    f: 'foreign',
    p: 'admitting',
  }[state!] as NodeView['admission'];
  const cluster = state === 'w' ? '' : state === 'm' ? 'c.2' : state === 'f' ? 'x.1' : 'c.1';
  const view = {
    admission,
    admissionWhy: '',
    cluster,
    node: state === 'w' ? '' : id,
    incarnation: 'n0',
    config: '',
    pending: state === 'm' ? 'rec-1' : state === 'p' ? 'aa-1' : '',
    runId: `run-${id}`,
    epoch: 9,
    head: 0,
    headEpoch: 0,
    headHash: '',
    length: 0,
  } as unknown as NodeView;
  const parts = /^(\d+)(?:\.\.(\d+))?([a-z]?)(?:@(\d+))?(?:from(\d+))?$/.exec(what);
  if (!parts) return { ...base, view: { ...view, epoch: state === 'w' ? 0 : 9 }, why: 'it holds no key of ours' };
  const [, first, second, fork, epoch, from] = parts;
  const head = Number(second ?? first);
  return {
    ...base,
    view,
    chain: chain(head, fork!, Number(epoch ?? 1), second === undefined ? 0 : Number(first), Number(from ?? head)),
  };
}

function store(text: string, at: number): StoreEvidence {
  const found = node('s', `r ${text}`);
  return { id: `seq-${at}`, url: 'http://s', cluster: 'c.1', chain: found.chain, why: '' };
}

type Row = [situation: string, nodes: string[], stores: string[], outcome: string, doubts: RegExp[]];
const ROWS: Row[] = [
  ['power cut, all alike', ['r 5', 'r 5', 'r 5'], [], 'c.2 e10 5:keep,keep,keep', []],
  ['power cut, one block was under way on one node', ['r 6', 'r 5', 'r 5'], [], 'c.2 e10 6:keep,fill,fill', []],
  ['power cut, one block was under way on two', ['r 6', 'r 6', 'r 5'], ['5'], 'c.2 e10 6:keep,keep,fill', []],
  [
    'an orphan at the lowest height that the others show, a store knows its parent',
    ['r 5..9', 'r 5..9', 'r 5b'],
    ['9'],
    'c.2 e10 9:keep,keep,refill',
    [],
  ],
  [
    'the same, and no store reaches below',
    ['r 5..9', 'r 5..9', 'r 5b'],
    ['5..9'],
    'c.2 e10 9:keep,keep,refill',
    [/r3 CONTRADICTS/],
  ],
  ['a later term replaced the block under way', ['r 6b@2', 'r 6', 'r 5'], [], 'c.2 e10 6:keep,refill,fill', []],
  ['an orphan below what the others prove', ['r 7', 'r 7', 'r 6b@3'], [], 'c.2 e10 7:keep,keep,refill', []],
  ['hasty rolling restart, one still admitted', ['a 5', 'r 5', 'r 5'], ['5'], 'c.2 e10 5:keep,keep,keep', []],
  ['windows differ', ['r 2..6', 'r 6', 'r 1..6'], [], 'c.2 e10 6:keep,keep,keep', []],
  ['never written to', ['r 0', 'r 0', 'r 0'], [], 'c.2 e10 0:keep,keep,keep', []],
  ['an earlier recovery was broken off after its marks', ['m 5', 'm 5', 'r 5'], [], 'c.3 e10 5:keep,keep,keep', []],
  [
    'power cut while a leader lived: it had begun to fill one',
    ['p 3', 'r 5', 'r 5'],
    ['5'],
    'c.2 e10 5:fill,keep,keep',
    [],
  ],
  [
    'two of three were being filled',
    ['p 3', 'p 5', 'r 5'],
    ['5'],
    'c.2 e10 5:fill,keep,keep',
    [/r1 is 2 blocks behind/, /r2 had lost its memory/],
  ],
  ['one node silent', ['r 5', 'r 5', '-'], [], 'c.2 e10 5:keep,keep,left-out', [/r3 did not answer/]],
  ['one node wiped', ['r 5', 'r 5', 'w'], [], 'c.2 e10 5:keep,keep,refill', [/r3 holds nothing/]],
  [
    'two nodes wiped',
    ['r 5', 'w', 'w'],
    ['5'],
    'c.2 e10 5:keep,refill,refill',
    [/r2 holds nothing/, /r3 holds nothing/],
  ],
  ['one node far behind', ['r 9', 'r 9', 'r 5'], [], 'c.2 e10 9:keep,keep,fill', [/r3 is 4 blocks behind/]],
  [
    'a store is ahead',
    ['r 5', 'r 5', 'r 5'],
    ['7'],
    'c.2 e10 7:fill,fill,fill',
    [/r1 is 2 blocks behind/, /r2 is 2/, /r3 is 2/, /seq-0 is ahead of every node by 2/],
  ],
  ['a store is ahead of two, level with one', ['r 7', 'r 6', 'r 6'], ['7'], 'c.2 e10 7:keep,fill,fill', []],
  [
    'the store decides between two heads',
    ['r 6b@2', 'r 5', 'r 5'],
    ['6'],
    'c.2 e10 6:refill,fill,fill',
    [/r1 holds another block at height 6/],
  ],
  ['a store contradicts', ['r 6', 'r 6', 'r 6'], ['5b'], 'c.2 e10 6:keep,keep,keep', [/seq-0 CONTRADICTS/]],
  ['two chains', ['r 6', 'r 6', 'r 6bfrom3'], [], 'c.2 e10 6:keep,keep,refill', [/r3 CONTRADICTS/]],
  [
    'two blocks of one epoch at the head',
    ['r 6b', 'r 6', 'r 6'],
    [],
    'c.2 e10 6:keep,refill,refill',
    [/r2 holds another block/, /r3 holds another block/],
  ],
  [
    'a server of another cluster',
    ['r 5', 'r 5', 'f 5'],
    [],
    'c.2 e10 5:keep,keep,left-out',
    [/r3 belongs to something else/],
  ],
  [
    'everything wiped, a store is left',
    ['w', 'w', 'w'],
    ['3..5'],
    'c.2 e2 5:refill,refill,refill',
    [/r1 holds/, /r2 holds/, /r3 holds/, /ahead of every node/],
  ],
];

describe('recover: evidence → plan', () => {
  test.each(ROWS)('recover: %s → %#', (_, nodes, stores, outcome, doubts) => {
    const evidence: Evidence = { nodes: nodes.map((text, at) => node(`r${at + 1}`, text)), stores: stores.map(store) };
    const decision = decideRecovery(evidence, nodes.every((text) => text === 'w') ? '' : 'c.1');
    if (decision.outcome !== 'plan') throw new Error(JSON.stringify(decision));
    const { plan } = decision;
    expect(
      `${plan.cluster} e${plan.epoch} ${plan.top.height}:${plan.nodes.map(({ action }) => action).join(',')}`,
    ).toBe(outcome);
    expect(plan.doubts.length, plan.doubts.join('\n')).toBe(doubts.length);
    doubts.forEach((doubt, at) => expect(plan.doubts[at]).toMatch(doubt));
    // Every node continues with the whole chain, and nothing overwrites what it keeps.
    for (const one of plan.nodes) if (one.action !== 'left-out') expect(one.fillFrom).toBe(one.facts.head + 1);
    expect(plan.digest).toMatch(/^[0-9a-f]{16}$/);
    expect(decideRecovery(evidence, 'c.1')).toMatchObject({ plan: { digest: plan.digest } });
  });

  test.each<[string, string[], string]>([
    ['a quorum is admitted', ['a 5', 'a 5', 'r 5'], 'not-needed'],
    ['too few answer', ['r 5', '-', '-'], 'NO_QUORUM'],
    ['too few of this cluster answer', ['r 5', 'f 5', 'f 5'], 'NO_QUORUM'],
    ['nothing was ever there', ['w', 'w', 'w'], 'NOT_INITIALISED'],
    ['everything damaged', ['d', 'd', 'd'], 'NOTHING_TO_RECOVER_FROM'],
  ])('recover: %s → %s', (_, nodes, expected) => {
    const decision = decideRecovery({ nodes: nodes.map((text, at) => node(`r${at + 1}`, text)), stores: [] }, 'c.1');
    expect(decision.outcome === 'impossible' ? decision.code : decision.outcome).toBe(expected);
  });
});
