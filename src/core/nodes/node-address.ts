// Which of two servers is the node, when a list and the configuration name two addresses for it (docs/PROTOCOL.md
// section 8)? The memory decides. Where neither server shows it, the address that has the say decides: the one that a
// leader gave the node, or else the one of the list. Pure.
import { familyOf } from '../generation.js';
import type { Member } from '../protocol/configuration.js';
import type { NodeReply, NodeView } from '../protocol/types.js';

/** What a server is good for as this node. A higher one is better. */
type Fitness = 0 | 1 | 2 | 3 | 4;

export type WhichAddress = 'listed' | 'agreed';

type Shown = NodeReply<Pick<NodeView, 'admission' | 'cluster' | 'node' | 'incarnation' | 'pending' | 'runId'>> | null;

/** `cluster`: of the configuration. */
export function whichAddress(member: Member, cluster: string, shown: Record<WhichAddress, Shown>): WhichAddress {
  const given = member.since !== undefined;
  const [listed, agreed] = [
    fitness(shown.listed, member, cluster, !given),
    fitness(shown.agreed, member, cluster, given),
  ];
  if (agreed !== listed) return agreed > listed ? 'agreed' : 'listed';
  return given && listed < 3 ? 'agreed' : 'listed';
}

/** The node itself, with the memory that counts. */
export function showsMemory(shown: Shown, member: Member, cluster: string): boolean {
  return fitness(shown, member, cluster, true) === 4;
}

function fitness(shown: Shown, member: Member, cluster: string, hasTheSay: boolean): Fitness {
  if (shown?.outcome !== 'accepted') return 0;
  const { admission, incarnation, pending, node, runId } = shown.value;
  // An empty server proves nothing about who it is: it may be anybody's.
  if (admission === 'pristine' || (admission === 'wiped' && shown.value.cluster === '')) return hasTheSay ? 1 : 0;
  const named = shown.value.cluster;
  const ours = admission !== 'foreign' && node === member.id && familyOf(named) === familyOf(cluster);
  // A replica has no memory of its own.
  if (!ours || runId === '') return 0;
  const bears = member.memory !== '' && (incarnation === member.memory || pending === member.memory);
  if (bears) return admission === 'admitted' ? 4 : 3;
  // Another memory: its server was replaced, if a leader has given the node another address.
  return hasTheSay || member.since === undefined ? 2 : 0;
}
