// Which of several servers counts as a node? A replica that a Sentinel promoted may answer for a node, or an empty
// server that somebody's settings name. The nodes agree on one of them. This file knows the answer from all records at
// once, which nobody inside a run can. Faults and the end of a run use it, so that no more memory is lost than the
// protocol allows.
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

/** Calls sent before an address was corrected may still have an effect for this long. */
const LATE_MS = 10_000;

export class Servers {
  /** Nodes that more than one address led to. Value: until when this may still have effects. */
  private readonly contested = new Map<string, number>();

  constructor(
    private readonly wire: Wire,
    private readonly clock: SimClock,
  ) {}

  of(id: string): SimNode[] {
    return [...this.wire.servers.values()].filter((server) => server.id === id);
  }

  /**
   * The configurations that may count, the newest first. The last one is known, as it is or in a later version, by a
   * quorum of its own members. The newer ones may have been given up.
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

  /** The ids of the members by the configuration in force. null: no server knows a configuration. */
  members(): string[] | null {
    const inForce = this.configurations().at(-1);
    return inForce === undefined ? null : idsOf(inForce);
  }

  isMember(id: string): boolean {
    return this.members()?.includes(id) ?? true;
  }

  /**
   * Whether a quorum still remembers after this node forgets, under every configuration that may count. `leaving` and
   * `joining`: nodes that may be removed or added at any moment. `lost`: nodes whose memory is already given up.
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

  /** Whether the node certainly remembers. `home` is the server that operators know for it. */
  remembers(home: SimNode): boolean {
    const until = this.contested.get(home.id);
    if (until === undefined) return home.intact;
    return this.clock.now() >= until && this.counting(home.id)?.intact === true;
  }

  /** The server that all addresses lead to after somebody has corrected them. */
  settled(home: SimNode): SimNode {
    const counting = this.counting(home.id);
    return this.contested.has(home.id) && counting?.intact ? counting : home;
  }

  contest(id: string, forMs: number): void {
    this.contested.set(id, Math.max(this.contested.get(id) ?? 0, this.clock.now() + forMs + LATE_MS));
  }

  /** The other server that answers for this node. It is made if none exists yet. */
  other(home: SimNode, kind: OtherServer, mutant = home.server.mutant): SimNode {
    const known = this.of(home.id).find((server) => server !== home && server.other);
    if (known !== undefined) return known;
    return this.add(home.id, kind, home, mutant);
  }

  /** An empty server under an id that no member has. */
  stranger(id: string): SimNode {
    return this.of(id)[0] ?? this.add(id, 'empty', null, {});
  }

  /** An empty server that may become a member. A server that was a member is emptied. */
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
    // so that no answer of one server is taken for the other's
    server.starts = (like?.server.starts ?? 0) + 1000 * count;
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
