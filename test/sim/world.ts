// How does a whole run go? Nodes, network, sequencers, clients, readers and faults start. Then everything is healed,
// and the run waits until the cluster is in order again. All chance comes from the scenario's seed, so the same
// scenario gives exactly the same history.
import { isRetired } from '../../src/core/generation.js';
import { blockHash, genesisHash } from '../../src/core/chain/block.js';
import { keysOf } from '../../src/core/chain/items.js';
import { quorumOf, type Limits } from '../../src/core/config.js';
import { invariant } from '../../src/core/errors.js';
import { parseConfiguration } from '../../src/core/protocol/configuration.js';
import { commonCluster } from '../../src/core/view/cluster-name.js';
import type { CatchUpOptions } from '../../src/core/sequencer/follow/catch-up.js';
import type { NodeCall } from '../../src/core/protocol/types.js';
import { emptyNodeState, firstConfig, memoryIdentity, MemoryServer, newNodeState } from '../support/memory-node.js';
import { CLUSTER, IDENTITY } from '../support/virtual-cluster.js';
import { Client, Reader, Tail } from './clients.js';
import { startFault, type Faulty } from './faults.js';
import type { History } from './history.js';
import { SimProcess, type EditedList } from './process.js';
import { Prng } from './random.js';
import { Servers } from './servers.js';
import { SimClock, WALL_START } from './sim-clock.js';
import type { Scenario } from './scenario.js';
import { Operator } from './operator.js';
import { Link, QUIET, runOn, SimNode, type Wire } from './wire.js';

export interface RunResult {
  history: History;
  simulatedMs: number;
  timers: number;
  /** How many superseded entries are on the nodes. */
  orphans: number;
}

const GENESIS = genesisHash(CLUSTER, IDENTITY.lane);
const CHECK_MS = 50;
/** One of this many seeds also has a tail that reads the nodes. */
const TAILED = 3;

