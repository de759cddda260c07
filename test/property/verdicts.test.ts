// One judge for all verbs: over generated states of a cluster, no verb contradicts another one, and none says OK where
// the generator knows that nothing can be committed (docs/PROTOCOL.md section 9). What can be committed is known from
// how the state was made, never from the code that judges it.
import '../support/fuzz-seed.js';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { epochResult } from '../../src/cli/present/cluster/epoch.js';
import type { NodeView, Presence } from '../../src/core/protocol/types.js';
import { judgeCheck, worstOf } from '../../src/core/report/check.js';
import { diagnose } from '../../src/core/report/doctor.js';
import { meets } from '../../src/core/report/wait.js';
import { CHECKS, type CheckName, type Thresholds } from '../../src/core/view/check-answer.js';
import type { NodeProbe, Verdict } from '../../src/core/view/cluster-view.js';
import { epochsOf } from '../../src/core/view/epochs.js';
import { summarize } from '../../src/core/view/model.js';
import { restartSafety } from '../../src/core/view/restart-safety.js';

const TTL_MS = 3000;
const RANK: Record<Verdict, number> = { OK: 0, WARN: 1, UNKNOWN: 2, CRIT: 3 };
const LIMITS: Thresholds = { marginWarn: 1, marginCrit: 0, lagWarn: 10, lagCrit: 100, nodesWarn: 1, nodesCrit: 99 };

const lockKinds = ['free', 'running', 'late', 'stretched', 'endless'] as const;
interface MadeNode {
  memory: 'admitted' | 'restarted' | 'wiped' | 'admitting' | 'silent' | 'denied' | 'loading';
  lock: (typeof lockKinds)[number];
  holder: 'seq-a' | 'seq-b';
  head: 7 | 8 | 9;
  block: 'x' | 'y';
  epoch: 3 | 4;
}
interface MadeSequencer {
  id: 'seq-a' | 'seq-b';
  state: 'alive' | 'unready' | 'dying' | 'gone' | 'never';
}

const often = <T>(value: T, weight: number) => ({ weight, arbitrary: fc.constant(value) });
const madeNode: fc.Arbitrary<MadeNode> = fc.record({
  memory: fc.oneof(often('admitted' as const, 8), {
    weight: 3,
    arbitrary: fc.constantFrom(
      'restarted' as const,
      'wiped' as const,
      'admitting' as const,
      'silent' as const,
      'denied' as const,
      'loading' as const,
    ),
  }),
  lock: fc.oneof(often('running' as const, 5), { weight: 4, arbitrary: fc.constantFrom(...lockKinds) }),
  holder: fc.oneof(often('seq-a' as const, 5), often('seq-b' as const, 1)),
  head: fc.oneof(often(9 as const, 6), { weight: 1, arbitrary: fc.constantFrom(7 as const, 8 as const) }),
  block: fc.oneof(often('x' as const, 9), often('y' as const, 1)),
  epoch: fc.oneof(often(3 as const, 9), often(4 as const, 1)),
});
const stateOf = (id: MadeSequencer['id']): fc.Arbitrary<MadeSequencer> =>
  fc.record({
    id: fc.constant(id),
    state: fc.oneof(often('alive' as const, 5), {
      weight: 4,
      arbitrary: fc.constantFrom('unready' as const, 'dying' as const, 'gone' as const, 'never' as const),
    }),
  });
const cluster = fc.record({
  nodes: fc.oneof(
    fc.array(madeNode, { minLength: 3, maxLength: 3 }),
    fc.array(madeNode, { minLength: 5, maxLength: 5 }),
  ),
  sequencers: fc.tuple(stateOf('seq-a'), stateOf('seq-b')),
  held: fc.oneof(often(false, 9), often(true, 1)),
});
type Made = typeof cluster extends fc.Arbitrary<infer T> ? T : never;

const hash = (letter: string, height: number) => `${letter}${height}`.padEnd(64, '0');
const LEFT_MS = { free: 0, running: 2600, late: 400, stretched: 3_590_000, endless: -1 };

function presence({ id, state }: MadeSequencer): Presence {
  return {
    id, role: id === 'seq-a' ? 'leader' : 'follower', height: 9, version: '1', url: '', pid: 1, configDigest: 'd',
    pttlMs: state === 'dying' ? 700 : 2900,
    extra: { ready: state === 'unready' ? 'no' : 'yes', why: 'its store is behind', ttlMs: String(TTL_MS), blockTimeMs: '1000', recordTtlMs: '3000' },
  }; // prettier-ignore
}

function probeOf(made: MadeNode, at: number, { sequencers, held }: Made): NodeProbe {
  const base = { id: `r${at + 1}`, url: `redis://127.0.0.1:${7000 + at}`, rttMs: 1, askedAt: 0 };
  if (made.memory === 'silent')
    return { ...base, reply: { outcome: 'unknown', step: 'call', cause: 'no reply', limitMs: 100 } };
  if (made.memory === 'denied') return { ...base, reply: { outcome: 'refused', reason: 'NOAUTH', detail: {} } };
  if (made.memory === 'loading') return { ...base, reply: { outcome: 'refused', reason: 'LOADING', detail: {} } };
  const owner = `${made.holder}/0123456789abcdef`;
  const value: NodeView = {
    head: made.head, headEpoch: 3, headHash: hash(made.block, made.head), floor: 0, floorHash: hash('g', 0),
    admission: made.memory, admissionWhy: '', cluster: 'c.1', node: base.id, incarnation: 'boot',
    pending: made.memory === 'admitting' ? 'nonce' : '', config: '', admittedRunId: `run${at}`, runId: `run${at}`,
    lock: made.lock === 'free' ? null : { owner, pttlMs: LEFT_MS[made.lock] }, epoch: made.epoch, claimant: owner,
    length: made.head, hold: held ? { by: 'ann', reason: 'upgrade', pttlMs: 60_000 } : null, handover: null, request: null,
    sequencers: sequencers.filter(({ state }) => state !== 'gone' && state !== 'never').map(presence),
    absent: sequencers.filter(({ state }) => state === 'gone').map(({ id }) => ({ id, seenAtMs: 990_000 })),
    timeMs: 1_000_000, info: {},
  }; // prettier-ignore
  return { ...base, reply: { outcome: 'accepted', incarnation: 'boot', value } };
}

