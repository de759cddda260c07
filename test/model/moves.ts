// What can happen next in a state of the model, and do the invariants hold afterwards? Each move is one atomic step.
// The production reducer alone decides what a term does (`step`). The in-memory twin alone decides what a node does
// (`applyCall`).
import { applyCall, applyRead, cloneNodeState, emptyNodeState, type MemoryNodeState } from '../support/memory-node.js';
import type { Epoch, Header, NodeCall, NodeReply } from '../../src/core/protocol/types.js';
import { cloneTerm, step } from '../../src/core/protocol/term.js';
import { newTerm, type Effect, type TermEvent, type TermState } from '../../src/core/protocol/term-state.js';
import { notedChange, whyNoChange } from '../../src/core/protocol/reconfigure.js';
import type { AdmissionBegun } from '../../src/core/protocol/node-progress.js';
import {
  configurationText,
  memberOf,
  memoryNamed,
  parseConfiguration,
  quorumFor,
  withMemory,
  withoutMember,
  type Configuration,
  type MembersChange,
} from '../../src/core/protocol/configuration.js';
import { quorumOf } from '../../src/core/protocol/quorum.js';
import { configurationsOn, isEarlier, knowledgeOf, listsOf, serverIds, type Knowledge } from './members.js';
import {
  blockOf,
  chainOf,
  IDENTITY,
  isAdmitted,
  keyOf,
  raiseOf,
  RIVALS,
  rolledBack,
  MAX_ADMISSIONS,
  ownerOf,
  sealNetwork,
  sealNode,
  sealTerm,
  settingsOf,
  configOf,
  GENESIS,
  type ModelConfig,
  type ModelTerm,
  type NetCall,
  type Outstanding,
  type State,
  type StoredBlock,
} from './state.js';

export type MoveKind =
  | 'start'
  | 'renew'
  | 'run'
  | 'hold'
  | 'deliver'
  | 'give up'
  | 'late run'
  | 'grace over'
  | 'produce'
  | 'gate over'
  | 'expire'
  | 'raise'
  | 'wipe'
  | 'damage'
  | 'fix'
  | 'snapshot'
  | 'roll back'
  | 'resize';

export interface Move {
  kind: MoveKind;
  term: number;
  node: number;
  /**
   * late run: the key of the call. start: the height of the store, plus QUIET for a repair. renew: the term that is
   * renewed.
   * start and renew add LIST for each list of nodes after the first. They add KNOWN for each configuration on the
   * servers that is newer than the one that the process knows.
   */
  arg: number;
}

export type Visit = (move: Move, next: State) => void;

/** Asked before a next state is built, so that a random walk builds only the state it goes to. */
export type Wanted = (kind: MoveKind, term: number, node: number, arg: number) => boolean;

const ALL: Wanted = () => true;

/** Calls `visit` for every move that is possible in `state`. Some of these moves may change nothing. */
export function forEachMove(cfg: ModelConfig, state: State, visit: Visit, wanted: Wanted = ALL): void {
  starts(cfg, state, visit, wanted);
  for (let term = 0; term < state.terms.length; term++) termMoves(cfg, state, term, visit, wanted);
  for (let node = 0; node < state.nodes.length; node++) {
    lateRuns(cfg, state, node, visit, wanted);
    const { s } = state.nodes[node]!;
    if (s.lock !== null && state.expiries < cfg.expiries && wanted('expire', -1, node, 0)) {
      const next = new Next(cfg, state);
      next.expiries += 1;
      next.node(node).lock = null;
      visit({ kind: 'expire', term: -1, node, arg: 0 }, next.seal());
    }
    for (let form = 0; form < 4 && state.raises < cfg.raises && isAdmitted(s); form++) {
      const call = raiseOf(form, s, highestEpoch(state.nodes));
      if (!call || !wanted('raise', -1, node, form)) continue;
      const next = new Next(cfg, state);
      next.raises += 1;
      next.apply(node, call);
      visit({ kind: 'raise', term: -1, node, arg: form }, next.seal());
    }
    if (state.wipes < cfg.wipes && isAdmitted(s) && wanted('wipe', -1, node, 0)) {
      const next = new Next(cfg, state);
      next.wipes += 1;
      next.replaceNode(node, emptyNodeState('run'));
      visit({ kind: 'wipe', term: -1, node, arg: 0 }, next.seal());
    }
    if (state.rollbacks >= cfg.rollbacks) continue;
    if (state.saved === null && wanted('snapshot', -1, node, 0)) {
      const next = new Next(cfg, state);
      next.saved = { n: node, node: state.nodes[node]! };
      visit({ kind: 'snapshot', term: -1, node, arg: 0 }, next.seal());
    }
    if (state.saved?.n === node && wanted('roll back', -1, node, 0)) {
      const next = new Next(cfg, state);
      next.rollbacks += 1;
      next.replaceNode(node, rolledBack(state.saved.node.s));
      next.saved = null;
      visit({ kind: 'roll back', term: -1, node, arg: 0 }, next.seal());
    }
  }
}

export function highestEpoch(nodes: readonly { s: MemoryNodeState }[]): number {
  return nodes.reduce((most, { s }) => Math.max(most, s.epoch ?? 0), 0);
}

