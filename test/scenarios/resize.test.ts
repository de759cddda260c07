// Can the number of nodes change while sequencers run (docs/PROTOCOL.md section 8, I13)? Each step adds or removes one
// member. A new member is filled and admitted before it counts. A quorum of the old set and a quorum of the new set
// note the change.
import { describe, expect, it } from 'vitest';
import { changeMembers, type ChangeDone, type WantedChange } from '../../src/core/operate/change-members.js';
import { SeqError } from '../../src/core/errors.js';
import { replaceNode } from '../../src/core/operate/replace-node.js';
import { inspectCluster } from '../../src/core/view/inspect.js';
import { openMatrix } from '../../src/core/stream/matrix.js';
import { emptyNodeState, memoryIdentity, MemoryNode, MemoryServer } from '../support/memory-node.js';
import { IDENTITY, VirtualCluster, type VirtualSequencer } from '../support/virtual-cluster.js';
import type { CommittedBlock, NodePort } from '../../src/core/ports.js';
import { parseConfiguration } from '../../src/core/protocol/configuration.js';
import { tailBlocks } from '../../src/core/stream/tail.js';

const identity = memoryIdentity(IDENTITY);

class Resized extends VirtualCluster {
  private asked = 0;

  /** An empty server that can become a member. */
  empty(id: string): MemoryServer {
    const server = new MemoryServer(id, () => this.clock.now(), emptyNodeState(`run-${id}`));
    this.elsewhere.set(`memory://${id}`, server);
    return server;
  }

  get all(): MemoryServer[] {
    return [...this.servers, ...this.elsewhere.values()];
  }

  /** The member ids of the newest configuration on any node. */
  get members(): string {
    const known = this.all.map(({ state }) => parseConfiguration(state.record?.config ?? ''));
    const newest = known.reduce((a, b) =>
      a === null || (b !== null && b.version.epoch * 1000 + b.version.turn > a.version.epoch * 1000 + a.version.turn)
        ? b
        : a,
    );
    return newest?.members.map(({ id }) => id).join(' ') ?? '';
  }

  /** Leaves the request on every admitted node. */
  ask(kind: string, to: string, plan: object): void {
    const epoch = this.leader()?.sequencer.status().epoch ?? 0;
    const request = { id: `q${++this.asked}`, kind, to, plan: JSON.stringify(plan), by: 'ops', reason: '', epoch };
    for (const server of this.all) {
      if (server.state.record?.pending !== '') continue;
      server.apply({ script: 'request_leader', request, ttlMs: 1000 }, identity, server.id);
    }
  }

  /** Repeats the request, as the command does, until the configuration has these members. */
  async resize(to: string, plan: object, members: string): Promise<void> {
    let askAt = 0;
    await this.until(
      () => {
        if (this.members === members) return true;
        if (this.clock.now() >= askAt && this.leader()) {
          this.ask('resize', to, plan);
          askAt = this.clock.now() + 500;
        }
        return false;
      },
      8000,
      `members ${members}`,
    );
  }

  add(id: string, members: string): Promise<void> {
    return this.resize(id, { url: `memory://${id}` }, members);
  }

  remove(id: string, members: string): Promise<void> {
    return this.resize(id, { remove: true }, members);
  }

  async grown(by: number, limitMs = 4000): Promise<void> {
    const height = Math.max(...this.sequencers.map(({ store }) => store.head().height));
    await this.until(
      () => this.sequencers.every(({ store }) => store.head().height >= height + by),
      limitMs,
      `${by} more blocks for everybody`,
    );
  }

  oneChain(): void {
    const [first, ...others] = this.sequencers.map(({ store }) => store);
    for (const other of others)
      for (let height = 1; height <= Math.min(first!.head().height, other.head().height); height++)
        expect(other.get(height)?.hash, `height ${height}`).toBe(first!.get(height)?.hash);
  }
}

/** The leader's own word, once it has made its first block. */
async function leading(cluster: Resized): Promise<{ epoch: number; height: number }> {
  await cluster.until(() => cluster.leader() !== undefined, 4000, 'a leader');
  await cluster.clock.advance(10 * cluster.timing.blockTimeMs);
  return cluster.leader()!.sequencer.status();
}