export async function run(scenario: Scenario): Promise<RunResult> {
  const { seed } = scenario;
  const clock = new SimClock();
  const quorum = quorumOf(scenario.nodes);
  const history: History = {
    nodes: scenario.nodes,
    quorum,
    genesis: GENESIS,
    retainBlocks: scenario.retainBlocks,
    memoryFaults: scenario.faults.some(
      (fault) =>
        fault.kind === 'restart' ||
        fault.kind === 'wipe' ||
        fault.kind === 'corrupt' ||
        fault.kind === 'redirect' ||
        fault.kind === 'rewind' ||
        (fault.kind === 'edit-context' && fault.list === 'elsewhere') ||
        (fault.kind === 'power' && fault.lose > 0),
    ),
    entries: [],
    final: { nodes: [], stores: [] },
    healedAt: 0,
    convergedAt: null,
    boundMs: boundOf(scenario),
    missing: '',
  };
  const limits: Limits = { maxBlockBytes: 64 * 1024, retainBlocks: scenario.retainBlocks, retainBytes: 1024 * 1024 };
  const nodes: SimNode[] = [];
  const ids = Array.from({ length: scenario.nodes }, (_, i) => `r${i + 1}`);
  const config = firstConfig(ids.map((id) => ({ id, url: `sim://${id}` })));
  for (let i = 1; i <= scenario.nodes; i++) {
    const id = `r${i}`;
    const nowMs = (): number => WALL_START + clock.now() + (nodes[i - 1]?.offsetMs ?? 0);
    nodes.push(
      new SimNode(
        id,
        new MemoryServer(
          id,
          nowMs,
          scenario.bootstrap
            ? emptyNodeState(`run-${id}`)
            : newNodeState(id, IDENTITY.cluster, GENESIS, `run-${id}`, 'boot', config),
          scenario.mutant,
        ),
      ),
    );
  }
  const wire: Wire = {
    clock,
    prng: new Prng(seed, 'wire'),
    noise: QUIET,
    history,
    identity: memoryIdentity(IDENTITY),
    play: null,
    servers: new Map(nodes.map((node) => [node.url, node])),
    healAt: scenario.healAt,
    watching: new Set(),
    over: false,
  };
  const servers = new Servers(wire, clock);
  const trouble = (who: string, kind: 'bug' | 'fatal-error', text: string): void => {
    if (!wire.over) history.entries.push({ is: 'trouble', t: clock.now(), who, kind, text });
  };
  const down = new Map<SimProcess, number>();
  const note = (text: string): void => void history.entries.push({ is: 'fault', t: clock.now(), text });
  const served = (node: SimNode): boolean => !node.down && node.silent === 0;
  const startAgain = (who: SimProcess, ms: number): void => {
    down.set(who, clock.now() + ms);
    clock.after(ms, () => {
      if (who.up || wire.over) return;
      note(`${who.id} starts`);
      down.delete(who);
      who.start();
    });
  };
  const processes: SimProcess[] = scenario.processes.map(
    (plan) =>
      new SimProcess(
        plan,
        seed,
        wire,
        nodes.map((node) => new Link(plan.id, node)),
        limits,
        {
          catchUp: (who, options) => catchUp(who, options, processes, wire),
          fatalError: (who, why) => {
            trouble(who.id, 'fatal-error', why);
            who.kill();
            startAgain(who, 1000);
          },
          clusterNow: () => clusterOf(membersOf(nodes, servers).filter(served)),
          addresses: (who) => {
            for (const link of who.links) {
              const { id } = link.node;
              const there = who.elsewhere.get(id) ?? nodes.find((one) => one.id === id) ?? link.node;
              if (link.node !== there) link.moveTo(there);
            }
          },
          mayStart: (who, list) => mayStart(who, list, note),
          died: (who) => {
            if (!wire.over) note(`${who.id} is dead`);
          },
        },
      ),
  );
  clock.onError = (error) => trouble('?', 'bug', textOf(error));
  const onRejection = (error: unknown): void => trouble('?', 'bug', textOf(error));
  process.on('unhandledRejection', onRejection);
  try {
    let calls = 0;
    const setting = { clock, history, processes, nextCall: () => ++calls };
    const clients = Array.from(
      { length: scenario.clients },
      (_, i) => new Client(`c${i + 1}`, setting, new Prng(seed, `client ${i}`), scenario),
    );
    const readers = Array.from(
      { length: 2 },
      (_, i) => new Reader(`t${i + 1}`, setting, new Prng(seed, `reader ${i}`)),
    );
    const tail =
      seed % TAILED === 0
        ? new Tail(wire, new Prng(seed, 'tail'), () => {
            const members = membersOf(nodes, servers);
            return { nodes: members, others: nodes, cluster: clusterOf(members.filter(served)) };
          })
        : null;
    const prng = new Prng(seed, 'start');
    for (const one of processes) clock.after(prng.between(0, 300), () => one.start());
    for (const one of [...clients, ...readers]) one.start();
    tail?.start();
    const faulty: Faulty = {
      clock,
      wire,
      servers,
      nodes,
      processes,
      note,
      startAgain,
      trouble,
      ends: [],
      prng: new Prng(seed, 'faults'),
      operators: [],
      replaced: (id, successor) => {
        nodes[nodes.findIndex((node) => node.id === id)] = successor;
      },
      joined: (node) => {
        if (!nodes.includes(node)) nodes.push(node);
        for (const one of processes)
          if (!one.links.some((link) => link.node.id === node.id)) one.links.push(new Link(one.id, node));
      },
    };
    if (scenario.bootstrap)
      clock.after(prng.between(0, 1000), () => {
        new Operator(faulty, 'op1', { verb: 'init' });
      });
    for (const fault of scenario.faults)
      clock.after(fault.at, () => {
        if (history.healedAt === 0) startFault(faulty, fault);
      });

    await clock.runUntil(scenario.healAt);
    history.healedAt = clock.now();
    note('everything is healed');
    wire.noise = QUIET;
    wire.play = null;
    for (const end of faulty.ends.splice(0)) end();
    // All addresses are corrected: each leads to the server whose memory counts.
    nodes.forEach((home, i) => {
      const there = servers.settled(home);
      nodes[i] = there;
      for (const { links } of [...processes, ...faulty.operators])
        for (const link of links)
          if (link.node.id === home.id && servers.isContested(home.id) && link.node !== there) link.moveTo(there);
    });
    for (const one of processes) {
      one.listed = servers.members();
      one.wake();
      if (!one.up && !down.has(one)) startAgain(one, 0);
    }
    for (const node of nodes)
      runOn(wire, node, { script: 'clear_hold' } as NodeCall, false, { ...wire.identity, cluster: clusterOf(nodes) });
    clock.after(
      500,
      () => {
        for (const client of clients) client.stopped = true;
      },
      true,
    );
    const end = clock.now() + history.boundMs;
    // Not checked at once, because what was delayed by a fault needs time to show its effect.
    await clock.runUntil(clock.now() + 1500);
    for (;;) {
      history.missing = missing(membersOf(nodes, servers), processes, clients, scenario.retainBlocks, faulty.operators);
      if (history.missing === '' || clock.now() >= end) break;
      await clock.runUntil(clock.now() + CHECK_MS);
    }
    if (history.missing === '') history.convergedAt = clock.now();
    for (const reader of readers) reader.stopped = true;
    if (tail) tail.stopped = true;
    finalState(history, membersOf(nodes, servers), processes);
    wire.over = true;
    for (const one of processes) one.kill();
    await new Promise((resolve) => setImmediate(resolve)); // unhandled rejections are reported now
  } finally {
    wire.over = true;
    process.off('unhandledRejection', onRejection);
  }
  return {
    history,
    simulatedMs: clock.now(),
    timers: clock.ran,
    orphans: nodes.reduce((sum, node) => sum + node.server.state.orphans.length, 0),
  };
}

