// What every command has in common: flags, settings, the cluster, presenting, errors, deadlines, signals, exit codes.
// A command is: read flags → one use case → return a Result. Everything else happens here, the same way for all.
//
// export default class EpochShow extends SeqCommand {
// static override summary = 'Show the epoch of every node';
// static override flags = { ...LOOK_FLAGS, all: Flags.boolean({ description: '…' }) };
// protected readonly kind = 'epoch.show';                          // `kind` of the JSON envelope;
// schemas/<kind>.json
// protected async perform(): Promise<Result> {
// const { flags } = await this.parse(EpochShow);                 // typed; bad flags end as 64
// const cluster = await this.cluster();                          // opens the nodes; closed for you
// this.step('reading the epochs');                               // named in errors when a limit or Ctrl-C hits
// const views = await readEpochs(cluster.nodes, this.signal);    // one use case; this.signal = Ctrl-C or --timeout
// return { data: {…}, verdict: {…}, facts: […], tables: […], next: […], exit: EXIT.ok };
// }
// }
//
// Act verbs call `this.changing()` right before the first write goes out (and `this.changing('some', ids)` once one
// is known to have landed). Streams (tail, run) call `this.write(text)` as they go and return null; they set `static
// deadline = false` to have no --timeout. Throw SeqError for what an operator can act on. Never call process.exit,
// never write to stdout by other means.
import { Command, Config, type Interfaces } from '@oclif/core';
import { EXIT, SeqError, type ExitCode } from '../../core/errors.js';
import type { Cluster, Surroundings } from '../compose/open-cluster.js';
import type { FuelCluster } from '../compose/fuel-nodes.js';
import { toSeqError, usageError, type Progress } from '../support/failure.js';
import { GLOBAL_FLAGS, type OutputFormat } from '../support/flags.js';
import { DeadlinePassed, interrupted } from '../support/interrupt.js';
import { onOutputFailure, ReaderGone, writeErr, writeOut } from '../support/output.js';
import { envelope } from '../present/envelope.js';
import { renderError } from '../present/error-text.js';
import { pickFields } from '../present/fields.js';
import type { Meta, Result } from '../present/result.js';
import { prose, whole } from '../present/text.js';
import { StreamProgress } from '../stream/progress.js';
import { terminalWrap } from '../support/terminal-wrap.js';
import { askedFormat } from './asked-format.js';
import { asChoice, asDuration, asList, asSwitch, setting, type Setting } from '../config/settings.js';

/** After a cancel, how long a command may take to end by itself (with what it knows) before it is left behind. */
const GRACE_MS = 90;
const DEFAULT_TIMEOUT_MS = 10_000;

type AnyFlags = Record<string, unknown>;
export type FlagsOf<T extends typeof Command> = Interfaces.InferredFlags<(typeof SeqCommand)['baseFlags'] & T['flags']>;

export abstract class SeqCommand extends Command {
  static override baseFlags = GLOBAL_FLAGS;
  /** false: no --timeout unless one is given (run, submit, tail --follow, watch, lab, chaos, bench). */
  static deadline = true;
  /** true: --timeout is a part of what the command does (wait, stepdown), which bounds itself by it. */
  static ownsTimeout = false;
  /** false: a config file that cannot be read does not stop the command (explain, context, config validate). */
  static needsConfig = true;
  /** true: it can read the streams of the other dialect as well (`await this.foreign()`). */
  static readsFuel = false;
  /** How long the command may go on after the first Ctrl-C. `run` and `lab` raise it to finish what they hold. */
  static graceMs = GRACE_MS;

  /** With the configuration that it is given: the framework would load it again. */
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
  /** One use case. Null: everything was written already. */
  protected abstract perform(): Promise<Result | null>;

  private readonly startedAt = performance.now();
  private readonly cancel = new AbortController();
  private readonly progress: Progress = { step: '', changed: 'nothing', changedNodes: [], command: '' };
  private readonly closers: (() => Promise<void> | void)[] = [];
  private readonly warnings: string[] = [];
  private given: AnyFlags = {};
  private opened: Promise<Surroundings> | undefined;
  private asked: () => Partial<Pick<Meta, 'nodesAsked' | 'nodesAnswered' | 'quorum'>> = () => ({});
  private contextName: string | null = null;
  /** What is read on a terminal is broken at words. */
  private wraps = { stdout: whole, stderr: whole };

