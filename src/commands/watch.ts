import { Flags } from '@oclif/core';
import { SeqCommand } from '../cli/command/base-command.js';
import { BUNDLE_FLAG, durationFlag, positiveFlag } from '../cli/support/flags.js';
import { usageError } from '../cli/support/failure.js';
import { asDuration, asLane } from '../cli/config/settings.js';
import { Interrupted } from '../cli/support/interrupt.js';
import type { Result } from '../cli/present/result.js';
import { everyNamed, startCommands, targetFlags } from '../cli/compose/target.js';
import type { Cluster } from '../cli/compose/open-cluster.js';
import { EXIT } from '../core/errors.js';
import type { Clock, NodePort } from '../core/ports.js';
import type { OnceOptions } from '../tui/once.js';
import { systemClock } from '../core/nodes/system-clock.js';

/** What is the same for all lanes, whatever the output. */
type Common = Pick<OnceOptions, 'limitMs' | 'clock' | 'theme'> & { still: boolean };
type Lane = Pick<OnceOptions, 'title' | 'nodes' | 'rediscover' | 'identified' | 'fixed' | 'summarize'> & {
  name: string;
};
type RunSession = Awaited<ReturnType<typeof loadSession>>;

interface Pace {
  bell: boolean;
  intervalMs: number;
  count: number | undefined;
}

export default class Watch extends SeqCommand {
  static override summary =
    'The cluster on one screen, live: is it writing, who leads, how many nodes may be lost, what to do next';
  static override description = [
    'Says what `seq status` says, again and again, from the same reading of the nodes. No key ' +
      'changes the cluster; y copies the command that would.',
    'Without a terminal on stdin and stdout it is `seq status --watch -o ndjson`. --once prints one frame as text.',
  ].join('\n');
  static override examples = [
    '<%= config.bin %> watch -c lab',
    '<%= config.bin %> watch --interval 250ms',
    '<%= config.bin %> watch --once',
    '<%= config.bin %> watch --lane orders,payments',
  ];
  static override deadline = false;
  // Long enough to restore the terminal and print the last lines.
  static override graceMs = 1500;
  static override flags = {
    ...BUNDLE_FLAG,
    lane: Flags.string({
      multiple: true,
      multipleNonGreedy: true,
      helpGroup: 'CLUSTER',
      helpValue: 'LANE[,LANE]',
      description: 'lane of the cluster; several become tabs (an empty name is the default lane: --lane ,orders)',
    }),
    once: Flags.boolean({ helpGroup: 'WATCH', description: 'print one frame as text and end' }),
    interval: durationFlag({ helpGroup: 'WATCH', description: 'pause between two probes (1s; 250ms to 60s)' }),
    bell: Flags.boolean({
      helpGroup: 'WATCH',
      description: "ring the terminal's bell when the verdict of a lane gets worse",
    }),
    count: positiveFlag({ helpGroup: 'WATCH', description: 'end after N probes' }),
  };
  protected readonly kind = 'status';

  protected async perform(): Promise<Result | null> {
    const { flags } = await this.parse(Watch);
    const interval = await this.setting('interval', asDuration, 1000);
    if (interval.value < 250 || interval.value > 60_000)
      throw usageError(`--interval ${interval.value} ms is outside 250ms to 60s`, ['--interval 1s']);
    const lanes = lanesOf(flags.lane as readonly string[] | undefined);
    const way = wayOf(flags);
    if (way === 'data') {
      if (lanes.length > 1)
        throw usageError(
          'several lanes are for the screen: data is of one',
          lanes.map((lane) => `seq status --watch -o ndjson${lane === '' ? '' : ` --lane ${lane}`}`),
        );
      await this.asStatus(flags);
      return null;
    }
    // Loaded before any node is asked. Loading keeps this process busy, and a node must not appear slow because of
    // that.
    const runSession = way === 'screen' ? await loadSession() : null;
    const { themeOf } = await import('../tui/theme.js');
    const [cluster, ...besides] = await Promise.all(
      (lanes.length === 0 ? [undefined] : lanes).map((lane) => this.cluster({ lane })),
    );
    if (cluster === undefined) return null;
    const still = flags['from-bundle'] !== undefined;
    const common: Common = {
      limitMs: cluster.nodeTimeoutMs,
      clock: still ? stillClock(cluster.clock) : systemClock,
      still,
      theme: themeOf(process.env, this.colour),
    };
    const lanesShown = [cluster, ...besides].map((one) => this.laneOf(one, still));
    const pace = { bell: flags.bell, intervalMs: interval.value, count: flags.count };
    if (way === 'once') await this.asFrames(common, lanesShown);
    if (way === 'lines') await this.asLines(common, lanesShown, pace);
    if (runSession !== null) await this.asScreen(runSession, common, lanesShown, pace);
    return null;
  }

  private laneOf(cluster: Cluster, still: boolean): Lane {
    const { settings, identity, nodes } = cluster;
    const name = settings.context ?? (identity.cluster || 'nodes');
    return {
      name: settings.lane,
      title: [name, ...(settings.lane === '' ? [] : [settings.lane])].join(':'),
      nodes: everyNamed(cluster),
      rediscover: still ? undefined : this.rediscovery(cluster),
      identified: identity.cluster !== '',
      // A name that the settings fix is the operator's own: the watch does not go on to another generation by itself.
      fixed: settings.cluster !== '',
      summarize: {
        expectedCluster: settings.cluster,
        target: targetFlags(settings, nodes),
        ...startCommands(settings),
      },
    };
  }

