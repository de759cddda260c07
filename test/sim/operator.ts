// Does an operator's command do its work under the same faults as everything else? The operator has links of their own
// to every node and runs the real commands (repair, cluster recover, node replace, cluster init, …). A command may be
// killed at any call, or be paused and continue much later. A command that must be finished is repeated until it
// succeeds.
import type { ErrorCode } from '../../src/core/error-codes.js';
import { bootstrap } from '../../src/core/operate/bootstrap.js';
import { commonCluster } from '../../src/core/view/cluster-name.js';
import { carryOut, handToLeader } from '../../src/core/recovery/recover.js';
import { gather } from '../../src/core/recovery/gather.js';
import { decideRecovery, type StoreEvidence } from '../../src/core/recovery/plan.js';
import { applyRepair } from '../../src/core/repair/repair.js';
import { changeMembers } from '../../src/core/operate/change-members.js';
import { freeLocks } from '../../src/core/operate/free-locks.js';
import { replaceNode } from '../../src/core/operate/replace-node.js';
import { EXIT, SeqError } from '../../src/core/errors.js';
import type { Clock, NodePort } from '../../src/core/ports.js';
import type { NodeReply, NodeView } from '../../src/core/protocol/types.js';
import { IDENTITY } from '../support/virtual-cluster.js';
import type { Faulty } from './faults.js';
import { OneLife } from './process.js';
import type { Prng } from './random.js';
import { Link, SimPort, type SimNode } from './wire.js';

export type Verb =
  | { verb: 'repair' }
  | { verb: 'recover' }
  | { verb: 'init' }
  | { verb: 'replace'; node: string; successor: SimNode; gone: boolean }
  | { verb: 'resize'; change: 'add' | 'remove'; server: SimNode }
  | { verb: 'revoke' };

export const NO_LOCK_STUCK = 'no lock is stuck';
const LIMIT_MS = 500;
const TIMEOUT_MS = 8000;
/** How often a command is tried. Commands that must finish have no limit. */
const TRIES = 3;
const HOW_FAR_BELOW = 100;
const NO_SIGNAL = new AbortController().signal;

export class Operator {
  readonly links: Link[];
  private readonly prng: Prng;
  private runs = 0;
  done = false;
  told = 'not begun';

  constructor(
    private readonly world: Faulty,
    readonly id: string,
    private readonly operatorTask: Verb,
  ) {
    this.prng = world.prng;
    this.links = world.nodes.map((node) => new Link(id, node));
    world.operators.push(this);
    this.go();
  }

  /**
   * Whether stopping here would leave the cluster half changed. This holds for a recovery, a bootstrap, a change of
   * members, and locks that keep everybody from leading. It also holds for a node that was retired, or that any node
   * knows at its new address. It does not hold for a node that is no member any more.
   */
  private get mustFinish(): boolean {
    const { operatorTask, world } = this;
    if (operatorTask.verb === 'repair') return false;
    if (operatorTask.verb !== 'replace') return true;
    if (!world.servers.isMember(operatorTask.node)) return false;
    if (world.nodes.some(({ server }) => server.state.record?.config.includes(`@${operatorTask.successor.url}#`)))
      return true;
    return (
      operatorTask.gone ||
      world.nodes.find((node) => node.id === operatorTask.node)!.server.state.record?.cluster.startsWith('retired:') ===
        true
    );
  }

  resizes(node: string, change?: 'add' | 'remove'): boolean {
    const { done, operatorTask } = this;
    if (done || operatorTask.verb !== 'resize' || operatorTask.server.id !== node) return false;
    return change === undefined || operatorTask.change === change;
  }

  get revokes(): boolean {
    return !this.done && this.operatorTask.verb === 'revoke';
  }

  replaces(node: string): boolean {
    return !this.done && this.operatorTask.verb === 'replace' && this.operatorTask.node === node;
  }

  private leave(): void {
    this.done = true;
    for (const link of this.links) link.node.links.delete(link);
  }

