// What the commands that change a cluster share: how the operator confirms the change, and what the change is told of
// the operator, the reason and the expected leader.
import { systemClock, systemRandom } from '../../core/nodes/system-clock.js';
import type { Cluster } from '../compose/open-cluster.js';
import { askOptions } from '../compose/target.js';
import { commandLine, confirmChange, type Change } from '../support/confirm.js';
import { expectationOf } from '../support/expectation.js';
import { operatorOf } from '../support/operator.js';
import { SeqCommand } from './base-command.js';

/** The values of ACT_FLAGS. */
interface ChangeFlags {
  'dry-run'?: boolean | undefined;
  yes?: boolean | undefined;
  confirm?: string | undefined;
  reason?: string | undefined;
  'expect-leader'?: string | undefined;
  'expect-epoch'?: number | undefined;
}

export abstract class ChangeCommand extends SeqCommand {
  /** The command as it was given. A refusal repeats it with one flag more. */
  protected get asGiven(): string {
    return commandLine(this.id ?? '', this.argv);
  }

  /** Resolves when the operator has agreed, by flag or by answer. Throws otherwise. */
  protected confirmed(change: Change, flags: ChangeFlags): Promise<void> {
    return confirmChange(change, {
      yes: Boolean(flags.yes),
      confirm: flags.confirm,
      mayAsk: this.mayAsk,
      command: this.asGiven,
      signal: this.signal,
      say: (text) => this.note(text),
    });
  }

  /** What every change takes, whichever it is. */
  protected changeOptions(flags: ChangeFlags, cluster: Cluster) {
    return {
      ...askOptions(cluster),
      clock: systemClock,
      random: systemRandom,
      signal: this.signal,
      reason: flags.reason ?? '',
      operator: operatorOf(this.id ?? '', this.argv),
      dryRun: Boolean(flags['dry-run']),
      expect: expectationOf(flags),
      changing: (state: 'unknown' | 'some', changed: string[]) => this.changing(state, changed),
      step: (doing: string) => this.step(doing),
    };
  }
}
