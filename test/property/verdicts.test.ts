// One judge for all verbs: over generated states of a cluster, no verb contradicts another one, and none says OK where
// the generator knows that nothing can be committed (docs/PROTOCOL.md section 9).
import '../support/fuzz-seed.js';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { epochResult } from '../../src/cli/present/cluster/epoch.js';
import { notNeededResult } from '../../src/cli/present/cluster/recover.js';
import { planResult, provenResult } from '../../src/cli/present/stream/repair.js';
import type { NodePort } from '../../src/core/ports.js';
import { parseConfiguration } from '../../src/core/protocol/configuration.js';
import { blockedBy, probe, votesOf } from '../../src/core/nodes/probe.js';
import { decideRecovery } from '../../src/core/recovery/plan.js';
import { plannedRepair } from '../../src/core/repair/repair.js';
import { judgeCheck, worstOf } from '../../src/core/report/check.js';
import { diagnose } from '../../src/core/report/doctor.js';
import { meets } from '../../src/core/report/wait.js';
import { Eligibility } from '../../src/core/sequencer/follow/eligibility.js';
import { CHECKS, type CheckName, type Thresholds } from '../../src/core/view/check-answer.js';
import type { ClusterView, NodeProbe, Verdict } from '../../src/core/view/cluster-view.js';
import { epochsOf } from '../../src/core/view/epochs.js';
import { inspectCluster } from '../../src/core/view/inspect.js';
import { summarize } from '../../src/core/view/model.js';
import { restartSafety } from '../../src/core/view/restart-safety.js';
import { saidByAll, standstill } from '../../src/core/view/standstill.js';
import { initialState, reduce } from '../../src/tui/model.js';
import { Poller } from '../../src/tui/poll.js';
import {
  cluster,
  hash,
  nothingCanBeCommitted,
  portOf,
  probeOf,
  stillClock,
  TTL_MS,
  type Made,
} from '../support/made-states.js';

const RANK: Record<Verdict, number> = { OK: 0, WARN: 1, UNKNOWN: 2, CRIT: 3 };
const LIMITS: Thresholds = { marginWarn: 1, marginCrit: 0, lagWarn: 10, lagCrit: 100, nodesWarn: 1, nodesCrit: 99 };
const TARGET = '-c x';
const LIMIT_MS = 100;

