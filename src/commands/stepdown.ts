import { Flags } from '@oclif/core';
import { SeqCommand } from '../cli/command/base-command.js';
import { commandLine, confirmChange } from '../cli/support/confirm.js';
import { ACT_FLAGS } from '../cli/support/flags.js';
import { operatorOf } from '../cli/support/operator.js';
import { stepdownResult, stepdownEffect } from '../cli/present/cluster/stepdown.js';
import type { Result } from '../cli/present/result.js';
import { asDuration } from '../cli/config/settings.js';
import { startCommands, targetFlags } from '../cli/compose/target.js';
import { stepDown } from '../core/operate/stepdown.js';
import { systemClock, systemRandom } from '../core/nodes/system-clock.js';

export default class Stepdown extends SeqCommand {
  static override summary = 'Hand leadership over: ask the leader to step down, wait until a successor has committed';
  static override description = [
    'Refuses a target that is unknown or not ready, by name. Succeeds only when a successor has ' +
      'committed the next height under a higher epoch, read by quorum; the gap is measured.',
    '--timeout (10s) is for the hand-over itself; the time for the answer to the question does not count.',
    'With --revoke the leader is not asked: its lock is deleted, only if it does not write and only ' +
      "as long as it still is that term's.",
  ].join('\n');
  static override examples = [
    '<%= config.bin %> stepdown -c lab',
    '<%= config.bin %> stepdown --to seq-b --yes --reason "kernel update"',
    '<%= config.bin %> stepdown --revoke --expect-leader seq-a --yes',
  ];
  static override ownsTimeout = true;
  static override flags = {
    ...ACT_FLAGS,
    to: Flags.string({ helpValue: 'ID', description: 'the sequencer that shall lead (the readiest one)' }),
    revoke: Flags.boolean({ description: 'delete the lock of a leader that does not answer' }),
  };
  protected readonly kind = 'stepdown';

  protected async perform(): Promise<Result> {
    const { flags } = await this.parse(Stepdown);
    const timeoutMs = (await this.setting('timeout', asDuration, 10_000)).value;
    const cluster = await this.cluster();
    const target = targetFlags(cluster.settings, cluster.nodes);
    const command = commandLine(this.id ?? '', this.argv);
    const outcome = await stepDown({
      nodes: cluster.nodes,
      limitMs: cluster.nodeTimeoutMs,
      timeoutMs,
      clock: systemClock,
      random: systemRandom,
      signal: this.signal,
      target,
      startSequencers: startCommands(cluster.settings).startSequencers,
      expectedCluster: cluster.identity.cluster,
      reason: flags.reason ?? '',
      operator: operatorOf(this.id ?? '', this.argv),
      revoke: Boolean(flags.revoke),
      dryRun: Boolean(flags['dry-run']),
      ...(flags.to === undefined ? {} : { to: flags.to }),
      ...(flags['expect-leader'] === undefined ? {} : { expectLeader: flags['expect-leader'] }),
      ...(flags['expect-epoch'] === undefined ? {} : { expectEpoch: flags['expect-epoch'] }),
      changing: () => this.changing(),
      step: (doing) => this.step(doing),
      confirm: (plan) =>
        confirmChange(
          {
            level: 'disruptive',
            what: `${flags.revoke ? 'take the lock of' : 'hand over from'} ${plan.leader.id} to ${plan.to}`,
            effect: stepdownEffect(plan),
          },
          {
            yes: Boolean(flags.yes),
            confirm: flags.confirm,
            mayAsk: this.mayAsk,
            command,
            signal: this.signal,
            say: (text) => this.note(text),
          },
        ),
    });
    return stepdownResult(outcome, command);
  }
}
