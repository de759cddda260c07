// Hold and resume → Result. Pure. The names in `data` are a contract (schemas/hold.json, schemas/resume.json).
import type { HoldDone } from '../../../core/operate/hold.js';
import { seconds } from './cluster-view.js';
import type { Result } from '../result.js';

export function holdResult(done: HoldDone, dryRun: boolean, target: string, command: string, forMs: number): Result {
  const { before, after, leader, nodes, warnings } = done;
  const undo = `seq resume${target === '' ? '' : ` ${target}`}`;
  return {
    data: { hold: after, replaced: before, leader, forMs, nodes, dryRun },
    warnings,
    facts: [
      dryRun
        ? ['would hold', `promotion for ${seconds(forMs)}`]
        : [
            'hold',
            after === null
              ? 'not there any more'
              : `by ${after.by} for ${seconds(after.ttlMs)}, on ${after.nodes} nodes (${after.reason})`,
          ],
      ...(before === null ? [] : [['replaces', `hold by ${before.by} (${before.reason})`] as [string, string]]),
      [
        'meanwhile',
        leader === null
          ? 'nobody leads, and nobody can begin to'
          : `${leader} goes on leading; if it fails, nobody takes over`,
      ],
    ],
    next: [dryRun ? command : undo],
  };
}

export function resumeResult(done: HoldDone, dryRun: boolean, command: string): Result {
  const { before, after, leader, nodes, warnings } = done;
  return {
    data: { released: before, hold: after, leader, nodes, dryRun },
    warnings,
    facts: [
      [
        dryRun ? 'would end' : 'hold',
        before === null
          ? 'there was none'
          : dryRun
            ? `the hold by ${before.by} (${before.reason})`
            : after === null
              ? `ended (was by ${before.by}: ${before.reason})`
              : `set again by ${after.by}`,
      ],
    ],
    next: dryRun ? [command] : [],
  };
}
