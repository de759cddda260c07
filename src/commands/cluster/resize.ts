import { Flags } from '@oclif/core';
import { ChangeCommand } from '../../cli/command/change-command.js';
import { giveLanes } from '../../cli/compose/lanes.js';
import { openNode, type Cluster } from '../../cli/compose/open-cluster.js';
import { targetFlags } from '../../cli/compose/target.js';
import { asDuration } from '../../cli/config/settings.js';
import { changeEffect, changeText, membersResult } from '../../cli/present/cluster/members.js';
import type { Result } from '../../cli/present/result.js';
import { usageError } from '../../cli/support/failure.js';
import { ACT_FLAGS } from '../../cli/support/flags.js';
import { parseNodeFlag } from '../../cli/support/node-url.js';
import { changeMembers, type WantedChange } from '../../core/operate/change-members.js';

export default class ClusterResize extends ChangeCommand {
  static override summary = 'Add one node to the cluster, or remove one, while it runs';
  static override description = [
    'A new server is filled and admitted first, and counts for nothing meanwhile. Then a quorum of the present ' +
      'members and a quorum of the next members note the change, between two blocks. Sequencers that run follow by ' +
      'themselves. A removed server is retired.',
    'One node at a time; refused when it would leave fewer than a quorum. A change that was broken off goes on with ' +
      'the same command. User, password and certificates of a new server are those of the others. Each lane is ' +
      'changed by itself.',
  ].join('\n');
  static override examples = [
    '<%= config.bin %> cluster resize --add r4=redis://10.0.0.4:6379 --dry-run',
    '<%= config.bin %> cluster resize --remove r4 --yes --reason "back to three"',
  ];
  static override ownsTimeout = true;
  static override flags = {
    ...ACT_FLAGS,
    add: Flags.string({ helpValue: 'ID=URL', description: 'empty server that becomes a node', exclusive: ['remove'] }),
    remove: Flags.string({ helpValue: 'ID', description: 'node that is to count no more' }),
  };
  protected readonly kind = 'cluster.resize';

  protected async perform(): Promise<Result> {
    const { flags } = await this.parse(ClusterResize);
    const timeoutMs = (await this.setting('timeout', asDuration, 60_000)).value;
    const cluster = await this.cluster();
    const wanted = await this.wanted(flags.add, flags.remove, cluster);
    const command = this.asGiven;
    const done = await changeMembers({
      ...this.changeOptions(flags, cluster),
      wanted,
      limitMs: Math.max(cluster.nodeTimeoutMs, 300),
      timeoutMs,
      confirm: (plan) =>
        this.confirmed({ level: 'disruptive', what: changeText(plan.change), effect: changeEffect(plan) }, flags),
    });
    const after = new Set(done.plan.after.members);
    const added = wanted.kind === 'add' && !cluster.nodes.some(({ id }) => id === wanted.server.id);
    const nodes = [...cluster.nodes, ...(added ? [wanted.server] : [])].filter(({ id }) => after.has(id));
    if (!flags['dry-run']) await giveLanes(nodes, cluster);
    const around = { command, context: cluster.settings.context, nodes, target: targetFlags(cluster.settings, nodes) };
    return { ...membersResult(done, around), meta: { nodesAnswered: cluster.nodes.length } };
  }

  private async wanted(add: string | undefined, remove: string | undefined, cluster: Cluster): Promise<WantedChange> {
    const known = [...cluster.nodes, ...cluster.strangers.map(({ port }) => port)];
    if (remove !== undefined)
      return { kind: 'remove', id: remove, server: known.find(({ id }) => id === remove) ?? null };
    const { id, url } = add === undefined ? { id: null, url: '' } : parseNodeFlag(add);
    if (id === null || id === undefined)
      throw usageError('--add ID=URL names the server that becomes a node, or --remove ID the node that leaves', [
        'seq cluster resize --add ID=URL --dry-run',
        'seq cluster resize --remove ID --dry-run',
      ]);
    const { identity, addresses } = cluster;
    const { sentinel, ...address } = addresses[0]!;
    const server = await openNode(
      { ...address, id, url, ...(sentinel && url.startsWith('sentinel:') ? { sentinel } : {}) },
      identity,
    );
    this.onClose(() => server.close());
    return { kind: 'add', server };
  }
}
