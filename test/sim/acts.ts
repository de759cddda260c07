// How does a term end at the worst moment? In each act, only some nodes can be reached, and blocks arrive at fewer.
// When the act's block is where it should be, its sequencer dies and the next act begins. So a block exists on one node
// only, two blocks compete, or two copies carry different epochs. Faults at random times cause this only once in many
// thousand runs.
import type { SeqEvent } from '../../src/core/events.js';
import { sequencerOf } from '../../src/core/protocol/types.js';
import type { NodeOp } from './history.js';
import type { SimProcess } from './process.js';
import type { SimNode } from './wire.js';

export interface Act {
  /** Nodes that can be reached at all. */
  reach: string[];
  /** Those of them at which blocks arrive. */
  writes: string[];
  /** written: on all of `writes`. committed: the leader has it in its store. led: before the leader writes anything. */
  until: 'written' | 'committed' | 'led';
  /** Before the act begins, an operator raises this node's epoch and the leader dies. */
  raise?: { node: string; by: number };
  /** How long the other sequencers have to read what was left behind. */
  restMs?: number;
}

export interface PlayHooks {
  nodes: readonly SimNode[];
  processes: readonly SimProcess[];
  after(ms: number, run: () => void): void;
  note(text: string): void;
  kill(who: SimProcess): void;
  raise(node: SimNode, by: number): void;
  /** Called when the play is over: after the last act, or when an act takes too long. */
  over(): void;
}

export class Play {
  private at = -1;
  private height = 0;
  /** Owners of the terms whose act is over. */
  private readonly gone = new Set<string>();
  private written = new Set<string>();
  private resting = false;

  constructor(
    private readonly acts: readonly Act[],
    private readonly hooks: PlayHooks,
    private readonly longestMs: number,
  ) {}

  begin(): void {
    this.at++;
    const act = this.acts[this.at];
    if (!act) return this.hooks.over();
    const { hooks } = this;
    const mine = this.at;
    hooks.after(this.longestMs, () => {
      if (this.at !== mine) return;
      hooks.note(`act ${mine + 1} does not come to its end`);
      this.at = this.acts.length;
      hooks.over();
    });
    this.written.clear();
    this.resting = false;
    if (this.at === 0) this.height = Math.max(...hooks.nodes.map(({ server }) => server.state.record?.head ?? 0)) + 1;
    if (act.raise) {
      const { node, by } = act.raise;
      const leader = hooks.processes.find((one) => one.sequencer?.status().role === 'leader');
      if (leader) hooks.kill(leader);
      for (const { server } of hooks.nodes) if (server.state.lock) this.gone.add(server.state.lock.owner);
      hooks.raise(
        hooks.nodes.find((one) => one.id === node)!,
        by,
      );
    }
    hooks.note(
      `act ${mine + 1}: ${act.reach.join(' ')} are reached, ${act.writes.join(' ') || 'none'} written ` +
        `to, until block ${this.height} is ${act.until}`,
    );
  }

  /** Whether a request may reach the node. */
  lets(node: string, script: string): boolean {
    const act = this.acts[this.at];
    if (!act) return true;
    return (
      act.reach.includes(node) &&
      (script !== 'write_block' || act.writes.includes(node)) &&
      !(this.resting && script === 'promote_leader')
    );
  }

  ran(op: NodeOp): void {
    const act = this.acts[this.at];
    if (
      !act ||
      this.resting ||
      op.outcome !== 'accepted' ||
      op.script !== 'write_block' ||
      op.height !== this.height ||
      this.gone.has(op.owner)
    )
      return;
    this.written.add(op.node);
    if (act.until === 'written' && act.writes.every((node) => this.written.has(node))) this.end(sequencerOf(op.owner));
  }

  told(who: string, event: SeqEvent): void {
    const act = this.acts[this.at];
    if (!act || this.resting) return;
    const process = this.hooks.processes.find((one) => one.id === who);
    if (process?.sequencer?.status().role !== 'leader') return;
    const held = this.hooks.nodes.some(
      ({ server }) =>
        server.state.lock && sequencerOf(server.state.lock.owner) === who && !this.gone.has(server.state.lock.owner),
    );
    if (!held) return;
    if (act.until === 'led' && event.type === 'role') this.end(who);
    if (act.until === 'committed' && event.type === 'stored' && event.height >= this.height) this.end(who);
  }

  private end(who: string): void {
    const { hooks } = this;
    for (const { server } of hooks.nodes)
      if (server.state.lock && sequencerOf(server.state.lock.owner) === who) this.gone.add(server.state.lock.owner);
    this.resting = true;
    const process = hooks.processes.find((one) => one.id === who);
    if (process) hooks.kill(process);
    const mine = this.at;
    hooks.after(this.acts[mine]!.restMs ?? 0, () => {
      if (this.at === mine) this.begin();
    });
  }
}

/** Plays that show what a rule is for. The nodes are r1, r2 and r3. */
export const PLAYS: Record<string, Act[]> = {
  /**
   * A block is on r1 only. The other two commit another block at its height, under a higher epoch. A leader that sees
   * both must take the one with the higher epoch.
   */
  tie: [
    { reach: ['r1', 'r2', 'r3'], writes: ['r1'], until: 'written' },
    { reach: ['r2', 'r3'], writes: ['r2', 'r3'], until: 'committed' },
    { reach: ['r1', 'r2'], writes: ['r1', 'r2'], until: 'committed' },
  ],
  /** The first term's epoch is far above the epoch of r2, unless that term claimed r2. */
  uneven: [
    { raise: { node: 'r1', by: 1000 }, reach: ['r1', 'r2'], writes: ['r1'], until: 'written' },
    { reach: ['r2', 'r3'], writes: ['r2', 'r3'], until: 'committed' },
    { reach: ['r1', 'r2'], writes: ['r1', 'r2'], until: 'committed' },
  ],
  /** One block has two copies under two epochs, which is no quorum. Another block with an epoch between them wins. */
  copies: [
    { reach: ['r1', 'r2', 'r3'], writes: ['r1'], until: 'written' },
    { reach: ['r2', 'r3'], writes: ['r3'], until: 'written' },
    { reach: ['r1', 'r2'], writes: ['r2'], until: 'written', restMs: 400 },
    { reach: ['r1', 'r3'], writes: ['r1', 'r3'], until: 'committed' },
  ],
};
