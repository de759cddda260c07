import { Flags } from '@oclif/core';
import { ChangeCommand } from '../cli/command/change-command.js';
import { ACT_FLAGS } from '../cli/support/flags.js';
import { freedLocksResult, freeLocksEffect, stepdownEffect, stepdownResult } from '../cli/present/cluster/stepdown.js';
import type { Result } from '../cli/present/result.js';
import { asDuration } from '../cli/config/settings.js';
import { startCommands } from '../cli/compose/target.js';
import { freeLocks } from '../core/operate/free-locks.js';
import { stepDown } from '../core/operate/stepdown.js';

export default class Stepdown extends ChangeCommand {
  static override summary = 'Hand leadership over: ask the leader to step down, wait until a successor has committed';
  static override description = [
    'Refuses a target that is unknown or not ready, by name. Succeeds only when a successor has ' +
      'committed the next height under a higher epoch, read by quorum; the gap is measured.',
    '--timeout (10s) is for the hand-over itself; the time for the answer to the question does not count.',
    'With --revoke the leader is not asked: its lock is deleted, only if it does not write and only ' +
      "as long as it still is that term's. Locks that no lease explains (LOCK_STUCK) are freed first, whoever holds " +
      'them, and also where nobody leads.',
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
  protected kind = 'stepdown';

  protected async perform(): Promise<Result> {
    const { flags } = await this.parse(Stepdown);
    const timeoutMs = (await this.setting('timeout', asDuration, 10_000)).value;
    const cluster = await this.cluster();
    const common = {
      ...this.changeOptions(flags, cluster),
      limitMs: cluster.nodeTimeoutMs,
      startSequencers: startCommands(cluster.settings).startSequencers,
      ...(flags['expect-leader'] === undefined ? {} : { expectLeader: flags['expect-leader'] }),
      ...(flags['expect-epoch'] === undefined ? {} : { expectEpoch: flags['expect-epoch'] }),
    };
    const freed = flags.revoke
      ? await freeLocks({
          ...common,
          confirm: (plan) =>
            this.confirmed(
              {
                level: 'disruptive',
                what: `free the locks of ${[...new Set(plan.locks.map(({ holder }) => holder))].join(', ')}`,
                effect: freeLocksEffect(plan),
              },
              flags,
            ),
        })
      : null;
    if (freed !== null) {
      this.kind = 'stepdown.revoke';
      return freedLocksResult(freed, Boolean(flags['dry-run']), this.asGiven);
    }
    const outcome = await stepDown({
      ...common,
      timeoutMs,
      revoke: Boolean(flags.revoke),
      ...(flags.to === undefined ? {} : { to: flags.to }),
      changing: () => this.changing(),
      confirm: (plan) =>
        this.confirmed(
          {
            level: 'disruptive',
            what: `${flags.revoke ? 'take the lock of' : 'hand over from'} ${plan.leader.id} to ${plan.to}`,
            effect: stepdownEffect(plan),
          },
          flags,
        ),
    });
    return stepdownResult(outcome, this.asGiven);
  }
}
