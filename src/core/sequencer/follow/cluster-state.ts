// What this sequencer has seen of the nodes and of who leads: the last word of each node, said in the log once, and
// the leader that q locks show.
import type { EmitEvent } from '../../events.js';
import type { NodePort, SequencerStatus } from '../../ports.js';
import type { Height } from '../../protocol/types.js';
import { seenHeads } from './follower.js';
import { leaderOf, type ProbeResult } from '../../nodes/probe.js';

export class ClusterState {
  leader: SequencerStatus['leader'] = null;
  nodes: SequencerStatus['nodes'];
  /** The greatest height that any node showed. */
  height = 0;
  private readonly said = new Map<string, string>();

  constructor(
    private readonly ports: readonly NodePort[],
    private readonly quorum: number,
    private readonly emit: EmitEvent,
  ) {
    this.nodes = ports.map((node) => ({ id: node.id, state: 'unknown', why: 'not asked yet' }));
  }

  /** True when another leader is seen than before, or none any more. */
  learn(seen: ProbeResult): boolean {
    const known = this.leader;
    const leader = leaderOf(seen, this.quorum);
    this.leader = leader ? { id: leader.id, epoch: leader.epoch, url: leader.url } : null;
    this.reached(seenHeads(seen, 0).head);
    this.nodes = seen.replies.map((reply, i) => {
      const { id } = this.ports[i]!;
      // the look was closed once a quorum had answered: nothing new is known of this one
      if (!reply) return this.nodes[i]!;
      if (reply.outcome === 'unknown')
        return { id, state: 'unknown', why: `no answer at ${reply.step}: ${reply.cause}` };
      if (reply.outcome === 'refused') return { id, state: 'refused', why: reply.reason };
      return { id, state: reply.value.admission, why: reply.value.admissionWhy };
    });
    for (const state of this.nodes) this.say(state.id, state.state, state.why);
    return known?.id !== this.leader?.id || known?.epoch !== this.leader?.epoch || known?.url !== this.leader?.url;
  }

  /** Where a node stands with a term of this sequencer. */
  stands(node: string, state: string, why: string): void {
    this.nodes = this.nodes.map((known) => (known.id === node ? { id: node, state, why } : known));
    this.say(node, state, why);
  }

  reached(height: Height): void {
    this.height = Math.max(this.height, height);
  }

  private say(node: string, state: string, why: string): void {
    const text = `${state} ${why}`;
    if (this.said.get(node) === text) return;
    this.said.set(node, text);
    this.emit({ type: 'node', node, state, why });
  }
}