  /** One frame of each lane. */
  private async asFrames(common: Common, lanes: readonly Lane[]): Promise<void> {
    const { watchOnce } = await import('../tui/once.js');
    const columns = process.stdout.columns ?? (Number(process.env['COLUMNS']) || 100);
    const rows = process.stdout.rows ?? (Number(process.env['LINES']) || 30);
    for (const [at, lane] of lanes.entries()) {
      const { text, state } = await watchOnce({ ...common, ...lane, size: { columns, rows } });
      // The frame is as high as the terminal: the prompt below it pushes its first line out of sight.
      const { view } = state.data;
      const last = process.stdout.isTTY && view !== null ? `${view.verdict}  ${view.reason}\n` : '';
      await this.write(`${at === 0 ? '' : '\n'}${text}${last}`);
    }
  }

  /** Lines that are only appended. */
  private async asLines(common: Common, lanes: readonly Lane[], { bell, intervalMs, count }: Pace): Promise<void> {
    const { watchLines } = await import('../tui/lines.js');
    await Promise.all(
      lanes.map((lane) =>
        watchLines({
          ...common,
          ...lane,
          ...(lanes.length > 1 ? { label: lane.name || 'default' } : {}),
          bell,
          intervalMs,
          signal: this.signal,
          count: common.still ? 1 : count,
          write: (text) => this.write(text),
        }),
      ),
    );
    this.signal.throwIfAborted();
  }

  private async asScreen(run: RunSession, common: Common, lanes: readonly Lane[], pace: Pace): Promise<void> {
    this.step('showing the screen');
    const end = await run({
      ...common,
      ...pace,
      lanes,
      signal: this.signal,
      stdin: process.stdin,
      stdout: process.stdout,
      snapshot: (data) => this.snapshot(data),
    });
    const { reason } = this.signal as { reason: unknown };
    process.exitCode =
      end === 'interrupt' ? EXIT.sigint : end === 'signal' && reason instanceof Interrupted ? reason.exit : EXIT.ok;
  }

  /** Opens the nodes of the lane anew: who are they now? Null while that is not known, or less is known than before. */
  private rediscovery(first: Cluster): () => Promise<NodePort[] | null> {
    let present = first;
    return async () => {
      const [{ openCluster }, around] = await Promise.all([
        import('../cli/compose/open-cluster.js'),
        this.surroundings(first.settings.lane),
      ]);
      const cluster = await openCluster(around, { signal: this.signal });
      const { identity, configuration } = cluster;
      if (identity.cluster === '' || (configuration === null && present.configuration !== null)) {
        await cluster.close();
        return null;
      }
      this.onClose(() => cluster.close());
      const former = present;
      present = cluster;
      await former.close();
      return everyNamed(cluster);
    };
  }

  /** Writes a file in the current directory. Never overwrites a file. */
  private async snapshot(data: unknown): Promise<string> {
    const [{ writeFile }, { envelope }] = await Promise.all([
      import('node:fs/promises'),
      import('../cli/present/envelope.js'),
    ]);
    const at = new Date().toISOString();
    const path = `seq-watch-${at.replace(/[:.]/g, '-')}.json`;
    const document = envelope(
      'watch.snapshot',
      { context: null, at, durationMs: 0, nodesAsked: 0, nodesAnswered: 0, quorum: 0 },
      { result: { data } },
    );
    await writeFile(path, `${JSON.stringify(document, null, 2)}\n`, { flag: 'wx', mode: 0o600 });
    return path;
  }

  /** The same answers as lines: `seq status --watch`. */
  private async asStatus(flags: {
    'from-bundle'?: string;
    once: boolean;
    interval?: number;
    count?: number;
    output?: string;
    json: boolean;
  }): Promise<void> {
    const { default: Status } = await import('./status.js');
    const kept: string[] = [];
    for (let at = 0; at < this.argv.length; at += 1) {
      const word = this.argv[at] ?? '';
      if (word === '--once' || word === '--bell') continue;
      if (word === '--interval' || word === '--count') at += 1;
      else if (!/^--(interval|count)=/.test(word)) kept.push(word);
    }
    const watch =
      flags.once || flags['from-bundle'] !== undefined
        ? []
        : [
            '--watch',
            ...(flags.interval === undefined ? [] : ['--interval', `${flags.interval}ms`]),
            ...(flags.count === undefined ? [] : ['--count', String(flags.count)]),
          ];
    await Status.run(
      [...kept, ...watch, ...(flags.output !== undefined || flags.json ? [] : ['-o', 'ndjson'])],
      this.config,
    );
  }
}

/** How it shows the cluster. Data is what `seq status --watch` prints. */
function wayOf(flags: { once: boolean; output?: string; json: boolean }): 'data' | 'once' | 'lines' | 'screen' {
  const { stdin, stdout } = process;
  const dumb = process.env['TERM'] === 'dumb';
  if (flags.output !== undefined || flags.json) return 'data';
  if (flags.once) return 'once';
  // For a screen reader, or a terminal whose cursor cannot be moved: lines that are only appended.
  if (stdout.isTTY && (dumb || process.env['INK_SCREEN_READER'] === 'true')) return 'lines';
  return stdin.isTTY && stdout.isTTY && !dumb ? 'screen' : 'data';
}

/** In a bundle every age is relative to when it was made. */
function stillClock(made: Clock): Clock {
  const startedAt = systemClock.now();
  return {
    ...made,
    wall: () => made.wall(),
    after: systemClock.after.bind(systemClock),
    now: () => startedAt,
  };
}

/** `--lane a,b --lane c`: each lane once. Empty: the lane of the settings. */
function lanesOf(given: readonly string[] | undefined): string[] {
  return [...new Set((given ?? []).flatMap((text) => text.split(',')).map((text) => asLane(text.trim(), '--lane')))];
}

/** Loads the drawing code too, so that a missing part is reported before the terminal is taken over. */
async function loadSession() {
  const { loadInk, runSession } = await import('../tui/session.js');
  await loadInk();
  return runSession;
}
