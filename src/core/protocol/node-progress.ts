// What one term knows of one node: what the node has promised, what it holds, what it was asked, and when it is asked
// again. The handlers of a term decide what happens. Only the functions of this file change a progress, so that the
// invariants beside the fields hold. For all other code the fields are read-only. docs/PROTOCOL.md sections 5, 6 and 8.
import type { Configuration } from './configuration.js';
import type { FillPace } from './fill-pace.js';
import type { Epoch, Hash, HeadFacts, Height, Incarnation } from './types.js';

/** Index of a node in the configured list, 0 … N−1. */
export type NodeIndex = number;

/** What a node's answers are worth to a term. */
export type Standing =
  /** promote_leader is under way. */
  | 'promoting'
  /** The node acknowledged its promotion before the first claim was sent. */
  | 'promoted'
  /** The node accepted the claim: what it accepts from now on counts. */
  | 'claimed'
  /** The node does not count for now. It is probed again later. */
  | 'unclaimed'
  /**
   * The node is damaged, or contradicts this term. It does not count again in this term, unless a repair asks for it.
   */
  | 'quarantined';

/** The one call that is under way at a node. `id` grows with every call of the term. */
type Busy =
  | {
      id: number;
      kind: 'promote' | 'claim' | 'regain' | 'inspect' | 'read' | 'begin' | 'admit' | 'prove' | 'extend';
      startedAt: number;
    }
  | { id: number; kind: 'write'; height: Height; hash: Hash; startedAt: number }
  | { id: number; kind: 'backfill' | 'learn' | 'rebase'; height: Height; startedAt: number };

/** One re-admission. Only one that the node has begun can be filled and can collect a proof. */
type Admission = AdmissionAsked | AdmissionBegun;

/** begin_admission was sent, and its answer has not come yet. */
interface AdmissionAsked {
  begun: false;
  nonce: string;
  /** The configuration that names this nonce; null: the term has none. */
  configuration: Configuration | null;
  /** The height at which filling begins. */
  floor: Height;
  pace: FillPace;
}

export interface AdmissionBegun extends Omit<AdmissionAsked, 'begun'> {
  begun: true;
  /** What the node answered. `backfill` and `admit` bring it back. '' from a node that has none. */
  challenge: string;
  /** The highest height that is filled in. It never falls. */
  head: Height;
  /**
   * A call with this id or a later one was sent after the node answered begin_admission. Only such a call proves that
   * this term still leads: a successor that claimed earlier would have fenced it.
   */
  provesFrom: number;
  /** Bit i: node i accepted such a claim, and so has noted the configuration. A bit is never cleared. */
  proof: number;
}

/** Damage that the node itself cannot see: what was found, and the proof that q other nodes can do without the node. */
interface Damage {
  /** The memory that is damaged. Under another incarnation the damage is gone. */
  incarnation: Incarnation;
  why: string;
  /** Calls with this id or a later one were sent after the damage was found. */
  provesFrom: number;
  /** Bit i: node i accepted such a call. */
  proof: number;
  /**
   * Whether the node counts again when it is regained. False once begin_admission was sent: that call may still be on
   * its way, and it sets the node's stream aside.
   */
  counts: boolean;
}

interface Progress {
  /** While `admission` is set, this is 'unclaimed': a node that is being re-admitted never counts (I7, I11). */
  standing: Standing;
  /** At most one call at a time: an answer with another id is dropped, because it proves nothing about now. */
  busy: Busy | null;
  /** What promote_leader returned. Set before `standing` becomes 'promoted'. */
  promotedEpoch: Epoch;
  /** The memory that made the promise. An answer of another incarnation never counts (I11). */
  incarnation: Incarnation;
  /**
   * The memory of this node that the configuration names (I13). '': none counts. null: the term has no configuration,
   * and any memory counts.
   */
  named: Incarnation | null;
  /** The node's head, as this term knows it. For a claimed node that is what the claim or a later answer said. */
  head: Height;
  headEpoch: Epoch;
  /** '' = not known. */
  headHash: Hash;
  floor: Height;
  floorHash: Hash;
  /** The node refused this term by its fence, or would refuse it. An accepted claim clears this. */
  fenced: boolean;
  /** Stamp backfilled blocks with this term's epoch: the node's head bears a higher epoch than the committed one. */
  stampOwnEpoch: boolean;
  /** Only a term of a higher epoch can claim this node: the leader renews its term between two blocks. */
  wantsRenewal: boolean;
  /**
   * The node has not yet noted what this term changed in the configuration. Until q have, nothing else changes (I13).
   */
  unnoted: boolean;
  /** Once the admission is begun, `damage` is null: the damaged memory has been set aside. */
  admission: Admission | null;
  damage: Damage | null;
  /** Failures in a row: they lengthen the pause before the next call. */
  failures: number;
  /** The node is not asked before this time. */
  retryAt: number;
  /** A text for people: why the node is not claimed. */
  why: string;
}

export type NodeProgress = Readonly<Progress>;

