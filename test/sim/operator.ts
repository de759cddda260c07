// An operator at a shell of their own, with links of their own to every node: runs the shipped verbs (repair, cluster
// recover, node replace, cluster init) under the same faults as everybody else. A command may be killed at any call,
// or stopped and go on much later; what has to be finished is run again, by the same words, until it is.
import { bootstrap } from '../../src/core/operate/bootstrap.js';
import { commonCluster } from '../../src/core/view/cluster-name.js';
import { carryOut, handToLeader } from '../../src/core/recovery/recover.js';
import { gather } from '../../src/core/recovery/gather.js';
import { decideRecovery, type StoreEvidence } from '../../src/core/recovery/plan.js';
import { applyRepair } from '../../src/core/repair/repair.js';
import { replaceNode } from '../../src/core/operate/replace-node.js';
import { EXIT, SeqError } from '../../src/core/errors.js';
import type { Clock, NodePort } from '../../src/core/ports.js';
import type { NodeReply, NodeView } from '../../src/core/protocol/types.js';
import { IDENTITY } from '../support/virtual-cluster.js';
import type { Faulty } from './faults.js';
import { OneLife } from './process.js';
import type { Dice } from './random.js';
import { Link, SimPort, type SimNode } from './wire.js';

export type Verb =
  | { verb: 'repair' }
  | { verb: 'recover' }
  | { verb: 'init' }
  | { verb: 'replace'; node: string; successor: SimNode; gone: boolean };

const LIMIT_MS = 500;
const TIMEOUT_MS = 8000;
/** Runs before it is left for another day, unless something half done has to be finished. */
const TRIES = 3;
const HOW_FAR_BELOW = 100;
const NO_SIGNAL = new AbortController().signal;

export class Operator {
  private readonly links: Link[];
  private readonly dice: Dice;
  private runs = 0;
  done = false;
  told = 'not begun';

  constructor(
    private readonly world: Faulty,
    readonly id: string,
    private readonly errand: Verb,
  ) {
    this.dice = world.dice;
    this.links = world.nodes.map((node) => new Link(id, node));
    world.operators.push(this);
    this.go();
  }

  /**
   * What is half done and cannot be left so: a recovery, a bootstrap, a node that was retired, or that any node knows
   * elsewhere.
   */
  private get mustFinish(): boolean {
    const { errand, world } = this;
    if (errand.verb === 'repair') return false;
    if (errand.verb !== 'replace') return true;
    if (world.nodes.some(({ server }) => server.state.record?.moves.includes(`=${errand.successor.url}`))) return true;
    return (
      errand.gone ||
      world.nodes.find((node) => node.id === errand.node)!.server.state.record?.cluster.startsWith('retired:') === true
    );
  }

  replaces(node: string): boolean {
    return !this.done && this.errand.verb === 'replace' && this.errand.node === node;
  }

  private leave(): void {
    this.done = true;
    for (const link of this.links) link.node.links.delete(link);
  }

  private go(): void {
    const { world, dice, errand } = this;
    const { clock } = world;
    const life = new OneLife(clock);
    this.runs++;
    const calm = world.wire.history.healedAt > 0;
    if (!calm && dice.chance(0.35)) life.dieAfter(dice.int(1, 50));
    if (!calm && dice.chance(0.15)) {
      clock.after(dice.between(0, 300), () => {
        life.paused = true;
      });
      clock.after(dice.between(500, 9000), () => life.resume());
    }
    let over = false;
    const end = (code: string, text: string): void => {
      if (over) return;
      over = true;
      life.onDeath = () => {};
      life.die();
      for (const link of this.links) link.reset();
      this.told = `${code}${text ? `: ${text}` : ''}`;
      world.wire.history.entries.push({ is: 'errand', t: clock.now(), who: this.id, verb: errand.verb, code, text });
      if (code === 'DONE') return this.leave();
      // Looked at again when what a killed command had sent has arrived: that may be what must not be left so.
      clock.after(dice.between(200, 1200), () => (this.mustFinish || this.runs < TRIES ? this.go() : this.leave()));
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
    const open = (cluster: string): NodePort[] =>
      this.links.map((link) => new SimPort(wire, link, life, { ...wire.identity, cluster }));
    switch (this.errand.verb) {
      case 'repair':
        return this.repair(open, clock);
      case 'recover':
        return this.recover(open, clock);
      case 'init':
        return this.init(open, clock);
      case 'replace':
        return this.replace(open, clock, life);
    }
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
      random: this.dice,
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
      random: this.dice,
      command: '',
      step: () => {},
      changed: () => {},
    };
    if (decision.outcome === 'not-needed') {
      if (decision.rejoin.length > 0) await handToLeader(decision, this.world.wire.history.genesis, options);
      return `${decision.admitted.length} nodes are admitted`;
    }
    const { plan } = decision;
    // More than this operator would ever say yes to: no node forgot anything that a quorum does not know.
    if (
      plan.nodes.some((node) => node.action === 'left-out') ||
      plan.doubts.some((doubt) => doubt.includes('CONTRADICTS'))
    )
      throw refusal('DOUBTS', plan.doubts.join('; '));
    await carryOut(plan, evidence, options);
    return (
      `${plan.cluster} from height ${plan.top.height}, epoch ` +
      `${plan.epoch}${plan.doubts.length > 0 ? ` (${plan.doubts.join('; ')})` : ''}`
    );
  }

  /** What the HTTP server of a running sequencer would tell. */
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
        random: this.dice,
      });
      return how;
    } catch (error) {
      if (error instanceof SeqError && error.code === 'ALREADY_INITIALISED') {
        // A leader was there before the last node was admitted, or too few ever were: what the error says to do is
        // done.
        if (error.next.some((step) => step.includes('cluster recover'))) return this.recover(open, clock);
        return 'it was done';
      }
      throw error;
    }
  }

  private async replace(open: (cluster: string) => NodePort[], clock: Clock, life: OneLife): Promise<string> {
    const { world, errand } = this;
    if (errand.verb !== 'replace') return '';
    const cluster = await this.clusterShown(open);
    const successor = new SimPort(world.wire, new Link(this.id, errand.successor), life, {
      ...world.wire.identity,
      cluster,
    });
    const { admitted } = await replaceNode({
      nodes: open(cluster),
      id: errand.node,
      successor,
      oldIsGone: errand.gone,
      limitMs: LIMIT_MS,
      timeoutMs: TIMEOUT_MS,
      clock,
      random: this.dice,
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
    });
    world.replaced(errand.node, errand.successor);
    return `${errand.node} is ${errand.successor.url}, admitted at height ${admitted?.head ?? 0}`;
  }

  private get person() {
    return { by: this.id, host: this.id, command: `seq ${this.errand.verb}` };
  }
}

function refusal(code: string, why: string): SeqError {
  return new SeqError({ code, exit: EXIT.precondition, message: why, why, changed: 'nothing', next: [] });
}