  /** Aborted by Ctrl-C, SIGTERM, --timeout, or a reader that went away. Pass it on. */
  protected get signal(): AbortSignal {
    return this.cancel.signal;
  }

  /** What is being done now: names node and step. Shown with -v, and in the error when a limit passes. */
  protected step(doing: string): void {
    this.progress.step = doing;
    if (this.given['verbose'] || this.given['trace']) writeErr(`${doing}\n`);
  }

  /** Before the first write goes out: from here on a failure can no longer say "nothing was changed". */
  protected changing(state: 'unknown' | 'some' = 'unknown', nodes: string[] = []): void {
    this.progress.changed = state;
    this.progress.changedNodes = nodes;
  }

  /** A change that came to nothing after all (every node refused). */
  protected unchanged(): void {
    this.progress.changed = 'nothing';
  }

  protected warning(text: string): void {
    this.warnings.push(text);
  }

  /** Closed at the end, last first, each bounded. */
  protected onClose(closer: () => Promise<void> | void): void {
    this.closers.push(closer);
  }

  /** Config file, context, environment and flags together. Opens nothing. `lane`: one of several that were named. */
  protected surroundings(lane?: string): Promise<Surroundings> {
    if (lane !== undefined)
      return import('../compose/open-cluster.js').then(({ surroundings }) =>
        surroundings({ ...this.given, lane }, process.env),
      );
    this.opened ??= import('../compose/open-cluster.js').then(async ({ surroundings }) => {
      const found = await surroundings(this.given, process.env, !(this.constructor as typeof SeqCommand).needsConfig);
      this.contextName = found.sources.context?.name ?? null;
      return found;
    });
    return this.opened;
  }

  /** The cluster's nodes, connected lazily; `cluster.nodes` are all configured ones, `cluster.asked` those of --on. */
  protected async cluster(options: { identity?: 'discover' | 'as-configured'; lane?: string } = {}): Promise<Cluster> {
    const bundle = this.given['from-bundle'] as string | undefined;
    const cluster = bundle === undefined ? await this.liveCluster(options) : await this.bundledCluster(bundle);
    this.onClose(() => cluster.close());
    this.asked = () => ({ nodesAsked: cluster.asked.length, nodesAnswered: cluster.answers(), quorum: cluster.quorum });
    return cluster;
  }

  private async liveCluster({
    lane,
    ...options
  }: {
    identity?: 'discover' | 'as-configured';
    lane?: string;
  }): Promise<Cluster> {
    const [{ openCluster }, around] = await Promise.all([
      import('../compose/open-cluster.js'),
      this.surroundings(lane),
    ]);
    // What may change something must know whose nodes these are; what makes a cluster, or makes one anew, finds that
    // out by itself.
    const changes = 'dry-run' in (this.ctor.flags ?? {});
    const purpose = (this.id ?? '').startsWith('cluster')
      ? {}
      : { purpose: changes ? ('act' as const) : ('look' as const) };
    return openCluster(around, { ...options, ...purpose, signal: this.signal });
  }

  /** The same nodes as a file remembers them. Nothing is asked over the network. */
  private async bundledCluster(path: string): Promise<Cluster> {
    const [{ openBundle }, around] = await Promise.all([import('../compose/bundle.js'), this.surroundings()]);
    this.step(`reading ${path}`);
    const { cluster, context, note } = await openBundle(path, {
      on: setting<string[] | null>(around.sources, 'on', asList, null).value,
      signal: this.signal,
    });
    this.contextName = context;
    this.warning(note);
    return cluster;
  }

