// Carries out requests to the leader from an operator, or from a follower that found damage (docs/PROTOCOL.md sections
// 2 and 8). A request is carried out once, when q nodes show it. The audit trail gets the outcome. A refusal says why
// in a sentence.
import { pause } from '../nodes/pause.js';
import type { EmitEvent } from '../events.js';
import type { ChainStore, Clock, NodePort } from '../ports.js';
import { memberOf } from '../protocol/configuration.js';
import { counts } from '../protocol/node-progress.js';
import { isDone, isUnderWay, whyNoChange as refusalOf, whyNotNoted } from '../protocol/reconfigure.js';
import type { LeaderRequest } from '../protocol/types.js';
import { admittedViews, probe } from '../nodes/probe.js';
import type { Membership } from './lead/membership.js';
import { carryOutOrder } from './lead/repair-order.js';
import { admitPlan, answerRequest, changeOfRequest, standsOn, urlOfPlan } from '../nodes/requests.js';
import type { TermDriver } from './lead/term-driver.js';

export interface LeaderRequestsOptions {
  id: string;
  nodes: readonly NodePort[];
  store: ChainStore;
  clock: Clock;
  timing: { nodeTimeoutMs: number };
  readmit: boolean;
  emit: EmitEvent;
  membership: Membership;
  /** The term that leads or is about to lead. Null when there is none. */
  driver(): TermDriver | null;
  stepdown(driver: TermDriver, request: LeaderRequest): void;
}

export class LeaderRequests {
  private readonly handled: string[] = [];
  /** Who asked for the repair that is under way. '' when no repair is under way. */
  private repairing = '';
  private reading = false;

  constructor(private readonly options: LeaderRequestsOptions) {}

  /** A node hinted that there is a request. */
  async fetch(node: NodePort): Promise<void> {
    const reply = await node.call({ script: 'inspect' }, this.options.timing.nodeTimeoutMs);
    if (reply.outcome === 'accepted' && reply.value.request) await this.take(reply.value.request);
  }

  async take(request: LeaderRequest): Promise<void> {
    const driver = this.options.driver();
    if (!driver || request.epoch !== driver.state.epoch || this.handled.includes(request.id)) return;
    if (!(await this.standsOnQuorum(request)) || this.options.driver() !== driver || this.handled.includes(request.id))
      return;
    this.handled.push(request.id);
    if (this.handled.length > 64) this.handled.shift();
    const outcome =
      request.kind === 'stepdown'
        ? 'done'
        : request.kind === 'admit'
          ? this.admitAnew(request, driver)
          : request.kind === 'replace'
            ? this.replaceNode(request, driver)
            : request.kind === 'repair'
              ? await this.repair(request, driver)
              : request.kind === 'resize' || request.kind === 'set'
                ? await this.changeMembers(request, driver)
                : `refused: this version of seq does not carry out requests of kind ${request.kind}`;
    this.options.emit({ type: 'request', id: request.id, kind: request.kind, outcome, by: request.by });
    await answerRequest(this.options.membership.nodes, request, outcome, this.options.id, this.options.clock);
    if (request.kind === 'stepdown') this.options.stepdown(driver, request);
  }

  /**
   * A request that one node shows is carried out when q nodes show it. It may still be on its way to the others. Every
   * later write shows the request again.
   */
  private async standsOnQuorum(request: LeaderRequest): Promise<boolean> {
    const { nodes, timing, clock, membership } = this.options;
    if (this.reading) return false;
    this.reading = true;
    try {
      for (let attempt = 0; attempt < 4; attempt++) {
        if (attempt > 0) await pause(clock, timing.nodeTimeoutMs / 4);
        const seen = await probe(nodes, membership.quorum, timing.nodeTimeoutMs, clock, membership.asks);
        if (standsOn(admittedViews(seen), request) >= membership.quorum) return true;
      }
      return false;
    } finally {
      this.reading = false;
    }
  }