/** Added to the argument of a `start` that begins a repair. */
export const QUIET = 16;
/** Added to the argument of a `start` or `renew`: see Move. */
const LIST = 32;
const KNOWN = 256;

export function chosen(arg: number): { height: number; quiet: boolean; list: number; nth: number } {
  return {
    height: arg % QUIET,
    quiet: Math.floor(arg / QUIET) % 2 === 1,
    list: Math.floor(arg / LIST) % 8,
    nth: Math.floor(arg / KNOWN),
  };
}

export function choiceOf({ list, nth }: Pick<Knowledge, 'list' | 'nth'>): number {
  return list * LIST + nth * KNOWN;
}

export function mayRepair(cfg: ModelConfig, terms: readonly { t: { settings: { quiet?: boolean } } }[]): boolean {
  return terms.filter(({ t }) => t.settings.quiet).length < cfg.repairs;
}

function starts(cfg: ModelConfig, state: State, visit: Visit, wanted: Wanted): void {
  if (state.terms.length >= cfg.terms) return;
  const known = agreedHeight(state);
  const p = state.terms.length;
  for (const knowledge of knowledgeOf(cfg, state.nodes)) {
    const choice = choiceOf(knowledge);
    for (let height = cfg.staleStores ? 0 : known; height <= known; height++) {
      for (let arg = height; arg <= height + QUIET; arg += QUIET) {
        if ((arg >= QUIET && !mayRepair(cfg, state.terms)) || !wanted('start', p, -1, arg + choice)) continue;
        const next = startTerm(cfg, state, knowledge, height, arg >= QUIET);
        visit({ kind: 'start', term: p, node: -1, arg: arg + choice }, next);
      }
    }
    state.terms.forEach((m, continued) => {
      if (!m.renewable || !wanted('renew', p, -1, continued + choice)) return;
      const next = renewTerm(cfg, state, knowledge, continued);
      visit({ kind: 'renew', term: p, node: -1, arg: continued + choice }, next);
    });
  }
}

/** A follower begins a promotion. Its store holds the committed blocks up to `height`. */
export function startTerm(cfg: ModelConfig, state: State, knowledge: Knowledge, height: number, quiet = false): State {
  return begin(cfg, state, { knowledge, store: storeUpTo(cfg, state, height), continued: undefined, quiet });
}

export function renewTerm(cfg: ModelConfig, state: State, knowledge: Knowledge, continued: number): State {
  const { store, t } = state.terms[continued]!;
  return begin(cfg, state, { knowledge, store, continued, quiet: t.settings.quiet === true });
}

function begin(cfg: ModelConfig, state: State, beginning: Omit<Beginning, 'mustExceed'>): State {
  const next = new Next(cfg, state);
  const { continued } = beginning;
  if (continued !== undefined) next.term(continued).renewable = false;
  next.begin({ ...beginning, mustExceed: state.terms.reduce((most, m) => Math.max(most, m.claimedEpoch), 0) });
  return next.seal();
}

export function agreedHeight(state: State): number {
  let height = 0;
  while (height < state.agreed.length && state.agreed[height] !== '') height++;
  return height;
}

/**
 * The committed blocks up to `height` as a follower has them. The epoch of a block is known if q copies carry it now,
 * otherwise it is 0.
 */
export function storeUpTo(cfg: ModelConfig, state: State, height: number): StoredBlock[] {
  const store: StoredBlock[] = [];
  for (let h = 1; h <= height; h++) {
    const hash = state.agreed[h - 1]!;
    const parent = h === 1 ? GENESIS : state.agreed[h - 2]!;
    const epochs = state.nodes.map(
      ({ s }) => s.entries.find((entry) => entry.height === h && entry.hash === hash)?.epoch ?? 0,
    );
    const epoch =
      epochs.find((e) => e > 0 && epochs.filter((other) => other === e).length >= quorumOf(cfg.nodes + cfg.resizes)) ??
      0;
    store.push({ ...blockOf(hash.charCodeAt(0) - 49, h, parent), epoch });
  }
  return store;
}

/** The request to remove a member, or to add a node that is not one. null: the leader would refuse it. */
export function resizing(t: TermState, node: number): TermEvent | null {
  const id = t.settings.ids![node]!;
  const member = memberOf(t.configuration, id) !== undefined;
  const change: MembersChange = member
    ? { kind: 'remove', id, margin: 0 }
    : { kind: 'add', id, url: `redis://${id}`, margin: 0 };
  if (t.change || whyNoChange(t, change) !== '') return null;
  return { type: 'change', now: 0, change, node: member ? -1 : node };
}

/** When the next block stops waiting for an admission, or for the nodes to note a change of the members. */
export function gateEnds(t: TermState): number {
  return Math.min(t.gateUntil!, t.change?.next ? t.change.by : Infinity);
}

