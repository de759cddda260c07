import { Flags } from '@oclif/core';
import { SeqCommand } from '../cli/command/base-command.js';
import { toSeqError } from '../cli/support/failure.js';
import { abandonOutput, stdoutIsLog } from '../cli/support/output.js';
import { countFlag, durationFlag, positiveFlag, sizeFlag } from '../cli/support/flags.js';
import { threadHangs } from '../cli/support/hung-threads.js';
import { Interrupted, onHangup } from '../cli/support/interrupt.js';
import type { Result } from '../cli/present/result.js';
import { runSettings, SEQUENCER_LOG_LEVELS } from '../cli/compose/run-settings.js';
import { unknownVariables } from '../cli/config/variables.js';
import type { StopCode } from '../core/events.js';

export default class Run extends SeqCommand {
  static override summary = 'Run a sequencer: follow, promote when the lease is free, lead, step down on SIGTERM';
  static override description = [
    'Follows the cluster, takes over when the lease ends, and makes blocks of submitted items (or of ' +
      'what the command after -- produces).',
    'Logs to stdout: JSON lines on a pipe, readable lines on a terminal; the last line says why it ' +
      'ended. SIGTERM and SIGINT release the lock and exit 0.',
  ].join('\n');
  static override examples = [
    '<%= config.bin %> run --id seq-a --node r1=redis://10.0.0.1 --node r2=redis://10.0.0.2 --node ' +
      'r3=redis://10.0.0.3 --store /var/lib/seq/a --http 127.0.0.1:7070',
    '<%= config.bin %> run -c prod --id seq-a --producer exec -- node ledger.mjs',
  ];
  static override flags = {
    id: Flags.string({ helpValue: 'ID', description: 'name of this sequencer (default: the host name)' }),
    lanes: Flags.string({
      helpValue: 'PATTERN[,PATTERN]',
      description: 'run every lane of seq lane ls that fits, also later ones (* is any text, ? one character)',
    }),
    store: Flags.string({
      helpValue: 'DIR',
      description: 'directory of the local chain (default: under $XDG_STATE_HOME/seq/run)',
    }),
    ttl: durationFlag({ description: 'lease (3s)' }),
    'block-time': durationFlag({ description: 'a block at least this often (1s)' }),
    eager: Flags.boolean({ description: 'make a block at once when there is work' }),
    'max-block-bytes': sizeFlag({ description: "largest payload of a block (the cluster's; at most 16MiB)" }),
    'retain-blocks': positiveFlag({ description: 'blocks kept on the nodes (1000)' }),
    'retain-bytes': sizeFlag({ description: 'payload bytes kept on the nodes (256MiB)' }),
    http: Flags.string({
      helpValue: 'HOST:PORT',
      description: 'serve submissions, blocks, health and metrics (port 0: any free one)',
    }),
    admin: Flags.string({
      helpValue: 'HOST:PORT',
      description: 'health and metrics on a port of their own, with connections of its own',
    }),
    advertise: Flags.string({
      helpValue: 'URL',
      description: 'address at which the other sequencers reach this one (default: found from --http)',
    }),
    'http-token-file': Flags.string({
      helpValue: 'FILE',
      description: 'bearer token; needed beyond loopback unless TLS is given',
    }),
    'http-cert': Flags.string({
      helpValue: 'FILE',
      dependsOn: ['http-key'],
      description: 'certificate (PEM) for HTTPS',
    }),
    'http-key': Flags.string({ helpValue: 'FILE', dependsOn: ['http-cert'], description: 'its key' }),
    'http-client-ca': Flags.string({
      helpValue: 'FILE',
      dependsOn: ['http-cert'],
      description: "authority (PEM) of callers' certificates: --http takes no caller without one (--admin does)",
    }),
    'http-ca': Flags.string({
      helpValue: 'FILE',
      description: "certificate authority (PEM) of the other sequencers' HTTPS: for forwarding and --peer",
    }),
    peer: Flags.string({
      multiple: true,
      multipleNonGreedy: true,
      helpValue: 'URL',
      description: 'another sequencer, for blocks the nodes no longer have (repeat)',
    }),
    priority: countFlag({ description: 'the lowest number takes over first (0)' }),
    producer: Flags.string({
      helpValue: 'batch|exec',
      options: ['batch', 'exec'],
      description: 'batch: blocks of submitted items; exec: of what the command after -- answers',
    }),
    bootstrap: Flags.boolean({ description: 'make a cluster of the nodes if every one of them is empty' }),
    'adopt-nodes': Flags.boolean({
      description: 'the listed nodes are all nodes of a cluster that version 0.1.0 made (once, on one sequencer)',
    }),
    'adopt-producer': Flags.boolean({
      description: 'the lane takes the producer of this sequencer, when it leads (once)',
    }),
    'listed-addresses': Flags.boolean({
      description: 'ask each node at its listed address alone, also where the cluster has it at another one',
    }),
    'no-readmit': Flags.boolean({
      description: 'when leading, leave out nodes that lost their memory instead of re-admitting them',
    }),
    'dedup-items': positiveFlag({ description: "keys remembered at most (the cluster's)" }),
    'dedup-window': durationFlag({ description: "how long a key is remembered (the cluster's)" }),
    'log-level': Flags.string({
      helpValue: 'LEVEL',
      options: [...SEQUENCER_LOG_LEVELS],
      description: 'trace, debug, info, warn, error, fatal or silent (info)',
    }),
  };
  static override strict = false;
  static override deadline = false;
  static override graceMs = 15_000;
  protected readonly kind = 'run';
  private child: string[] | null = null;

