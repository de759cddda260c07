// Several servers may answer for one node: a replica that a Sentinel promoted, an empty one that somebody's settings
// name. Which of them counts is agreed by the nodes; this file knows it from all their records at once, as nobody
// inside a run can. Faults and the end of a run ask here, so that no more is forgotten than the protocol allows for.
import { generationOf } from '../../src/core/generation.js';
import { memoryNamed, newest } from '../../src/core/protocol/configuration.js';
import { cloneNodeState, emptyNodeState, MemoryServer } from '../support/memory-node.js';
import type { OtherServer } from './scenario.js';
import { WALL_START, type SimClock } from './sim-clock.js';
import { SimNode, type Wire } from './wire.js';

/** Calls sent before an address was put right may change something this much later. */
const LATE_MS = 10_000;

export class Servers {
  /** Nodes that more than one address led to, and until when that may still have effects. */
  private readonly contested = new Map<string, number>();

  constructor(
    private readonly wire: Wire,
    private readonly clock: SimClock,
  ) {}

  of(id: string): SimNode[] {
    return [...this.wire.servers.values()].filter((server) => server.id === id);
  }

  /** The admitted server whose memory the newest configuration names. */
  counting(id: string): SimNode | undefined {
    const records = [...this.wire.servers.values()].flatMap(({ server: { state } }) =>
      state.record === null || state.record.cluster.startsWith('retired:') ? [] : [state.record],
    );
    const generation = Math.max(0, ...records.map(({ cluster }) => generationOf(cluster)));
    const configuration = newest(
      ...records.filter(({ cluster }) => generationOf(cluster) === generation).map(({ config }) => config),
    );
    const named = configuration === null ? '' : memoryNamed(configuration, id);
    return this.of(id).find(({ server: { state } }) => named !== '' && state.record?.incarnation === named);
  }

  isContested(id: string): boolean {
    return this.contested.has(id);
  }

  /** Whether the node is one of those that surely remember: `home` is the server that operators know it by. */
  remembers(home: SimNode): boolean {
    const until = this.contested.get(home.id);
    if (until === undefined) return home.intact;
    return this.clock.now() >= until && this.counting(home.id)?.intact === true;
  }

  /** Where all addresses lead when somebody has put them right. */
  settled(home: SimNode): SimNode {
    const counting = this.counting(home.id);
    return this.contested.has(home.id) && counting?.intact ? counting : home;
  }

  contest(id: string, forMs: number): void {
    this.contested.set(id, Math.max(this.contested.get(id) ?? 0, this.clock.now() + forMs + LATE_MS));
  }

  /** The other server that answers for this node, a new one if there is none yet. */
  other(home: SimNode, kind: OtherServer, mutant = home.server.mutant): SimNode {
    const known = this.of(home.id).find((server) => server !== home && server.other);
    if (known !== undefined) return known;
    return this.add(home.id, kind, home, mutant);
  }

  /** An empty server under an id that no member has. */
  stranger(id: string): SimNode {
    return this.of(id)[0] ?? this.add(id, 'empty', null, {});
  }

  private add(id: string, kind: OtherServer, like: SimNode | null, mutant: MemoryServer['mutant']): SimNode {
    const count = this.wire.servers.size;
    const runId = `run-${id}-other${count}`;
    const state = like !== null && kind === 'replica' ? cloneNodeState(like.server.state) : emptyNodeState(runId);
    state.runId = runId;
    const clockOf = (): number => WALL_START + this.clock.now() + node.offsetMs;
    const server = new MemoryServer(`${id}.${count}`, clockOf, state, mutant);
    server.starts = (like?.server.starts ?? 0) + 1000 * count; // no answer of the one is taken for the other's
    const node: SimNode = new SimNode(id, server, `sim://${id}.${count}`);
    node.memory = (like?.memory ?? 0) + 1000 * count;
    node.other = true;
    this.wire.servers.set(node.url, node);
    return node;
  }
}
