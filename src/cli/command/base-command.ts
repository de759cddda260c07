// What every command has in common. A command reads its flags, runs one use case and returns a Result. Everything else
// happens here, in the same way for all. Parts: which nodes (command-nodes.ts), when it ends early (deadline.ts),
// `--watch` (watch-loop.ts), how the answer is shown (rendering.ts).
//
//   export default class EpochShow extends SeqCommand {
//     static override summary = 'Show the epoch of every node';
//     static override flags = { ...READ_FLAGS, all: Flags.boolean({ description: '…' }) };
//     protected readonly kind = 'epoch.show'; // `kind` of the JSON envelope, and schemas/<kind>.json
//     protected async perform(): Promise<Result> {
//       const { flags } = await this.parse(EpochShow); // typed; bad flags end as 64
//       const cluster = await this.cluster(); // opens the nodes; they are closed for you
//       this.step('reading the epochs'); // errors name it when a limit or Ctrl-C ends the command
//       const views = await readEpochs(cluster.nodes, this.signal); // this.signal: Ctrl-C or --timeout
//       return { data: {…}, verdict: {…}, facts: […], tables: […], next: […], exit: EXIT.ok };
//     }
//   }
//
// A command that changes something calls `this.changing()` right before its first write. It calls
// `this.changing('some', ids)` when a write is known to have reached a node. A stream (tail, run) calls
// `this.write(text)` for each part and returns null. It sets `static deadline = false` to have no --timeout. Throw
// SeqError for errors that an operator can act on. Never call process.exit. Write to stdout only through this class.
import { Command, Config, type Interfaces } from '@oclif/core';
import { EXIT, SeqError } from '../../core/errors.js';
import type { Surroundings } from '../cluster/settings.js';
import type { FuelCluster } from '../compose/fuel-nodes.js';
import type { Cluster } from '../compose/open-cluster.js';
import { asChoice, asDuration, asText, setting, type Setting } from '../config/settings.js';
import { unknownVariables } from '../config/variables.js';
import type { Meta, Result } from '../present/result.js';
import { prose, whole } from '../present/text.js';
import { StreamProgress } from '../stream/progress.js';
import { toSeqError, type Progress } from '../support/failure.js';
import { GLOBAL_FLAGS, type OutputFormat } from '../support/flags.js';
import { aimed, type Target } from '../support/next.js';
import type { CallerAccess, CallerFiles } from '../compose/caller.js';
import { ReaderGone, writeErr, writeOut } from '../support/output.js';
import { mayAsk, mayColour, takesColour } from './terminal.js';
import { terminalWrap } from '../support/terminal-wrap.js';
import { askedFormat, type MachineFormat } from './asked-format.js';
import { CommandNodes, type OpenRequest } from './command-nodes.js';
import { Deadline, DEFAULT_TIMEOUT_MS, GRACE_MS } from './deadline.js';
import { failureDocument, showFailure, showResult, type Showing, type Wraps } from './rendering.js';
import { pause, watchLoop } from './watch-loop.js';

type AnyFlags = Record<string, unknown>;

export abstract class SeqCommand extends Command {
  static override baseFlags = GLOBAL_FLAGS;
  /** false: no --timeout unless one is given (run, submit, tail --follow, watch, lab, chaos, bench). */
  static deadline = true;
  /** true: --timeout is part of what the command does (wait, stepdown), and the command applies it itself. */
  static ownsTimeout = false;
  /** false: a config file that cannot be read does not stop the command (explain, context, config validate). */
  static needsConfig = true;
  /** true: it can read the streams of the other dialect as well (`await this.fuel()`). */
  static readsFuel = false;
  /** How long the command may continue after the first Ctrl-C. `run` and `lab` raise it, to release what they hold. */
  static graceMs = GRACE_MS;

  /** Uses the configuration that it is given. Otherwise the framework would load it again. */
  static override async run<T extends Command>(
    this: new (argv: string[], config: Config) => T,
    argv?: string[],
    options?: Interfaces.LoadOptions,
  ): Promise<ReturnType<T['run']>> {
    const config = options instanceof Config ? options : await Config.load(options);
    return (new this(argv ?? process.argv.slice(2), config) as unknown as SeqCommand)._run();
  }

  /** `kind` of the envelope. */
  protected abstract readonly kind: string;
  /** One use case. Null: the command has already written everything. */
  protected abstract perform(): Promise<Result | null>;

