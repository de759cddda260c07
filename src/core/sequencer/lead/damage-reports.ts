// Damage that no server can see in itself (docs/PROTOCOL.md section 8). What does this sequencer know of it, from its
// own reading and from its terms, and whom does it tell? A follower tells the leader until the repair is done. A leader
// sets the node aside and fills it anew once q other nodes can do without it.
import type { EmitEvent } from '../../events.js';
import type { Clock, NodePort, Random, SequencerStatus } from '../../ports.js';
import type { NodeProgress } from '../../protocol/node-progress.js';
import type { ProbeResult } from '../../nodes/probe.js';
import { reportDamage } from '../../nodes/requests.js';

/** Longer than a report stays on the nodes. */
const REPORT_EVERY_MS = 12_000;

export interface DamageReportsOptions {
  id: string;
  nodes: readonly NodePort[];
  clock: Clock;
  random: Random;
  emit: EmitEvent;
  leader(): SequencerStatus['leader'];
}

export class DamageReports {
  /** Per node: the incarnation that is known to be damaged. */
  known: ({ incarnation: string; why: string } | null)[];
  /** Per node: when its damage was last reported to a leader. */
  private readonly reported: number[] = [];

  constructor(private readonly options: DamageReportsOptions) {
    this.known = options.nodes.map(() => null);
  }

  /** Raises one alarm, and tells the leader until the repair is done. */
  found(node: number, incarnation: string, why: string): void {
    if (this.known[node]?.incarnation === incarnation) return;
    this.known[node] = { incarnation, why };
    this.options.emit({ type: 'alarm', code: 'DAMAGED_ENTRY', node: this.options.nodes[node]!.id, reason: why });
    this.reported[node] = -Infinity;
    this.report(node);
  }

  /** Call after each probe. A new incarnation is a new memory: the old damage is gone with the old memory. */
  repeat(seen: ProbeResult): void {
    seen.replies.forEach((reply, i) => {
      const known = this.known[i];
      if (!known || reply?.outcome !== 'accepted' || reply.value.incarnation === '') return;
      if (reply.value.incarnation === known.incarnation) this.report(i);
      else this.known[i] = null;
    });
  }

  /** Passes on to the next term which nodes this term found damaged, and which ones it found repaired. */
  learn(tracks: readonly NodeProgress[]): void {
    this.known = tracks.map(({ damage, incarnation }, i) => {
      if (damage) return { incarnation: damage.incarnation, why: damage.why };
      const known = this.known[i] ?? null;
      return known && incarnation !== '' && incarnation !== known.incarnation ? null : known;
    });
  }

  /**
   * A report may be lost, or reach a leader that was just succeeded. So it is repeated while the node shows the same
   * memory.
   */
  private report(node: number): void {
    const { nodes, id, random, clock } = this.options;
    const known = this.known[node];
    const leader = this.options.leader();
    if (!known || !leader || leader.id === id || clock.now() - (this.reported[node] ?? -Infinity) < REPORT_EVERY_MS)
      return;
    this.reported[node] = clock.now();
    void reportDamage(nodes, { node: nodes[node]!.id, ...known }, leader, id, random.hex(8));
  }
}