test('verdicts: 3,000 generated states → no verb contradicts another, none says OK while nothing can be committed', () => {
  const seen = new Map<string, number>();
  let stuck = 0;
  fc.assert(
    fc.property(cluster, (made) => {
      const probes = made.nodes.map((node, at) => probeOf(node, at, made));
      const view = summarize(probes, { target: TARGET });
      const checks = CHECKS.map((check) =>
        judgeCheck(check, { view, probes, rows: [], strays: [], target: TARGET }, LIMITS),
      );
      const worst = worstOf(checks, view.reasonCode);
      const of = (name: CheckName) => checks.find(({ check }) => check === name)!;
      const checked = probes.map(({ id, url, reply }) => ({
        id,
        url,
        view: reply,
        checkup: { outcome: 'unknown', step: 'call', cause: '' } as const,
      }));
      const [finding] = diagnose(checked, {
        nodeTimeoutMs: LIMIT_MS,
        ttlMs: TTL_MS,
        retainBytes: 1,
        maxBlockBytes: 1,
        target: TARGET,
        judged: view.findings,
      });
      const epochs = epochResult(epochsOf(view, probes), TARGET);
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
      if (RANK[view.verdict] === RANK[worst.verdict] && checks.some(({ reasonCode }) => reasonCode === view.reasonCode))
        expect(worst.reasonCode).toBe(view.reasonCode);
      // The doctor's first line is as bad as the status.
      const severity = finding === undefined || finding.severity === 'INFO' ? 'OK' : finding.severity;
      expect(RANK[severity]).toBeGreaterThanOrEqual(RANK[view.verdict]);
      // No server could be examined here, which is a warning of its own.
      expect(RANK[severity]).toBeLessThanOrEqual(Math.max(RANK[view.verdict], RANK.WARN));
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

/** What `seq watch` shows of these nodes, after it has asked them a few times. */
async function watched(nodes: readonly NodePort[], size: { columns: number; rows: number }): Promise<ClusterView> {
  let state = initialState({
    title: 'x', nodes, size, at: 0, wall: 0, intervalMs: 1000, summarize: { target: TARGET },
  }); // prettier-ignore
  const poller = new Poller({
    nodes,
    identified: true,
    limitMs: LIMIT_MS,
    still: true,
    clock: stillClock,
    state: () => state,
    dispatch: (input) => (state = reduce(state, input)),
  });
  for (let polls = 0; polls < 4; polls += 1) await poller.poll();
  return state.data.view!;
}

/** What `seq cluster recover` finds out. No store is reached. */
function recovery({ nodes }: Made, probes: readonly NodeProbe[]) {
  const evidence = probes.map(({ id, url, reply }, at) => {
    const view = reply.outcome === 'accepted' ? reply.value : null;
    const { head, block } = nodes[at]!;
    const links = Array.from({ length: head }, (_, i) => ({
      height: i + 1, hash: hash(i + 1 === head ? block : 'x', i + 1), parent: i === 0 ? hash('g', 0) : hash('x', i), epoch: 3,
    })); // prettier-ignore
    return { id, url, view, chain: view === null ? null : { floor: 0, floorHash: hash('g', 0), links }, why: '' };
  });
  return decideRecovery({ nodes: evidence, stores: [] }, 'c.1');
}

/** `GET /readyz` of a follower whose store has everything: could it be promoted, once every running lease has ended? */
async function readyz(ports: readonly NodePort[], id: string): Promise<boolean> {
  const quorum = Math.floor(ports.length / 2) + 1;
  const seen = await probe(ports, ports.length, LIMIT_MS, stillClock);
  const configuration = parseConfiguration(
    seen.replies
      .map((reply) => (reply?.outcome === 'accepted' ? reply.value.config : ''))
      .find((text) => text !== '') ?? '',
  );
  const eligibility = new Eligibility({
    id,
    quorum: () => quorum,
    producer: { ready: () => ({ ready: true }) } as never,
    backoff: { activeAt: () => false } as never,
    clock: stillClock,
    emit: () => undefined,
    disk: () => '',
    height: () => 9,
    needsPeer: () => undefined,
    pace: () => ({ text: '', tooSlow: false }) as never,
    isBehind: () => undefined,
  });
  eligibility.judge(seen, votesOf(seen, ports, id, { configuration }).why);
  return eligibility.ready && blockedBy(seen, ports, id, { configuration, ttlMs: TTL_MS, quorum }) === '';
}

const sizes = fc.constantFrom({ columns: 140, rows: 40 }, { columns: 80, rows: 24 }, { columns: 60, rows: 16 });

test('verdicts: 1,000 generated states → recover, repair plan, watch and readyz agree with status', async () => {
  const reached = new Map<string, number>();
  const count = (what: string) => reached.set(what, (reached.get(what) ?? 0) + 1);
  await fc.assert(
    fc.asyncProperty(cluster, sizes, async (made, size) => {
      const ports = made.nodes.map((node, at) => portOf(node, at, made));
      const probes = made.nodes.map((node, at) => probeOf(node, at, made));
      const asked = { nodes: ports, limitMs: LIMIT_MS, clock: stillClock, target: TARGET };
      const status = await inspectCluster({ ...asked, twice: true });
      const stands = standstill(status);
      const forAll = saidByAll(status);
      const stuck = nothingCanBeCommitted(made);
      const offered: string[] = [];
      const told = ({ verdict, reasonCode, reason, next, margin }: ClusterView) => [
        verdict,
        reasonCode,
        reason,
        next,
        margin,
      ];

      // The screen says what `seq status` says.
      expect(told(await watched(ports, size))).toEqual(told(status));

      // A repair of the streams is no good news while nothing can be committed.
      if (status.answered > 0) {
        const { plan } = await plannedRepair({
          ...asked, lane: '', expectedCluster: '', progress: () => undefined, choose: [], without: [], command: 'seq repair plan',
        }); // prettier-ignore
        const { verdict, next } = planResult(plan, TARGET, 'seq repair apply -c x');
        const proven = provenResult(plan, { total: 0, first: '' }, TARGET).verdict!;
        count(`plan by ${plan.hand.by}, ${verdict!.verdict}`);
        if (forAll !== null)
          for (const told of [verdict!, proven, epochResult(epochsOf(status, probes), TARGET).verdict!])
            expect(RANK[told.verdict], told.reason).toBeGreaterThanOrEqual(RANK[forAll.verdict]);
        if (stuck) expect(['CRIT', 'UNKNOWN']).toContain(verdict!.verdict);
        if (status.verdict === 'OK') expect([verdict!.verdict, plan.steps]).toEqual(['OK', []]);
        if (verdict!.verdict !== 'OK') expect(next!.length).toBeGreaterThan(0);
        // Who may write is one answer: no repair is offered that would be refused.
        if (plan.hand.by === 'leader') expect(plan.hand.leader.id).toBe(status.leader?.id);
        if (plan.hand.by === 'nobody') expect(next!.join()).not.toContain('repair apply');
        if (plan.hand.by === 'nobody' && stands !== null) expect(next![0]).toBe(stands.next[0]);
        if (status.leader !== null && made.stray >= 0) {
          const { id } = probes[made.stray]!;
          expect(
            plan.steps.map((step) => step.node),
            'what only a person can end',
          ).not.toContain(id);
        }
        offered.push(...next!);
      }

      // `seq cluster recover` is named where it would act alone. A node that may come back comes back first.
      const decision = recovery(made, probes);
      count(`recover: ${decision.outcome}`);
      const names = status.findings.some(({ next }) => next.join().includes('cluster recover'));
      if (!names) expect(offered.join()).not.toContain('cluster recover');
      const all = probes.every(({ reply }) => reply.outcome === 'accepted');
      if (names || all) expect([names, decision.outcome === 'plan']).toEqual([names, names]);
      if (decision.outcome === 'not-needed') {
        const { facts, next } = notNeededResult(decision, [], status, 'seq status');
        expect(facts!.some(([what]) => what === 'and yet')).toBe(forAll !== null);
        if (stuck) expect([stands?.reason, next]).toEqual([expect.any(String), stands?.next]);
      }

      // Whoever calls itself ready could be promoted, and whoever could not be, says so.
      for (const { id } of made.sequencers.filter(({ state }) => state === 'alive')) {
        if (status.leader?.id === id) continue;
        const ready = await readyz(ports, id);
        count(`readyz: ${ready}`);
        if (ready) expect([stuck, stands === null || stands.code === 'LEADER_STALLED']).toEqual([false, true]);
        if (status.verdict === 'OK') expect(ready).toBe(true);
      }
    }),
    { numRuns: 1000 },
  );
  expect([...reached.keys()].sort()).toEqual(
    expect.arrayContaining([
      'recover: plan',
      'recover: not-needed',
      'recover: impossible',
      'readyz: true',
      'readyz: false',
    ]),
  );
}, 120_000);
