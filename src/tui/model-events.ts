// What changed between two probes, as sentences that an operator would write down: leadership, fencing, admissions,
// nodes that went and came back, blocks that do not fit the chain, holds. Pure. The events are in the model and not on
// a connection, so that they survive every reconnect.
import { serverOf } from '../core/protocol/types.js';
import type { ClusterView, NodeRow } from '../core/view/cluster-view.js';
import { age } from './text.js';

type EventLevel = 'ok' | 'info' | 'warn' | 'crit';
type EventKind = 'verdict' | 'leader' | 'fence' | 'node' | 'admission' | 'chain' | 'sequencer' | 'hold';

export interface WatchEvent {
  /** Counts from 1; the newest event has the highest number. */
  seq: number;
  at: number;
  wall: number;
  level: EventLevel;
  kind: EventKind;
  /** The node, sequencer or height of the event; '' for the cluster. */
  subject: string;
  text: string;
  /** How often in a row. */
  count: number;
  /** The state of the cluster at that moment. */
  facts: string[];
}

export type Change = Pick<WatchEvent, 'level' | 'kind' | 'subject' | 'text'>;
export const EVENT_LIMIT = 1000;
const MERGE_MS = 60_000;

/** `downSince`: when each node last gave a good answer, for "back after". */
export function changes(
  before: ClusterView | null,
  after: ClusterView,
  now: number,
  downSince: ReadonlyMap<string, number>,
): Change[] {
  if (before === null) return opening(after);
  return [
    ...leadership(before, after),
    ...after.nodes.flatMap((node) => {
      const old = before.nodes.find((one) => one.id === node.id);
      return old === undefined ? [] : nodeChanges(old, node, now, downSince.get(node.id));
    }),
    ...fencing(before, after),
    ...chain(before, after),
    ...sequencers(before, after),
    ...holds(before, after),
    ...verdict(before, after),
  ];
}

function opening(view: ClusterView): Change[] {
  const level = view.verdict === 'OK' ? 'ok' : view.verdict === 'CRIT' ? 'crit' : 'warn';
  return [{ level, kind: 'verdict', subject: '', text: `watch begins: ${view.verdict}, ${view.reason}` }];
}

function leadership(before: ClusterView, after: ClusterView): Change[] {
  const [was, is] = [before.leader, after.leader];
  if (was?.owner === is?.owner) return [];
  if (is === null) {
    return [
      after.leaderKnown
        ? {
            level: 'crit',
            kind: 'leader',
            subject: was?.id ?? '',
            text: `${was?.id} no longer leads (epoch ${was?.epoch}); nobody does`,
          }
        : {
            level: 'warn',
            kind: 'leader',
            subject: was?.id ?? '',
            text: `whether ${was?.id} still leads cannot be said`,
          },
    ];
  }
  if (was !== null && was.id === is.id)
    return [
      {
        level: 'info',
        kind: 'leader',
        subject: is.id,
        text: `${is.id} renewed its term: epoch ${was.epoch} to ${is.epoch}`,
      },
    ];
  return [
    {
      level: 'ok',
      kind: 'leader',
      subject: is.id,
      text: `${is.id} leads under epoch ${is.epoch}${was === null ? '' : ` (${was.id} did, under ${was.epoch})`}`,
    },
  ];
}

const answers = (node: NodeRow): boolean => node.state !== 'DOWN' && node.state !== 'REFUSED';

function nodeChanges(old: NodeRow, node: NodeRow, now: number, downSince: number | undefined): Change[] {
  const found: Change[] = [];
  const say = (level: EventLevel, kind: EventKind, text: string) =>
    found.push({ level, kind, subject: node.id, text: `${node.id} ${text}` });
  if (answers(old) && !answers(node)) {
    say('warn', 'node', `${node.state === 'DOWN' ? 'gone' : 'refuses'}: ${node.note}`);
    return found;
  }
  if (!answers(old) && answers(node))
    say('ok', 'node', `back${downSince === undefined ? '' : ` after ${age(now - downSince)}`}`);
  if (old.runId !== '' && node.runId !== '' && serverOf(old.runId) !== serverOf(node.runId))
    say('warn', 'node', 'is another server process than before (restarted)');
  if (node.admission !== null && old.admission !== null && node.admission !== old.admission) {
    if (node.admitted) say('ok', 'admission', 'admitted');
    else if (node.state !== 'FOREIGN') say('warn', 'admission', `not admitted: ${node.note}`);
  } else if (answers(node) && !answers(old) && !node.admitted && node.state !== 'FOREIGN') {
    say('warn', 'admission', `not admitted: ${node.note}`);
  }
  if (old.state !== 'FOREIGN' && node.state === 'FOREIGN') say('crit', 'admission', `is foreign: ${node.note}`);
  const [wasBehind, isBehind] = [(old.lag ?? 0) > 0, (node.lag ?? 0) > 0];
  if (isBehind && !wasBehind) say('warn', 'chain', `${node.lag} behind`);
  if (wasBehind && !isBehind && node.lag !== null) say('ok', 'chain', 'caught up');
  return found;
}

function fencing(before: ClusterView, after: ClusterView): Change[] {
  const fenced = (view: ClusterView, id: string): boolean => {
    const node = view.nodes.find((one) => one.id === id);
    return view.leader !== null && node?.admitted === true && node.epoch !== null && node.epoch > view.leader.epoch;
  };
  return after.nodes.flatMap((node): Change[] => {
    if (!fenced(after, node.id) || fenced(before, node.id)) return [];
    return [
      {
        level: 'warn',
        kind: 'fence',
        subject: node.id,
        text: `${node.id} fences ${after.leader?.id}: its epoch ${node.epoch} is above ${after.leader?.epoch}`,
      },
    ];
  });
}

