import { Flags } from '@oclif/core';
import { SeqCommand } from '../cli/command/base-command.js';
import { commandLine } from '../cli/support/confirm.js';
import { usageError } from '../cli/support/failure.js';
import { ACT_FLAGS, durationFlag } from '../cli/support/flags.js';
import { operatorOf } from '../cli/support/operator.js';
import { expectationOf } from '../cli/support/expectation.js';
import { holdResult } from '../cli/present/cluster/hold.js';
import type { Result } from '../cli/present/result.js';
import { targetFlags } from '../cli/compose/target.js';
import { holdPromotion } from '../core/operate/hold.js';
import { systemClock } from '../core/nodes/system-clock.js';

export default class Hold extends SeqCommand {
  static override summary = 'Let nobody promote for a while (maintenance, flapping)';
  static override description =
    'A leader in office goes on; when it fails, nobody takes over until the hold ends. It ends by ' +
    'itself after --for, or with seq resume. Repeated, it starts the time anew.';
  static override examples = [
    '<%= config.bin %> hold --for 10m --reason "moving r2"',
    '<%= config.bin %> hold --for 1h --reason "flapping, under investigation" --expect-leader seq-a',
  ];
  static override flags = {
    'dry-run': ACT_FLAGS['dry-run'],
    'expect-leader': ACT_FLAGS['expect-leader'],
    'expect-epoch': ACT_FLAGS['expect-epoch'],
    for: durationFlag({ required: true, description: 'how long at most' }),
    reason: Flags.string({
      required: true,
      helpGroup: 'CHANGE',
      helpValue: 'TEXT',
      description: 'why, for everybody who reads the status',
    }),
  };
  protected readonly kind = 'hold';

  protected async perform(): Promise<Result> {
    const { flags } = await this.parse(Hold);
    if (flags.for === 0) throw usageError('--for 0 holds nothing', ['seq resume ends a hold']);
    const cluster = await this.cluster();
    const target = targetFlags(cluster.settings, cluster.nodes);
    const done = await holdPromotion({
      nodes: cluster.nodes,
      limitMs: cluster.nodeTimeoutMs,
      clock: systemClock,
      target,
      expectedCluster: cluster.identity.cluster,
      operator: operatorOf(this.id ?? '', this.argv),
      reason: flags.reason,
      forMs: flags.for,
      expect: expectationOf(flags),
      dryRun: Boolean(flags['dry-run']),
      changing: () => this.changing(),
      step: (doing) => this.step(doing),
    });
    return holdResult(done, Boolean(flags['dry-run']), target, commandLine(this.id ?? '', this.argv), flags.for);
  }
}
