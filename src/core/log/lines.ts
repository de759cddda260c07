// Turns one SeqEvent into one log line: level, sentence, fields. State changes are info. What needs a person is warn or
// error. What happens for every block is debug.
import type { SeqEvent } from '../events.js';
import { sameness } from './collapse.js';

export type Level = 'debug' | 'info' | 'warn' | 'error' | 'fatal';

export interface LogLine {
  level: Level;
  message: string;
  fields: Record<string, unknown>;
  /** Set when repeats of this line may be collapsed. */
  same?: string;
}

/** End codes of a process that was asked to stop. */
const WANTED = /^(OK|SIGTERM|SIGINT|SIGHUP|STEPDOWN|REQUESTED|HANDOVER|STOPPED)$/;

/** What a node says to a sequencer that loses an election, or wins it before this node has answered. */
const ELECTION = /^(LOCK_HELD\b|its promotion was acknowledged after )/;

export function lineOf(event: SeqEvent): LogLine {
  const { type, ...facts } = event;
  const fields = { event: type, ...facts };
  switch (event.type) {
    case 'started':
      return {
        level: 'info',
        message:
          `started as ${event.id} in ${event.cluster}${event.lane ? ` lane ${event.lane}` : ''} at height ` +
          `${event.height}`,
        // The id stands on every line.
        fields: { event: type, cluster: event.cluster, lane: event.lane, height: event.height },
      };
    case 'role':
      return {
        level: 'info',
        message: `${event.from} → ${event.to}${event.epoch > 0 ? ` in epoch ${event.epoch}` : ''}: ${event.reason}`,
        fields,
      };
    case 'promotion-failed':
      return {
        level: 'info',
        message: `promotion failed: ${event.reason}`,
        fields,
        same: sameness(type, event.code, event.reason),
      };
    case 'leadership-ended':
      return {
        level: WANTED.test(event.code) ? 'info' : 'warn',
        message: `term of epoch ${event.epoch} ended after ${Math.round(event.heldMs)} ms: ${event.reason}`,
        fields,
      };
    case 'term-renewed':
      return { level: 'info', message: `term renewed, epoch ${event.from} → ${event.to}: ${event.reason}`, fields };
    case 'proposed':
      return { level: 'debug', message: `proposed ${event.height} with ${event.items} items`, fields };
    case 'committed':
      return { level: 'debug', message: `committed ${event.height}`, fields };
    case 'stored':
      return { level: 'debug', message: `stored ${event.height}`, fields };
    case 'store':
      return {
        level: event.state === 'damaged' ? 'error' : 'info',
        message: `block ${event.height} of the store is ${event.state}: ${event.why}`,
        fields,
        same: sameness(type, String(event.height), event.state, event.why),
      };
    case 'node':
      return {
        level: event.why === '' || ELECTION.test(event.why) ? 'info' : 'warn',
        message: `node ${event.node} is ${event.state}${event.why ? `: ${event.why}` : ''}`,
        fields,
        same: sameness(type, event.node, event.state, event.why),
      };
    case 'backfill':
      return {
        level: 'info',
        message: `node ${event.node} got blocks ${event.from} to ${event.to} of ${event.head}`,
        fields,
        same: sameness(type, event.node),
      };
    case 'alarm':
      return {
        level: 'error',
        message: `ALARM ${event.code}${event.node ? ` on ${event.node}` : ''}: ${event.reason}`,
        fields,
        same: sameness(type, event.code, event.node ?? '', event.reason),
      };
    case 'window':
      return {
        level: event.to < event.from ? 'warn' : 'info',
        message: `the nodes keep ${event.to} blocks from now on, not ${event.from} (of ${event.of}): ${event.why}`,
        fields,
        same: sameness(type, event.to < event.from ? 'less' : 'more'),
      };
    case 'producer':
      return {
        level: event.state === 'failed' ? 'error' : 'info',
        message: `producer ${event.state}${event.why ? `: ${event.why}` : ''}`,
        fields,
        same: sameness(type, event.state, event.why),
      };
    case 'request':
      return { level: 'info', message: `request ${event.kind} by ${event.by}: ${event.outcome}`, fields };
    case 'fatal-error':
      return { level: 'fatal', message: `fatal error: ${event.reason} (${event.code})`, fields };
    case 'stopped':
      return {
        level: WANTED.test(event.code) ? 'info' : 'fatal',
        message: `stopped: ${event.reason} (${event.code})`,
        fields,
      };
  }
}
