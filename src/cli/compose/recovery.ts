// The recovery that `seq cluster recover` and `seq lab up` make: gather, decide, confirm, carry out, record
// (docs/PROTOCOL.md section 8). Invariant: nothing is written before the plan, with all its evidence and doubts, was
// confirmed. Doubts need a flag of their own.
import { genesisHash } from '../../core/chain/block.js';
import { recordChange, type Operator } from '../../core/nodes/audit-record.js';
import { commonCluster } from '../../core/view/cluster-name.js';
import { carryOut, handToLeader, type RecoverOptions } from '../../core/recovery/recover.js';
import { gather, type Gathered, type StoreAtHand } from '../../core/recovery/gather.js';
import { familyOf } from '../../core/generation.js';
import { decideRecovery, type RecoveryDecision, type RecoveryPlan } from '../../core/recovery/plan.js';
import { systemClock, systemRandom } from '../../core/nodes/system-clock.js';
import { EXIT, SeqError } from '../../core/errors.js';
import { confirmChange, type Asking } from '../support/confirm.js';
import type { Cluster } from './open-cluster.js';
import { planLines } from '../present/cluster/recover.js';

export interface RecoveryRequest {
  found: Pick<Cluster, 'identity' | 'nodeTimeoutMs' | 'reopen'>;
  /** Sequencers to ask, besides those in presence records. */
  peers: readonly string[];
  /** Directories of stores. */
  stores: readonly { id: string; dir: string }[];
  /** The command line to repeat it. */
  command: string;
  /** What to do instead when no recovery is possible. */
  insteadOf(why: Extract<RecoveryDecision, { outcome: 'impossible' }>['code']): string[];
  signal: AbortSignal;
  onClose(close: () => Promise<void>): void;
  step(doing: string): void;
  changed(nodes: string[]): void;
}

export interface RecoveryProbe {
  /** The generation that the nodes are in; '' when no node shows it. */
  now: string;
  decision: Exclude<RecoveryDecision, { outcome: 'impossible' }>;
  evidence: Gathered;
  options: RecoverOptions;
  lane: string;
}

/** Reads only. Throws SeqError when there is nothing to base a recovery on. */
export async function probeForRecovery(request: RecoveryRequest): Promise<RecoveryProbe> {
  const { found, command } = request;
  const open = async (cluster: string) => {
    const nodes = await found.reopen(cluster);
    request.onClose(async () => {
      await Promise.all(nodes.map((node) => node.close()));
    });
    return nodes;
  };
  const limitMs = Math.max(found.nodeTimeoutMs, 500);
  const readers = await open('');
  request.step('gathering what every node and store holds');
  const stores = await openStores(request);
  // The generation that the nodes are in, even when the context names another.
  const shown = commonCluster(await Promise.all(readers.map((node) => node.call({ script: 'inspect' }, limitMs))));
  const now =
    found.identity.cluster === '' || familyOf(shown) === familyOf(found.identity.cluster)
      ? shown
      : found.identity.cluster;
  const evidence = await gather({
    nodes: await open(now),
    readers,
    limitMs,
    clock: systemClock,
    peers: request.peers,
    stores,
    signal: request.signal,
  });
  const decision = decideRecovery(evidence, now);
  if (decision.outcome === 'impossible') {
    throw new SeqError({
      code: decision.code,
      exit: decision.code === 'NO_QUORUM' ? EXIT.noQuorum : EXIT.precondition,
      message: decision.why,
      why: 'a recovery rests on what a quorum of nodes shows, and on the stores that can be read',
      changed: 'nothing',
      next: request.insteadOf(decision.code),
      retryable: decision.code === 'NO_QUORUM',
    });
  }
  const cluster = decision.outcome === 'plan' ? decision.plan.cluster : decision.cluster;
  return {
    now,
    decision,
    evidence,
    lane: found.identity.lane,
    options: {
      nodes: await open(cluster),
      readers,
      limitMs,
      clock: systemClock,
      random: systemRandom,
      command,
      step: request.step,
      changed: request.changed,
    },
  };
}

/** Asks the leader to admit nodes that an earlier recovery left behind. Returns their ids. */
export function rejoin(probed: RecoveryProbe): Promise<string[]> {
  const { decision, options, lane } = probed;
  return decision.outcome === 'not-needed'
    ? handToLeader(decision, genesisHash(familyOf(decision.cluster), lane), options)
    : Promise.resolve([]);
}

export interface Confirming extends Omit<Asking, 'command'> {
  /** The command without the flags of a confirmation. */
  command: string;
  acceptLoss: boolean;
  reason: string;
  operator: Operator;
  /** Called right before the first write. */
  changing(): void;
}

/**
 * Shows the plan, waits for its confirmation and carries it out. Returns a warning, or ''. `yes` confirms only a plan
 * without doubts.
 */
export async function recoverAsPlanned(
  plan: RecoveryPlan,
  { now, evidence, options }: RecoveryProbe,
  confirming: Confirming,
): Promise<string> {
  const sure = confirming.yes && plan.doubts.length === 0;
  if (confirming.confirm === undefined) for (const line of planLines(plan)) confirming.say(line);
  if (!sure) {
    await confirmChange(
      {
        level: 'decides-data',
        what: `recover the cluster as ${plan.cluster}`,
        effect: [],
        digest: plan.digest,
        ...(plan.doubts.length === 0
          ? {}
          : {
              against: {
                rule: `an acknowledged block may be lost: ${plan.doubts.join('; ')}`,
                flag: `accept-possible-loss`,
                given: confirming.acceptLoss,
              },
            }),
      },
      confirming,
    );
  }
  confirming.changing();
  await carryOut(plan, evidence, options);
  return recordChange(
    options.nodes,
    {
      what: 'cluster recover',
      reason: confirming.reason,
      before: `${now}: ${plan.nodes.map((node) => `${node.id} ${node.finding}`).join('; ')}`.slice(0, 2000),
      after: `${plan.cluster}, head ${plan.top.height} ${plan.top.hash}`,
      outcome: 'recovered',
      plan: plan.digest,
    },
    confirming.operator,
    systemClock,
    options.limitMs,
  );
}

async function openStores({ stores, onClose }: RecoveryRequest): Promise<StoreAtHand[]> {
  if (stores.length === 0) return [];
  const { openStoreReader } = await import('../../core/store/lmdb-reader.js');
  return stores.map(({ id, dir }) => {
    const reader = openStoreReader(dir);
    onClose(() => reader.close());
    return {
      id,
      url: dir,
      cluster: `${reader.cluster}.${reader.generation}`,
      head: () => reader.head(),
      range: (from) => reader.range(from),
    };
  });
}
