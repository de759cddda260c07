// What every verb that judges says, whatever its own question is (docs/PROTOCOL.md section 9): nothing can be committed,
// two lead, or the nodes were set back. A part that is in order is no good news then.
import { describe, expect, test } from 'vitest';
import { epochResult } from '../../src/cli/present/cluster/epoch.js';
import { notNeededResult } from '../../src/cli/present/cluster/recover.js';
import { planResult, provenResult } from '../../src/cli/present/stream/repair.js';
import { verifyResult } from '../../src/cli/present/stream/stream-matrix.js';
import type { RepairPlan } from '../../src/core/repair/plan.js';
import { judgeCheck } from '../../src/core/report/check.js';
import { CHECKS, type Thresholds } from '../../src/core/view/check-answer.js';
import type { ClusterView, Finding, NodeState } from '../../src/core/view/cluster-view.js';
import { epochsOf } from '../../src/core/view/epochs.js';
import { inspectCluster } from '../../src/core/view/inspect.js';
import { summarize } from '../../src/core/view/model.js';
import { saidByAll } from '../../src/core/view/standstill.js';
import { portOf, stillClock, type Made } from '../support/made-states.js';
import { observe } from '../support/watch-states.js';

const LIMITS: Thresholds = { marginWarn: 1, marginCrit: 0, lagWarn: 2, lagCrit: 5, nodesWarn: 1, nodesCrit: 2 };
const TARGET = '-c x';

const probes = ['x9@3', 'x9@3', 'x9@3'].map((word, at) => observe(word, at));
const calm = summarize(probes, { target: TARGET });
const finding = (code: Finding['code'], reason: string): Finding => ({
  verdict: 'CRIT',
  code,
  reason,
  nodes: ['r3'],
  next: [`seq explain ${code}`],
});
const seen = (found: Finding | null): ClusterView => (found === null ? calm : { ...calm, findings: [found] });

const planFor = (view: ClusterView): RepairPlan => ({
  digest: 'd', cluster: 'c.1', hand: { by: 'own-term' }, goal: { height: 9, hash: 'x' }, chosen: [], steps: [], undecidable: [],
  standstill: saidByAll(view),
}) as unknown as RepairPlan; // prettier-ignore

const verified = (view: ClusterView, read: readonly string[] = ['r1', 'r2', 'r3']) =>
  verifyResult(
    {
      view,
      range: { from: 1, to: 9 },
      violations: [],
      total: 0,
      untold: [],
      narrowed: false,
      nodes: view.nodes.map(({ id }) => ({ id, entries: 9, verified: read.includes(id), violations: 0 })),
    },
    TARGET,
  );

/** The verdict of every verb whose own question is answered well. */
const said = (view: ClusterView) => {
  const recover = notNeededResult(
    { outcome: 'not-needed', cluster: 'c.1', admitted: ['r1'], rejoin: [] },
    [],
    view,
    'x',
  );
  return {
    'epoch show': epochResult(epochsOf(view, probes), TARGET).verdict,
    'repair plan': planResult(planFor(view), TARGET, 'seq repair apply').verdict,
    'repair verify': provenResult(planFor(view), { total: 0, first: '' }, TARGET).verdict,
    'stream verify': verified(view).verdict,
    recover: recover.facts!.some(([what]) => what === 'and yet'),
    checks: CHECKS.map(
      (check) => judgeCheck(check, { view, probes, rows: [], strays: [], target: TARGET }, LIMITS).reasonCode,
    ),
  };
};

describe('said by all', () => {
  test.each([
    [finding('TWO_LEADERS', 'seq-x leads r3 too'), 'and yet: seq-x leads r3 too'],
    [finding('NODES_SET_BACK', 'seq-b has announced block 12'), 'and yet: seq-b has announced block 12'],
    [finding('NO_QUORUM', '1 of 3 nodes can vote'), 'and nothing can be committed: 1 of 3 nodes can vote'],
    [finding('LOCK_STUCK', 'nobody can lead'), 'and nothing can be committed: nobody can lead'],
  ])('$code → every verb that judges is CRIT by that code, and says why', (found, words) => {
    const all = said(seen(found));
    for (const verb of ['epoch show', 'repair plan', 'repair verify', 'stream verify'] as const)
      expect([verb, all[verb]?.verdict, all[verb]?.reasonCode]).toEqual([verb, 'CRIT', found.code]);
    for (const verb of ['repair plan', 'repair verify', 'stream verify'] as const)
      expect(all[verb]?.reason, verb).toContain(words);
    expect(all.recover).toBe(true);
    expect(all.checks).toEqual(CHECKS.map(() => found.code));
  });

  test('a fault that stops nothing → each verb answers its own question', () => {
    const all = said(seen({ ...finding('PENDING_BLOCK', 'height 10 is pending'), verdict: 'WARN' }));
    for (const verb of ['epoch show', 'repair plan', 'repair verify', 'stream verify'] as const)
      expect([verb, all[verb]?.verdict]).toEqual([verb, 'OK']);
    expect(all.recover).toBe(false);
  });

  test('the exit code and the result of repair verify speak of the streams', () => {
    const { exit, data, next } = provenResult(
      planFor(seen(finding('NO_QUORUM', 'x'))),
      { total: 0, first: '' },
      TARGET,
    );
    expect([exit, (data as { result: string }).result, next]).toEqual([0, 'repaired', ['seq explain NO_QUORUM']]);
  });
});

test.each<[NodeState, string]>([
  ['DOWN', 'r3 did not answer'],
  ['REFUSED', 'r3 refuses us'],
  ['EMPTY', 'r3 is EMPTY'],
  ['FOREIGN', 'r3 is FOREIGN'],
])('stream verify: a node that is %s and was not read → %s', (state, words) => {
  const view = { ...calm, nodes: calm.nodes.map((node) => (node.id === 'r3' ? { ...node, state } : node)) };
  const { verdict, warnings } = verified(view, ['r1', 'r2']);
  expect(verdict?.reason).toBe(`no violation on 2 of 3 nodes, heights 1 to 9; ${words}`);
  expect(warnings).toEqual([`${words}: nothing of it is verified`]);
});

test('nodes set back: the block of a node that counts for nothing hides no gap, asked once or twice', async () => {
  const free = { memory: 'admitted', lock: 'free', holder: 'seq-a', head: 8, block: 'x', epoch: 3 } as const;
  const made: Made = {
    nodes: [free, free, { ...free, memory: 'wiped', head: 9 }],
    sequencers: [
      { id: 'seq-a', state: 'gone' },
      { id: 'seq-b', state: 'alive' },
    ],
    held: false,
    stray: -1,
  };
  const nodes = made.nodes.map((node, at) => portOf(node, at, made));
  for (const twice of [false, true]) {
    const view = await inspectCluster({ nodes, limitMs: 100, clock: stillClock, target: TARGET, twice });
    expect([twice, view.verdict, view.reasonCode]).toEqual([twice, 'CRIT', 'NODES_SET_BACK']);
  }
});
