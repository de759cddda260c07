import { Flags } from '@oclif/core';
import { SeqCommand } from '../../cli/command/base-command.js';
import { usageError } from '../../cli/support/failure.js';
import { RANGE_FLAGS } from '../../cli/support/flags.js';
import { secretsOf } from '../../cli/support/operator.js';
import { exportResult } from '../../cli/present/bundle.js';
import type { Result } from '../../cli/present/result.js';
import { targetFlags } from '../../cli/compose/target.js';
import { exportBundle } from '../../core/bundle/export.js';
import { FORMAT, VERSION } from '../../core/bundle/format.js';
import { BundleWriter } from '../../core/bundle/writer.js';

export default class StreamExport extends SeqCommand {
  static override summary =
    'Write everything that a read verb needs into one file, to be read without the nodes (--from-bundle FILE)';
  static override description = [
    "Facts of every node, its stream, its orphans, the operators' changes, what sequencers say of " +
      'themselves, and what `seq doctor` reads. Passwords are taken out.',
    'Without --from and --to it is all that the nodes retain; the newest 64 heights are in it in any ' +
      'case. The file holds the items in the blocks, unless --no-payloads: hashes can be proven all ' +
      'the same.',
  ].join('\n');
  static override examples = [
    '<%= config.bin %> stream export -c lab',
    '<%= config.bin %> stream export --from 1000 --to 1200 --file incident.bundle',
    '<%= config.bin %> stream verify --from-bundle incident.bundle',
  ];
  static override deadline = false;
  static override graceMs = 1000;
  static override flags = {
    file: Flags.string({
      helpValue: 'FILE',
      description: 'where to write it (seq-CLUSTER-TIME.bundle here); never over a file that is there',
    }),
    ...RANGE_FLAGS,
    'no-payloads': Flags.boolean({ description: 'leave the content of the blocks out' }),
  };
  protected readonly kind = 'stream.export';

  protected async perform(): Promise<Result> {
    const { flags } = await this.parse(StreamExport);
    if (flags.from !== undefined && flags.to !== undefined && flags.to < flags.from)
      throw usageError(`--to ${flags.to} is below --from ${flags.from}`, ['give the lower height as --from']);
    const cluster = await this.cluster();
    const { settings, identity, nodes, nodeTimeoutMs, clock } = cluster;
    const madeAtMs = clock.wall();
    const stamp = new Date(madeAtMs).toISOString().replace(/[:.]/g, '-');
    const path = flags.file ?? `seq-${identity.cluster === '' ? 'nodes' : identity.cluster}-${stamp}.bundle`;
    const payloads = !flags['no-payloads'];
    const writer = await BundleWriter.create(
      path,
      {
        format: FORMAT,
        version: VERSION,
        by: `seqctl/${this.config.version}`,
        madeAtMs,
        cluster: identity.cluster,
        expectedCluster: settings.cluster,
        lane: settings.lane,
        context: settings.context,
        nodesFrom: settings.nodesFrom,
        nodeTimeoutMs: settings.nodeTimeoutMs,
        nodes: nodes.map(({ id, url }) => ({ id, url })),
        payloads,
      },
      secretsOf(cluster),
    );
    let written: { bytes: number; sha256: string } | null = null;
    try {
      this.step(`reading every node into ${path}`);
      const progress = this.longReading('read');
      const exported = await exportBundle({
        nodes,
        limitMs: nodeTimeoutMs,
        clock,
        signal: this.signal,
        target: targetFlags(settings, nodes),
        expectedCluster: identity.cluster,
        payloads,
        progress: progress.at,
        write: (line) => writer.write(line),
        ...(flags.from === undefined ? {} : { from: flags.from }),
        ...(flags.to === undefined ? {} : { to: flags.to }),
      });
      progress.end();
      written = await writer.finish();
      return exportResult(exported, { path, payloads, ...written });
    } finally {
      if (written === null) await writer.abandon();
    }
  }
}