/** The nodes that the newest configuration names. */
function membersOf(nodes: readonly SimNode[], servers: Servers): SimNode[] {
  const members = servers.members();
  return nodes.filter(({ id }) => members?.includes(id) ?? true);
}

/**
 * What is not in order yet, or ''. In order means: one leader, nodes and stores level with it, and no open submission.
 */
function missing(
  nodes: readonly SimNode[],
  processes: readonly SimProcess[],
  clients: readonly Client[],
  retainBlocks: number,
  operators: readonly Operator[],
): string {
  for (const one of operators) if (!one.done) return `${one.id} is not done: ${one.told}`;
  const leaders = processes.filter((one) => one.sequencer?.status().role === 'leader');
  if (leaders.length !== 1)
    return (
      `${leaders.length} sequencers lead: ` +
      `${processes.map((one) => `${one.id} ` + `${one.up ? `${one.sequencer!.status().role} (${one.sequencer!.status().why})` : 'down'}`).join(', ')}`
    );
  const { height, hash } = leaders[0]!.store.head();
  for (const one of processes)
    if (!one.up || one.sequencer!.status().height + 2 < height)
      return (
        `${one.id} is at ${one.up ? one.sequencer!.status().height : 'nowhere'}, the leader at ` +
        `${height}: ${one.sequencer?.status().why ?? 'down'}`
      );
  for (const client of clients) if (!client.idle) return `${client.id} still waits`;
  for (const node of nodes) {
    const { record, runId, entries } = node.server.state;
    if (record === null || record.pending !== '' || record.run !== runId) return `${node.id} is not admitted`;
    if (entries[height - record.floor - 1]?.hash !== hash)
      return (
        `${node.id} (at ${record.head}) lacks the leader's block ${height}: ` +
        `${JSON.stringify(leaders[0]!.sequencer!.status().nodes)}`
      );
    // A node that was just filled is trimmed by the next append.
    if (entries.length > retainBlocks)
      return `${node.id} holds ${entries.length} entries, ${retainBlocks} are to be retained`;
  }
  return '';
}

function finalState(history: History, nodes: readonly SimNode[], processes: readonly SimProcess[]): void {
  for (const node of nodes) {
    const { record, entries, runId } = node.server.state;
    history.final.nodes.push({
      id: node.id,
      admitted: record !== null && record.pending === '' && record.run === runId,
      floor: record?.floor ?? 0,
      floorHash: record?.floorHash ?? '',
      entries: entries.map(({ height, hash, parent, epoch }) => ({ height, hash, parent, epoch })),
    });
  }
  for (const one of processes) {
    const blocks = [];
    for (let height = 1; height <= one.store.head().height; height++) {
      const { hash, parent, timestamp, data } = one.store.get(height)!;
      blocks.push({ height, hash, parent, timestamp, keys: keysOf(data).map(({ key }) => key) });
    }
    history.final.stores.push({ id: one.id, blocks });
  }
}