function termMoves(cfg: ModelConfig, state: State, term: number, visit: Visit, wanted: Wanted): void {
  const m = state.terms[term]!;
  const { t } = m;
  if (t.phase === 'ended') return;
  if (t.graceUntil !== Infinity && wanted('grace over', term, -1, 0)) {
    const next = new Next(cfg, state);
    next.step(term, { type: 'tick', now: 1 });
    visit({ kind: 'grace over', term, node: -1, arg: 0 }, next.seal());
  }
  if (t.gateUntil !== null && wanted('gate over', term, -1, 0)) {
    const next = new Next(cfg, state);
    next.step(term, { type: 'tick', now: gateEnds(t) });
    visit({ kind: 'gate over', term, node: -1, arg: 0 }, next.seal());
  }
  for (let node = 0; node < t.nodes.length && state.damages < cfg.damages; node++) {
    const track = t.nodes[node]!;
    if (t.phase !== 'leading' || track.standing !== 'claimed' || track.damage || !wanted('damage', term, node, 0))
      continue;
    const next = new Next(cfg, state);
    next.damages += 1;
    next.step(term, { type: 'damaged', now: 0, node, incarnation: track.incarnation, why: 'said so' });
    visit({ kind: 'damage', term, node, arg: 0 }, next.seal());
  }
  for (let node = 0; node < t.nodes.length && state.resizes < cfg.resizes; node++) {
    const event = resizing(t, node);
    if (!event || !wanted('resize', term, node, 0)) continue;
    const next = new Next(cfg, state);
    next.resizes += 1;
    next.step(term, event);
    visit({ kind: 'resize', term, node, arg: 0 }, next.seal());
  }
  for (let node = 0; node < t.nodes.length && state.fixes < cfg.fixes; node++) {
    if (t.phase !== 'leading' || t.nodes[node]!.standing !== 'quarantined' || !wanted('fix', term, node, 0)) continue;
    const next = new Next(cfg, state);
    next.fixes += 1;
    next.step(term, { type: 'fix', now: 0, node });
    visit({ kind: 'fix', term, node, arg: 0 }, next.seal());
  }
  if (m.ready > 0 && wanted('produce', term, -1, m.ready)) {
    const next = new Next(cfg, state);
    next.produce(term);
    visit({ kind: 'produce', term, node: -1, arg: m.ready }, next.seal());
  }
  for (let node = 0; node < m.out.length; node++) {
    const out = m.out[node];
    if (!out) continue;
    if (out.held) {
      if (!wanted('deliver', term, node, 0)) continue;
      const next = new Next(cfg, state);
      next.deliver(term, node, out, out.held);
      visit({ kind: 'deliver', term, node, arg: 0 }, next.seal());
    } else {
      const next = wanted('run', term, node, 0) ? runAndAnswer(cfg, state, term, node, out, true) : null;
      if (next) visit({ kind: 'run', term, node, arg: 0 }, next);
      if (cfg.heldReplies && out.call?.script !== 'inspect' && wanted('hold', term, node, 0)) {
        const held = new Next(cfg, state);
        const reply = held.execute(m.servers[node]!, out);
        held.term(term).out[node] = { ...out, held: reply };
        visit({ kind: 'hold', term, node, arg: 0 }, held.seal());
      }
    }
    giveUp(cfg, state, term, node, out, visit, wanted);
  }
}

/** Runs a call and delivers its reply in the same move. */
export function runAndAnswer(
  cfg: ModelConfig,
  state: State,
  term: number,
  node: number,
  out: Outstanding,
  skipRefusedPromotion: boolean,
): State | null {
  const next = new Next(cfg, state);
  const reply = next.execute(state.terms[term]!.servers[node]!, out);
  if (skipRefusedPromotion && out.call?.script === 'promote_leader' && reply.outcome === 'refused') return null;
  next.deliver(term, node, out, reply);
  return next.seal();
}

function giveUp(
  cfg: ModelConfig,
  state: State,
  term: number,
  node: number,
  out: Outstanding,
  visit: Visit,
  wanted: Wanted,
): void {
  if (state.giveUps >= cfg.giveUps) return;
  const { t } = state.terms[term]!;
  const kind = t.nodes[node]!.busy!.kind;
  if (kind === 'inspect') return; // asked again at once: nothing would differ
  if (kind === 'read' && t.nodes[node]!.failures > 0) return;
  if (!wanted('give up', term, node, 0)) return;
  const next = new Next(cfg, state);
  next.giveUps += 1;
  let waiting: Outstanding | null | undefined = out;
  const at = state.terms[term]!.servers[node]!;
  const promoted = t.nodes.filter((track) => track.standing === 'promoted').length;
  const wide =
    cfg.variation === 'wide-claim' &&
    kind === 'promote' &&
    t.phase === 'promoting' &&
    promoted >= quorumOf(cfg.nodes) &&
    isAdmitted(state.nodes[at]!.s);
  if (wide) {
    const incarnation = state.nodes[at]!.s.record!.incarnation;
    next.deliver(term, node, out, { outcome: 'accepted', incarnation, value: { epoch: 0 } });
  } else {
    do {
      next.deliver(term, node, waiting, { outcome: 'unknown', step: 'reply', cause: 'lost' });
      waiting = next.peek(term).out[node];
    } while (waiting?.call?.script === 'claim' && waiting.call.acquireTtlMs === undefined && kind === 'claim');
  }
  visit({ kind: 'give up', term, node, arg: 0 }, next.seal());
}

