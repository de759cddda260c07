// What has this sequencer last seen of the nodes, and who leads? Keeps the last answer of each node, logs each change
// once, and keeps the leader that q locks show.
import type { EmitEvent } from '../../events.js';
import type { NodePort, SeenNodeState, SequencerStatus } from '../../ports.js';
import type { Height, NodeReply, NodeView } from '../../protocol/types.js';
import { seenHeads } from './follower.js';
import { leaderOf, type ProbeResult } from '../../nodes/probe.js';

const NOT_ASKED = 'not asked yet';

export class ClusterState {
  private seenLeader: SequencerStatus['leader'] = null;
  private seenNodes: SequencerStatus['nodes'];
  private seenHeight: Height = 0;
  private readonly said = new Map<string, string>();

  constructor(
    private readonly ports: readonly NodePort[],
    private readonly membership: { quorum: number; asks(node: number): boolean },
    private readonly emit: EmitEvent,
  ) {
    this.seenNodes = ports.map((node) => ({ id: node.id, state: 'unknown', why: NOT_ASKED }));
  }

  get leader(): SequencerStatus['leader'] {
    return this.seenLeader;
  }

  get nodes(): SequencerStatus['nodes'] {
    return this.seenNodes;
  }

  /** The greatest height that any node showed. */
  get height(): Height {
    return this.seenHeight;
  }

  /** This sequencer leads now, so the leader seen before does not. */
  leadsItself(): void {
    this.seenLeader = null;
  }

  /** True when the leader changed or is gone. */
  learn(seen: ProbeResult): boolean {
    const known = this.leader;
    const leader = leaderOf(seen, this.membership.quorum);
    this.seenLeader = leader ? { id: leader.id, epoch: leader.epoch, url: leader.url } : null;
    this.reached(seenHeads(seen, 0).head);
    this.seenNodes = seen.replies.flatMap((reply, i): SequencerStatus['nodes'] => {
      const { id } = this.ports[i]!;
      if (!this.membership.asks(i)) return [];
      // The probe was closed once a quorum had answered. Nothing new is known of this node.
      if (!reply) return [this.nodes.find((known) => known.id === id) ?? { id, state: 'unknown', why: NOT_ASKED }];
      return [seenAs(id, reply)];
    });
    for (const state of this.nodes) this.say(state.id, state.state, state.why);
    return known?.id !== this.leader?.id || known?.epoch !== this.leader?.epoch || known?.url !== this.leader?.url;
  }

  /** Where a node stands with a term of this sequencer. */
  stands(node: string, state: SeenNodeState, why: string): void {
    const seen = { id: node, state, why };
    const known = this.nodes.some(({ id }) => id === node);
    this.seenNodes = known ? this.nodes.map((one) => (one.id === node ? seen : one)) : [...this.nodes, seen];
    this.say(node, state, why);
  }

  reached(height: Height): void {
    this.seenHeight = Math.max(this.height, height);
  }

  private say(node: string, state: SeenNodeState, why: string): void {
    const text = `${state} ${why}`;
    if (this.said.get(node) === text) return;
    this.said.set(node, text);
    this.emit({ type: 'node', node, state, why });
  }
}

function seenAs(id: string, reply: NodeReply<NodeView>): SequencerStatus['nodes'][number] {
  if (reply.outcome === 'unknown') return { id, state: 'unknown', why: `no answer at ${reply.step}: ${reply.cause}` };
  if (reply.outcome === 'refused') return { id, state: 'refused', why: reply.reason };
  return { id, state: reply.value.admission, why: reply.value.admissionWhy };
}
