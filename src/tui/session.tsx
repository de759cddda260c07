// One use of the live screen: terminal, keys, probes and drawing together. Ends on request and restores the terminal.
// Ink draws into a stream of this program and never into the terminal. The terminal gets only the rows that changed
// (screen.ts).
import type { Clock, NodePort } from '../core/ports.js';
import { InvariantError } from '../core/errors.js';
import type { SummarizeOptions } from '../core/view/cluster-view.js';
import { FrameSink } from './frame-sink.js';
import { initialState } from './model.js';
import { press, type Effect, type Key } from './model-ui.js';
import { isWorse } from './model-since.js';
import { lastWords, verdictOf } from './panels/banner.js';
import { Budget, Poller, type PollOptions } from './poll.js';
import { Screen, terminalOf } from './screen.js';
import { WatchStore } from './store.js';
import type { Theme } from './theme.js';

/** One chain to watch: its name, its nodes, and how its verdict is made. */
interface SessionLane {
  name: string;
  title: string;
  nodes: readonly NodePort[];
  rediscover?: PollOptions['rediscover'];
  identified?: boolean;
  fixed?: boolean;
  summarize: SummarizeOptions;
}

interface SessionOptions {
  /** At least one. The first is shown, the others are tabs. */
  lanes: readonly SessionLane[];
  /** The nodes are files: one probe, and keys. */
  still?: boolean;
  limitMs: number;
  intervalMs: number;
  /** Rings the terminal's bell when a verdict gets worse. */
  bell?: boolean;
  clock: Clock;
  theme: Theme;
  signal: AbortSignal;
  stdin: NodeJS.ReadStream;
  stdout: NodeJS.WriteStream;
  /** End after this many probes. */
  count?: number;
  /** Writes what is known to a file and returns where. */
  snapshot(data: unknown): Promise<string>;
}

type SessionEnd = 'quit' | 'interrupt' | 'signal';

/** Call it only on a real terminal. */
export async function loadInk() {
  // Ink draws nothing until the end when it believes that it runs in CI. This is a terminal, whatever the environment
  // says.
  process.env['CI'] = '0';
  process.env['CONTINUOUS_INTEGRATION'] = '0';
  const [{ render }, { App }] = await Promise.all([import('ink'), import('./components/app.js')]);
  return { render, App };
}

const BELL = '\u0007';

/** The lanes that are not shown probe a node twice a second in total. */
const BESIDE_MS = 500;

/** The lane on the screen first, the others one after another: five commands per second and node are soon used up. */
async function watching(
  [first, ...others]: readonly Poller[],
  still: boolean,
  wait: (ms: number) => Promise<void>,
): Promise<void> {
  await first?.first();
  if (!still) first?.start();
  for (const other of others) {
    await wait(BESIDE_MS);
    await other.first();
    if (!still) other.start();
  }
}

export async function runSession(options: SessionOptions): Promise<SessionEnd> {
  const ink = await loadInk();
  if (options.signal.aborted) return 'signal';
  return new Session(options).run(ink);
}

class Session {
  private readonly store: WatchStore;
  private readonly screen: Screen;
  private readonly sink: FrameSink;
  private readonly pollers: readonly Poller[];
  private readonly ended: Promise<SessionEnd>;
  private finish: (end: SessionEnd) => void = () => undefined;
  private fail: (error: unknown) => void = () => undefined;

  constructor(private readonly options: SessionOptions) {
    const { theme, stdout } = options;
    this.store = this.openStore();
    this.screen = new Screen(terminalOf((stdout as NodeJS.WriteStream & { fd: number }).fd), () =>
      lastWords(this.store.state, theme),
    );
    this.sink = new FrameSink((frame) => this.screen.draw(frame));
    Object.assign(this.sink, this.size());
    this.pollers = this.openPollers();
    this.ended = new Promise<SessionEnd>((resolve, reject) => {
      this.finish = resolve;
      this.fail = reject;
    });
  }

  async run({ render, App }: Awaited<ReturnType<typeof loadInk>>): Promise<SessionEnd> {
    const stopListening = this.listen();
    this.screen.enter();
    const app = render(<App store={this.store} onKey={this.onKey} />, {
      stdout: this.sink as unknown as NodeJS.WriteStream,
      stderr: this.sink as unknown as NodeJS.WriteStream,
      stdin: this.options.stdin,
      debug: true,
      exitOnCtrlC: false,
      patchConsole: false,
      isScreenReaderEnabled: false,
    });
    const failed = app.waitUntilExit().then(() => 'quit' as const);
    const stopClock = this.startClock();
    try {
      // An error of probing ends the session here. The terminal is restored before the error is shown.
      const probing = watching(this.pollers, this.options.still === true, this.pause);
      return await Promise.race([this.ended, failed, probing.then(() => this.ended)]);
    } finally {
      this.pollers.forEach((one) => {
        one.stop();
      });
      stopClock();
      stopListening();
      this.sink.close();
      app.unmount();
      failed.catch(() => undefined);
      this.restoreTerminal();
    }
  }

  private size(): { columns: number; rows: number } {
    const { stdout } = this.options;
    return { columns: stdout.columns || 80, rows: stdout.rows || 24 };
  }

  private openStore(): WatchStore {
    const { lanes, still, clock, intervalMs, theme } = this.options;
    const [first, ...others] = lanes.map(({ name, title, nodes, summarize }) => ({
      name,
      state: initialState({
        title,
        still,
        nodes,
        size: this.size(),
        at: clock.now(),
        wall: clock.wall(),
        intervalMs,
        summarize,
      }),
    }));
    if (first === undefined) throw new InvariantError('a watch needs something to watch');
    return new WatchStore(first.state, theme, others, first.name);
  }

