import { Flags } from '@oclif/core';
import { ChangeCommand } from '../../cli/command/change-command.js';
import { agreedGiven } from '../../cli/compose/agreed-settings.js';
import { targetFlags } from '../../cli/compose/target.js';
import { asDuration, setting } from '../../cli/config/settings.js';
import { changeEffect, changeText, membersResult } from '../../cli/present/cluster/members.js';
import type { Result } from '../../cli/present/result.js';
import { usageError } from '../../cli/support/failure.js';
import { ACT_FLAGS, durationFlag, positiveFlag, sizeFlag } from '../../cli/support/flags.js';
import { changeMembers } from '../../core/operate/change-members.js';

export default class ClusterSet extends ChangeCommand {
  static override summary = 'Change the settings that all sequencers share: de-duplication, largest block, producer';
  static override description = [
    'A quorum of the nodes notes the new values, between two blocks. A sequencer takes them when it starts. So start ' +
      'every sequencer again afterwards, one after the other.',
    'A shorter window, or fewer keys, means that an item that is sent again later than that is sequenced twice. A ' +
      'smaller largest block must still hold the largest item that clients send.',
    'A sequencer with another producer than the new one ends by itself.',
  ].join('\n');
  static override examples = ['<%= config.bin %> cluster set --dedup-window 48h --yes'];
  static override ownsTimeout = true;
  static override flags = {
    ...ACT_FLAGS,
    'dedup-window': durationFlag({ description: 'how long a key is remembered' }),
    'dedup-items': positiveFlag({ description: 'keys remembered at most' }),
    'max-block-bytes': sizeFlag({ description: 'largest payload of a block (1KiB to 16MiB)' }),
    producer: Flags.string({
      helpValue: 'batch|exec',
      options: ['batch', 'exec'],
      description: 'who makes the blocks of this lane from now on',
    }),
  };
  protected readonly kind = 'cluster.set';

  protected async perform(): Promise<Result> {
    const { flags } = await this.parse(ClusterSet);
    const timeoutMs = (await this.setting('timeout', asDuration, 60_000)).value;
    const around = await this.surroundings();
    const given = agreedGiven((flag, parse, fallback) => setting(around.sources, flag, parse, fallback));
    const settings = {
      ...(flags['dedup-window'] === undefined ? {} : { dedupMs: given.keepMs.value }),
      ...(flags['dedup-items'] === undefined ? {} : { dedupItems: given.keepItems.value }),
      ...(flags['max-block-bytes'] === undefined ? {} : { maxBlockBytes: given.maxBlockBytes.value }),
      ...(flags.producer === undefined ? {} : { producer: given.producer.value }),
    };
    if (Object.keys(settings).length === 0)
      throw usageError('no setting is given', ['seq cluster set --dedup-window 48h --dry-run']);
    const cluster = await this.cluster();
    const target = targetFlags(cluster.settings, cluster.nodes);
    const command = this.asGiven;
    const done = await changeMembers({
      ...this.changeOptions(flags, cluster),
      wanted: { kind: 'set', settings },
      limitMs: Math.max(cluster.nodeTimeoutMs, 300),
      timeoutMs,
      confirm: (plan) =>
        this.confirmed({ level: 'disruptive', what: changeText(plan.change), effect: changeEffect(plan) }, flags),
    });
    const result = membersResult(done, { command, context: cluster.settings.context, nodes: cluster.nodes, target });
    return { ...result, meta: { nodesAnswered: cluster.nodes.length } };
  }
}
