import { Args } from '@oclif/core';
import { SeqCommand } from '../../cli/command/base-command.js';
import { inspectLab, LAB_CONTEXT, openLabCluster, withoutSettings } from '../../cli/compose/lab.js';
import { demoText } from '../../cli/present/lab.js';
import type { Result } from '../../cli/present/result.js';
import { EXIT } from '../../core/errors.js';
import { chooseDemoFile } from '../../lab/demo-file.js';
import { demoHolds, labDemo } from '../../lab/demo.js';
import { askSelf, runSelf } from '../../lab/self.js';
import { labDirectory, openState } from '../../lab/state.js';

const STATUS_LIMIT_MS = 15_000;

export default class LabDemo extends SeqCommand {
  static override summary =
    'Sequence a real file, kill the leader half-way, and prove that nothing was lost or doubled';
  static override examples = ['<%= config.bin %> lab demo', '<%= config.bin %> lab demo /usr/share/dict/words'];
  static override args = { file: Args.string({ description: 'a text file; by default the system package log' }) };
  static override deadline = false;
  static override graceMs = 500;
  protected readonly kind = 'lab.demo';

  protected async perform(): Promise<Result> {
    const { args } = await this.parse(LabDemo);
    const directory = labDirectory();
    const state = openState(directory);
    const file = chooseDemoFile(args.file);
    const cluster = await openLabCluster(directory, state, this.signal);
    this.onClose(() => cluster.close());
    this.step('running the demo');
    this.changing('some');
    const report = await labDemo({
      directory,
      file,
      nodes: cluster.nodes,
      nodeTimeoutMs: cluster.nodeTimeoutMs,
      inspect: () => inspectLab(cluster),
      report: (line) => this.note(line),
      signal: this.signal,
    });
    const holds = demoHolds(report);
    const machine = !['table', 'wide', 'plain', 'csv'].includes(await this.format());
    // The command that is shown, word for word: only the context knows that this is the lab.
    const status = ['status', '-c', LAB_CONTEXT];
    const run = {
      env: {
        ...withoutSettings(process.env),
        ...(process.stdout.columns ? { COLUMNS: String(process.stdout.columns) } : {}),
      },
      limitMs: STATUS_LIMIT_MS,
      signal: this.signal,
    };
    const shownStatus = async (): Promise<string> =>
      (await runSelf([...status, '-o', 'table'], run)).stdout.toString('utf8').trimEnd();
    return {
      data: {
        ...report,
        blocks: { ...report.blocks, from: String(report.blocks.from), to: String(report.blocks.to) },
        holds,
        status: machine ? await askSelf(status, run) : undefined,
      },
      text: demoText(report, holds) + (machine ? '' : `\n\n$ seq status -c lab\n${await shownStatus()}`),
      next: [
        'seq status -c lab',
        `seq stream tail --items --from ${report.blocks.from} -c lab`,
        `seq lab start ${report.killed.name}`,
        'seq lab pause leader',
        'seq lab down',
      ],
      exit: holds ? EXIT.ok : EXIT.no,
    };
  }
}