  private openPollers(): Poller[] {
    const { lanes, still, limitMs, clock, bell } = this.options;
    const { store } = this;
    const budget = new Budget();
    const besideMs = BESIDE_MS * (lanes.length - 1);
    return lanes.map(
      ({ nodes, rediscover, identified, fixed }, lane) =>
        new Poller({
          nodes,
          still,
          rediscover,
          identified,
          fixed,
          limitMs,
          clock,
          budget,
          state: () => store.stateOf(lane),
          dispatch: (input) => {
            const before = verdictOf(store.stateOf(lane).data).verdict;
            store.dispatch(input, lane);
            if (bell === true && isWorse(before, verdictOf(store.stateOf(lane).data).verdict)) this.screen.raw(BELL);
          },
          onError: (error) => this.fail(error),
          shown: () => store.lane === lane,
          everyMs: () => Math.max(store.state.ui.intervalMs, store.lane === lane ? 0 : besideMs),
        }),
    );
  }

  /** Listens to the terminal, to the signals and to the store. Returns what ends that. */
  private listen(): () => void {
    const { stdin, stdout, signal, count } = this.options;
    const unsubscribe = this.store.subscribe(() => {
      if (count !== undefined && this.store.state.data.polls >= count) this.finish('quit');
    });
    // Also runs after a crash: every end of the process emits `exit`.
    process.on('exit', this.leave);
    stdout.on('resize', this.onResize);
    process.on('SIGTSTP', this.suspend);
    process.on('SIGCONT', this.resume);
    signal.addEventListener('abort', this.onAbort, { once: true });
    stdin.on('end', this.onAbort);
    return () => {
      unsubscribe();
      stdout.off('resize', this.onResize);
      process.off('SIGTSTP', this.suspend);
      process.off('SIGCONT', this.resume);
      signal.removeEventListener('abort', this.onAbort);
      stdin.off('end', this.onAbort);
    };
  }

  private startClock(): () => void {
    const { clock } = this.options;
    let stop = () => undefined as void;
    const beat = () => {
      stop = clock.after(1000, beat);
      // Faster probes update the clock by themselves.
      if (this.store.state.ui.intervalMs > 1000)
        this.store.dispatch({ type: 'clock', at: clock.now(), wall: clock.wall() });
    };
    beat();
    return () => stop();
  }

  private restoreTerminal(): void {
    const { stdin } = this.options;
    if (stdin.isTTY) stdin.setRawMode(false);
    this.screen.leave();
    process.off('exit', this.leave);
  }

  private readonly leave = (): void => this.screen.leave();

  private readonly onAbort = (): void => this.finish('signal');

  private readonly onResize = (): void => {
    const size = this.size();
    Object.assign(this.sink, size);
    this.screen.forget();
    this.store.dispatch({ type: 'resized', ...size });
  };

  private readonly suspend = (): void => {
    this.screen.pause();
    this.options.stdin.setRawMode(false);
    process.kill(process.pid, 'SIGSTOP');
  };

  private readonly resume = (): void => {
    this.options.stdin.setRawMode(true);
    this.screen.enter();
    this.onResize();
    this.start({ do: 'probe' });
  };

  private readonly pause = (ms: number): Promise<void> =>
    new Promise((resolve) => {
      this.options.clock.after(ms, resolve);
    });

  private readonly onKey = (key: Key): void => {
    const { clock, still } = this.options;
    const { state, effect } = press(this.store.state, key);
    this.store.set({ ...state, now: clock.now(), wall: clock.wall() });
    // A height that was just opened is read at once, not only with the next probe.
    if (still === true && state.ui.detail?.of === 'height') this.start({ do: 'probe' });
    if (effect !== null) this.start(effect);
  };

  private start(effect: Effect): void {
    this.act(effect).catch((error: unknown) => this.fail(error));
  }

  private async act(effect: Effect): Promise<void> {
    switch (effect.do) {
      case 'quit':
        return this.finish('quit');
      case 'interrupt':
        return this.finish('interrupt');
      case 'suspend':
        return this.suspend();
      case 'probe':
        return this.probe();
      case 'redraw':
        return this.onResize();
      case 'interval':
        if (this.options.still !== true) this.restartPollers();
        return;
      case 'lane':
        this.store.show(effect.at);
        this.restartPollers();
        return this.probe();
      case 'copy':
        this.screen.raw(`\u001b]52;c;${Buffer.from(effect.text).toString('base64')}\u0007`);
        return this.tell(`sent to the clipboard: ${effect.text}`);
      case 'snapshot':
        return this.tell(await this.writeSnapshot());
    }
  }

  private probe(): Promise<void> {
    return (this.pollers[this.store.lane] as Poller).poll();
  }

  private restartPollers(): void {
    this.pollers.forEach((one) => {
      one.restart();
    });
  }

  private tell(text: string): void {
    this.store.dispatch({ type: 'told', text, at: this.options.clock.now() });
  }

  /** Writes what is known to a file. Says where, or why not. */
  private async writeSnapshot(): Promise<string> {
    const { view, events, polls, nodes } = this.store.state.data;
    const known = nodes.map(({ id, url, good, rtts, entries }) => ({
      id,
      url,
      facts: good?.view ?? null,
      roundTripsMs: rtts,
      entries: entries.entries,
    }));
    try {
      return `written: ${await this.options.snapshot({ view, events, polls, nodes: known })}`;
    } catch (error) {
      return `could not write it: ${error instanceof Error ? error.message : String(error)}`;
    }
  }
}
