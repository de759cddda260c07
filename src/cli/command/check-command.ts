// What the checks share: thresholds, formats, and their own exit codes: 0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN. A check
// that cannot judge (bad arguments, no configuration, its own failure) ends with 3, so that a pager never takes it for
// an answer.
import { EXIT, SeqError } from '../../core/errors.js';
import { runChecks } from '../../core/report/check-read.js';
import { CHECKS, type CheckName, type Thresholds } from '../../core/view/check-answer.js';
import { SeqCommand } from './base-command.js';
import { toSeqError, usageError } from '../support/failure.js';
import { countFlag, FUEL_FLAGS, READ_FLAGS, outputFlag, positiveFlag } from '../support/flags.js';
import { Interrupted } from '../support/interrupt.js';
import { writeOut } from '../support/output.js';
import { checkResult, nagiosFailure } from '../present/cluster/check.js';
import type { Result } from '../present/result.js';
import { askOptions } from '../compose/target.js';

export const CHECK_FLAGS = { ...READ_FLAGS, ...FUEL_FLAGS, output: outputFlag(['nagios', 'prometheus']) };
export const MARGIN_FLAGS = {
  'margin-warn': countFlag({ description: 'WARNING when fewer nodes than that may still be lost (1)' }),
  'margin-crit': countFlag({ description: 'CRITICAL when fewer nodes than that may still be lost (0)' }),
};
export const LAG_FLAGS = {
  'lag-warn': positiveFlag({ description: 'WARNING when a node or sequencer is so many blocks behind (10)' }),
  'lag-crit': positiveFlag({ description: 'CRITICAL when it is so many blocks behind (100)' }),
};
export const NODES_FLAGS = {
  'nodes-warn': positiveFlag({ description: 'WARNING when so many nodes are not in order (1)' }),
  'nodes-crit': positiveFlag({
    description: 'CRITICAL when so many nodes are not in order (only when no quorum is left)',
  }),
};
export const DEPTH_FLAGS = {
  depth: positiveFlag({ description: 'heights of the streams to check, from the top (20)' }),
};

type Given = Partial<
  Record<
    'margin-warn' | 'margin-crit' | 'lag-warn' | 'lag-crit' | 'nodes-warn' | 'nodes-crit' | 'depth',
    number | undefined
  >
>;

export abstract class CheckCommand extends SeqCommand {
  static override readsFuel = true;
  protected readonly kind = 'check';
  protected abstract readonly what: CheckName | 'all';

  protected async perform(): Promise<Result> {
    const { flags } = await this.parse(this.ctor as typeof CheckCommand);
    const given = flags as unknown as Given;
    const limits = thresholds(given);
    const fuel = await this.fuel();
    if (fuel !== null) {
      this.step(`checking ${this.what}`);
      const { checkFuel } = await import('../../core/dialect-fuel/check.js');
      const { view, answers } = await checkFuel(
        { ...fuel, signal: this.signal },
        this.what === 'all' ? CHECKS : [this.what],
        limits,
        given.depth ?? 20,
      );
      return checkResult(this.what, { ...view, cluster: fuel.leaseKey }, answers);
    }
    const cluster = await this.cluster();
    this.step(`checking ${this.what}`);
    const { view, answers } = await runChecks({
      ...askOptions(cluster),
      strangers: cluster.strangers.map(({ port }) => port),
      signal: this.signal,
      checks: this.what === 'all' ? CHECKS : [this.what],
      limits,
      depth: given.depth ?? 20,
    });
    return checkResult(this.what, view, answers);
  }

  override async catch(thrown: Error & { exitCode?: number }): Promise<void> {
    if (thrown instanceof Interrupted) return super.catch(thrown);
    const error = toSeqError(thrown, {
      step: `checking ${this.what}`,
      changed: 'nothing',
      changedNodes: [],
      command: `check ${this.what}`,
    });
    if (error.exit > 128) return super.catch(error);
    if (this.argv.includes('nagios') || this.argv.includes('-onagios') || this.argv.includes('--output=nagios')) {
      process.exitCode = EXIT.unknown;
      return writeOut(nagiosFailure(this.what, `${error.message} (${error.why})`)).catch(() => undefined);
    }
    return super.catch(
      new SeqError({
        code: error.code,
        exit: EXIT.unknown,
        message: error.message,
        why: error.why,
        changed: 'nothing',
        next: error.next,
        retryable: error.retryable,
        cause: error,
      }),
    );
  }
}

function thresholds(given: Given): Thresholds {
  const limits = {
    marginWarn: given['margin-warn'] ?? 1,
    marginCrit: given['margin-crit'] ?? 0,
    lagWarn: given['lag-warn'] ?? 10,
    lagCrit: given['lag-crit'] ?? Math.max(100, given['lag-warn'] ?? 0),
    nodesWarn: given['nodes-warn'] ?? 1,
    nodesCrit: given['nodes-crit'] ?? Number.MAX_SAFE_INTEGER,
  };
  if (limits.lagWarn > limits.lagCrit)
    throw usageError(`--lag-warn ${limits.lagWarn} is above --lag-crit ${limits.lagCrit}`, [
      'a warning comes before it is critical',
    ]);
  if (limits.nodesWarn > limits.nodesCrit)
    throw usageError(`--nodes-warn ${limits.nodesWarn} is above --nodes-crit ${limits.nodesCrit}`, [
      'a warning comes before it is critical',
    ]);
  if (limits.marginCrit > limits.marginWarn)
    throw usageError(`--margin-crit ${limits.marginCrit} is above --margin-warn ${limits.marginWarn}`, [
      'a warning comes before it is critical',
    ]);
  return limits;
}