/** A stranger is no member of the cluster: it is never asked for anything. */
export function newProgress(named: Incarnation | null = null, stranger = false): NodeProgress {
  return {
    standing: stranger ? 'quarantined' : 'unclaimed',
    busy: null,
    promotedEpoch: 0,
    incarnation: '',
    named,
    head: 0,
    headEpoch: 0,
    headHash: '',
    floor: 0,
    floorHash: '',
    fenced: false,
    stampOwnEpoch: false,
    wantsRenewal: false,
    unnoted: false,
    admission: null,
    damage: null,
    failures: 0,
    retryAt: 0,
    why: stranger ? 'it is no member of the cluster' : 'not asked yet',
  };
}

/** Field by field, not spread: the model makes millions of copies. */
export function cloneProgress(p: NodeProgress): NodeProgress {
  return {
    standing: p.standing,
    busy: p.busy, // never changed in place, only replaced
    promotedEpoch: p.promotedEpoch,
    incarnation: p.incarnation,
    named: p.named,
    head: p.head,
    headEpoch: p.headEpoch,
    headHash: p.headHash,
    floor: p.floor,
    floorHash: p.floorHash,
    fenced: p.fenced,
    stampOwnEpoch: p.stampOwnEpoch,
    wantsRenewal: p.wantsRenewal,
    unnoted: p.unnoted,
    admission: p.admission && cloneAdmission(p.admission),
    damage: p.damage && {
      incarnation: p.damage.incarnation,
      why: p.damage.why,
      provesFrom: p.damage.provesFrom,
      proof: p.damage.proof,
      counts: p.damage.counts,
    },
    failures: p.failures,
    retryAt: p.retryAt,
    why: p.why,
  };
}

function cloneAdmission(a: Admission): Admission {
  const { nonce, configuration, floor } = a; // a configuration is never changed in place
  const pace = { ...a.pace };
  return a.begun
    ? {
        begun: true,
        nonce,
        challenge: a.challenge,
        configuration,
        floor,
        pace,
        head: a.head,
        provesFrom: a.provesFrom,
        proof: a.proof,
      }
    : { begun: false, nonce, configuration, floor, pace };
}

// Standing

/** Returns whether anything changed. */
export function changeStanding(p: Progress, standing: Standing, why: string): boolean {
  if (p.standing === standing && p.why === why) return false;
  p.standing = standing;
  p.why = why;
  return true;
}

export function promotionSent(p: Progress, busy: Busy): void {
  p.standing = 'promoting';
  p.busy = busy;
}

export function promotionAccepted(p: Progress, epoch: Epoch, incarnation: Incarnation): void {
  p.standing = 'promoted';
  p.promotedEpoch = epoch;
  p.incarnation = incarnation;
}

export function markFenced(p: Progress): void {
  p.fenced = true;
}

/** Fencing alone does not justify this: the node must have answered with an epoch above this term's. */
export function markWantsRenewal(p: Progress): void {
  p.wantsRenewal = true;
}

/** Whether this memory of the node is the one that counts. */
export function isNamed({ named }: NodeProgress, incarnation: Incarnation): boolean {
  return named === null || (named !== '' && named === incarnation);
}

/** Whether a call that this node accepts is a vote. */
export function counts(p: NodeProgress): boolean {
  return p.standing === 'claimed' && isNamed(p, p.incarnation);
}

/** The node accepted a claim that carried this term's present configuration. */
export function configurationNoted(p: Progress): void {
  p.unnoted = false;
}

/** From now on another memory of this node counts. */
export function memoryNamed(p: Progress, named: Incarnation): void {
  p.named = named;
}

/** This term changed the configuration: the node has to note that. */
export function configurationChanged(p: Progress): void {
  p.unnoted = true;
}

/** Another server replaced the node's server. Nothing that the former server said counts for the new one. */
export function serverReplaced(p: Progress, now: number): void {
  p.busy = null;
  p.admission = null;
  p.damage = null;
  p.wantsRenewal = false;
  p.fenced = false;
  retryAtOnce(p, now);
}

/** The server is to become a member. It may be one that was a member before. */
export function candidateAdded(p: Progress, now: number): void {
  p.named = '';
  p.standing = 'unclaimed';
  serverReplaced(p, now);
}

/** The operator asked for something else before the server became a member. It is not asked for anything any more. */
export function candidateDropped(p: Progress, now: number): void {
  serverReplaced(p, now);
  p.standing = 'quarantined';
  p.why = 'it is no member of the cluster';
}

// Calls, failures, retries

export function callSent(p: Progress, busy: Busy): void {
  p.busy = busy;
}

export function callAnswered(p: Progress): void {
  p.busy = null;
}

export function countFailure(p: Progress): void {
  p.failures++;
}

export function clearFailures(p: Progress): void {
  p.failures = 0;
}

export function retryAtOnce(p: Progress, now: number): void {
  p.failures = 0;
  p.retryAt = now;
}

export function retryAt(p: Progress, at: number): void {
  p.retryAt = at;
}

