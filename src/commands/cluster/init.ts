import { Flags } from '@oclif/core';
import { SeqCommand } from '../../cli/command/base-command.js';
import { marginText } from '../../cli/present/cluster/cluster-view.js';
import type { Result } from '../../cli/present/result.js';
import { agreedGiven, firstSettings } from '../../cli/compose/agreed-settings.js';
import { setting } from '../../cli/config/settings.js';
import { durationFlag, positiveFlag, sizeFlag } from '../../cli/support/flags.js';
import { targetFlags } from '../../cli/compose/target.js';
import { bootstrap } from '../../core/operate/bootstrap.js';
import { systemClock, systemRandom } from '../../core/nodes/system-clock.js';

export default class ClusterInit extends SeqCommand {
  static override summary = 'Make empty Redis servers one cluster';
  static override description = [
    'Every node must answer and be empty (no key of ours in this lane), or nothing is done. Two ' +
      'phases under one nonce; broken off, the same command finishes it.',
    "The de-duplication window and the largest block are the cluster's from then on: every sequencer takes them, and " +
      'one that is told others is refused.',
    'So is the producer of the lane. Without --producer, the first leader decides it.',
    'It asks nothing: on empty nodes there is nothing to lose, and on any other it refuses.',
  ].join('\n');
  static override examples = [
    '<%= config.bin %> cluster init --node r1=redis://10.0.0.1 --node r2=redis://10.0.0.2 --node r3=redis://10.0.0.3',
    '<%= config.bin %> cluster init -c prod --dry-run',
  ];
  static override flags = {
    'dry-run': Flags.boolean({ char: 'n', helpGroup: 'CHANGE', description: 'check everything, write nothing' }),
    'dedup-window': durationFlag({ description: 'how long a key is remembered (24h)' }),
    'dedup-items': positiveFlag({ description: 'keys remembered at most (1000000)' }),
    'max-block-bytes': sizeFlag({ description: 'largest payload of a block (1MiB; at most 16MiB)' }),
    producer: Flags.string({
      helpValue: 'batch|exec',
      options: ['batch', 'exec'],
      description: 'who makes its blocks (default: what the first leader is)',
    }),
  };
  protected readonly kind = 'cluster.init';

  protected async perform(): Promise<Result> {
    const { flags } = await this.parse(ClusterInit);
    const around = await this.surroundings();
    const agreed = agreedGiven((flag, parse, fallback) => setting(around.sources, flag, parse, fallback));
    const found = await this.cluster({ members: 'as-listed' });
    const cluster = found.identity.cluster || `${systemRandom.hex(8)}.1`;
    const nodes = await found.reopen(cluster);
    this.onClose(async () => {
      await Promise.all(nodes.map((node) => node.close()));
    });
    this.step('probing every node');
    const target = targetFlags(found.settings, nodes);
    const made = await bootstrap({
      nodes,
      cluster,
      limitMs: found.nodeTimeoutMs,
      clock: systemClock,
      random: systemRandom,
      target,
      dryRun: flags['dry-run'],
      settings: firstSettings(agreed),
      changing: () => {
        this.changing();
        this.step('writing to every node');
      },
    });
    const what = {
      new: 'initialised',
      finished: 'finished a bootstrap that was broken off:',
      planned: 'would initialise',
    }[made.how];
    return {
      data: { ...made, dryRun: made.how === 'planned' },
      facts: [
        [
          made.how === 'planned' ? 'would initialise' : 'initialised',
          `cluster ${made.cluster} on ${made.nodes.length} ` +
            `nodes${made.how === 'finished' ? ` (${what} same nonce)` : ''}`,
        ],
        ['quorum', `${made.quorum} of ${made.nodes.length}`],
        ['margin', marginText(made.margin, made.quorum)],
      ],
      tables: [
        {
          columns: [{ key: 'node' }, { key: 'before' }, { key: 'url' }, { key: 'version' }, { key: 'run', wide: true }],
          rows: made.nodes.map((n) => ({ node: n.id, before: n.before, url: n.url, version: n.version, run: n.runId })),
        },
      ],
      warnings: made.warnings,
      next: [
        made.how === 'planned'
          ? `seq cluster init${target === '' ? '' : ` ${target}`}`
          : `seq run --id seq-a --store DIR${target === '' ? '' : ` ${target}`}`,
      ],
      meta: { nodesAsked: made.nodes.length, nodesAnswered: made.nodes.length, quorum: made.quorum },
    };
  }
}