/** New connections to the servers, as `seq cluster resize` opens them. */
function ports(cluster: Resized, servers: readonly MemoryServer[] = cluster.servers): MemoryNode[] {
  return servers.map((server) => new MemoryNode(server, IDENTITY, cluster.clock));
}

/** Makes the id of each request unique: a leader carries out an id only once. */
let requests = 0;

/** Nodes whose audit trail can be read. A command finds the answers of the leader there. */
function withAudit(nodes: MemoryNode[]): MemoryNode[] {
  return nodes.map((port) =>
    Object.assign(port, {
      readAudit: async () => ({ outcome: 'accepted' as const, incarnation: '', value: [...port.server.state.audit] }),
    }),
  );
}

/** `seq cluster resize`. */
function command(cluster: Resized, nodes: NodePort[], wanted: WantedChange): { answer: ChangeDone | null } {
  const done: { answer: ChangeDone | null } = { answer: null };
  void changeMembers({
    nodes,
    wanted,
    limitMs: 100,
    timeoutMs: 20_000,
    clock: cluster.clock,
    random: { unit: () => 0.5, hex: (bytes) => String(++requests).padStart(2 * bytes, '5') },
    signal: new AbortController().signal,
    expectedCluster: IDENTITY.cluster,
    target: '',
    reason: '',
    operator: { by: 'ops', host: 'h', command: 'seq cluster resize' },
    dryRun: false,
    expect: {},
    confirm: async () => {},
    changing: () => {},
    step: () => {},
  }).then((answer) => (done.answer = answer));
  return done;
}

/**
 * `seq node replace --on r3`, on its own connections. `confirm` runs before the change: a test uses it for another
 * operator.
 */
async function replaceR3(cluster: Resized, nodes: NodePort[], confirm: () => Promise<void>): Promise<string> {
  const successor = cluster.empty('r3b');
  const said = replaceNode({
    nodes,
    id: 'r3',
    successor: new MemoryNode(successor, IDENTITY, cluster.clock, 'r3'),
    oldIsGone: false,
    limitMs: 100,
    timeoutMs: 6000,
    clock: cluster.clock,
    random: { unit: () => 0.5, hex: (bytes) => String(++requests).padStart(2 * bytes, '7') },
    signal: new AbortController().signal,
    expectedCluster: IDENTITY.cluster,
    target: '',
    reason: '',
    operator: { by: 'ops', host: 'h', command: 'seq node replace' },
    dryRun: false,
    expect: {},
    confirm,
    changing: () => {},
    step: () => {},
  }).then(
    () => 'done',
    (error: unknown) => (error instanceof SeqError ? `${error.code}: ${error.message}` : String(error)),
  );
  const told = { answer: '' };
  void said.then((answer) => (told.answer = answer));
  await cluster.until(() => told.answer !== '', 20_000, 'the command to end');
  return told.answer;
}

async function running(sequencers = ['seq-a', 'seq-b'], nodes = 3): Promise<Resized> {
  const cluster = new Resized({ nodes, limits: { retainBlocks: 1000 } });
  for (const id of sequencers) cluster.start(id);
  await cluster.until(() => cluster.sequencers.every(({ store }) => store.head().height > 3), 3000, 'a leader');
  return cluster;
}

function sides(cluster: Resized): { leader: VirtualSequencer; other: VirtualSequencer } {
  const [a, b] = cluster.sequencers as [VirtualSequencer, VirtualSequencer];
  return cluster.leader() === a ? { leader: a, other: b } : { leader: b, other: a };
}

function cut(who: VirtualSequencer, is: boolean): void {
  for (const node of who.nodes) node.setCut(is);
}