function lateRuns(cfg: ModelConfig, state: State, node: number, visit: Visit, wanted: Wanted): void {
  if (state.strays >= cfg.strays) return;
  for (const { term, key, call } of state.nets[node]!.calls) {
    if (call.script === 'promote_leader' && !mayPromote(cfg, state.nodes[node]!.s, call)) continue;
    if (!wanted('late run', term, node, key)) continue;
    const next = new Next(cfg, state);
    next.apply(node, call);
    const sealed = next.seal();
    const before = state.nodes[node]!;
    const after = sealed.nodes[node]!;
    if (before.a === after.a && before.b === after.b) continue;
    sealed.strays += 1;
    visit({ kind: 'late run', term, node, arg: key }, sealed);
  }
}

export function mayPromote(
  cfg: ModelConfig,
  s: MemoryNodeState,
  call: Extract<NodeCall, { script: 'promote_leader' }>,
): boolean {
  return cfg.mutant.repeatPromotionAtAnyEpoch === true || s.epoch === call.expectedEpoch;
}

// --- building the next state

export interface Beginning {
  knowledge: Knowledge;
  store: readonly StoredBlock[];
  /** The ended term that this one renews. */
  continued: number | undefined;
  mustExceed: number;
  /** A repair's term: it proposes nothing of its own. */
  quiet: boolean;
}

export class Next {
  wipes: number;
  damages: number;
  expiries: number;
  raises: number;
  fixes: number;
  rollbacks: number;
  resizes: number;
  saved: State['saved'];
  giveUps: number;
  protected violation = '';
  private readonly nodes: State['nodes'];
  private readonly nets: State['nets'];
  private readonly terms: State['terms'];
  private agreed: string[];
  private readonly fresh: (MemoryNodeState | null)[];
  private readonly sent: NetCall[][] = [];
  private readonly changed: (ModelTerm | null)[];
  private mayFall = new Set<number>();

  constructor(
    protected readonly cfg: ModelConfig,
    private readonly from: State,
  ) {
    this.wipes = from.wipes;
    this.damages = from.damages;
    this.expiries = from.expiries;
    this.raises = from.raises;
    this.fixes = from.fixes;
    this.rollbacks = from.rollbacks;
    this.resizes = from.resizes;
    this.saved = from.saved;
    this.giveUps = from.giveUps;
    this.nodes = from.nodes.slice();
    this.nets = from.nets.slice();
    this.terms = from.terms.slice();
    this.agreed = from.agreed;
    this.fresh = new Array<null>(from.nodes.length).fill(null);
    this.changed = new Array<null>(from.terms.length).fill(null);
  }

  node(n: number): MemoryNodeState {
    return (this.fresh[n] ??= cloneNodeState(this.nodes[n]!.s));
  }

  replaceNode(n: number, s: MemoryNodeState): void {
    this.fresh[n] = s;
    this.mayFall.add(n);
  }

  peek(p: number): ModelTerm {
    return this.changed[p] ?? this.terms[p]!;
  }

  term(p: number): ModelTerm {
    let m = this.changed[p];
    if (!m) {
      const old = this.terms[p]!;
      m = {
        t: cloneTerm(old.t),
        servers: old.servers,
        out: old.out.slice(),
        store: old.store.slice(),
        claimedEpoch: old.claimedEpoch,
        mustExceed: old.mustExceed,
        ready: old.ready,
        renewable: old.renewable,
        admissions: old.admissions,
        a: 0,
        b: 0,
        columnA: old.columnA.slice(),
        columnB: old.columnB.slice(),
      };
      this.changed[p] = m;
    }
    return m;
  }

  addTerm(m: ModelTerm): void {
    this.terms.push(m);
    this.changed.push(m);
  }

  /** Begins a term with these answers to its pre-vote. */
  begin({ knowledge, store, continued, mustExceed, quiet }: Beginning): void {
    const { cfg } = this;
    const term = this.terms.length;
    const owner = continued === undefined ? undefined : ownerOf(continued);
    const settings = settingsOf(cfg, term, knowledge, quiet, owner);
    const { servers } = listsOf(cfg)[knowledge.list]!;
    const width = serverIds(cfg).length;
    this.addTerm({
      t: newTerm(settings, chainOf(store, cfg.window)),
      servers,
      out: servers.map(() => null),
      store: [...store],
      claimedEpoch: 0,
      mustExceed,
      ready: 0,
      renewable: false,
      admissions: 0,
      a: 0,
      b: 0,
      columnA: new Array<number>(width).fill(0),
      columnB: new Array<number>(width).fill(0),
    });
    this.step(term, { type: 'start', now: 0, votes: knowledge.votes });
  }

  send(n: number, sent: NetCall): void {
    (this.sent[n] ??= []).push(sent);
  }