function chain(before: ClusterView, after: ClusterView): Change[] {
  const found: Change[] = [];
  for (const conflict of after.conflicts) {
    if (!before.conflicts.some((one) => one.height === conflict.height))
      found.push({
        level: 'crit',
        kind: 'chain',
        subject: String(conflict.height),
        text: `CONFLICT at height ${conflict.height}: ${conflict.why}`,
      });
  }
  const { pending } = after;
  if (pending !== null && before.pending?.hash !== pending.hash) {
    found.push({
      level: 'warn',
      kind: 'chain',
      subject: String(pending.height),
      text: `height ${pending.height} is pending: on ${pending.nodes.join(', ')} only`,
    });
  }
  if (before.pending !== null && pending === null) {
    const made = after.committed !== null && after.committed.height >= before.pending.height;
    const disputed = after.conflicts.some((one) => one.height === before.pending?.height);
    if (!disputed)
      found.push({
        level: made ? 'ok' : 'info',
        kind: 'chain',
        subject: String(before.pending.height),
        text: `height ${before.pending.height} is no longer pending${made ? '' : ' (its copies are gone)'}`,
      });
  }
  const orphaned = (view: ClusterView) =>
    new Set(view.findings.filter((one) => one.code === 'NODE_ORPHAN').flatMap((one) => one.nodes));
  const [were, are] = [orphaned(before), orphaned(after)];
  for (const id of are)
    if (!were.has(id)) found.push({ level: 'warn', kind: 'chain', subject: id, text: `${id} holds an orphan` });
  const answering = new Set(after.nodes.filter((node) => node.admitted).map((node) => node.id));
  for (const id of were)
    if (!are.has(id) && answering.has(id) && after.conflicts.length === 0)
      found.push({ level: 'ok', kind: 'chain', subject: id, text: `${id}: its orphan was repaired` });
  // While a node is silent less can be proven. That does not mean that something was lost.
  if (
    before.committed !== null &&
    after.committed !== null &&
    after.committed.height < before.committed.height &&
    after.answered === after.configured &&
    before.answered === before.configured
  ) {
    found.push({
      level: 'crit',
      kind: 'chain',
      subject: String(after.committed.height),
      text: `less is provably committed than before: ${after.committed.height}, was ${before.committed.height}`,
    });
  }
  return found;
}

function sequencers(before: ClusterView, after: ClusterView): Change[] {
  // Presence is read from the nodes. Without a quorum of answers, missing presence says nothing about sequencers.
  if (after.answered < after.quorum || before.answered < before.quorum) return [];
  const found: Change[] = [];
  for (const one of after.sequencers) {
    const old = before.sequencers.find((other) => other.id === one.id);
    if (old === undefined)
      found.push({ level: 'ok', kind: 'sequencer', subject: one.id, text: `${one.id} is running (${one.role})` });
    else if (old.pid !== one.pid)
      found.push({
        level: 'info',
        kind: 'sequencer',
        subject: one.id,
        text: `${one.id} was started again (pid ${one.pid})`,
      });
    else if (old.ready && !one.ready && one.why !== '')
      found.push({ level: 'warn', kind: 'sequencer', subject: one.id, text: `${one.id} could not lead: ${one.why}` });
  }
  for (const old of before.sequencers) {
    if (!after.sequencers.some((one) => one.id === old.id))
      found.push({ level: 'warn', kind: 'sequencer', subject: old.id, text: `${old.id} is no longer heard of` });
  }
  return found;
}

function holds(before: ClusterView, after: ClusterView): Change[] {
  if (after.answered < after.quorum) return [];
  if (before.hold === null && after.hold !== null)
    return [
      { level: 'warn', kind: 'hold', subject: '', text: `${after.hold.by} holds promotion (${after.hold.reason})` },
    ];
  if (before.hold !== null && after.hold === null)
    return [{ level: 'info', kind: 'hold', subject: '', text: 'promotion is free again' }];
  return [];
}

function verdict(before: ClusterView, after: ClusterView): Change[] {
  if (before.verdict === after.verdict) return [];
  const level = after.verdict === 'OK' ? 'ok' : after.verdict === 'CRIT' ? 'crit' : 'warn';
  return [
    { level, kind: 'verdict', subject: '', text: `verdict ${after.verdict}, was ${before.verdict}: ${after.reason}` },
  ];
}

/** This event is created only once it is known: a leader that was killed did not step down. */
export function steppedDown({ id, epoch }: { id: string; epoch: number }): Change {
  return {
    level: 'info',
    kind: 'leader',
    subject: id,
    text: `${id} stepped down${epoch === 0 ? '' : ` from epoch ${epoch}`} and goes on as a follower`,
  };
}

/** Newest first, bounded. The same change within a minute raises the count instead of filling the list. */
export function addEvents(
  events: readonly WatchEvent[],
  found: readonly Change[],
  now: { at: number; wall: number },
  facts: string[],
): readonly WatchEvent[] {
  let out = events;
  for (const change of found) {
    const twin = out
      .slice(0, 12)
      .find((one) => one.kind === change.kind && one.text === change.text && now.at - one.at < MERGE_MS);
    const event: WatchEvent = { ...change, ...now, seq: (out[0]?.seq ?? 0) + 1, count: (twin?.count ?? 0) + 1, facts };
    out = [event, ...(twin === undefined ? out : out.filter((one) => one !== twin))].slice(0, EVENT_LIMIT);
  }
  return out;
}
