// Generated states of a cluster, for tests that compare what the commands say about them. The way in which a state was
// made tells what can be committed, not the code under test. The nodes answer like real ones but keep no state.
import fc from 'fast-check';
import type { Clock, NodePort } from '../../src/core/ports.js';
import { configurationText, firstConfiguration } from '../../src/core/protocol/configuration.js';
import type { Entry, NodeView, Presence } from '../../src/core/protocol/types.js';
import type { NodeProbe } from '../../src/core/view/cluster-view.js';

export const TTL_MS = 3000;

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
const sound: MadeNode = { memory: 'admitted', lock: 'running', holder: 'seq-a', head: 9, block: 'x', epoch: 3 };
/** A healthy state of its own: among many independent random parts, one is nearly always wrong. */
const healthy = fc.constantFrom(3, 5).map((n) => ({
  nodes: Array.from({ length: n }, () => sound),
  sequencers: [
    { id: 'seq-a', state: 'alive' },
    { id: 'seq-b', state: 'alive' },
  ] as [MadeSequencer, MadeSequencer],
  held: false,
  stray: -1,
}));
const anything = fc.record({
  nodes: fc.oneof(
    fc.array(madeNode, { minLength: 3, maxLength: 3 }),
    fc.array(madeNode, { minLength: 5, maxLength: 5 }),
  ),
  sequencers: fc.tuple(stateOf('seq-a'), stateOf('seq-b')),
  held: fc.oneof(often(false, 9), often(true, 1)),
  /** The node on which somebody wrote an epoch by hand. −1: none. */
  stray: fc.oneof(often(-1, 9), { weight: 1, arbitrary: fc.constantFrom(0, 1, 2) }),
});
export const cluster = fc.oneof({ weight: 1, arbitrary: healthy }, { weight: 19, arbitrary: anything });
export type Made = typeof cluster extends fc.Arbitrary<infer T> ? T : never;

export const hash = (letter: string, height: number) => `${letter}${height}`.padEnd(64, '0');
const LEFT_MS = { free: 0, running: 2600, late: 400, stretched: 3_590_000, endless: -1 };

function presence({ id, state }: MadeSequencer): Presence {
  return {
    id, role: id === 'seq-a' ? 'leader' : 'follower', height: 9, version: '1', url: '', pid: 1, configDigest: 'd',
    pttlMs: state === 'dying' ? 700 : 2900,
    extra: { ready: state === 'unready' ? 'no' : 'yes', why: 'its store is behind', ttlMs: String(TTL_MS), blockTimeMs: '1000', recordTtlMs: '3000' },
  }; // prettier-ignore
}

/** Every node knows the members and the memory of each, as after a bootstrap. */
function configOf(nodes: readonly MadeNode[]): string {
  return configurationText(firstConfiguration(nodes.map((_, at) => ({ ...addressOf(at), memory: 'boot' }))));
}

const addressOf = (at: number) => ({ id: `r${at + 1}`, url: `redis://127.0.0.1:${7000 + at}` });

const STRAY_EPOCH = 777_777_777_777;