/**
 * A pause that doubles with every failure in a row, up to ten node timeouts. A dead node costs little, and a node that
 * answers again is used soon.
 */
export function backOff(p: Progress, timing: { retryMs: number; nodeTimeoutMs: number }, now: number): void {
  p.failures++;
  p.retryAt = now + Math.min(timing.retryMs * 2 ** Math.min(p.failures - 1, 10), timing.nodeTimeoutMs * 10);
}

// What the node holds

/** An accepted claim, rebase or admission returned these facts. */
export function takeFacts(p: Progress, facts: HeadFacts): void {
  p.head = facts.head;
  p.headEpoch = facts.headEpoch;
  p.headHash = facts.headHash;
  p.floor = facts.floor;
  p.floorHash = facts.floorHash;
  p.fenced = false;
  p.stampOwnEpoch = false;
  p.wantsRenewal = false;
  p.failures = 0;
  p.retryAt = 0;
}

/** The claim was accepted again, perhaps by another memory: damage of an earlier memory is gone. */
export function regained(p: Progress, facts: HeadFacts, incarnation: Incarnation): void {
  takeFacts(p, facts);
  p.incarnation = incarnation;
  if (p.damage?.incarnation !== incarnation) p.damage = null;
}

/** The node accepted `block`. Its head is `head` since then. */
export function holdsBlock(p: Progress, block: { height: Height; hash: Hash; epoch: Epoch }, head: Height): void {
  p.failures = 0;
  p.retryAt = 0;
  p.head = Math.max(block.height, head);
  p.headHash = p.head === block.height ? block.hash : '';
  p.headEpoch = block.epoch;
  p.stampOwnEpoch = false;
}

/** A refusal said which block is at the node's head. That is never a vote. */
export function headCorrected(p: Progress, head: Height, found: { hash?: Hash; epoch?: Epoch }): void {
  p.head = head;
  p.headHash = found.hash ?? '';
  p.headEpoch = found.epoch ?? 0;
}

/** The conflicting block bears an epoch above the committed one: only this term's own epoch replaces it. */
export function stampOwnEpoch(p: Progress): void {
  p.stampOwnEpoch = true;
}

/** A refusal said how high the node's head is, but not which block is there. */
export function headMoved(p: Progress, head: Height): void {
  p.head = head;
  p.headHash = '';
}

/** Whether the committed block is known to be on the node. */
export function holdsCommitted(p: NodeProgress, committed: { height: Height; hash: Hash }): boolean {
  return p.head > committed.height || (p.head === committed.height && p.headHash === committed.hash);
}

// Damage and re-admission

/** `provesFrom`: the id of the next call. The node keeps its role until q other nodes can do without it. */
export function damageFound(p: Progress, incarnation: Incarnation, why: string, provesFrom: number): void {
  if (incarnation === '' || p.damage?.incarnation === incarnation || p.admission) return;
  p.damage = { incarnation, why, provesFrom, proof: 0, counts: p.standing === 'claimed' };
}

export function damageGone(p: Progress): void {
  p.damage = null;
}

/** From now on the node may lose its stream at any moment. */
export function willBeSetAside(p: Progress): void {
  if (p.damage) p.damage.counts = false;
  p.fenced = false;
}

export function admissionSent(p: Progress, admission: Omit<AdmissionAsked, 'begun'>, busy: Busy): void {
  p.admission = { begun: false, ...admission };
  p.busy = busy;
}

/** `provesFrom`: the id of the next call. */
export function admissionBegun(
  p: Progress,
  { head, challenge = '' }: { head: Height; challenge?: string },
  provesFrom: number,
): void {
  if (!p.admission) return;
  const { nonce, configuration, floor, pace } = p.admission;
  p.admission = { begun: true, nonce, challenge, configuration, floor, pace, head, provesFrom, proof: 0 };
  p.damage = null;
}

export function filledUpTo(p: Progress, head: Height): void {
  p.failures = 0;
  if (p.admission?.begun) p.admission.head = Math.max(p.admission.head, head);
}

/**
 * Node `by` accepted call `id`. That proves every admission and damage that was recorded before the call was sent. A
 * write carries no configuration: it proves that a damaged memory can be spared, but it admits no new memory.
 */
export function provenBy(p: Progress, by: NodeIndex, id: number, call: 'claim' | 'write'): void {
  const { admission, damage } = p;
  if (damage && id >= damage.provesFrom) damage.proof |= 1 << by;
  if (!admission?.begun || id < admission.provesFrom) return;
  if (call === 'claim' || admission.configuration === null) admission.proof |= 1 << by;
}

export function admissionGivenUp(p: Progress): void {
  p.admission = null;
}

/** The node counts again. Its new memory received the configuration when its admission began. */
export function admissionAccepted(p: Progress, facts: HeadFacts, incarnation: Incarnation): void {
  p.admission = null;
  p.unnoted = false;
  takeFacts(p, facts);
  p.incarnation = incarnation;
}