/** Nobody commits, and no sequencer that lives could be promoted even when every running lease has ended. */
function nothingCanBeCommitted({ nodes, sequencers, held }: Made): boolean {
  const quorum = Math.floor(nodes.length / 2) + 1;
  const said = sequencers.some(({ state }) => state !== 'gone' && state !== 'never');
  // Where nobody says how long a lease is, only a lock without an end is known to be nobody's.
  const free = nodes.filter(
    ({ memory, lock }) => memory === 'admitted' && lock !== 'endless' && !(lock === 'stretched' && said),
  );
  // Silent nodes count as lost where too few others are admitted. Where enough are, a silent one may be in order.
  if (nodes.filter(({ memory }) => memory === 'admitted').length < quorum) return true;
  const open = nodes.filter(({ memory }) => memory === 'silent' || memory === 'denied' || memory === 'loading');
  if (free.length + open.length < quorum) return true;
  const leads = nodes.filter(
    ({ memory, lock, holder, epoch }) =>
      memory === 'admitted' && lock === 'running' && holder === 'seq-a' && epoch === 3,
  );
  const others = nodes.filter(({ memory, lock }) => memory === 'admitted' && (lock === 'running' || lock === 'late'));
  if (leads.length >= quorum || others.length > 0 || open.length > 0) return false;
  // Nobody holds a running lease: somebody has to be promoted.
  return held || !sequencers.some(({ state }) => state === 'alive');
}

test('verdicts: 3,000 generated states → no verb contradicts another, none says OK while nothing can be committed', () => {
  const seen = new Map<string, number>();
  let stuck = 0;
  fc.assert(
    fc.property(cluster, (made) => {
      const probes = made.nodes.map((node, at) => probeOf(node, at, made));
      const view = summarize(probes, { target: '-c x' });
      const checks = CHECKS.map((check) =>
        judgeCheck(check, { view, probes, rows: [], strays: [], target: '-c x' }, LIMITS),
      );
      const worst = worstOf(checks);
      const of = (name: CheckName) => checks.find(({ check }) => check === name)!;
      const checked = probes.map(({ id, url, reply }) => ({
        id,
        url,
        view: reply,
        checkup: { outcome: 'unknown', step: 'call', cause: '' } as const,
      }));
      const [finding] = diagnose(checked, {
        nodeTimeoutMs: 100,
        ttlMs: TTL_MS,
        retainBytes: 1,
        maxBlockBytes: 1,
        target: '-c x',
        judged: view.findings,
      });
      const epochs = epochResult(epochsOf(view, probes), '-c x');
      const restart = restartSafety(view);
      seen.set(view.reasonCode, (seen.get(view.reasonCode) ?? 0) + 1);

      // The pager never says less than the person sees, and the other way round.
      expect([worst.verdict, worst.reasonCode]).toEqual(
        RANK[view.verdict] < RANK[worst.verdict]
          ? [worst.verdict, worst.reasonCode]
          : [view.verdict, expect.any(String)],
      );
      expect(RANK[worst.verdict]).toBeGreaterThanOrEqual(RANK[view.verdict]);
      if (view.verdict === 'OK') expect(worst.verdict).toBe('OK');
      // The doctor's first line is as bad as the status.
      const severity = finding === undefined || finding.severity === 'INFO' ? 'OK' : finding.severity;
      expect(RANK[severity]).toBeGreaterThanOrEqual(RANK[view.verdict]);
      // Who leads is one answer.
      expect(meets(view, { is: 'leader' }).met).toBe(view.leader !== null);
      if (of('leader').verdict === 'OK') expect(view.leader).not.toBeNull();
      expect(meets(view, { is: 'healthy' }).met).toBe(view.verdict === 'OK');
      if (restart.safe) expect([of('quorum').verdict, view.verdict === 'CRIT']).toEqual(['OK', false]);
      // Where something is wrong there is a command.
      if (view.verdict !== 'OK') expect(view.next.length).toBeGreaterThan(0);

      if (!nothingCanBeCommitted(made)) return;
      stuck += 1;
      expect(['CRIT', 'UNKNOWN']).toContain(view.verdict);
      for (const one of checks) expect(one.verdict, `check ${one.check}`).not.toBe('OK');
      expect(severity).not.toBe('OK');
      expect(epochs.verdict?.verdict).not.toBe('OK');
      expect([restart.safe, meets(view, { is: 'healthy' }).met]).toEqual([false, false]);
    }),
    { numRuns: 3000 },
  );
  // The generator reaches both kinds, and more than the common words.
  expect(stuck).toBeGreaterThan(300);
  expect(seen.get('OK')).toBeGreaterThan(10);
  expect(seen.size).toBeGreaterThan(8);
});
