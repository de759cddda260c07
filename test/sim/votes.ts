// Which accepted calls are votes, judged by somebody who knows everything that ran? A vote belongs to a node with the
// memory that a configuration names. The term of that epoch must have carried this configuration in an accepted claim.
// Two servers behind one id are at most one voter (I13).
import { parseConfiguration, quorumFor, type Configuration } from '../../src/core/protocol/configuration.js';
import type { History, NodeOp } from './history.js';

export class Votes {
  /** For each epoch: the configurations with which its term claimed. */
  private readonly claimed = new Map<number, Map<string, Configuration>>();
  /** For each thing that is voted on: the memories that accepted it. */
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

  /** Adds a vote. Returns the nodes that now form a quorum of one configuration, or null. */
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