  /** Runs one script on one node. A lock in the way of a promotion is taken as expired (reduction 4). */
  apply(n: number, call: NodeCall): NodeReply<unknown> {
    const s = this.node(n);
    if (call.script === 'promote_leader' && s.lock !== null && s.lock.owner !== call.previousOwner) s.lock = null;
    if (call.script === 'claim' && this.cfg.variation === 'plain-read') {
      const r = s.record;
      if (r === null) return { outcome: 'refused', reason: 'NOT_ADMITTED', detail: {} };
      const { head, headEpoch, headHash, floor, floorHash } = r;
      if (call.acquireTtlMs === undefined)
        return {
          outcome: 'accepted',
          incarnation: r.incarnation,
          value: { head, headEpoch, headHash, floor, floorHash },
        };
    }
    if (call.script === 'admit') this.mayFall.add(n);
    const toSend =
      this.cfg.variation === 'wide-claim' && call.script === 'claim' ? { ...call, acquireTtlMs: Infinity } : call;
    return applyCall(s, toSend, IDENTITY, this.nodes[n]!.id, 0, this.cfg.mutant);
  }

  /** Runs a term's call on a server. */
  execute(n: number, out: Outstanding): NodeReply<unknown> {
    if (out.call?.script === 'inspect') {
      // `inspect` only reads, so its reply is made once for each node state.
      const node = this.nodes[n]!;
      return (node.view ??= applyCall(node.s, out.call, IDENTITY, node.id, 0, this.cfg.mutant));
    }
    if (out.kind !== 'read') return this.apply(n, out.call!);
    const { s } = this.nodes[n]!;
    const value = applyRead(s, { from: out.from, to: out.to, limit: 1000, data: true });
    return { outcome: 'accepted', incarnation: s.record?.incarnation ?? '', value };
  }

  deliver(p: number, n: number, out: Outstanding, reply: NodeReply<unknown>): void {
    const m = this.term(p);
    m.out[n] = null;
    if (out.kind === 'read') this.step(p, { type: 'read', now: 0, node: n, id: out.id, reply: reply as never });
    else if (out.kind === 'backfill') {
      const { block } = out.call as Extract<NodeCall, { script: 'write_block' | 'backfill' }>;
      this.step(p, {
        type: 'backfilled',
        now: 0,
        node: n,
        id: out.id,
        replies: [reply as never],
        from: [block as Header],
        bytes: 0,
      });
    } else this.step(p, { type: 'reply', now: 0, node: n, id: out.id, reply });
  }

  /** The producer answers the request for the next block. */
  produce(p: number): void {
    const m = this.term(p);
    const height = m.ready;
    m.ready = 0;
    this.step(p, { type: 'proposal', now: 0, block: blockOf(p, height, m.t.committed.hash) });
  }

  step(p: number, event: TermEvent): void {
    const m = this.term(p);
    const events = [event];
    for (let i = 0; i < events.length; i++) {
      const undone = breaks(this.cfg, m.t, events[i]!);
      const effects = step(m.t, events[i]!, chainOf(m.store, this.cfg.window));
      undone(effects);
      for (const effect of effects) this.perform(p, m, effect, events);
    }
    const { phase, epoch } = m.t;
    if (m.claimedEpoch === 0 && (phase === 'adopting' || phase === 'settling' || phase === 'leading')) {
      m.claimedEpoch = epoch;
      this.terms.forEach((_, q) => {
        if (q !== p && this.peek(q).claimedEpoch === epoch)
          this.violate(`I1: terms ${p + 1} and ${q + 1} both claimed a quorum under epoch ${epoch}`);
      });
      if (epoch <= m.mustExceed)
        this.violate(
          `I1: term ${p + 1} claimed a quorum under epoch ${epoch}, one that had done so before it began ` +
            `has ${m.mustExceed}`,
        );
      m.mustExceed = 0;
    }
  }