  private readonly startedAt = performance.now();
  private readonly own = this.constructor as typeof SeqCommand;
  private readonly deadline = new Deadline(() => this.own.graceMs);
  private readonly progress: Progress = { step: '', changed: 'nothing', changedNodes: [], command: '' };
  private readonly closers: (() => Promise<void> | void)[] = [];
  private readonly warnings: string[] = [];
  private given: AnyFlags = {};
  /** What a failing command knows all the same. */
  private known: Result | null = null;
  private wraps: Wraps = { stdout: whole, stderr: whole };
  private readonly nodes = new CommandNodes({
    id: this.id ?? '',
    knownFlags: this.ctor.flags ?? {},
    needsConfig: this.own.needsConfig,
    given: () => this.given,
    signal: this.signal,
    step: (doing) => this.step(doing),
    warning: (text) => this.warning(text),
    onClose: (closer) => this.onClose(closer),
  });

  /** Aborted by Ctrl-C, SIGTERM, --timeout, or a reader that closed the output. Pass it on. */
  protected get signal(): AbortSignal {
    return this.deadline.signal;
  }

  /** What is being done now; names node and step. Shown with -v, and in the error when a limit passes. */
  protected step(doing: string): void {
    this.progress.step = doing;
    if (this.given['verbose'] || this.given['trace']) writeErr(`${doing}\n`);
  }

  /** Call it before the first write is sent. From then on a failure can no longer say "nothing was changed". */
  protected changing(state: 'unknown' | 'some' = 'unknown', nodes: string[] = []): void {
    this.progress.changed = state;
    this.progress.changedNodes = nodes;
  }

  /** Call it when the change did not happen after all because every node refused. */
  protected unchanged(): void {
    this.progress.changed = 'nothing';
  }

  protected warning(text: string): void {
    this.warnings.push(text);
  }

  /** Closers run at the end, last first, each with a time limit. */
  protected onClose(closer: () => Promise<void> | void): void {
    this.closers.push(closer);
  }

  /** Config file, context, environment and flags together. Opens nothing. `lane`: one of several named lanes. */
  protected surroundings(lane?: string): Promise<Surroundings> {
    return this.nodes.surroundings(lane);
  }

  /** The cluster's nodes, connected lazily. `cluster.nodes` are all members, `cluster.asked` those of --on. */
  protected cluster(request: OpenRequest = {}): Promise<Cluster> {
    return this.nodes.open(request);
  }

  /** The nodes of the other dialect, when the settings say so. Null: the nodes hold this program's own keys. */
  protected fuel(): Promise<FuelCluster | null> {
    return this.nodes.openFuel();
  }

  /** Shows the progress of a long read on stderr. The progress line is removed at the end, also after an error. */
  protected longReading(what: string): StreamProgress {
    void import('../support/lean-heap.js').then(({ keepHeapLean }) => keepHeapLean());
    const progress = new StreamProgress(what, Boolean(this.given['quiet']), writeErr);
    this.onClose(() => progress.end());
    return progress;
  }

  /**
   * A setting that is a flag of this command and may also come from SEQ_*, context or config file, e.g. `await
   * this.setting('block-time', asDuration, 1000)`.
   */
  protected async setting<T>(flag: string, parse: (text: string, what: string) => T, fallback: T): Promise<Setting<T>> {
    return setting((await this.surroundings()).sources, flag, parse, fallback);
  }

  /** How this command calls sequencers over HTTP. It has the flags of support/caller.ts. Throws SeqError 78. */
  protected async callerAccess(): Promise<CallerAccess> {
    const { readCallerFiles } = await import('../compose/caller.js');
    return readCallerFiles(await this.callerFiles());
  }

  /** The files of that access, for a command that reads them again. */
  protected async callerFiles(): Promise<CallerFiles> {
    const { callerFiles } = await import('../compose/caller.js');
    return callerFiles(async (flag) => (await this.setting(flag, asText, '')).value);
  }

  /** Writes part of a streamed answer. Waits while the reader is slow. */
  protected write(text: string | Uint8Array): Promise<void> {
    return writeOut(text);
  }

  /** Progress, hints, questions: to stderr. Silent with -q. */
  protected note(text: string): void {
    if (!this.given['quiet']) writeErr(`${prose(text, this.wraps.stderr).join('\n')}\n`);
  }

