// Compares the epoch of every node with the leader's epoch, or with the highest one when nobody leads. Pure.
import { MAX_EPOCH_LEAP, MAX_NUMBER, sequencerOf, type Epoch } from '../protocol/types.js';
import type { ClusterView, LeaderRow, NodeProbe, NodeState } from './cluster-view.js';

interface EpochRow {
  id: string;
  state: NodeState;
  admitted: boolean;
  epoch: Epoch | null;
  /** The sequencer whose term claimed the epoch. '' when none did. */
  claimant: string;
  holder: string | null;
  /** Compared with the leader's epoch, or with the highest one when nobody leads. */
  standing: 'same' | 'below' | 'above' | 'unknown' | 'left out';
  note: string;
}

export interface EpochView {
  view: ClusterView;
  leader: LeaderRow | null;
  /** The leader's epoch, or the highest one on an admitted node. */
  reference: Epoch;
  /** The highest epoch that a term can have reached. A stray epoch is left out. */
  highest: Epoch;
  rows: EpochRow[];
}

/** The command for an epoch that no term can have reached. Once the key is deleted, the leader re-admits the node. */
export function deleteEpoch(url: string, target: string): string {
  return `redis-cli -u ${url} del ${prefixOf(target)}epoch:token`;
}

/** The command for a configuration that no term can have made. The next claim notes the right one. */
export function deleteConfiguration(url: string, target: string): string {
  return `redis-cli -u ${url} hdel ${prefixOf(target)}node:admission config`;
}

/** The command that makes a server forget which node it is. The leader fills it anew then. */
export function forgetRecord(url: string, target: string): string {
  return `redis-cli -u ${url} del ${prefixOf(target)}node:admission`;
}

/** The command that writes back which cluster a server belongs to. Everything else in its record is as it was. */
export function restoreCluster(url: string, target: string, cluster: string): string {
  return `redis-cli -u ${url} hset ${prefixOf(target)}node:admission cluster ${cluster}`;
}

/** The prefix of the keys of the lane that the flags of a command name. */
function prefixOf(target: string): string {
  const [, lane] = /(?:^|\s)--lane (\S+)/.exec(target) ?? [];
  return lane === undefined ? 'seq:' : `seq:${lane}:`;
}

export function epochsOf(view: ClusterView, probes: readonly NodeProbe[]): EpochView {
  const known = view.nodes.flatMap((n) => (n.epoch === null ? [] : [n.epoch]));
  const ofAdmitted = view.nodes.flatMap((n) => (n.admitted && n.epoch !== null ? [n.epoch] : []));
  const reference = view.leader?.epoch ?? Math.max(0, ...ofAdmitted);
  const rows = view.nodes.map((n): EpochRow => {
    const reply = probes.find((o) => o.id === n.id)?.reply;
    const claimant = reply?.outcome === 'accepted' ? reply.value.claimant : '';
    const standing =
      n.epoch === null
        ? 'unknown'
        : !n.admitted
          ? 'left out'
          : n.epoch === reference
            ? 'same'
            : n.epoch < reference
              ? 'below'
              : 'above';
    return {
      id: n.id,
      state: n.state,
      admitted: n.admitted,
      epoch: n.epoch,
      claimant: claimant === '' ? '' : sequencerOf(claimant),
      holder: n.holder,
      standing,
      note: n.note,
    };
  });
  const reached = known.filter((epoch) => epoch <= Math.min(MAX_NUMBER, reference + MAX_EPOCH_LEAP));
  return { view, leader: view.leader, reference, highest: Math.max(0, ...reached), rows };
}