  /** The nodes as the other dialect's, when that is what they are said to hold; null: they are our own. */
  protected async fuel(): Promise<FuelCluster | null> {
    if (this.given['from-bundle'] !== undefined) {
      if (this.given['dialect'] === 'fuel')
        throw usageError('--from-bundle and --dialect fuel do not go together', [
          'a bundle holds a cluster of seq: leave --dialect out',
        ]);
      return null;
    }
    const [{ openFuel }, around] = await Promise.all([import('../compose/fuel-nodes.js'), this.surroundings()]);
    const cluster = await openFuel(around);
    if (cluster === null) return null;
    this.onClose(() => cluster.close());
    this.asked = () => ({ nodesAsked: cluster.nodes.length, quorum: cluster.quorum });
    return cluster;
  }

  /** How far a long reading is, on stderr; gone at the end whatever the end is. */
  protected longReading(what: string): StreamProgress {
    void import('../support/lean-heap.js').then(({ keepHeapLean }) => keepHeapLean());
    const progress = new StreamProgress(what, Boolean(this.given['quiet']), writeErr);
    this.onClose(() => progress.end());
    return progress;
  }

  /**
   * A setting that a flag of this command shares with SEQ_*, context and config file, e.g. `await
   * this.setting('block-time', asDuration, 1000)`.
   */
  protected async setting<T>(flag: string, parse: (text: string, what: string) => T, fallback: T): Promise<Setting<T>> {
    return setting((await this.surroundings()).sources, flag, parse, fallback);
  }

  /** Writes part of a streamed answer. Waits while the reader is slow. */
  protected write(text: string | Uint8Array): Promise<void> {
    return writeOut(text);
  }

  /** Progress, hints, questions: stderr. Silent with -q. */
  protected note(text: string): void {
    if (!this.given['quiet']) writeErr(`${prose(text, this.wraps.stderr).join('\n')}\n`);
  }

  /** True when a question may be asked: a terminal on stdin and stderr, and no --no-input. */
  protected get mayAsk(): boolean {
    return (
      Boolean(process.stdin.isTTY && process.stderr.isTTY) &&
      !this.given['no-input'] &&
      !truthy(process.env['SEQ_NO_INPUT'])
    );
  }

  protected get colour(): boolean {
    const env = process.env;
    return (
      Boolean(process.stdout.isTTY) &&
      !this.given['no-color'] &&
      !env['NO_COLOR'] &&
      env['TERM'] !== 'dumb' &&
      !truthy(env['SEQ_NO_COLOR'])
    );
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
    const parsed = await super.parse(options, argv);
    this.given = parsed.flags as AnyFlags;
    return parsed;
  }

  override async run(): Promise<void> {
    this.progress.command = (this.id ?? '').replaceAll(':', ' ');
    const stops = [onOutputFailure((error) => this.cancel.abort(error))];
    const onSignal = () => this.cancel.abort(interrupted.reason);
    if (interrupted.aborted) onSignal();
    interrupted.addEventListener('abort', onSignal, { once: true });
    stops.push(() => interrupted.removeEventListener('abort', onSignal));
    try {
      this.wraps = { stdout: await terminalWrap(process.stdout), stderr: await terminalWrap(process.stderr) };
      await this.parse();
      if (this.given['dialect'] === 'fuel' && !(this.constructor as typeof SeqCommand).readsFuel)
        throw (await import('../compose/fuel-nodes.js')).refuseDialect(this.id ?? '', this.ctor.flags ?? {});
      const timeoutMs = await this.timeoutMs();
      if (timeoutMs !== null) {
        const timer = setTimeout(() => this.cancel.abort(new DeadlinePassed(timeoutMs)), timeoutMs);
        stops.push(() => clearTimeout(timer));
      }
      if (this.watches) await this.watch();
      else await this.answer(await this.cancellable(this.perform()));
    } finally {
      for (const stop of stops) stop();
      await this.close();
    }
  }