export function probeOf(made: MadeNode, at: number, { nodes, sequencers, held, stray }: Made): NodeProbe {
  const base = { ...addressOf(at), rttMs: 1, askedAt: 0 };
  if (made.memory === 'silent')
    return { ...base, reply: { outcome: 'unknown', step: 'call', cause: 'no reply', limitMs: 100 } };
  if (made.memory === 'denied') return { ...base, reply: { outcome: 'refused', reason: 'NOAUTH', detail: {} } };
  if (made.memory === 'loading') return { ...base, reply: { outcome: 'refused', reason: 'LOADING', detail: {} } };
  const owner = `${made.holder}/0123456789abcdef`;
  const value: NodeView = {
    head: made.head, headEpoch: 3, headHash: hash(made.block, made.head), floor: 0, floorHash: hash('g', 0),
    admission: made.memory, admissionWhy: '', cluster: 'c.1', node: base.id, incarnation: 'boot',
    pending: made.memory === 'admitting' ? 'nonce' : '', config: configOf(nodes), admittedRunId: `run${at}`, runId: `run${at}`,
    lock: made.lock === 'free' ? null : { owner, pttlMs: LEFT_MS[made.lock] }, epoch: at === stray ? STRAY_EPOCH : made.epoch, claimant: owner,
    length: made.head, hold: held ? { by: 'ann', reason: 'upgrade', pttlMs: 60_000 } : null, handover: null, request: null,
    sequencers: sequencers.filter(({ state }) => state !== 'gone' && state !== 'never').map(presence),
    absent: sequencers.filter(({ state }) => state === 'gone').map(({ id }) => ({ id, seenAtMs: 990_000 })),
    timeMs: 1_000_000, info: {},
  }; // prettier-ignore
  return { ...base, reply: { outcome: 'accepted', incarnation: 'boot', value } };
}

/** The entries of the node: one chain, with another block at the head if the state says so. */
function entriesOf({ head, block }: MadeNode): Entry[] {
  return Array.from({ length: head }, (_, i): Entry => ({
    height: i + 1, epoch: 3, hash: hash(i + 1 === head ? block : 'x', i + 1), parent: i === 0 ? hash('g', 0) : hash('x', i),
    timestamp: 900_000 + i * 1000, owner: 'seq-a/0123456789abcdef', size: 10,
  })); // prettier-ignore
}

/** A node that gives its generated answer at once. */
export function portOf(made: MadeNode, at: number, all: Made): NodePort {
  const { id, url, reply } = probeOf(made, at, all);
  const read = async ({ from, to, limit }: { from: number; to: number; limit: number }) =>
    reply.outcome !== 'accepted'
      ? reply
      : {
          outcome: 'accepted' as const,
          incarnation: 'boot',
          value: {
            entries: entriesOf(made)
              .filter(({ height }) => height >= from && height <= to)
              .slice(0, limit),
            damaged: [],
            lastId: '',
          },
        };
  return { id, url, call: async () => reply, read, onHint: () => () => undefined } as unknown as NodePort;
}

/** Time stands still, and a pause ends at once. A call that has its answer is never cut off. */
export const stillClock: Clock = {
  now: () => 0,
  wall: () => 1_000_000,
  after: (_ms, run) => {
    const due = setImmediate(run);
    return () => clearImmediate(due);
  },
};

/**
 * Whether nobody can commit: nobody leads, and no living sequencer could be promoted even after every running lease has
 * ended.
 */
export function nothingCanBeCommitted({ nodes, sequencers, held, stray }: Made): boolean {
  const quorum = Math.floor(nodes.length / 2) + 1;
  const said = sequencers.some(({ state }) => state !== 'gone' && state !== 'never');
  // If nobody announces the length of a lease, only an endless lock can be known to belong to nobody.
  const free = nodes.filter(
    ({ memory, lock }) => memory === 'admitted' && lock !== 'endless' && !(lock === 'stretched' && said),
  );
  // Silent nodes count as lost if too few other nodes are admitted. If enough are admitted, a silent node may be in
  // order.
  if (nodes.filter(({ memory }) => memory === 'admitted').length < quorum) return true;
  const open = nodes.filter(({ memory }) => memory === 'silent' || memory === 'denied' || memory === 'loading');
  if (free.length + open.length < quorum) return true;
  const leads = nodes.filter(
    ({ memory, lock, holder, epoch }, at) =>
      at !== stray && memory === 'admitted' && lock === 'running' && holder === 'seq-a' && epoch === 3,
  );
  const others = nodes.filter(({ memory, lock }) => memory === 'admitted' && (lock === 'running' || lock === 'late'));
  if (leads.length >= quorum || others.length > 0 || open.length > 0) return false;
  // Nobody holds a running lease, so a sequencer would have to be promoted.
  return held || !sequencers.some(({ state }) => state === 'alive');
}
