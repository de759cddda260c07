// Several servers may answer for one node: a replica that a Sentinel promoted, an empty one that somebody's settings
// name. Which of them counts is agreed by the nodes; this file knows it from all their records at once, as nobody
// inside a run can. Faults and the end of a run ask here, so that no more is forgotten than the protocol allows for.
import { generationOf } from '../../src/core/generation.js';
import {
  compareVersions,
  memoryNamed,
  parseConfiguration,
  quorumFor,
  type Configuration,
} from '../../src/core/protocol/configuration.js';
import { cloneNodeState, emptyNodeState, MemoryServer } from '../support/memory-node.js';
import { quorumOf } from '../../src/core/protocol/quorum.js';
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

  /**
   * The configurations that may count, the newest first: down to the newest one that a quorum of its own members knows, it
   * or a later one. Those above it may have been given up.
   */
  configurations(): Configuration[] {
    const records = [...this.wire.servers.values()].flatMap(({ id, server: { state } }) =>
      state.record === null || state.record.cluster.startsWith('retired:') ? [] : [{ id, ...state.record }],
    );
    const generation = Math.max(0, ...records.map(({ cluster }) => generationOf(cluster)));
    const known = records.flatMap(({ id, cluster, incarnation, pending, config }) => {
      const read = generationOf(cluster) === generation ? parseConfiguration(config) : null;
      return read === null ? [] : [{ id, incarnation: pending === '' ? incarnation : '', read }];
    });
    const sorted = known.map(({ read }) => read).sort((a, b) => compareVersions(b.version, a.version));
    const distinct = sorted.filter(({ version }, i) => i === 0 || compareVersions(sorted[i - 1]!.version, version) > 0);
    const inForce = distinct.findIndex((one) => {
      const knows = known.filter(
        ({ id, incarnation, read }) =>
          incarnation !== '' && memoryNamed(one, id) === incarnation && compareVersions(read.version, one.version) >= 0,
      );
      return knows.length >= quorumFor(one);
    });
    return inForce < 0 ? distinct : distinct.slice(0, inForce + 1);
  }

  /** The ids of the members by the configuration in force; null: no server knows one. */
  members(): string[] | null {
    const inForce = this.configurations().at(-1);
    return inForce === undefined ? null : idsOf(inForce);
  }

  isMember(id: string): boolean {
    return this.members()?.includes(id) ?? true;
  }

  /**
   * Whether a quorum remembers when this node forgets, under every configuration that may count. `leaving`, `joining`:
   * nodes that may be removed or become members at any moment; `lost`: nodes whose memory is given up already.
   */
  survives(
    homes: readonly SimNode[],
    forgets: string,
    { leaving, joining, lost }: Record<'leaving' | 'joining' | 'lost', readonly string[]>,
  ): { enough: boolean; others: number } {
    const others = (ids: readonly string[]): number =>
      homes.filter((one) => one.id !== forgets && ids.includes(one.id) && this.remembers(one) && !lost.includes(one.id))
        .length;
    const known = this.configurations();
    const listed = known.length > 0 ? known.map(idsOf) : [homes.map(({ id }) => id)];
    const sets = [
      ...listed,
      ...leaving.flatMap((gone) => listed.map((ids) => ids.filter((id) => id !== gone))),
      ...joining.flatMap((one) => listed.map((ids) => [...new Set([...ids, one])])),
    ];
    const [worst] = sets
      .filter((ids) => ids.includes(forgets))
      .map((ids) => ({ others: others(ids), quorum: quorumOf(ids.length) }))
      .sort((a, b) => a.others - a.quorum - (b.others - b.quorum));
    return { enough: worst === undefined || worst.others >= worst.quorum, others: worst?.others ?? homes.length };
  }

  /** The admitted server whose memory the newest configuration names. */
  counting(id: string): SimNode | undefined {
    const [configuration] = this.configurations();
    const named = configuration === undefined ? '' : memoryNamed(configuration, id);
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

  /** An empty server that may become a member; one that was a member is emptied. */
  toAdd(id: string, homes: readonly SimNode[]): SimNode {
    const home = homes.find((one) => one.id === id);
    if (home === undefined) {
      const mutant = homes[0]!.server.mutant;
      const server = new MemoryServer(id, () => WALL_START + this.clock.now() + node.offsetMs, undefined, mutant);
      const node: SimNode = new SimNode(id, server);
      this.wire.servers.set(node.url, node);
      return node;
    }
    home.memory++;
    home.server.wipe();
    return home;
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

function idsOf(configuration: Configuration): string[] {
  return configuration.members.map(({ id }) => id);
}