  private perform(p: number, m: ModelTerm, effect: Effect, events: TermEvent[]): void {
    const { t } = m;
    switch (effect.type) {
      case 'call':
        if (!isAsked(t, effect.node) && this.cfg.variation !== 'resize-in-term')
          return this.violate(`I13: term ${p + 1} asks a stranger for ${effect.call.script}`);
        if (effect.call.script === 'begin_admission') {
          // beyond the model's bound: the call is never sent and never answered
          if (m.admissions >= MAX_ADMISSIONS) return;
          const nonce = `n${p + 1}.${m.admissions}`;
          m.admissions += 1;
          const call = { ...effect.call, nonce, ...renamed(m.t, effect.node, nonce) };
          return this.outgoing(p, m, effect.node, {
            id: effect.id,
            kind: 'call',
            key: keyOf(p, call),
            call,
            from: 0,
            to: 0,
          });
        }
        return this.outgoing(p, m, effect.node, {
          id: effect.id,
          kind: 'call',
          key: keyOf(p, effect.call),
          call: effect.call,
          from: 0,
          to: 0,
        });
      case 'backfill': {
        const block = m.store[effect.from - 1];
        if (!block)
          return this.violate(
            `term ${p + 1} wants to backfill height ${effect.from}, its store ends at ${m.store.length}`,
          );
        const entryEpoch = effect.stampOwnEpoch || block.epoch === 0 ? t.epoch : block.epoch;
        const { owner } = t.settings;
        const call: NodeCall =
          effect.nonce !== undefined
            ? { script: 'backfill', owner, epoch: t.epoch, nonce: effect.nonce, block, entryEpoch }
            : { script: 'write_block', owner, epoch: t.epoch, ttlMs: Infinity, mode: 'repair', block, entryEpoch };
        return this.outgoing(p, m, effect.node, {
          id: effect.id,
          kind: 'backfill',
          key: keyOf(p, call),
          call,
          from: effect.from,
          to: effect.to,
        });
      }
      case 'read':
        m.out[effect.node] = {
          id: effect.id,
          kind: 'read',
          key: effect.from * 16 + effect.to,
          from: effect.from,
          to: effect.to,
        };
        return;
      case 'load':
        events.push({ type: 'proposal', now: 0, block: m.store[effect.height - 1]! });
        return;
      case 'adopted':
        for (const block of effect.blocks) {
          m.store.push({ ...block, epoch: 0 });
          this.agree(block.height, block.hash, `term ${p + 1}, from below the head it claimed,`);
        }
        return;
      case 'ready':
        if (effect.height > this.cfg.heights || m.t.settings.quiet) return;
        if (this.cfg.lazyProposals) m.ready = effect.height;
        else events.push({ type: 'proposal', now: 0, block: blockOf(p, effect.height, effect.parent) });
        return;
      case 'committed':
        if (effect.block.height === m.store.length + 1) m.store.push({ ...effect.block, epoch: effect.epoch });
        this.agree(effect.block.height, effect.block.hash, `term ${p + 1}`);
        return;
      case 'alarm':
        return this.violate(`term ${p + 1} raises ${effect.code}: ${effect.reason}`);
      case 'ended':
        m.out.fill(null);
        m.ready = 0;
        m.mustExceed = 0;
        m.renewable = effect.end.code === 'RENEW';
        if (
          !ORDINARY_ENDS.has(effect.end.code) &&
          !(effect.end.code === 'BEHIND' && this.cfg.window > 0) &&
          !(effect.end.code === 'CHOICE_OVERTAKEN' && this.cfg.conflict)
        )
          this.violate(`term ${p + 1} ends with ${effect.end.code}: ${effect.end.reason}`);
        return;
      case 'leading':
      case 'request':
      case 'node':
    }
  }

  private outgoing(p: number, m: ModelTerm, n: number, out: Outstanding): void {
    m.out[n] = out;
    const call = out.call!;
    if (call.script !== 'inspect') this.send(m.servers[n]!, { term: p, key: out.key, call });
  }

  violate(why: string): void {
    if (this.violation === '') this.violation = why;
  }

  agree(height: number, hash: string, who: string): void {
    const known = this.agreed[height - 1];
    if (known === hash) return;
    if (known) return this.violate(`I4: FORK at height ${height}: ${who} takes ${hash} as committed, ${known} was`);
    if (this.agreed === this.from.agreed) this.agreed = this.agreed.slice();
    this.agreed[height - 1] = hash;
  }

  /**
   * Completes the state: makes the fingerprints, drops calls that can have no effect any more, and checks readers and
   * the invariants of nodes.
   */
  seal(): State {
    const { cfg, nodes } = this;
    let touched = false;
    for (let n = 0; n < nodes.length; n++) {
      const s = this.fresh[n];
      if (!s) continue;
      touched = true;
      const before = nodes[n]!.s;
      nodes[n] = sealNode(s, nodes[n]!.id);
      this.checkNode(n, before, s);
    }
    const fallible =
      this.wipes < cfg.wipes ||
      this.rollbacks < cfg.rollbacks ||
      cfg.damages > 0 ||
      cfg.twins > 0 ||
      cfg.resizes > 0 ||
      nodes.some(({ s }) => !isAdmitted(s));
    for (let n = 0; n < nodes.length; n++) {
      const added = this.sent[n];
      if (!this.fresh[n] && !added && fallible) continue;
      const { s } = nodes[n]!;
      const old = this.nets[n]!.calls;
      let calls = fallible ? old : old.filter(({ call }) => mayMatter(s, call, cfg));
      for (const one of added ?? []) {
        if ((fallible || mayMatter(s, one.call, cfg)) && !calls.some(({ key }) => key === one.key))
          calls = [...calls, one];
      }
      if (calls !== old && (calls.length !== old.length || added)) this.nets[n] = sealNetwork(calls);
    }
    for (let p = 0; p < this.changed.length; p++) {
      const m = this.changed[p];
      if (!m) continue;
      sealTerm(m);
      this.terms[p] = m;
    }
    if (touched) this.probe();
    return {
      nodes,
      nets: this.nets,
      terms: this.terms,
      agreed: this.agreed,
      wipes: this.wipes,
      damages: this.damages,
      expiries: this.expiries,
      raises: this.raises,
      fixes: this.fixes,
      rollbacks: this.rollbacks,
      resizes: this.resizes,
      saved: this.saved,
      strays: this.from.strays,
      giveUps: this.giveUps,
      violation: this.violation,
    };
  }

