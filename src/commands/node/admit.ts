import { SeqCommand } from '../../cli/base-command.js';
import type { Result } from '../../cli/present/result.js';
import { asDuration } from '../../cli/settings.js';
import { targetFlags } from '../../cli/target.js';
import { awaitAdmission } from '../../core/engine/await-admission.js';
import { systemClock } from '../../core/engine/system.js';

export default class NodeAdmit extends SeqCommand {
  static override summary = 'Wait until nodes that lost their memory are admitted again, or say what stands in the way';
  static override description = [
    'The leader admits such a node by itself: it sets the old stream aside, fills it again, proves on a quorum of the others that it still leads, and lets it count from then on. Nothing has to be asked of it.',
    'This command follows it to its end (--timeout, 10s) and succeeds when every node named by --on counts again. It changes nothing, so it asks nothing.',
  ].join('\n');
  static override examples = ['<%= config.bin %> node admit --on r2', '<%= config.bin %> node admit -c prod --timeout 2m'];
  static override deadline = false;
  protected readonly kind = 'node.admit';

  protected async perform(): Promise<Result> {
    await this.parse(NodeAdmit);
    const limitMs = (await this.setting('timeout', asDuration, 10_000)).value;
    const cluster = await this.cluster();
    const { nodes, leader, margin } = await awaitAdmission({
      nodes: cluster.nodes, wanted: cluster.asked.map((node) => node.id), callMs: cluster.nodeTimeoutMs, limitMs, clock: systemClock, signal: this.signal,
      expectedCluster: cluster.identity.cluster, target: targetFlags(cluster.settings, cluster.nodes), step: (doing) => this.step(doing),
    });
    return {
      data: { nodes, leader, margin },
      facts: [['admitted', nodes.map((node) => node.id).join(', ')], ['leader', leader], ['margin', margin]],
      tables: [{ columns: [{ key: 'node' }, { key: 'before' }, { key: 'waitedMs', label: 'WAITED MS', align: 'right' }, { key: 'head', align: 'right' }], rows: nodes.map((node) => ({ node: node.id, before: node.before, waitedMs: node.waitedMs, head: node.head })) }],
      next: [],
    };
  }
}
