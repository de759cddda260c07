import { Flags } from '@oclif/core';
import { ChangeCommand } from '../../cli/command/change-command.js';
import { giveLanes } from '../../cli/compose/lanes.js';
import { openNode } from '../../cli/compose/open-cluster.js';
import { usageError } from '../../cli/support/failure.js';
import { ACT_FLAGS } from '../../cli/support/flags.js';
import { parseNodeFlag } from '../../cli/support/node-url.js';
import { replaceEffect, replaceResult } from '../../cli/present/cluster/replace.js';
import type { Result } from '../../cli/present/result.js';
import { asDuration } from '../../cli/config/settings.js';
import { replaceNode } from '../../core/operate/replace-node.js';

export default class NodeReplace extends ChangeCommand {
  static override summary = 'Put another, empty server in the place of a node, and wait until it counts';
  static override description = [
    'Checks the new server, retires the old one for good (two servers must never count as one node), ' +
      'tells the leader the new address, which notes it on a quorum of the other nodes, fills the new ' +
      'server and admits it, and shows the margin before and after. Running sequencers learn the new ' +
      'address; give it to each of them before its next start.',
    'One node at a time; refused when it would leave fewer than a quorum. A broken-off replacement ' +
      'goes on with the same command. User, password and certificates are those of the old node. Each ' +
      'lane is changed by itself.',
  ].join('\n');
  static override examples = [
    '<%= config.bin %> node replace --on r3 --to redis://10.0.0.9:6379 --dry-run',
    '<%= config.bin %> node replace --on r3 --to redis://10.0.0.9:6379 --confirm 1a2b3c4d --reason "new hardware"',
  ];
  static override ownsTimeout = true;
  static override flags = {
    ...ACT_FLAGS,
    to: Flags.string({ required: true, helpValue: 'URL', description: 'address of the new server' }),
    'old-server-is-gone': Flags.boolean({
      helpGroup: 'CHANGE',
      description: 'the old server does not answer, and has been stopped for good',
    }),
  };
  protected readonly kind = 'node.replace';

  protected async perform(): Promise<Result> {
    const { flags } = await this.parse(NodeReplace);
    const timeoutMs = (await this.setting('timeout', asDuration, 60_000)).value;
    const cluster = await this.cluster();
    const [asked, more] = cluster.asked;
    if (flags.on === undefined || !asked || more)
      throw usageError('--on names the one node to replace', ['seq node list', 'seq node replace --on ID --to URL']);
    const { url } = parseNodeFlag(flags.to);
    const { sentinel, ...address } = cluster.addresses[cluster.nodes.indexOf(asked)]!;
    const successor = await openNode(
      { ...address, url, ...(sentinel && url.startsWith('sentinel:') ? { sentinel } : {}) },
      cluster.identity,
    );
    this.onClose(() => successor.close());
    const command = this.asGiven;
    const done = await replaceNode({
      ...this.changeOptions(flags, cluster),
      id: asked.id,
      successor,
      oldIsGone: Boolean(flags['old-server-is-gone']),
      limitMs: Math.max(cluster.nodeTimeoutMs, 300),
      timeoutMs,
      confirm: (plan) =>
        this.confirmed(
          {
            level: 'decides-data',
            what: `replace ${plan.id} at ${plan.from} by ${plan.to}`,
            effect: replaceEffect(plan),
            digest: plan.digest,
          },
          flags,
        ),
    });
    if (done.admitted !== null)
      await giveLanes(
        cluster.nodes.map((node) => (node.id === asked.id ? successor : node)),
        cluster,
      );
    return { ...replaceResult(done, command, cluster.settings.context), meta: { nodesAnswered: cluster.nodes.length } };
  }
}
