import { Flags } from '@oclif/core';
import { ChangeCommand } from '../../cli/command/change-command.js';
import { ACT_FLAGS } from '../../cli/support/flags.js';
import { usageError } from '../../cli/support/failure.js';
import { operatorOf } from '../../cli/support/operator.js';
import type { Result } from '../../cli/present/result.js';
import { asDuration } from '../../cli/config/settings.js';
import { askOptions } from '../../cli/compose/target.js';
import { askReplacement } from '../../core/operate/readmit-damaged.js';
import { awaitAdmission } from '../../core/operate/await-admission.js';

export default class NodeAdmit extends ChangeCommand {
  static override summary = 'Wait until nodes that lost their memory are admitted again, or say what stands in the way';
  static override description = [
    'The leader admits such a node by itself: it sets the old stream aside, fills it again, proves ' +
      'on a quorum of the others that it still leads, and lets it count from then on. Nothing has to ' +
      'be asked of it.',
    'This command follows it to its end (--timeout, 10s) and succeeds when every node named by --on ' +
      'counts again. It changes nothing, so it asks nothing.',
    'A node that `stream verify` finds damaged counts itself intact. --damaged asks the leader to ' +
      'set its memory aside and to admit it anew, which it does while a quorum of others can do ' +
      'without it.',
  ].join('\n');
  static override examples = [
    '<%= config.bin %> node admit --on r2',
    '<%= config.bin %> node admit -c prod --timeout 2m',
    '<%= config.bin %> node admit --on r2 --damaged --yes --reason "stream verify"',
  ];
  static override ownsTimeout = true;
  static override flags = {
    ...ACT_FLAGS,
    damaged: Flags.boolean({
      description: 'first have the leader set aside what the nodes of --on hold, although they count',
    }),
  };
  protected readonly kind = 'node.admit';

  protected async perform(): Promise<Result> {
    const { flags } = await this.parse(NodeAdmit);
    const limitMs = (await this.setting('timeout', asDuration, 10_000)).value;
    const cluster = await this.cluster();
    if (flags.damaged) {
      if (flags.on === undefined)
        throw usageError('--damaged needs --on: what is set aside is named, node by node', [
          'seq stream verify',
          'seq node admit --damaged --on ID',
        ]);
      const plan = await askReplacement({
        ...this.changeOptions(flags, cluster),
        wanted: cluster.asked.map((node) => node.id),
        why: flags.reason ?? 'said to be damaged',
        by: operatorOf(this.id ?? '', this.argv).by,
        limitMs: cluster.nodeTimeoutMs,
        timeoutMs: limitMs,
        changing: () => this.changing(),
        confirm: ({ nodes, margin }) =>
          this.confirmed(
            {
              level: 'disruptive',
              what: `set aside what ${nodes.map((node) => node.id).join(', ')} holds`,
              effect: [
                `  margin ${margin} → ${margin - 1} until it is admitted anew`,
                '  its stream is kept for a day under seq:block:orphans:<nonce>',
              ],
            },
            flags,
          ),
      });
      if (flags['dry-run'])
        return {
          data: { nodes: [], leader: plan.leader, margin: plan.margin },
          facts: [
            ['would set aside', plan.nodes.map((node) => `${node.id} (memory ${node.incarnation})`).join(', ')],
            ['leader', plan.leader],
            ['margin', `${plan.margin}, ${plan.margin - 1} meanwhile`],
          ],
          next: [`${this.asGiven} --yes`],
        };
    }
    const { nodes, leader, margin } = await awaitAdmission({
      ...askOptions(cluster),
      wanted: cluster.asked.map((node) => node.id),
      callMs: cluster.nodeTimeoutMs,
      limitMs,
      signal: this.signal,
      step: (doing) => this.step(doing),
    });
    return {
      data: { nodes, leader, margin },
      facts: [
        ['admitted', nodes.map((node) => node.id).join(', ')],
        ['leader', leader],
        ['margin', margin],
      ],
      tables: [
        {
          columns: [
            { key: 'node' },
            { key: 'before' },
            { key: 'waitedMs', label: 'WAITED MS', align: 'right' },
            { key: 'head', align: 'right' },
          ],
          rows: nodes.map((node) => ({ node: node.id, before: node.before, waitedMs: node.waitedMs, head: node.head })),
        },
      ],
      next: [],
    };
  }
}