  private go(): void {
    const { world, prng, operatorTask } = this;
    const { clock } = world;
    const life = new OneLife(clock);
    this.runs++;
    const calm = world.wire.history.healedAt > 0;
    if (!calm && prng.chance(0.35)) life.dieAfter(prng.int(1, 50));
    if (!calm && prng.chance(0.15)) {
      clock.after(prng.between(0, 300), () => {
        life.paused = true;
      });
      clock.after(prng.between(500, 9000), () => life.resume());
    }
    let over = false;
    const end = (code: string, text: string): void => {
      if (over) return;
      over = true;
      life.onDeath = () => {};
      life.die();
      for (const link of this.links) link.reset();
      this.told = `${code}${text ? `: ${text}` : ''}`;
      world.wire.history.entries.push({
        is: 'operator-task',
        t: clock.now(),
        who: this.id,
        verb: operatorTask.verb,
        code,
        text,
      });
      if (code === 'DONE') return this.leave();
      // Decided only after the late calls of a killed command have arrived: one of them may be what has to be finished.
      clock.after(prng.between(200, 1200), () => (this.mustFinish || this.runs < TRIES ? this.go() : this.leave()));
    };
    life.onDeath = () => end('KILLED', '');
    void this.run(life).then(
      (text) => life.deliver(() => end('DONE', text)),
      (error: unknown) =>
        life.deliver(() => {
          const known = error instanceof SeqError && error.exit !== EXIT.bug;
          if (!known)
            world.trouble(this.id, 'bug', error instanceof Error ? `${error.message}\n${error.stack}` : String(error));
          end(error instanceof SeqError ? error.code : 'BUG', error instanceof Error ? error.message : String(error));
        }),
    );
  }

  private run(life: OneLife): Promise<string> {
    const { wire } = this.world;
    const clock: Clock = {
      now: () => wire.clock.now(),
      wall: () => wire.clock.wall(),
      after: (ms, run) => (life.touch() ? wire.clock.after(ms, () => life.deliver(run)) : () => {}),
    };
    for (const node of this.world.nodes) this.linkTo(node);
    // The members can be found from any address. A server that is to become one is named in addition.
    const members = this.world.servers.members();
    const open = (cluster: string): NodePort[] =>
      this.links
        .filter(({ node }) => members?.includes(node.id) ?? true)
        .map((link) => new SimPort(wire, link, life, { ...wire.identity, cluster }));
    switch (this.operatorTask.verb) {
      case 'repair':
        return this.repair(open, clock);
      case 'recover':
        return this.recover(open, clock);
      case 'init':
        return this.init(open, clock);
      case 'replace':
        return this.replace(open, clock, life);
      case 'resize':
        return this.resize(open, clock, life);
      case 'revoke':
        return this.revoke(open, clock);
    }
  }

  /** Each run of a command looks up the servers again. A server that replaced another one is used from then on. */
  private linkTo(node: SimNode): Link {
    const known = this.links.find((link) => link.node.id === node.id);
    if (known !== undefined) {
      if (known.node !== node) known.moveTo(node);
      return known;
    }
    const link = new Link(this.id, node);
    this.links.push(link);
    return link;
  }

  private async clusterShown(open: (cluster: string) => NodePort[]): Promise<string> {
    const replies = await Promise.all(
      open('').map((node) => node.call({ script: 'inspect' }, LIMIT_MS) as Promise<NodeReply<NodeView>>),
    );
    return commonCluster(replies) || IDENTITY.cluster;
  }

  private async repair(open: (cluster: string) => NodePort[], clock: Clock): Promise<string> {
    const cluster = await this.clusterShown(open);
    const { plan, done } = await applyRepair({
      nodes: open(cluster),
      lane: IDENTITY.lane,
      limitMs: LIMIT_MS,
      clock,
      expectedCluster: cluster,
      target: '',
      progress: () => {},
      choose: [],
      random: this.prng,
      operator: this.person,
      reason: 'simulated',
      host: this.id,
      expect: {},
      dryRun: false,
      timeoutMs: TIMEOUT_MS,
      confirm: async () => {},
      changing: () => {},
      unchanged: () => {},
      step: () => {},
    });
    return done === null
      ? 'nothing to do'
      : `${plan.steps.map((step) => `${step.node} ${step.kind}`).join(', ')} by ${done.by} under epoch ${done.epoch}`;
  }

