import { SeqCommand } from '../cli/command/base-command.js';
import { commandLine } from '../cli/support/confirm.js';
import { ACT_FLAGS } from '../cli/support/flags.js';
import { operatorOf } from '../cli/support/operator.js';
import { expectationOf } from '../cli/support/expectation.js';
import { resumeResult } from '../cli/present/cluster/hold.js';
import type { Result } from '../cli/present/result.js';
import { targetFlags } from '../cli/compose/target.js';
import { resumePromotion } from '../core/operate/hold.js';
import { systemClock } from '../core/nodes/system-clock.js';

export default class Resume extends SeqCommand {
  static override summary = 'End a hold: sequencers may promote again';
  static override description =
    'Says who held and why. Without a hold there is nothing to do, and that is success. To undo it: seq hold.';
  static override examples = ['<%= config.bin %> resume -c lab'];
  static override flags = {
    'dry-run': ACT_FLAGS['dry-run'],
    reason: ACT_FLAGS.reason,
    'expect-leader': ACT_FLAGS['expect-leader'],
    'expect-epoch': ACT_FLAGS['expect-epoch'],
  };
  protected readonly kind = 'resume';

  protected async perform(): Promise<Result> {
    const { flags } = await this.parse(Resume);
    const cluster = await this.cluster();
    const done = await resumePromotion({
      nodes: cluster.nodes,
      limitMs: cluster.nodeTimeoutMs,
      clock: systemClock,
      target: targetFlags(cluster.settings, cluster.nodes),
      expectedCluster: cluster.identity.cluster,
      operator: operatorOf(this.id ?? '', this.argv),
      reason: flags.reason ?? '',
      expect: expectationOf(flags),
      dryRun: Boolean(flags['dry-run']),
      changing: () => this.changing(),
      step: (doing) => this.step(doing),
    });
    return resumeResult(done, Boolean(flags['dry-run']), commandLine(this.id ?? '', this.argv));
  }
}