  private checkNode(n: number, before: MemoryNodeState, s: MemoryNodeState): void {
    const own = brokenIn(n, before, s, this.mayFall.has(n));
    if (own !== '') this.violate(own);
    for (let k = 0; k < this.nodes.length; k++) {
      if (k === n) continue;
      const other = this.nodes[k]!.s.entries;
      for (const entry of s.entries) {
        const there = other.find(({ height }) => height === entry.height);
        if (
          there &&
          there.epoch === entry.epoch &&
          there.hash !== entry.hash &&
          !(this.cfg.conflict && RIVALS.includes(entry.hash) && RIVALS.includes(there.hash))
        ) {
          this.violate(
            `I2: epoch ${entry.epoch} has two blocks at height ${entry.height}: ${entry.hash} and ${there.hash}`,
          );
        }
      }
    }
  }

  /** Checks what readers take as committed (section 7). */
  private probe(): void {
    const { cfg, nodes } = this;
    for (let height = 1; height <= this.agreed.length; height++) {
      for (const { s } of readableBy(cfg, nodes)) {
        const { floor, floorHash } = s.record!;
        if (floor === height && isAdmitted(s, cfg.mutant))
          this.agree(height, floorHash, 'a reader, by the floor of a node,');
        const entry = s.entries[height - floor - 1];
        if (!entry) continue;
        if (s.entries[height - floor]) {
          this.agree(height, entry.hash, 'a reader, by the entry above it,');
          continue;
        }
        const holders = nodes.filter((other) => {
          const copy = other.s.entries.find((one) => one.height === height);
          return copy?.hash === entry.hash && (copy.epoch === entry.epoch || cfg.variation === 'mixed-epochs');
        });
        if (areEnough(cfg, holders, entry.epoch)) this.agree(height, entry.hash, 'a reader, by a quorum of copies,');
      }
    }
  }
}

/**
 * The servers that a reader may read. A configuration on the servers names their memory, and they know no later one.
 */
export function readableBy<N extends { s: MemoryNodeState }>(cfg: ModelConfig, nodes: readonly N[]): N[] {
  const known = configurationsOn(nodes);
  return nodes.filter(({ s }) => known.some((configuration) => isSeen(cfg, s, configuration)));
}

/**
 * Whether copies of one epoch commit a block. The newest configuration among the holders that a reader sees says whose
 * copies count, and how many it needs. A reader may see any of the holders. A configuration of a later term does not
 * count.
 */
export function areEnough(cfg: ModelConfig, holders: readonly { s: MemoryNodeState }[], epoch: Epoch): boolean {
  return configurationsOn(holders).some((configuration) => {
    const later = configuration !== null && configuration.version.epoch > epoch;
    if (later && cfg.variation !== 'later-count') return false;
    const copies = holders.filter(({ s }) => isSeen(cfg, s, configuration)).length;
    return copies >= (configuration === null ? quorumOf(cfg.nodes) : quorumFor(configuration));
  });
}

function isSeen(cfg: ModelConfig, s: MemoryNodeState, configuration: Configuration | null): boolean {
  if (s.record === null) return false;
  if (cfg.variation === 'unadmitted-copies') return true;
  if (!isAdmitted(s, cfg.mutant)) return false;
  if (configuration === null) return true;
  if (isEarlier(configuration, parseConfiguration(s.record.config))) return false;
  return cfg.variation === 'any-memory' || memoryNamed(configuration, s.record.node) === s.record.incarnation;
}

/** The first invariant that a node breaks by itself, or ''. */
export function brokenIn(n: number, before: MemoryNodeState, s: MemoryNodeState, mayFall: boolean): string {
  if (!mayFall && (s.epoch ?? 0) < (before.epoch ?? 0))
    return `I3: the epoch of node ${n + 1} fell from ${before.epoch} to ${s.epoch}`;
  const r = s.record;
  if (r === null) return '';
  if (s.entries.length !== r.head - r.floor)
    return `I6: node ${n + 1} holds ${s.entries.length} entries, its record says ${r.floor}…${r.head}`;
  for (let i = 0; i < s.entries.length; i++) {
    const entry = s.entries[i]!;
    const parent = i === 0 ? r.floorHash : s.entries[i - 1]!.hash;
    if (entry.height !== r.floor + i + 1 || entry.parent !== parent)
      return `I6: node ${n + 1}, entry ${i + 1} does not follow the one below`;
  }
  return '';
}

const ORDINARY_ENDS = new Set(['PROMOTION_LOST', 'CLAIM_LOST', 'FENCED', 'LEASE_EXPIRED', 'RENEW', 'RECONFIGURED']);

/** Whether a term may ask this node: a member, the server that is to be added, or the member that is to leave. */
function isAsked({ configuration, settings, change }: TermState, node: number): boolean {
  const id = settings.ids![node]!;
  return configuration === null || memberOf(configuration, id) !== undefined || change?.candidate === node;
}

/** The model gives nonces its own names. The configuration that the admission carries must have the same name. */
function renamed(t: TermState, node: number, nonce: string): { config?: string } {
  const admission = t.nodes[node]!.admission!;
  admission.nonce = nonce;
  const { configuration } = admission;
  if (configuration === null) return {};
  admission.configuration = withMemory(configuration, t.settings.ids![node]!, nonce, configuration.version);
  return { config: configurationText(admission.configuration) };
}