  private async recover(open: (cluster: string) => NodePort[], clock: Clock): Promise<string> {
    const now = await this.clusterShown(open);
    const readers = open('');
    const peers = this.world.processes.map((one) => `http://${one.id}`);
    const evidence = await gather({
      nodes: open(now),
      readers,
      limitMs: LIMIT_MS,
      clock,
      peers,
      signal: NO_SIGNAL,
      askStore: async (url, lowest, blocks) => this.store(url, lowest, blocks),
    });
    const decision = decideRecovery(evidence, now);
    if (decision.outcome === 'impossible') throw refusal(decision.code, decision.why);
    const cluster = decision.outcome === 'plan' ? decision.plan.cluster : decision.cluster;
    const options = {
      nodes: open(cluster),
      readers,
      limitMs: LIMIT_MS,
      clock,
      random: this.prng,
      command: '',
      step: () => {},
      changed: () => {},
    };
    if (decision.outcome === 'not-needed') {
      if (decision.rejoin.length > 0) await handToLeader(decision, this.world.wire.history.genesis, options);
      return `${decision.admitted.length} nodes are admitted`;
    }
    const { plan } = decision;
    // The operator refuses such a plan: here no node has forgotten anything that a quorum does not know.
    if (
      plan.nodes.some((node) => node.action === 'left-out') ||
      plan.doubts.some((doubt) => doubt.includes('CONTRADICTS'))
    )
      throw refusal('CONFIRMATION_NEEDED', plan.doubts.join('; '));
    await carryOut(plan, evidence, options);
    return (
      `${plan.cluster} from height ${plan.top.height}, epoch ` +
      `${plan.epoch}${plan.doubts.length > 0 ? ` (${plan.doubts.join('; ')})` : ''}`
    );
  }

  /** What the HTTP server of a running sequencer would answer. */
  private store(
    url: string,
    lowest: number | null,
    blocks: Map<string, Map<number, NonNullable<ReturnType<Faulty['processes'][number]['store']['get']>>>>,
  ): StoreEvidence {
    const who = this.world.processes.find((one) => `http://${one.id}` === url);
    const sequencer = who?.sequencer;
    if (!who?.up || !sequencer || who.pauses > 0) return { id: url, url, cluster: '', chain: null, why: 'no answer' };
    const { height, hash, cluster } = sequencer.status();
    if (height === 0) return { id: who.id, url, cluster, chain: { floor: 0, floorHash: hash, links: [] }, why: '' };
    const from = Math.max(1, Math.min(lowest ?? height, height) - HOW_FAR_BELOW);
    const own = new Map(Array.from({ length: height - from + 1 }, (_, i) => [from + i, sequencer.block(from + i)!]));
    blocks.set(who.id, own);
    return {
      id: who.id,
      url,
      cluster,
      chain: {
        floor: from - 1,
        floorHash: own.get(from)!.parent,
        links: [...own.values()].map((block) => ({
          height: block.height,
          hash: block.hash,
          parent: block.parent,
          epoch: block.epoch,
        })),
      },
      why: '',
    };
  }

  private async init(open: (cluster: string) => NodePort[], clock: Clock): Promise<string> {
    try {
      const { how } = await bootstrap({
        nodes: open(IDENTITY.cluster),
        cluster: IDENTITY.cluster,
        limitMs: LIMIT_MS,
        clock,
        random: this.prng,
      });
      return how;
    } catch (error) {
      if (error instanceof SeqError && error.code === 'ALREADY_INITIALISED') {
        // A leader existed before the last node was admitted, or too few nodes were ever admitted. The operator does
        // what the error says.
        if (error.next.some((step) => step.includes('cluster recover'))) return this.recover(open, clock);
        return 'it was done';
      }
      throw error;
    }
  }

