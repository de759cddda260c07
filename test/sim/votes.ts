// Who is a vote, for somebody who knows everything that ran: a node under the memory that a configuration names, which the
// term of that epoch carried in an accepted claim. Two servers behind one id are one voter at most (I13).
import { parseConfiguration, quorumFor, type Configuration } from '../../src/core/protocol/configuration.js';
import type { History, NodeOp } from './history.js';

export class Votes {
  /** Per epoch: the configurations that its term claimed with. */
  private readonly claimed = new Map<number, Map<string, Configuration>>();
  /** Per thing that is voted on: the memories that accepted it. */
  private readonly memories = new Map<string, { node: string; incarnation: string }[]>();

  constructor(private readonly history: Pick<History, 'entries' | 'quorum'>) {
    for (const entry of history.entries) {
      if (entry.is !== 'op' || entry.script !== 'claim' || entry.outcome !== 'accepted') continue;
      const configuration = parseConfiguration(entry.config);
      const known = this.claimed.get(entry.epoch) ?? new Map<string, Configuration>();
      this.claimed.set(entry.epoch, known);
      if (configuration !== null) known.set(entry.config, configuration);
    }
  }

  /** The nodes that make a quorum of one configuration with this vote; null: they are none. */
  add(what: string, epoch: number, { node, incarnation }: Pick<NodeOp, 'node' | 'incarnation'>): string[] | null {
    const memories = this.memories.get(what) ?? [];
    this.memories.set(what, memories);
    if (!memories.some((one) => one.node === node && one.incarnation === incarnation))
      memories.push({ node, incarnation });
    const configurations = this.claimed.get(epoch);
    if (configurations === undefined || configurations.size === 0) {
      const nodes = [...new Set(memories.map((one) => one.node))];
      return nodes.length >= this.history.quorum ? nodes : null;
    }
    for (const configuration of configurations.values()) {
      const nodes = configuration.members
        .filter(({ id, memory }) => memories.some((one) => one.node === id && one.incarnation === memory))
        .map(({ id }) => id);
      if (nodes.length >= quorumFor(configuration)) return nodes;
    }
    return null;
  }
}