/**
 * Breaks a rule of the term while it handles this event. Returns what must be done to the term after the reducer has
 * run.
 */
function breaks({ variation }: ModelConfig, t: TermState, event: TermEvent): (effects: readonly Effect[]) => void {
  const begun = (): AdmissionBegun[] =>
    t.nodes.flatMap(({ admission }) => (admission?.begun ? [admission as AdmissionBegun] : []));
  switch (variation) {
    case 'unconfirmed-admission':
      return () => {
        for (const admission of begun()) admission.proof = 2 ** t.nodes.length - 1;
      };
    case 'note-on-self':
      return () => {
        t.nodes.forEach(({ admission }, n) => {
          if (admission?.begun) (admission as AdmissionBegun).proof |= 1 << n;
        });
      };
    case 'proof-by-writes': {
      const busy = event.type === 'reply' ? t.nodes[event.node]!.busy : null;
      const written = event.type === 'reply' && event.reply.outcome === 'accepted' && busy?.kind === 'write';
      return () => {
        for (const progress of t.nodes as { unnoted: boolean }[]) progress.unnoted = false;
        if (!written) return;
        for (const admission of begun()) if (busy!.id >= admission.provesFrom) admission.proof |= 1 << event.node;
      };
    }
    case 'two-at-a-time': {
      const made = t.change?.next;
      return (effects) => {
        const { change } = t;
        if (!change?.next || made) return;
        const next = withoutMember(change.next, change.next.members.at(-1)!.id, change.next.version);
        t.change = { ...change, next };
        for (const effect of effects)
          if (effect.type === 'call' && effect.call.script === 'claim') effect.call.config = configurationText(next);
      };
    }
    case 'joint-claim': {
      const promoting = t.phase === 'promoting';
      return (effects) => {
        // Its version belongs to this term, as if this term had made the configuration while it led.
        if (!promoting || t.phase !== 'claiming' || isAsked(t, 0)) return;
        t.configuration = { ...t.configuration!, version: { epoch: t.epoch, turn: 0 } };
        for (const effect of effects)
          if (effect.type === 'call' && effect.call.script === 'claim')
            effect.call.config = configurationText(t.configuration);
      };
    }
    case 'resize-in-term':
      return (effects) => {
        const { change } = t;
        const end = effects.find((effect) => effect.type === 'ended');
        if (!change?.next || !end || notedChange(t) === null) return;
        // The broken rule: the term is not renewed. The members change, and it asks for the next block.
        t.phase = 'leading';
        t.ended = null;
        t.configuration = change.next;
        t.settings = { ...t.settings, quorum: quorumFor(change.next) };
        t.change = null;
        t.gateUntil = null;
        t.nodes.forEach((progress, n) => {
          (progress as { named: string | null }).named = memoryNamed(change.next!, t.settings.ids![n]!);
        });
        const { height, hash } = t.committed;
        (effects as Effect[]).splice(effects.indexOf(end), 1, { type: 'ready', height: height + 1, parent: hash });
      };
    case 'any-memory':
      return () => {
        for (const progress of t.nodes as { named: string | null }[]) progress.named = null;
      };
    default:
      return () => undefined;
  }
}

/**
 * Whether a call on the network can still change an admitted node that will keep its memory. The epoch of such a node
 * only rises.
 */
export function mayMatter(s: MemoryNodeState, call: NodeCall, cfg: ModelConfig): boolean {
  if (breaksPromises(cfg.mutant)) return true;
  const epoch = s.epoch ?? 0;
  const claimant = s.record!.claimant;
  switch (call.script) {
    case 'promote_leader':
      return call.expectedEpoch >= epoch;
    case 'claim':
      if (call.epoch !== epoch) return call.epoch > epoch;
      if (isEarlier(parseConfiguration(s.record!.config), parseConfiguration(configOf(call)))) return true;
      return claimant === call.owner ? call.acquireTtlMs !== undefined : cfg.mutant.noClaimantRule === true;
    case 'write_block': {
      if (call.epoch !== epoch) return call.epoch > epoch;
      if (claimant !== call.owner) return cfg.mutant.noClaimantRule === true;
      const { head, headHash, headEpoch } = s.record!;
      const { height } = call.block;
      return height > head || (height === head && (headHash !== call.block.hash || headEpoch < call.entryEpoch));
    }
    case 'rebase':
      if (call.epoch < epoch || (call.epoch === epoch && claimant !== call.owner && !cfg.mutant.noClaimantRule))
        return false;
      return call.epoch > epoch || s.record!.head < call.floor;
    default:
      return false; // the calls of an admission do nothing to admitted nodes
  }
}

/**
 * Whether a broken rule lets a call with a lower epoch than the node's have an effect. It does not if the rule keeps
 * I3, or concerns the reply only.
 */
function breaksPromises({
  noEpochCheck,
  noAdmissionCheck,
  repeatPromotionAtAnyEpoch,
  reuseNonces,
}: ModelConfig['mutant']): boolean {
  return [noEpochCheck, noAdmissionCheck, repeatPromotionAtAnyEpoch, reuseNonces].includes(true);
}