  private async replace(open: (cluster: string) => NodePort[], clock: Clock, life: OneLife): Promise<string> {
    const { world, operatorTask } = this;
    if (operatorTask.verb !== 'replace') return '';
    const cluster = await this.clusterShown(open);
    const successor = new SimPort(world.wire, new Link(this.id, operatorTask.successor), life, {
      ...world.wire.identity,
      cluster,
    });
    const { admitted } = await replaceNode({
      ...this.asked(open, cluster, clock),
      id: operatorTask.node,
      successor,
      oldIsGone: operatorTask.gone,
    });
    world.replaced(operatorTask.node, operatorTask.successor);
    return `${operatorTask.node} is ${operatorTask.successor.url}, admitted at height ${admitted?.head ?? 0}`;
  }

  /** The options of a change for which an operator asks the leader. */
  private asked(open: (cluster: string) => NodePort[], cluster: string, clock: Clock) {
    return {
      nodes: open(cluster),
      limitMs: LIMIT_MS,
      timeoutMs: TIMEOUT_MS,
      clock,
      random: this.prng,
      signal: NO_SIGNAL,
      expectedCluster: cluster,
      target: '',
      reason: 'simulated',
      operator: this.person,
      dryRun: false,
      expect: {},
      confirm: async () => {},
      changing: () => {},
      step: () => {},
    };
  }

  private async resize(open: (cluster: string) => NodePort[], clock: Clock, life: OneLife): Promise<string> {
    const { world, operatorTask } = this;
    if (operatorTask.verb !== 'resize') return '';
    const { change } = operatorTask;
    const server = world.nodes.find(({ id }) => id === operatorTask.server.id) ?? operatorTask.server;
    const cluster = await this.clusterShown(open);
    const port = new SimPort(world.wire, this.linkTo(server), life, { ...world.wire.identity, cluster });
    const { plan, made } = await changeMembers({
      ...this.asked(open, cluster, clock),
      wanted: change === 'add' ? { kind: 'add', server: port } : { kind: 'remove', id: server.id, server: port },
    });
    this.tellEverybody();
    return `${plan.before.members.join(' ')} → ${plan.after.members.join(' ')} by ${made?.version ?? '?'}`;
  }

  /** Some time later, the configured node list of every sequencer is corrected. */
  private tellEverybody(): void {
    const { world, prng } = this;
    for (const one of world.processes)
      world.clock.after(prng.between(0, 5000), () => {
        one.listed = world.servers.members();
      });
  }

  private async revoke(open: (cluster: string) => NodePort[], clock: Clock): Promise<string> {
    const cluster = await this.clusterShown(open);
    const freed = await freeLocks({
      nodes: open(cluster),
      limitMs: LIMIT_MS,
      clock,
      target: '',
      expectedCluster: cluster,
      reason: 'simulated',
      operator: this.person,
      dryRun: false,
      confirm: async () => {},
      changing: () => {},
      step: () => {},
    });
    // The length of a lease comes from the sequencers' presence records. Without any record, the operator tries again
    // later.
    if (freed === null && areLocksStuck(this.world))
      throw refusal('NO_LEADER', 'nobody leads, and nobody says how long a lease lasts');
    if (freed === null) return NO_LOCK_STUCK;
    return freed.nodes.map(({ id }) => id).join(', ');
  }

  private get person() {
    return { by: this.id, host: this.id, command: `seq ${this.operatorTask.verb}` };
  }
}

/**
 * Whether a member's lock lives much longer than any lease. The lock of a replaced server does not count: it blocks
 * nobody.
 */
export function areLocksStuck({ processes, nodes, servers }: Pick<Faulty, 'processes' | 'nodes' | 'servers'>): boolean {
  const longest = Math.max(...processes.map(({ plan }) => plan.ttlMs));
  const members = nodes.filter(({ id }) => servers.isMember(id));
  return members.some((home) => {
    const { server } = servers.settled(home);
    const { lock } = server.state;
    return lock !== null && server.remainingMs(lock.expiresAtMs) > 10 * longest;
  });
}

function refusal(code: ErrorCode, why: string): SeqError {
  return new SeqError({ code, exit: EXIT.precondition, message: why, why, changed: 'nothing', next: [] });
}