  /** Shows a result and sets the exit code. Commands need it only for partial answers before they throw. */
  protected async present(result: Result): Promise<void> {
    const format = await this.format();
    const fields = (this.given['fields'] as string[] | undefined) ?? [];
    const own = result.texts?.[format];
    if (own !== undefined) {
      await writeOut(own);
    } else if (format === 'json' || format === 'yaml' || format === 'ndjson') {
      await this.presentData(result, format, fields);
    } else {
      const { renderText, textFields } = await import('../present/text.js');
      const unknown = fields.filter((field) => !textFields(result).includes(field));
      this.refuseFields(unknown, textFields(result));
      for (const warning of [...this.warnings, ...(result.warnings ?? [])])
        writeErr(`${this.wraps.stderr('warning: ', warning).join('\n')}\n`);
      await writeOut(
        renderText(result, {
          format: format as 'table' | 'wide' | 'plain' | 'csv',
          fields,
          colour: this.colour,
          quiet: Boolean(this.given['quiet']),
          width: process.stdout.columns ?? (Number(process.env['COLUMNS']) || 80),
          wrap: this.wraps.stdout,
          ...(format === 'table' || format === 'wide'
            ? { drawTable: (await import('../present/draw-table.js')).drawTable }
            : {}),
        }),
      );
    }
    process.exitCode = result.exit ?? EXIT.ok;
  }

  override async catch(thrown: Error & { exitCode?: number }): Promise<void> {
    if (thrown instanceof ReaderGone || this.cancel.signal.reason instanceof ReaderGone) {
      process.exitCode = EXIT.ok;
      return;
    }
    const error = toSeqError(thrown, this.progress);
    process.exitCode = error.exit;
    const format = await this.failureFormat();
    if (format === null) {
      const colour =
        Boolean(process.stderr.isTTY) &&
        !process.env['NO_COLOR'] &&
        process.env['TERM'] !== 'dumb' &&
        !this.argv.includes('--no-color');
      writeErr(renderError(error, colour, this.wraps.stderr));
    } else {
      try {
        await this.writeEnvelope(this.failureEnvelope(error), this.watches && format === 'json' ? 'ndjson' : format);
      } catch (failure) {
        if (!(failure instanceof ReaderGone)) writeErr(renderError(error, false, this.wraps.stderr));
      }
    }
    if (this.argv.includes('--trace'))
      writeErr(`${(error.cause instanceof Error ? error.cause : thrown).stack ?? ''}\n`);
  }

  override toErrorJson(thrown: unknown): unknown {
    return this.failureEnvelope(toSeqError(thrown, this.progress));
  }

  /** As asked on the command line; else as the settings say, where they can be read. */
  private async failureFormat(): Promise<'json' | 'yaml' | 'ndjson' | null> {
    const asked = askedFormat(this.argv, process.env);
    if (asked || this.given['output']) return asked;
    const format = await this.format().catch(() => null);
    return format === 'json' || format === 'yaml' || format === 'ndjson' ? format : null;
  }

  private failureEnvelope(error: SeqError) {
    return envelope(this.kind, this.meta(), { error, warnings: this.warnings });
  }

  private meta(): Meta {
    return {
      context: this.contextName,
      at: new Date().toISOString(),
      durationMs: Math.round(performance.now() - this.startedAt),
      nodesAsked: 0,
      nodesAnswered: 0,
      quorum: 0,
      ...this.asked(),
    };
  }

  private async presentData(result: Result, format: 'json' | 'yaml' | 'ndjson', fields: string[]): Promise<void> {
    const document = envelope(this.kind, this.meta(), { result, warnings: this.warnings });
    if (fields.length > 0) {
      const { data, unknown } = pickFields(document.data, fields);
      this.refuseFields(
        unknown,
        document.data !== null && typeof document.data === 'object' ? Object.keys(document.data) : [],
      );
      document.data = data;
    }
    if (format === 'ndjson' && result.items) {
      const { wire } = await import('../present/envelope.js');
      const kept =
        fields.length > 0
          ? result.items.map((item) => pickFields(wire(item), fields).data)
          : result.items.map((item) => wire(item));
      await writeOut(kept.map((item) => `${JSON.stringify(item)}\n`).join(''));
    } else {
      await this.writeEnvelope(document, this.watches && format === 'json' ? 'ndjson' : format);
    }
  }

