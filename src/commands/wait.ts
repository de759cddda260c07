import { Flags } from '@oclif/core';
import { SeqCommand } from '../cli/command/base-command.js';
import { usageError } from '../cli/support/failure.js';
import type { Result } from '../cli/present/result.js';
import { asDuration } from '../cli/config/settings.js';
import { everyNamed, startCommands, targetFlags } from '../cli/compose/target.js';
import { formatDuration } from '../cli/support/units.js';
import { systemClock } from '../core/nodes/system-clock.js';
import { parseCondition, waitFor } from '../core/report/wait.js';
import { EXIT } from '../core/errors.js';

const CONDITIONS = ['leader', 'height=H', 'follower=ID', 'healthy', 'restart-safe', 'epoch>E'];

export default class Wait extends SeqCommand {
  static override summary = 'Wait until the cluster is as wanted';
  static override description = [
    'leader: somebody leads. height=H: H is committed. follower=ID: that sequencer follows, is ready ' +
      'and at most one block behind. healthy: status is OK. restart-safe: the next node may be ' +
      "restarted. epoch>E: the leader's epoch is above E.",
    'Already true is success. Exits 1 when it is not so at --timeout (10s); nodes that do not answer ' +
      'are waited for like anything else.',
  ].join('\n');
  static override examples = [
    '<%= config.bin %> wait --for leader --timeout 30s',
    '<%= config.bin %> wait --for height=1000',
    '<%= config.bin %> wait --for "epoch>7" && echo moved',
  ];
  static override ownsTimeout = true;
  static override flags = {
    for: Flags.string({ required: true, helpValue: 'CONDITION', description: CONDITIONS.join(' | ') }),
  };
  protected readonly kind = 'wait';

  protected async perform(): Promise<Result> {
    const { flags } = await this.parse(Wait);
    const condition = parseCondition(flags.for);
    if (condition === null)
      throw usageError(
        `--for '${flags.for}' is no condition`,
        CONDITIONS.map((text) => `--for '${text}'`),
      );
    const timeoutMs = (await this.setting('timeout', asDuration, 10_000)).value;
    const cluster = await this.cluster();
    this.step(`waiting for ${flags.for}`);
    const { met, now, waitedMs, view } = await waitFor({
      nodes: everyNamed(cluster),
      limitMs: cluster.nodeTimeoutMs,
      clock: systemClock,
      signal: this.signal,
      timeoutMs,
      target: targetFlags(cluster.settings, cluster.nodes),
      expectedCluster: cluster.settings.cluster,
      ...startCommands(cluster.settings),
      condition,
      onChange: (text) => {
        if (flags.verbose) this.note(text);
      },
    });
    return {
      data: { condition: flags.for, result: met ? 'met' : 'not-met', waitedMs, now, next: met ? [] : view.next },
      next: met ? [] : view.next,
      facts: [
        [met ? 'met' : 'not met', flags.for],
        ['now', now],
        ['waited', formatDuration(waitedMs)],
      ],
      exit: met ? EXIT.ok : EXIT.no,
      meta: { nodesAsked: view.configured, nodesAnswered: view.answered, quorum: view.quorum },
    };
  }
}