  /** True when a question may be asked: a terminal on stdin and stderr, and no --no-input. */
  protected get mayAsk(): boolean {
    return !this.given['no-input'] && mayAsk(process.env);
  }

  protected get colour(): boolean {
    return !this.given['no-color'] && mayColour(process.env);
  }

  /** The format of the answer. Known after parse(). */
  protected async format(): Promise<OutputFormat> {
    if (this.given['json']) return 'json';
    const fallback: OutputFormat = process.stdout.isTTY ? 'table' : 'plain';
    if (this.given['output']) return this.given['output'] as OutputFormat;
    const own = (this.ctor.flags?.['output'] ?? SeqCommand.baseFlags.output) as { options?: readonly string[] };
    return (await this.setting('output', asChoice((own.options ?? []) as readonly OutputFormat[]), fallback)).value;
  }

  protected override async parse<
    F extends Interfaces.OutputFlags<F>,
    B extends Interfaces.OutputFlags<B>,
    A extends Interfaces.OutputArgs<A>,
  >(options?: Interfaces.Input<F, B, A>, argv?: string[]): Promise<Interfaces.ParserOutput<F, B, A>> {
    const parsed = await super.parse(options, argv).catch(async (thrown: unknown) => {
      throw (await this.refusal(thrown)) ?? thrown;
    });
    this.given = parsed.flags as AnyFlags;
    return parsed;
  }

  /** What the parser refused, with what was probably meant. */
  private async refusal(thrown: unknown): Promise<SeqError | null> {
    const { explainRefusal } = await import('./parse-failure.js');
    const command = this.progress.command;
    return explainRefusal(thrown, {
      command,
      flags: { ...SeqCommand.baseFlags, ...this.ctor.flags },
      argv: this.argv,
      known: async () => {
        // No node is asked: the command line is wrong, and the answer must come at once.
        if (command.startsWith('lab '))
          return ['leader', ...(await import('../compose/target.js')).labRows().map((row) => row.name)];
        if (!command.startsWith('context ')) return [];
        return Object.keys((await this.surroundings()).sources.config?.contexts ?? {});
      },
    });
  }

  override async run(): Promise<void> {
    this.progress.command = (this.id ?? '').replaceAll(':', ' ');
    this.deadline.listen();
    try {
      this.wraps = { stdout: await terminalWrap(process.stdout), stderr: await terminalWrap(process.stderr) };
      await this.parse();
      if (this.given['dialect'] === 'fuel' && !this.own.readsFuel)
        throw (await import('../compose/fuel-nodes.js')).refuseDialect(this.id ?? '', this.ctor.flags ?? {});
      // A missing context or an unreadable setting ends the command before it does anything.
      await this.surroundings();
      for (const text of unknownVariables(process.env)) this.warning(text);
      await this.format();
      void this.colour;
      const timeoutMs = await this.timeoutMs();
      if (timeoutMs !== null) this.deadline.limit(timeoutMs);
      if (this.given['follow'] || this.watches) this.deadline.endWithReader();
      if (this.watches) await this.watch();
      else await this.answer(await this.deadline.bound(this.perform()));
    } finally {
      this.deadline.stop();
      await this.close();
    }
  }

  /** Shows a result and sets the exit code. A command calls it only to show a partial answer before it throws. */
  protected async present(result: Result): Promise<void> {
    const next = result.next && (await this.completed(result.next));
    const shown = next === undefined ? result : { ...result, next };
    await showResult(shown, await this.format(), this.showing(this.colour));
    process.exitCode = result.exit ?? EXIT.ok;
  }

  /**
   * Shows what is known before the command fails. Text formats show it before the error. JSON and YAML are one
   * document, so the error and what is known go into the same one.
   */
  protected async presentBeforeFailure(result: Result): Promise<void> {
    this.known = { ...result, warnings: [] };
    if (['table', 'wide', 'plain'].includes(await this.format())) await this.present(this.known);
  }