  private async writeEnvelope(document: unknown, format: 'json' | 'yaml' | 'ndjson'): Promise<void> {
    if (format === 'yaml') {
      const { stringify } = await import('../config/yaml.js');
      await writeOut(`${this.watches ? '---\n' : ''}${stringify(document, { lineWidth: 0 })}`);
    } else {
      await writeOut(`${format === 'json' ? JSON.stringify(document, null, 2) : JSON.stringify(document)}\n`);
    }
  }

  /** After a change it is too late to refuse: there the unknown field is only warned of. */
  private refuseFields(unknown: string[], known: string[]): void {
    if (unknown.length === 0) return;
    const message = `--fields: there is no field ${unknown.join(', ')}`;
    if ('dry-run' in (this.ctor.flags ?? {})) writeErr(`warning: ${message}\n`);
    else throw usageError(message, [`choose from: ${known.join(', ')}`]);
  }

  private async timeoutMs(): Promise<number | null> {
    const { deadline, ownsTimeout } = this.constructor as typeof SeqCommand;
    if (ownsTimeout) return null;
    const flag = this.given['timeout'] as number | undefined;
    if (flag !== undefined) return flag;
    if (!deadline || this.watches || this.given['follow']) return null;
    return (await this.setting('timeout', asDuration, DEFAULT_TIMEOUT_MS)).value;
  }

  private async answer(result: Result | null): Promise<void> {
    if (result) return this.present(result);
    for (const warning of this.warnings) this.note(`warning: ${warning}`);
    process.exitCode ??= EXIT.ok;
  }

  /** The work, or the reason of the cancel when the work does not end by itself within the grace time. */
  private async cancellable<T>(work: Promise<T>): Promise<T> {
    const { signal } = this.cancel;
    let stop = () => {};
    const cancelled = new Promise<never>((_, reject) => {
      const onAbort = () => {
        const graceMs = (this.constructor as typeof SeqCommand).graceMs;
        const timer = setTimeout(
          () => reject(signal.reason as Error),
          signal.reason instanceof ReaderGone ? Math.min(graceMs, GRACE_MS) : graceMs,
        );
        stop = () => clearTimeout(timer);
      };
      if (signal.aborted) onAbort();
      else signal.addEventListener('abort', onAbort, { once: true });
    });
    cancelled.catch(() => undefined);
    try {
      return await Promise.race([work, cancelled]);
    } catch (error) {
      // A use case that stops because of the signal usually throws an AbortError; the reason behind it is what is
      // worth saying.
      if (signal.aborted && !(error instanceof SeqError)) throw signal.reason;
      throw error;
    } finally {
      stop();
      work.catch(() => undefined);
    }
  }

  /** `--watch` of a look verb; `lab up --watch` means the live screen. */
  private get watches(): boolean {
    return Boolean(this.given['watch']) && 'interval' in (this.ctor.flags ?? {});
  }

  private async watch(): Promise<void> {
    const intervalMs = (await this.setting('interval', asDuration, 1000)).value;
    const count = (this.given['count'] as number | undefined) ?? Infinity;
    const screen =
      process.stdout.isTTY && ['table', 'wide'].includes(await this.format()) && process.env['TERM'] !== 'dumb';
    for (let look = 1; look <= count; look += 1) {
      const probed = await this.cancellable(this.perform()).then(
        (result) => ({ result }),
        (error: unknown) => ({ error }),
      );
      await this.close();
      if (screen) await writeOut('\u001b[H\u001b[2J');
      if ('result' in probed) await this.answer(probed.result);
      // An outage is what one watches for: it is shown, and the next look may find the end of it.
      else if (probed.error instanceof SeqError && probed.error.retryable && !this.signal.aborted)
        await this.catch(probed.error);
      else throw probed.error;
      if (look < count) await this.cancellable(pause(intervalMs, this.signal));
    }
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

function truthy(text: string | undefined): boolean {
  return text !== undefined && text !== '' && asSwitch(text, 'environment');
}

function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms);
    timer.unref?.();
    if (signal) {
      timer.ref?.();
      signal.addEventListener(
        'abort',
        () => {
          clearTimeout(timer);
          reject(signal.reason as Error);
        },
        { once: true },
      );
    }
  });
}

export type { ExitCode, Result };
