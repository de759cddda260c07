import { SeqCommand } from '../cli/command/base-command.js';
import { commandLine, confirmChange } from '../cli/support/confirm.js';
import { openBenchLane } from '../cli/compose/open-cluster.js';
import { usageError } from '../cli/support/failure.js';
import { ACT_FLAGS, durationFlag, positiveFlag, sizeFlag } from '../cli/support/flags.js';
import { operatorOf } from '../cli/support/operator.js';
import { benchEffect, benchPlan, benchResult } from '../cli/present/bench.js';
import type { Result } from '../cli/present/result.js';
import { MAX_BLOCK_BYTES } from '../core/config.js';
import { recordChange } from '../core/nodes/audit-record.js';
import { LIFE_MS, measureLane } from '../core/bench/bench.js';
import { limitLeftLanes } from '../core/bench/leftovers.js';
import { systemClock, systemRandom } from '../core/nodes/system-clock.js';

const RETAIN_BLOCKS = 100;

export default class Bench extends SeqCommand {
  static override summary =
    'Measure commits on your own servers against bare SETs, in a lane of its own that is deleted afterwards';
  static override description = [
    'One write at a time, in turns, no faster than --rate; your own lanes are not touched, but share ' +
      'the servers. Every node must answer.',
    'It writes, so it asks first (--yes in scripts). Ctrl-C stops it and removes the lane.',
  ].join('\n');
  static override examples = [
    '<%= config.bin %> bench -c lab',
    '<%= config.bin %> bench --duration 1m --rate 500 --block-bytes 10KiB --yes -o json',
    '<%= config.bin %> bench --dry-run',
  ];
  static override deadline = false;
  static override graceMs = 10_000;
  static override flags = {
    // A measurement changes no leader and no epoch, so there is nothing to expect. It has no plan with a digest either.
    'dry-run': ACT_FLAGS['dry-run'],
    yes: ACT_FLAGS.yes,
    reason: ACT_FLAGS.reason,
    duration: durationFlag({ description: 'how long it measures (10s)' }),
    rate: positiveFlag({ description: 'operations a second, at most (200)' }),
    'block-bytes': sizeFlag({ description: 'bytes of a block, and of a SET (1KiB)' }),
  };
  protected readonly kind = 'bench';

  protected async perform(): Promise<Result> {
    const { flags } = await this.parse(Bench);
    if (flags.lane !== undefined)
      throw usageError('--lane has no meaning here: a measurement is in a lane of its own, never in yours', [
        'seq bench',
      ]);
    if (flags.on !== undefined)
      throw usageError('--on has no meaning here: a commit is to all nodes of the cluster', ['seq bench']);
    const asked = {
      durationMs: flags.duration ?? 10_000,
      rate: flags.rate ?? 200,
      blockBytes: flags['block-bytes'] ?? 1024,
      retainBlocks: RETAIN_BLOCKS,
    };
    if (asked.durationMs < 1000 || asked.durationMs > 600_000)
      throw usageError('--duration: 1s to 10m', ['seq bench --duration 10s']);
    if (asked.rate > 10_000) throw usageError('--rate: 1 to 10000 operations a second', ['seq bench --rate 200']);
    if (asked.blockBytes < 1 || asked.blockBytes > MAX_BLOCK_BYTES)
      throw usageError(`--block-bytes: 1B to ${MAX_BLOCK_BYTES / 1024 / 1024}MiB`, ['seq bench --block-bytes 1KiB']);
    const cluster = await this.cluster();
    const lane = `bench-${systemRandom.hex(4)}`;
    const command = commandLine(this.id ?? '', this.argv);
    if (flags['dry-run']) return benchPlan(asked, lane, cluster.nodes.length, command);
    await confirmChange(
      {
        level: 'disruptive',
        what: `measure on ${cluster.nodes.length} servers`,
        effect: benchEffect(asked, lane, cluster.nodes.length),
      },
      {
        yes: Boolean(flags.yes),
        confirm: undefined,
        mayAsk: this.mayAsk,
        command,
        signal: this.signal,
        say: (text) => this.note(text),
      },
    );
    const servers = await openBenchLane(cluster, lane);
    this.onClose(async () => {
      for (const { node, server } of servers) {
        server.close();
        await node.close();
      }
    });
    const limitMs = cluster.nodeTimeoutMs;
    const record = async (outcome: string): Promise<void> => {
      const warning = await recordChange(
        cluster.nodes,
        { what: 'bench', reason: flags.reason ?? '', before: '', after: '', outcome },
        operatorOf(this.id ?? '', this.argv),
        systemClock,
        limitMs,
      );
      if (warning !== '') this.warning(warning);
    };
    const announce = async (): Promise<void> => {
      await limitLeftLanes({ nodes: cluster.nodes, servers, lifeMs: LIFE_MS, limitMs, clock: systemClock });
      await record(`lane ${lane} begun`);
    };
    let saidAt = systemClock.now();
    const report = await measureLane({
      servers,
      cluster: cluster.identity.cluster,
      lane,
      quorum: cluster.quorum,
      limitMs,
      clock: systemClock,
      random: systemRandom,
      signal: this.signal,
      announce,
      ...asked,
      step: (doing) => this.step(doing),
      changing: () => this.changing(),
      cleaned: (left) => {
        if (left.length === 0) this.unchanged();
        else this.changing('some', left);
      },
      progress: (part) => {
        if (systemClock.now() - saidAt < (process.stderr.isTTY ? 1000 : 10_000)) return;
        saidAt = systemClock.now();
        this.note(`measured ${Math.min(100, Math.round(part * 100))} %`);
      },
    });
    await record(
      `lane ${lane}, ${report.commit.n} commits in ${report.seconds.toFixed(1)} ` +
        `s${report.left.length === 0 ? ', deleted' : `, left on ${report.left.join(' ')}`}`,
    );
    return { ...benchResult(report, asked), meta: { nodesAnswered: cluster.nodes.length } };
  }
}
