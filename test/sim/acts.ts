// Terms that end where it hurts: each act lets some nodes be reached and fewer be written to, until the term of
// that act has put the block in question where it was wanted; then its sequencer dies and the next act begins. So a
// block comes to lie on one node alone, two blocks compete, or a copy bears another epoch than the next, which faults
// at random times hit once in many thousand runs.
import type { SeqEvent } from '../../src/core/events.js';
import { sequencerOf } from '../../src/core/protocol/types.js';
import type { NodeOp } from './history.js';
import type { SimProcess } from './process.js';
import type { SimNode } from './wire.js';

export interface Act {
  /** Nodes that anybody reaches. */
  reach: string[];
  /** Of these, the ones that blocks arrive at. */
  writes: string[];
  /** written: on all of `writes`; committed: its leader has it in its store; led: before it wrote anything. */
  until: 'written' | 'committed' | 'led';
  /** Before it begins, an operator raises this node's epoch, and whoever leads dies. */
  raise?: { node: string; by: number };
  /** How long everybody else looks at what was left behind. */
  restMs?: number;
}

export interface PlayHooks {
  nodes: readonly SimNode[];
  processes: readonly SimProcess[];
  after(ms: number, run: () => void): void;
  note(text: string): void;
  kill(who: SimProcess): void;
  raise(node: SimNode, by: number): void;
  /** The play is over, by its end or because an act did not come to one. */
  over(): void;
}

export class Play {
  private at = -1;
  private height = 0;
  /** Terms whose act is over. */
  private readonly gone = new Set<string>();
  private written = new Set<string>();
  private resting = false;

  constructor(
    private readonly acts: readonly Act[],
    private readonly hands: PlayHooks,
    private readonly longestMs: number,
  ) {}

  begin(): void {
    this.at++;
    const act = this.acts[this.at];
    if (!act) return this.hands.over();
    const { hands } = this;
    const mine = this.at;
    hands.after(this.longestMs, () => {
      if (this.at !== mine) return;
      hands.note(`act ${mine + 1} does not come to its end`);
      this.at = this.acts.length;
      hands.over();
    });
    this.written.clear();
    this.resting = false;
    if (this.at === 0) this.height = Math.max(...hands.nodes.map(({ server }) => server.state.record?.head ?? 0)) + 1;
    if (act.raise) {
      const { node, by } = act.raise;
      const leader = hands.processes.find((one) => one.sequencer?.status().role === 'leader');
      if (leader) hands.kill(leader);
      for (const { server } of hands.nodes) if (server.state.lock) this.gone.add(server.state.lock.owner);
      hands.raise(
        hands.nodes.find((one) => one.id === node)!,
        by,
      );
    }
    hands.note(
      `act ${mine + 1}: ${act.reach.join(' ')} are reached, ${act.writes.join(' ') || 'none'} written ` +
        `to, until block ${this.height} is ${act.until}`,
    );
  }

  /** Whether a request arrives. */
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
    const process = this.hands.processes.find((one) => one.id === who);
    if (process?.sequencer?.status().role !== 'leader') return;
    const held = this.hands.nodes.some(
      ({ server }) =>
        server.state.lock && sequencerOf(server.state.lock.owner) === who && !this.gone.has(server.state.lock.owner),
    );
    if (!held) return;
    if (act.until === 'led' && event.type === 'role') this.end(who);
    if (act.until === 'committed' && event.type === 'stored' && event.height >= this.height) this.end(who);
  }

  private end(who: string): void {
    const { hands } = this;
    for (const { server } of hands.nodes)
      if (server.state.lock && sequencerOf(server.state.lock.owner) === who) this.gone.add(server.state.lock.owner);
    this.resting = true;
    const process = hands.processes.find((one) => one.id === who);
    if (process) hands.kill(process);
    const mine = this.at;
    hands.after(this.acts[mine]!.restMs ?? 0, () => {
      if (this.at === mine) this.begin();
    });
  }
}

/** Plays that show what a rule is for; r1 … r3. */
export const PLAYS: Record<string, Act[]> = {
  /**
   * A block on r1 alone; another is committed at its height by the other two, of a higher epoch; who sees both takes
   * the higher one.
   */
  tie: [
    { reach: ['r1', 'r2', 'r3'], writes: ['r1'], until: 'written' },
    { reach: ['r2', 'r3'], writes: ['r2', 'r3'], until: 'committed' },
    { reach: ['r1', 'r2'], writes: ['r1', 'r2'], until: 'committed' },
  ],
  /** The first term's epoch is far above what r2 knows unless it was claimed there. */
  uneven: [
    { raise: { node: 'r1', by: 1000 }, reach: ['r1', 'r2'], writes: ['r1'], until: 'written' },
    { reach: ['r2', 'r3'], writes: ['r2', 'r3'], until: 'committed' },
    { reach: ['r1', 'r2'], writes: ['r1', 'r2'], until: 'committed' },
  ],
  /** Two copies of one block under two epochs, which is not a quorum; another block of an epoch between them wins. */
  copies: [
    { reach: ['r1', 'r2', 'r3'], writes: ['r1'], until: 'written' },
    { reach: ['r2', 'r3'], writes: ['r3'], until: 'written' },
    { reach: ['r1', 'r2'], writes: ['r2'], until: 'written', restMs: 400 },
    { reach: ['r1', 'r3'], writes: ['r1', 'r3'], until: 'committed' },
  ],
};