describe('resize', () => {
  it(
    '3 → 4 → 5 → 4 → 3: filled before it counts; running sequencers follow, and no gap between blocks ' +
      'exceeds a block time',
    async () => {
      const cluster = await running();
      cluster.empty('r4');
      cluster.empty('r5');
      for (const [id, to] of [
        ['r4', 'r1 r2 r3 r4'],
        ['r5', 'r1 r2 r3 r4 r5'],
      ] as const) {
        await cluster.add(id, to);
        await cluster.grown(5);
        const server = cluster.elsewhere.get(`memory://${id}`)!;
        expect(server.state.record).toMatchObject({ pending: '' });
        expect(server.state.entries.length, 'filled').toBe(cluster.servers[0]!.state.entries.length);
      }
      for (const { nodes } of cluster.sequencers)
        expect(nodes.map(({ id }) => id)).toEqual(['r1', 'r2', 'r3', 'r4', 'r5']);
      for (const [id, to] of [
        ['r1', 'r2 r3 r4 r5'],
        ['r4', 'r2 r3 r5'],
      ] as const) {
        await cluster.remove(id, to);
        await cluster.grown(5);
      }
      const { height } = cluster.leader()!.sequencer.status();
      expect(cluster.servers[0]!.state.record!.head, 'nobody writes to a removed server').toBeLessThan(height - 5);
      cluster.oneChain();
      const { store } = cluster.leader()!;
      const times = Array.from({ length: height }, (_, at) => store.get(at + 1)!.timestamp).slice(4);
      const gaps = times.slice(1).map((time, at) => time - times[at]!);
      expect(Math.max(...gaps)).toBeLessThanOrEqual(cluster.timing.blockTimeMs + 50);
    },
  );

  // The moments of a change at which the leader is cut off from every node.
  const filling = (cluster: Resized, id: string): boolean =>
    cluster.elsewhere.get(`memory://${id}`)?.state.record?.pending !== '';
  const noters = (cluster: Resized, ids: string): number =>
    cluster.all.filter(
      ({ state }) =>
        parseConfiguration(state.record?.config ?? '')
          ?.members.map(({ id }) => id)
          .join(' ') === ids,
    ).length;

  it.each<[string, (cluster: Resized) => boolean]>([
    ['the new server is being filled', (cluster) => filling(cluster, 'r4')],
    ['the new server is admitted, but no member yet', (cluster) => !filling(cluster, 'r4')],
    ['one node has noted the change', (cluster) => noters(cluster, 'r1 r2 r3 r4') >= 1],
    ['two nodes have noted the change', (cluster) => noters(cluster, 'r1 r2 r3 r4') >= 2],
    ['all nodes have noted the change', (cluster) => noters(cluster, 'r1 r2 r3 r4') >= 4],
  ])(
    'add: the leader is cut off when %s → the next leader goes on, and the same request succeeds',
    async (_, moment) => {
      const cluster = await running();
      cluster.empty('r4');
      const first = cluster.leader()!;
      const takes = { r4: () => 3 };
      for (const node of first.nodes) node.takes = takes.r4;
      cluster.ask('resize', 'r4', { url: 'memory://r4' });
      for (let at = 0; at < 4000 && !moment(cluster); at++) await cluster.clock.advance(0.25);
      expect(moment(cluster), 'the moment was met').toBe(true);
      cut(first, true);
      await cluster.until(() => cluster.leader() !== undefined && cluster.leader() !== first, 4000, 'another leader');
      await cluster.add('r4', 'r1 r2 r3 r4');
      cut(first, false);
      await cluster.grown(10, 6000);
      cluster.oneChain();
      for (const server of cluster.all) expect(server.state.record, server.id).toMatchObject({ pending: '' });
    },
  );

  it.each<[string, (cluster: Resized) => boolean]>([
    ['nobody has noted the change', () => true],
    ['one node has noted the change', (cluster) => noters(cluster, 'r1 r2 r3') >= 1],
    ['three nodes have noted the change', (cluster) => noters(cluster, 'r1 r2 r3') >= 3],
  ])('remove: the leader is cut off when %s → the same request succeeds', async (_, moment) => {
    const cluster = await running(['seq-a', 'seq-b'], 4);
    const first = cluster.leader()!;
    cluster.ask('resize', 'r4', { remove: true });
    for (let at = 0; at < 4000 && !moment(cluster); at++) await cluster.clock.advance(0.25);
    expect(moment(cluster), 'the moment was met').toBe(true);
    cut(first, true);
    await cluster.until(() => cluster.leader() !== undefined && cluster.leader() !== first, 4000, 'another leader');
    await cluster.remove('r4', 'r1 r2 r3');
    cut(first, false);
    await cluster.grown(10, 6000);
    cluster.oneChain();
  });

  it('1 → 2 → 3 → 2 → 1: each set of members has a quorum in common with the one before and the next', async () => {
    const cluster = await running(['seq-a'], 1);
    for (const id of ['r2', 'r3']) cluster.empty(id);
    await cluster.add('r2', 'r1 r2');
    await cluster.grown(3);
    await cluster.add('r3', 'r1 r2 r3');
    await cluster.grown(3);
    await cluster.remove('r1', 'r2 r3');
    await cluster.grown(3);
    await cluster.remove('r2', 'r3');
    await cluster.grown(3);
  });

  it('a removed server that nobody emptied → it is no vote, even for a sequencer that is still connected to it', async () => {
    const cluster = await running(['seq-a', 'seq-b'], 4);
    const [a, b] = cluster.sequencers as [VirtualSequencer, VirtualSequencer];
    const [leader, other] = cluster.leader() === a ? [a, b] : [b, a];
    cut(other, true);
    await cluster.remove('r4', 'r1 r2 r3');
    await cluster.until(() => leader.store.head().height > other.store.head().height + 3, 3000, 'blocks');
    // The other sequencer knows four members. It reaches r3 and r4 only, and later r1 as well: three of four by its own
    // list.
    for (const node of other.nodes.slice(2)) node.setCut(false);
    await cluster.clock.advance(2000);
    expect(other.sequencer.status().role).not.toBe('leader');
    cut(leader, true);
    other.nodes[0]!.setCut(false);
    await cluster.until(() => other.sequencer.status().role === 'leader', 4000, 'r1 and r3 are two of three');
    await cluster.clock.advance(1000);
    expect(cluster.servers[3]!.state.record!.head, 'r4 is written by nobody').toBeLessThan(
      other.store.head().height - 5,
    );
    cut(leader, false);
    await cluster.grown(5);
    cluster.oneChain();
  });

  it(
    'only r4 knows a change that was given up → the command asks the next leader, and ends when that ' +
      'leader counts r4',
    async () => {
      const cluster = await running();
      const { leader, other } = sides(cluster);
      const server = cluster.empty('r4');
      const before = cluster.servers.map(({ state }) => state.record!.config);
      cluster.ask('resize', 'r4', { url: 'memory://r4' });
      for (let at = 0; at < 4000 && !server.state.record?.config.includes(' r4='); at++)
        await cluster.clock.advance(0.25);
      cut(leader, true);
      // The state after the claims to all other nodes were lost.
      cluster.servers.forEach(({ state }, at) => Object.assign(state.record!, { config: before[at]! }));
      expect(cluster.members, 'r4 alone knows it').toBe('r1 r2 r3 r4');
      await cluster.until(() => other.sequencer.status().role === 'leader', 4000, 'a leader on r1 r2 r3');
      const led = other.store.head().height;
      await cluster.until(() => other.store.head().height > led + 2, 3000, 'its blocks');
      const done = command(cluster, ports(cluster), { kind: 'add', server: ports(cluster, [server])[0]! });
      await cluster.until(() => done.answer !== null, 20_000, 'the command to end');
      const knows = cluster.all.filter(({ state }) => state.record!.config.includes(' r4='));
      expect(knows.length, 'a quorum of four').toBeGreaterThanOrEqual(3);
      const { height } = cluster.leader()!.sequencer.status();
      await cluster.until(() => server.state.record!.head > height, 4000, 'r4 takes the blocks');
      cut(leader, false);
      await cluster.grown(5);
      cluster.oneChain();
    },
  );

  it('r4 is a member, and the leader has given it a new memory since → the command ends under the same term', async () => {
    const cluster = await running();
    const server = cluster.empty('r4');
    await cluster.add('r4', 'r1 r2 r3 r4');
    await cluster.grown(3);
    const { epoch } = cluster.leader()!.sequencer.status();
    server.restart('none');
    const version = `${epoch}.`;
    await cluster.until(
      () => server.state.record?.pending === '' && server.state.record.config.startsWith(version),
      3000,
      'r4 has a memory of this term',
    );
    const done = command(cluster, ports(cluster), { kind: 'add', server: ports(cluster, [server])[0]! });
    await cluster.until(() => done.answer !== null, 3000, 'the command to end');
    expect(cluster.leader()!.sequencer.status().epoch, 'the same term').toBe(epoch);
  });

  it('the leader gave a member another memory after the change, and its lane rests → the command is done all the same', async () => {
    const cluster = new Resized({ rests: true, eager: true });
    const server = cluster.empty('r4');
    cluster.start('seq-a');
    await cluster.until(() => cluster.leader() !== undefined, 4000, 'a leader');
    await cluster.add('r4', 'r1 r2 r3 r4');
    const { epoch } = await leading(cluster);
    cluster.servers[2]!.wipe();
    await cluster.until(
      () => parseConfiguration(cluster.servers[0]!.state.record!.config)!.version.epoch === epoch,
      8000,
      'r3 has a memory of this term',
    );
    await cluster.clock.advance(20 * cluster.timing.ttlMs);
    const { height } = cluster.leader()!.sequencer.status();
    const done = command(cluster, ports(cluster), { kind: 'add', server: ports(cluster, [server])[0]! });
    await cluster.until(() => done.answer !== null, 10_000, 'the command to end');
    expect(cluster.leader()!.sequencer.status(), 'no block was made for it').toMatchObject({ epoch, height });
  });

  it('r2 of four is retired, and r3 leaves → the lock of r3 shows who leads until the others have noted it', async () => {
    const cluster = await running();
    const server = cluster.empty('r4');
    await cluster.add('r4', 'r1 r2 r3 r4');
    await cluster.grown(3);
    const [, r2] = cluster.servers;
    r2!.apply({ script: 'retire_node', expect: r2!.state.record!.incarnation, movedTo: '-' }, identity, 'r2');
    const nodes = ports(cluster, [...cluster.servers, server]);
    const done = command(cluster, nodes, { kind: 'remove', id: 'r3', server: nodes[2]! });
    await cluster.until(() => done.answer !== null, 8000, 'the command to end');
    expect(done.answer?.made).toMatchObject({ margin: 0, retired: 'retired' });
    expect(cluster.members).toBe('r1 r2 r4');
    await cluster.grown(5);
  });

  it('r3 was removed, and another operator replaces it → NOT_MEMBER, and nobody retires it', async () => {
    const cluster = await running();
    const server = cluster.empty('r4');
    await cluster.add('r4', 'r1 r2 r3 r4');
    const all = ports(cluster, [...cluster.servers, server]);
    await cluster.remove('r3', 'r1 r2 r4');
    await cluster.grown(3);
    const none = async (): Promise<void> => {};
    const found = all.filter(({ id }) => id !== 'r3');
    expect(await replaceR3(cluster, all, none), 'named by hand').toBe('NOT_MEMBER: r3 is no member of the cluster');
    expect(await replaceR3(cluster, found, none), 'the members').toBe('NOT_MEMBER: r3 is no member of the cluster');
    expect(cluster.servers[2]!.state.record?.cluster).toBe(IDENTITY.cluster);
  });

  it('r3 is removed while another operator replaces it → the command ends with the refusal of the leader', async () => {
    const cluster = await running();
    const server = cluster.empty('r4');
    await cluster.add('r4', 'r1 r2 r3 r4');
    await cluster.grown(3);
    const nodes = withAudit(ports(cluster, [...cluster.servers, server]));
    const remove = (): Promise<void> => cluster.remove('r3', 'r1 r2 r4');
    expect(await replaceR3(cluster, nodes, remove)).toMatch(
      /^NOT_ADMITTED_YET: .*pristine.*; seq-[ab] refused: r3 is no member of the cluster$/,
    );
  });

  it('r3 is replaced while r4 is being added, with a margin of one → the replacement comes first, and both end', async () => {
    const cluster = await running();
    const r4 = cluster.empty('r4');
    const nodes = withAudit(ports(cluster));
    const add = async (): Promise<void> => {
      command(cluster, nodes, { kind: 'add', server: ports(cluster, [r4])[0]! });
      await cluster.until(() => r4.state.record !== null, 3000, 'r4 to be filled');
    };
    expect(await replaceR3(cluster, nodes, add)).toBe('done');
    await cluster.add('r4', 'r1 r2 r3 r4');
    await cluster.grown(3);
    cluster.oneChain();
  });

  it('r3 is retired while r4 is being added, with a margin of one → the leader says what it waits for', async () => {
    const cluster = await running();
    const [r1, , r3] = cluster.servers;
    const r4 = cluster.empty('r4');
    command(cluster, withAudit(ports(cluster)), { kind: 'add', server: ports(cluster, [r4])[0]! });
    await cluster.until(() => r4.state.record !== null, 3000, 'r4 to be filled');
    r3!.apply({ script: 'retire_node', expect: r3!.state.record!.incarnation, movedTo: '-' }, identity, 'r3');
    const waits = 'taken, and waits: 4 nodes must count, by the margin of 1 that was confirmed, and 3 do';
    await cluster.until(() => r1!.state.audit.some(({ outcome }) => outcome === waits), 10_000, waits);
    expect(cluster.members).toBe('r1 r2 r3');
  });

  it(
    'a member is opened after the term began → the term claims it, and meanwhile confirms its head on ' +
      'the other nodes',
    async () => {
      const cluster = await running();
      const { leader, other } = sides(cluster);
      const server = cluster.empty('r4');
      let open = (): void => {};
      const opened = new Promise<void>((resolve) => (open = resolve));
      cluster.mayOpen = (id) => (id === other.id ? opened : Promise.resolve());
      await cluster.add('r4', 'r1 r2 r3 r4');
      cut(leader, true);
      await cluster.until(() => other.sequencer.status().role === 'leader', 4000, 'the other one to lead on three');
      const { epoch } = other.sequencer.status();
      open();
      const head = other.sequencer.confirmHead();
      await cluster.until(() => server.state.record!.claimant === server.state.lock?.owner, 3000, 'r4 is claimed');
      expect(await head).toMatchObject({ confirmed: true, epoch });
      await cluster.until(
        () => server.state.record!.head > 0 && server.state.epoch === epoch,
        3000,
        'r4 is written to',
      );
      const [height] = [other.store.head().height];
      await cluster.until(() => server.state.record!.head > height + 3, 3000, 'r4 takes the blocks');
      expect(other.sequencer.status(), 'the same term').toMatchObject({ role: 'leader', epoch });
      cut(leader, false);
      await cluster.grown(5);
      cluster.oneChain();
    },
  );

  it.each(['r1', 'r4'])('a node loses its memory while r4 joins (%s) → both are admitted, no fork', async (id) => {
    const cluster = await running();
    cluster.empty('r4');
    cluster.ask('resize', 'r4', { url: 'memory://r4' });
    await cluster.until(() => (cluster.elsewhere.get('memory://r4')!.state.record?.head ?? 0) > 0, 2000, 'filling');
    cluster.all.find((server) => server.id === id)!.restart('none');
    await cluster.add('r4', 'r1 r2 r3 r4');
    await cluster.grown(10, 6000);
    for (const server of cluster.all) expect(server.state.record, server.id).toMatchObject({ pending: '' });
    cluster.oneChain();
  });

  it('r4 loses its memory between its admission and its membership → it is filled again', async () => {
    const cluster = await running();
    const server = cluster.empty('r4');
    cluster.ask('resize', 'r4', { url: 'memory://r4' });
    for (let at = 0; at < 8000 && server.state.record?.pending !== ''; at++) await cluster.clock.advance(0.25);
    server.restart('none');
    await cluster.add('r4', 'r1 r2 r3 r4');
    await cluster.until(() => server.state.record?.pending === '', 3000, 'r4 has a memory');
    await cluster.grown(5);
    cluster.oneChain();
  });

  it('set: every node has the new values, with the same members', async () => {
    const cluster = await running();
    cluster.ask('set', '', { settings: { dedupMs: 5000 } });
    await cluster.until(
      () => cluster.all.every(({ state }) => state.record!.config.includes('dedup-ms=5000')),
      3000,
      'the values',
    );
    expect(cluster.members).toBe('r1 r2 r3');
    await cluster.grown(3);
  });

  it('refused: an unknown change, and a change that leaves too few nodes', async () => {
    const cluster = await running();
    const outcomes = (): string[] =>
      cluster.sequencers.flatMap(({ events }) =>
        events.flatMap((event) => (event.type === 'request' ? [event.outcome] : [])),
      );
    cluster.ask('teleport', 'r5', {});
    await cluster.until(() => outcomes().length === 1, 2000, 'an answer');
    expect(outcomes()).toEqual(['refused: this version of seq does not carry out requests of kind teleport']);
    cluster.ask('resize', 'r5', {});
    await cluster.until(() => outcomes().length === 2, 2000, 'an answer');
    const leader = cluster.leader()!;
    leader.nodes[2]!.setCut(true);
    await cluster.until(() => leader.sequencer.status().nodes[2]!.why.includes('no answer'), 3000, 'r3 silent');
    cluster.ask('resize', 'r1', { remove: true });
    await cluster.until(() => outcomes().length === 3, 3000, 'an answer');
    expect(outcomes().slice(1)).toEqual([
      'refused: the request does not say what is to change',
      'refused: without r1 only 1 of the 2 nodes needed count',
    ]);
    expect(cluster.members).toBe('r1 r2 r3');
  });

  it('a follower that knows three members sees two copies of a block that needs three → not committed', async () => {
    const cluster = await running();
    const [a, b] = cluster.sequencers as [VirtualSequencer, VirtualSequencer];
    const [leader, other] = cluster.leader() === a ? [a, b] : [b, a];
    cut(other, true);
    cluster.empty('r4');
    await cluster.add('r4', 'r1 r2 r3 r4');
    const { height } = leader.store.head();
    await cluster.until(() => leader.store.head().height > height + 3, 2000, 'blocks of the renewed term');
    leader.nodes[2]!.setCut(true);
    leader.nodes[3]!.setCut(true);
    const copies = (): number[] => [0, 1].map((at) => cluster.servers[at]!.state.record!.head);
    await cluster.until(() => copies().every((head) => head > leader.store.head().height), 2000, 'two copies');
    const [pending] = copies() as [number];
    other.nodes[0]!.setCut(false);
    other.nodes[1]!.setCut(false);
    await cluster.until(() => other.store.head().height >= pending - 1, 3000, 'the committed blocks');
    await cluster.clock.advance(60);
    expect(other.store.head().height, 'two of four').toBe(pending - 1);
  });

  it(
    'a reader that began with three members sees two copies of a block that needs three → it does not ' +
      'show the block',
    async () => {
      const cluster = await running();
      const { leader, other } = sides(cluster);
      const reader = readerOf(cluster);
      cluster.empty('r4');
      cluster.empty('r5');
      await cluster.add('r4', 'r1 r2 r3 r4');
      await cluster.add('r5', 'r1 r2 r3 r4 r5');
      await cluster.grown(3);
      // The leader reaches only r1 and r2, and the other one only the rest. So the block on r1 and r2 is superseded
      // later.
      for (const node of leader.nodes.slice(2)) node.setCut(true);
      for (const node of other.nodes.slice(0, 2)) node.setCut(true);
      const copies = (): number[] => [0, 1].map((at) => cluster.servers[at]!.state.record!.head);
      await cluster.until(() => copies().every((head) => head > leader.store.head().height), 2000, 'two copies');
      await cluster.until(() => other.sequencer.status().role === 'leader', 4000, 'the other one to lead');
      await cluster.clock.advance(1000);
      cut(leader, false);
      cut(other, false);
      await cluster.grown(10, 6000);
      const last = other.store.head().height - 5;
      await cluster.until(() => reader.given.length > 0 && reader.given.at(-1)!.height >= last, 4000, 'the reader');
      reader.stop();
      for (const { height, hash } of reader.given) expect(hash, `height ${height}`).toBe(other.store.get(height)?.hash);
      cluster.oneChain();
    },
  );

  // Readers that were opened while there were three members. r1 and r2 hold a block that needs three copies.
  const opened = (cluster: Resized): MemoryNode[] =>
    cluster.servers.map((server) => new MemoryNode(server, IDENTITY, cluster.clock));

  async function twoOfFour(cluster: Resized): Promise<number> {
    const leader = cluster.leader()!;
    const { height } = leader.store.head();
    await cluster.until(() => leader.store.head().height > height + 3, 2000, 'blocks of the renewed term');
    leader.nodes[2]!.setCut(true);
    leader.nodes[3]!.setCut(true);
    const heads = (): number[] => [0, 1].map((at) => cluster.servers[at]!.state.record!.head);
    await cluster.until(() => heads().every((head) => head > leader.store.head().height), 2000, 'two copies');
    return heads()[0]!;
  }

  it('a running tail that was opened on three members → all blocks once, and two copies of four prove nothing', async () => {
    const cluster = await running(['seq-a']);
    const given: number[] = [];
    const stop = new AbortController();
    const joined: string[] = [];
    const nodes = opened(cluster);
    const options = { nodes, limitMs: 50, clock: cluster.clock, signal: stop.signal, from: 1, follow: true };
    const open = ({ id, url }: { id: string; url: string }): Promise<MemoryNode> => {
      joined.push(id);
      return Promise.resolve(new MemoryNode(cluster.elsewhere.get(url)!, IDENTITY, cluster.clock));
    };
    const reading = (async () => {
      for await (const { height } of tailBlocks({ ...options, open })) given.push(height);
    })();
    await cluster.until(() => given.length > 3, 3000, 'the first blocks');
    cluster.empty('r4');
    await cluster.add('r4', 'r1 r2 r3 r4');
    const pending = await twoOfFour(cluster);
    await cluster.clock.advance(300);
    expect(cluster.leader()!.store.head().height, 'two of four').toBe(pending - 1);
    expect(given).toEqual(Array.from({ length: pending - 1 }, (_, at) => at + 1));
    expect(joined, 'the new member is read too').toEqual(['r4']);
    for (const node of cluster.leader()!.nodes) node.setCut(false);
    await cluster.until(() => given.length > pending + 3, 4000, 'the blocks after that');
    await cluster.remove('r1', 'r2 r3 r4');
    await cluster.remove('r2', 'r3 r4');
    await cluster.grown(5);
    const { height } = cluster.leader()!.store.head();
    await cluster.until(() => given.length >= height, 4000, 'the blocks of the two members that are left');
    expect(given).toEqual(given.map((_, at) => at + 1));
    stop.abort();
    await reading;
  });

  it('replies of three members from before the fourth joined → two copies do not prove an entry of a later epoch', async () => {
    const cluster = await running(['seq-a']);
    cluster.empty('r4');
    const [r1, r2, r3] = opened(cluster) as [MemoryNode, MemoryNode, MemoryNode];
    // r3 answers before the change and not afterwards. r1 and r2 are read when they hold the pending block.
    const before = await Promise.all([r1, r2, r3].map((node) => node.call({ script: 'inspect' }, 50)));
    await cluster.add('r4', 'r1 r2 r3 r4');
    const pending = await twoOfFour(cluster);
    const frozen = [r1, r2, r3].map((node, at) =>
      Object.assign(Object.create(node) as MemoryNode, {
        call: () =>
          at < 2
            ? node.call({ script: 'inspect' }, 50).then((reply) => {
                const then = before[at]!;
                if (reply.outcome !== 'accepted' || then.outcome !== 'accepted') return reply;
                // The heads are the present ones. The configuration is the one that the node showed before.
                return {
                  ...reply,
                  value: { ...reply.value, config: then.value.config, headEpoch: then.value.headEpoch },
                };
              })
            : Promise.resolve(before[at]!),
      }),
    );
    const options = {
      nodes: frozen,
      limitMs: 50,
      clock: cluster.clock,
      target: '',
      expectedCluster: IDENTITY.cluster,
    };
    const matrix = await openMatrix(options, { limit: 3, keepData: false });
    const rows = [];
    for await (const piece of matrix.pieces) rows.push(...piece);
    expect(rows.find(({ height }) => height === pending)).toMatchObject({ class: 'pending', copies: 2 });
    expect(rows.find(({ height }) => height === pending - 1)).toMatchObject({ class: 'committed' });
  });

  it('status asks old addresses → a block on two of four nodes is pending', async () => {
    const cluster = await running(['seq-a']);
    cluster.empty('r4');
    await cluster.add('r4', 'r1 r2 r3 r4');
    const pending = await twoOfFour(cluster);
    const view = await inspectCluster({ nodes: opened(cluster), limitMs: 50, clock: cluster.clock });
    expect(view).toMatchObject({ configured: 4, committed: { height: pending - 1 }, pending: { height: pending } });
  });
});

/** `seq stream tail --follow` over its own connections to r1, r2 and r3. */
function readerOf(cluster: Resized): { given: CommittedBlock[]; stop: () => void } {
  const nodes = cluster.servers.map((server) => new MemoryNode(server, IDENTITY, cluster.clock));
  const given: CommittedBlock[] = [];
  const stop = new AbortController();
  void (async () => {
    for await (const block of tailBlocks({
      nodes,
      limitMs: 50,
      clock: cluster.clock,
      from: 'head',
      follow: true,
      signal: stop.signal,
    }))
      given.push(block);
  })();
  return { given, stop: () => stop.abort() };
}