/**
 * Catch-up as the HTTP feed does it: synced blocks of another process. Links and the proven hash are checked before any
 * block is applied.
 */
async function catchUp(
  who: SimProcess,
  options: CatchUpOptions,
  processes: readonly SimProcess[],
  wire: Wire,
): Promise<void> {
  for (const url of options.peers) {
    const peer = processes.find((one) => `http://${one.id}` === url);
    await new Promise<void>((resolve) => wire.clock.after(5 + wire.prng.unit() * 20, resolve));
    if (!peer?.up || peer.pauses > 0 || !who.up) continue;
    const blocks = [];
    let { height, hash } = options.head();
    for (; height < options.to.height; height++) {
      const block = peer.sequencer!.block(height + 1);
      if (!block || block.parent !== hash) break;
      invariant(blockHash(block) === block.hash, `I6: ${peer.id} serves a damaged block ${block.height}`);
      blocks.push(block);
      hash = block.hash;
    }
    if (height < options.to.height || hash !== options.to.hash) continue;
    for (const block of blocks) {
      const waiting = options.apply(block);
      if (waiting) await waiting;
    }
    return;
  }
}

/**
 * How long healing may take: leases end, clocks that went back are waited for, and back-off ends. After this time
 * everything must be in order.
 */
function boundOf(scenario: Scenario): number {
  const ttl = Math.max(...scenario.processes.map((one) => one.ttlMs));
  let back = 0;
  let hold = 0;
  let raised = 0;
  let operatorTasks = scenario.bootstrap ? 10_000 : 0;
  for (const fault of scenario.faults) {
    if (fault.kind === 'jump' && fault.ms < 0) back -= fault.ms;
    if (fault.kind === 'hold') hold = Math.max(hold, fault.ttlMs);
    if (fault.kind === 'raise') raised++;
    if (fault.kind === 'repair' || fault.kind === 'replace') operatorTasks += 10_000;
    if (fault.kind === 'power') operatorTasks += 25_000;
    if (fault.kind === 'resize') operatorTasks += 15_000;
  }
  return 4 * ttl + back + hold + 1000 * 2 ** Math.min(raised, 6) + 30_000 + operatorTasks;
}

/**
 * `seq run` asks the nodes on its list who the members are. It refuses a list with strangers, waits while no node can
 * tell, and finds members that are not listed.
 */
function mayStart(who: SimProcess, { only, strangers, raced }: EditedList, note: (text: string) => void): string {
  const listed = who.links.filter((link) => only?.includes(link.node.id) ?? true);
  const told = listed.some(
    ({ node, requestsCut, repliesCut }) =>
      !node.down &&
      node.silent === 0 &&
      requestsCut + repliesCut === 0 &&
      parseConfiguration(node.server.state.record?.config ?? '') !== null,
  );
  const why =
    strangers.length > 0 && told && !raced
      ? 'NOT_MEMBER'
      : only !== null && !told
        ? 'it waits for a node that knows the members'
        : '';
  if (why !== '') note(`${who.id} does not start: ${why}`);
  return why;
}

/** The cluster that a starting process finds on the nodes. */
function clusterOf(nodes: readonly SimNode[]): string {
  const shown = nodes.flatMap((node) => {
    const { record, runId } = node.server.state;
    if (record === null || isRetired(record)) return [];
    const { cluster, pending, run } = record;
    return [{ outcome: 'accepted' as const, incarnation: '', value: { cluster, pending, runId, admittedRunId: run } }];
  });
  return commonCluster(shown) || IDENTITY.cluster;
}

function textOf(error: unknown): string {
  return error instanceof Error
    ? `${error.name}: ${error.message}\n${(error.stack ?? '').split('\n').slice(1, 5).join('\n')}`
    : String(error);
}
