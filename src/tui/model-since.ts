// What changed since the operator marked a moment with `m`: the facts that are others now, and the events since. And
// whether a verdict is worse than another one, for `--bell`. Pure.
import type { ClusterView } from '../core/view/cluster-view.js';
import { EVENT_LIMIT, type WatchEvent } from './model-events.js';
import type { Data } from './model-state.js';

interface Difference {
  what: string;
  was: string;
  is: string;
}

interface Since {
  forMs: number;
  /** The facts that are others now. */
  facts: Difference[];
  /** Newest first. */
  events: WatchEvent[];
  /** Events between the oldest one that is kept and the mark are not known any more. */
  forgotten: boolean;
}

export function since(mark: Data, now: Data): Since {
  const last = mark.events[0]?.seq ?? 0;
  const events = now.events.filter((event) => event.seq > last);
  const [were, are] = [factsOf(mark), factsOf(now)];
  const names = [...new Set([...were.keys(), ...are.keys()])];
  return {
    forMs: now.at - mark.at,
    facts: names.flatMap((what) => {
      const [was, is] = [were.get(what) ?? 'not there', are.get(what) ?? 'not there'];
      return was === is ? [] : [{ what, was, is }];
    }),
    events,
    forgotten: now.events.length >= EVENT_LIMIT && (now.events.at(-1)?.seq ?? 0) > last + 1,
  };
}

/** Facts that stand for more than a moment: no round trips, no ages, no lag. */
function factsOf(data: Data): Map<string, string> {
  const { view } = data;
  if (view === null) return new Map([['verdict', 'unknown']]);
  return new Map([
    ['verdict', `${view.verdict}${view.reasonCode === view.verdict ? '' : ` ${view.reasonCode}`}`],
    ['leader', leaderOf(view)],
    ['may lose', view.margin < 0 ? `${-view.margin} missing` : String(view.margin)],
    ['committed', data.committed === null ? 'unknown' : String(data.committed.height)],
    ['cluster', view.cluster],
    ['elections', String(data.elections)],
    ['hold', view.hold === null ? 'none' : `by ${view.hold.by}`],
    ...view.nodes.map((node): [string, string] => [`node ${node.id}`, node.state]),
    ...view.sequencers.map((one): [string, string] => [
      `seq ${one.id}`,
      `${one.id === view.leader?.id ? 'LEADER' : one.role}, pid ${one.pid}`,
    ]),
  ]);
}

function leaderOf({ leader, leaderKnown }: ClusterView): string {
  return leader === null ? (leaderKnown ? 'nobody' : 'unknown') : `${leader.id}, epoch ${leader.epoch}`;
}

const SEVERITY = ['OK', 'WARN', 'UNKNOWN', 'CRIT'];

/** False while one of them is not known yet: a watch that begins rings nothing. */
export function isWorse(before: string, after: string): boolean {
  const [was, is] = [SEVERITY.indexOf(before), SEVERITY.indexOf(after)];
  return was >= 0 && is > was;
}