  /** oclif drops the `--` marker: what follows it is the producer's command, whatever it contains. */
  override async init(): Promise<void> {
    const marker = this.argv.indexOf('--');
    if (marker >= 0) {
      this.child = this.argv.slice(marker + 1);
      this.argv = this.argv.slice(0, marker);
    }
    await super.init();
  }

  protected async perform(): Promise<Result | null> {
    const { argv } = await this.parse(Run);
    // A terminal that was closed asks its processes to end. Without a terminal, SIGHUP never meant an end.
    const hangup = process.stdout.isTTY || process.stderr.isTTY ? () => undefined : onHangup;
    hangup(() => undefined);
    const around = await this.surroundings();
    const settings = await runSettings(
      around.sources,
      around.clusterSettings(),
      argv as string[],
      this.child,
      this.config.version,
    );
    const [{ openLog }, run] = await Promise.all([
      import('../core/log/log.js'),
      settings.lanes === ''
        ? import('../cli/compose/run-sequencer.js').then(({ runSequencer }) => runSequencer)
        : import('../cli/compose/run-lanes.js').then(({ runLanes }) => runLanes),
    ]);
    stdoutIsLog();
    const log = await openLog({
      id: settings.id,
      level: settings.logLevel,
      secrets: settings.secrets,
      colour: this.colour,
    });
    for (const text of unknownVariables(process.env)) log.line('warn', text, { event: 'settings' });
    hangup(() => log.line('info', 'SIGHUP: it goes on starting', { event: 'hangup' }));
    const close = async (end: { code: StopCode; reason: string }): Promise<void> => {
      if (await log.close(end)) return;
      abandonOutput();
      if (log.hangs) threadHangs();
    };
    try {
      await run(around, settings, log, this.signal, hangup);
      await close({ code: 'STOPPED', reason: 'asked to stop' });
    } catch (error) {
      await close(endOf(error));
      throw error;
    }
    const { reason } = this.signal;
    if (reason instanceof Interrupted && reason.signal === 'SIGHUP') process.exitCode = reason.exit;
    return null;
  }
}

/** The last line of the log: a signal is no error, also while the sequencer starts. */
function endOf(thrown: unknown): { code: StopCode; reason: string } {
  const code =
    thrown instanceof Interrupted
      ? thrown.signal
      : toSeqError(thrown, { step: 'running', changed: 'nothing', changedNodes: [], command: 'run' }).code;
  return { code, reason: thrown instanceof Error ? thrown.message : String(thrown) };
}