  override async catch(thrown: Error & { exitCode?: number }): Promise<void> {
    if (thrown instanceof ReaderGone || this.deadline.readerGone) {
      process.exitCode = EXIT.ok;
      return;
    }
    const error = toSeqError(thrown, this.progress);
    error.next.splice(0, Infinity, ...(await this.completed(error.next)));
    process.exitCode = error.exit;
    // Reads the raw arguments, because parsing may have failed.
    const colour = !this.argv.includes('--no-color') && takesColour(process.env, process.stderr);
    await showFailure(error, await this.failureFormat(), this.showing(colour), this.known);
    if (this.argv.includes('--trace'))
      writeErr(`${(error.cause instanceof Error ? error.cause : thrown).stack ?? ''}\n`);
  }

  /** How this command line names the cluster. Parsing may have failed: then the raw arguments tell it. */
  private target(): Target {
    const { context, node, lane } = this.given as { context?: string; node?: string[]; lane?: string };
    return { context, nodes: node, lane };
  }

  /** Each command of `next` runs as it stands: on the same cluster, and with what a node asks for. */
  private async completed(next: readonly string[]): Promise<string[]> {
    const target = this.target();
    const lines = next.map((line) => aimed(line, target));
    if (!lines.some((line) => line.startsWith('redis-cli '))) return lines;
    try {
      const { nodes, unlisted } = (await this.surroundings()).clusterSettings();
      const { completeRedisCli } = await import('../support/redis-cli.js');
      return lines.map((line) => completeRedisCli(line, nodes, unlisted));
    } catch {
      // The settings are what is wrong. The command that failed says so.
      return lines;
    }
  }

  override toErrorJson(thrown: unknown): unknown {
    return failureDocument(toSeqError(thrown, this.progress), this.showing(false));
  }

  /** The format from the command line, else from the settings where they can be read. */
  private async failureFormat(): Promise<MachineFormat | null> {
    const asked = askedFormat(this.argv, process.env);
    if (asked || this.given['output']) return asked;
    const format = await this.format().catch(() => null);
    return format === 'json' || format === 'yaml' || format === 'ndjson' ? format : null;
  }

  private showing(colour: boolean): Showing {
    return {
      kind: this.kind,
      meta: this.meta(),
      warnings: this.warnings,
      fields: (this.given['fields'] as string[] | undefined) ?? [],
      mayChange: 'dry-run' in (this.ctor.flags ?? {}),
      watched: this.watches,
      colour,
      quiet: Boolean(this.given['quiet']),
      wraps: this.wraps,
    };
  }

  private meta(): Meta {
    return {
      context: this.nodes.contextName,
      at: new Date().toISOString(),
      durationMs: Math.round(performance.now() - this.startedAt),
      nodesAsked: 0,
      nodesAnswered: 0,
      quorum: 0,
      ...this.nodes.counts(),
    };
  }

  private async timeoutMs(): Promise<number | null> {
    if (this.own.ownsTimeout) return null;
    const flag = this.given['timeout'] as number | undefined;
    if (flag !== undefined) return flag;
    if (!this.own.deadline || this.watches || this.given['follow']) return null;
    return (await this.setting('timeout', asDuration, DEFAULT_TIMEOUT_MS)).value;
  }

  private async answer(result: Result | null): Promise<void> {
    if (result) return this.present(result);
    for (const warning of this.warnings) this.note(`warning: ${warning}`);
    process.exitCode ??= EXIT.ok;
  }

  /** `--watch` of a command that only reads. `lab up --watch` is different: it opens the live screen. */
  private get watches(): boolean {
    return Boolean(this.given['watch']) && 'interval' in (this.ctor.flags ?? {});
  }

  private async watch(): Promise<void> {
    const screen =
      process.stdout.isTTY && ['table', 'wide'].includes(await this.format()) && process.env['TERM'] !== 'dumb';
    await watchLoop<Result | null>({
      intervalMs: (await this.setting('interval', asDuration, 1000)).value,
      count: (this.given['count'] as number | undefined) ?? Infinity,
      signal: this.signal,
      ask: () => this.deadline.bound(this.perform()),
      close: () => this.close(),
      clear: async () => (screen ? writeOut('\u001b[H\u001b[2J') : undefined),
      show: (result) => this.answer(result),
      showFailure: (error: SeqError) => this.catch(error),
      pause: (ms) => this.deadline.bound(pause(ms, this.signal)),
    });
  }

  private async close(): Promise<void> {
    while (this.closers.length > 0) {
      const closer = this.closers.pop();
      await Promise.race([
        Promise.resolve()
          .then(closer)
          .catch(() => undefined),
        pause(100),
      ]);
    }
  }
}
