// Renewed terms (docs/PROTOCOL.md section 6.7). For which nodes was a term renewed? A node that never comes back must
// not cause one renewal after another. Which epoch must be raised before the next term can reach a node?
import type { Clock, NodePort } from '../../ports.js';
import type { NodeProgress } from '../../protocol/node-progress.js';
import { memoryNamed, type Configuration } from '../../protocol/configuration.js';
import { MAX_EPOCH_LEAP, type Epoch } from '../../protocol/types.js';
import type { ProbeResult } from '../../nodes/probe.js';

/** After this long without a renewal, a node counts as new again. */
const FORGOTTEN_MS = 120_000;

const NEVER = { count: 0, at: -Infinity };

export class Renewals {
  /** Per node. A node that was never the cause of a renewal may be missing. */
  private renewals: ({ count: number; at: number } | undefined)[] = [];

  constructor(
    private readonly options: { nodes: readonly NodePort[]; clock: Clock; timing: { nodeTimeoutMs: number } },
  ) {}

  /** Per node: the earliest time at which a term may be renewed for it. */
  notBefore(): number[] {
    return this.options.nodes.map((_, i) => {
      const { count, at } = this.renewals[i] ?? NEVER;
      return count === 0 ? 0 : at + Math.min(1000 * 2 ** (count - 1), 60_000);
    });
  }

  /** A term ended so that it can be renewed for these nodes. */
  note(tracks: readonly NodeProgress[]): void {
    const now = this.options.clock.now();
    tracks.forEach((track, i) => {
      if (!track.wantsRenewal) return;
      const { count, at } = this.renewals[i] ?? NEVER;
      this.renewals[i] = { count: now - at > FORGOTTEN_MS ? 1 : count + 1, at: now };
    });
  }

  /**
   * A node whose memory does not count refuses every epoch below its own all the same (I3). That is a node that
   * lost its memory, or an intact server whose memory the configuration does not name. It has no vote, so it cannot
   * lift the new term above its epoch. So one of the voters is raised to that epoch first. A failure loses nothing: the
   * node stays out until the next renewal.
   */
  async liftEpoch(
    seen: ProbeResult,
    votes: { node: number; epoch: Epoch }[],
    owner: string,
    configuration: Configuration | null,
  ): Promise<typeof votes> {
    const { nodes, timing } = this.options;
    const forgetful = seen.replies.flatMap((reply, i) => {
      if (reply?.outcome !== 'accepted') return [];
      const { admission, incarnation, epoch } = reply.value;
      const named = configuration === null ? incarnation : memoryNamed(configuration, nodes[i]!.id);
      const lost = ['wiped', 'restarted', 'damaged', 'admitting'].includes(admission);
      return lost || (admission === 'admitted' && incarnation !== named) ? [epoch] : [];
    });
    const highestSeen = Math.max(...votes.map((vote) => vote.epoch));
    // An epoch that nobody can have reached is not a promise: `begin_admission` ignores it.
    const value = Math.max(0, ...forgetful.filter((epoch) => epoch <= highestSeen + MAX_EPOCH_LEAP));
    const lifted = votes[0]!;
    if (value <= highestSeen + 1) return votes;
    const reply = await nodes[lifted.node]!.call(
      { script: 'raise_epoch', value, ofOwner: owner, highestSeen, mayDepose: false },
      timing.nodeTimeoutMs,
    );
    return reply.outcome === 'accepted'
      ? votes.map((vote) => (vote === lifted ? { ...vote, epoch: reply.value.epoch } : vote))
      : votes;
  }
}