  private admitAnew(request: LeaderRequest, driver: TermDriver): string {
    const node = this.options.nodes.findIndex((one) => one.id === request.to);
    const plan = admitPlan(request.plan);
    if (node < 0 || !plan)
      return (
        'refused: ' +
        `${node < 0 ? `there is no node ${request.to}` : 'the request does not say which memory is meant'}`
      );
    if (!this.options.readmit) return 'refused: this leader was started with --no-readmit';
    const track = driver.state.nodes[node];
    if (track?.incarnation !== plan.incarnation)
      return `refused: ${request.to} bears the memory ${track?.incarnation || 'of nobody'}, not ${plan.incarnation}`;
    driver.damaged(node, plan.incarnation, plan.why);
    return 'taken';
  }

  /** One repair at a time. A second operator is told that the first repair is under way. */
  private async repair(request: LeaderRequest, driver: TermDriver): Promise<string> {
    if (this.repairing !== '') return `refused: a repair asked for by ${this.repairing} is under way`;
    this.repairing = request.by;
    try {
      const { nodes, store, clock } = this.options;
      return await carryOutOrder(request, { driver, nodes, store, clock });
    } finally {
      this.repairing = '';
    }
  }

  /** One change of the members, or of the agreed settings, at a time. It is done when the configuration says so. */
  private async changeMembers(request: LeaderRequest, driver: TermDriver): Promise<string> {
    const { readmit, membership } = this.options;
    const change = changeOfRequest(request);
    if (change === null) return 'refused: the request does not say what is to change';
    const { configuration } = driver.state;
    if (configuration === null) return 'refused: no configuration is known';
    const waits = isUnderWay(driver.state, change) ? whyNotNoted(driver.state) : '';
    if (waits !== '') return `taken, and waits: ${waits}`;
    if (isDone(configuration, change) || isUnderWay(driver.state, change)) return 'taken';
    if (change.kind === 'add' && !readmit) return 'refused: this leader was started with --no-readmit';
    const refusal = refusalOf(driver.state, change);
    if (refusal !== '') return `refused: ${refusal}`;
    const node = change.kind === 'add' ? await membership.indexOf(change.id, change.url) : -1;
    if (change.kind === 'add' && node < 0) return 'refused: this leader can open no more nodes';
    if (this.options.driver() !== driver || driver.state.phase !== 'leading') return 'refused: the term has ended';
    driver.change(change, node);
    return isUnderWay(driver.state, change) || driver.state.ended !== null ? 'taken' : 'refused: try again';
  }

  /** The old server must be out before another server becomes this node. A server that still counts was not retired. */
  private replaceNode(request: LeaderRequest, driver: TermDriver): string {
    const { nodes, readmit, emit, membership } = this.options;
    const { quorum } = membership;
    const node = nodes.findIndex((one) => one.id === request.to);
    const url = urlOfPlan(request.plan);
    if (node < 0 || url === null)
      return `refused: ${node < 0 ? `there is no node ${request.to}` : 'the request names no address'}`;
    if (!readmit) return 'refused: this leader was started with --no-readmit';
    const { state } = driver;
    const member = state.configuration && memberOf(state.configuration, request.to);
    if (!member) return `refused: ${request.to} is no member of the cluster`;
    const progress = state.nodes[node];
    if (progress === undefined) return `refused: this term does not know ${request.to} yet`;
    const answers = counts(progress) && progress.failures === 0;
    if ((member.since !== undefined && member.url === url) || (answers && nodes[node]!.url === url)) return 'taken';
    if (answers) return `refused: ${request.to} at ${nodes[node]!.url} counts still`;
    if (state.change?.next) return 'refused: the members are being changed';
    const busy = nodes.find((_, i) => i !== node && state.nodes[i]?.admission);
    if (busy) return `refused: ${busy.id} is being admitted, and nodes are changed one at a time`;
    const others = state.nodes.filter((other, i) => i !== node && counts(other) && !other.unnoted).length;
    if (others < quorum) return `refused: ${others} of the ${quorum} other nodes needed count`;
    if (state.phase !== 'leading') return 'refused: this leader has not committed in its own term yet';
    nodes[node]!.moveTo?.(url);
    emit({ type: 'node', node: request.to, state: 'moved', why: `its server is ${url} now` });
    driver.replaced(node, url);
    membership.take(driver.state.configuration);
    return 'taken';
  }
}
