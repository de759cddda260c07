import { SeqCommand } from '../../cli/command/base-command.js';
import { READ_FLAGS } from '../../cli/support/flags.js';
import { nodeListResult } from '../../cli/present/cluster/cluster-view.js';
import { everyNamed } from '../../cli/compose/target.js';
import type { Result } from '../../cli/present/result.js';
import { inspectCluster } from '../../core/view/inspect.js';
import { refuseNoAnswer } from '../../core/view/no-answer.js';

export default class NodeList extends SeqCommand {
  static override summary = 'List the nodes: address, state, admission, holder, epoch, floor, head, lag';
  static override flags = { ...READ_FLAGS };
  protected readonly kind = 'node.list';

  protected async perform(): Promise<Result> {
    await this.parse(NodeList);
    const cluster = await this.cluster();
    this.step('asking every node');
    const view = await inspectCluster({
      nodes: everyNamed(cluster),
      limitMs: cluster.nodeTimeoutMs,
      clock: cluster.clock,
      known: cluster.views,
      twice: true,
      expectedCluster: cluster.settings.cluster,
    });
    refuseNoAnswer(view);
    return nodeListResult(view, new Set(cluster.settings.on ?? view.nodes.map(({ id }) => id)));
  }
}
