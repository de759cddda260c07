// One use of the live screen: terminal, keys, probes and drawing together. Ends on request and restores the terminal.
// Ink draws into a stream of this program and never into the terminal. The terminal gets only the rows that changed
// (screen.ts).
import { EventEmitter } from 'node:events';
import type { Clock, NodePort } from '../core/ports.js';
import { InvariantError } from '../core/errors.js';
import type { SummarizeOptions } from '../core/view/cluster-view.js';
import { initialState } from './model.js';
import { press, type Effect, type Key } from './model-ui.js';
import { lastWords } from './panels/banner.js';
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
  summarize: SummarizeOptions;
}

interface SessionOptions {
  /** At least one. The first is shown, the others are tabs. */
  lanes: readonly SessionLane[];
  /** The nodes are files: one probe, and keys. */
  still?: boolean;
  limitMs: number;
  intervalMs: number;
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

/** Stands between Ink and the terminal. In its debug mode Ink writes every frame whole. */
class FrameSink extends EventEmitter {
  columns = 80;
  rows = 24;
  readonly isTTY = false;
  private open = true;

  constructor(private readonly draw: (frame: string) => void) {
    super();
  }

  readonly write = (text: string): boolean => {
    if (this.open && !text.startsWith('\u001b[?')) this.draw(text);
    return true;
  };

  close(): void {
    this.open = false;
  }
}

/** Call it only on a real terminal. */
export async function loadInk() {
  // Ink draws nothing until the end when it believes that it runs in CI. This is a terminal, whatever the environment
  // says.
  process.env['CI'] = '0';
  process.env['CONTINUOUS_INTEGRATION'] = '0';
  const [{ render }, { App }] = await Promise.all([import('ink'), import('./components/app.js')]);
  return { render, App };
}

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
  const { clock, stdin, stdout, signal, theme } = options;
  const { render, App } = await loadInk();
  if (signal.aborted) return 'signal';

  const size = () => ({ columns: stdout.columns || 80, rows: stdout.rows || 24 });
  const [first, ...others] = options.lanes.map(({ name, title, nodes, summarize }) => ({
    name,
    state: initialState({
      title,
      still: options.still,
      nodes,
      size: size(),
      at: clock.now(),
      wall: clock.wall(),
      intervalMs: options.intervalMs,
      summarize,
    }),
  }));
  if (first === undefined) throw new InvariantError('a watch needs something to watch');
  const store = new WatchStore(first.state, theme, others, first.name);
  const screen = new Screen(terminalOf((stdout as NodeJS.WriteStream & { fd: number }).fd), () =>
    lastWords(store.state, theme),
  );
  const sink = new FrameSink((frame) => screen.draw(frame));
  Object.assign(sink, size());
  const budget = new Budget();
  const pollers = options.lanes.map(
    ({ nodes, rediscover }, lane) =>
      new Poller({
        nodes,
        still: options.still,
        rediscover,
        limitMs: options.limitMs,
        clock,
        budget,
        state: () => store.stateOf(lane),
        dispatch: (input) => store.dispatch(input, lane),
        onError: (error) => fail(error),
        shown: () => store.lane === lane,
        everyMs: () => Math.max(store.state.ui.intervalMs, store.lane === lane ? 0 : BESIDE_MS * others.length),
      }),
  );
  const poller = () => pollers[store.lane] as Poller;

  let finish: (end: SessionEnd) => void = () => undefined;
  let fail: (error: unknown) => void = () => undefined;
  const ended = new Promise<SessionEnd>((resolve, reject) => {
    finish = resolve;
    fail = reject;
  });

  // Also runs after a crash: every end of the process emits `exit`.
  const onExit = () => screen.leave();
  process.on('exit', onExit);

  const onResize = () => {
    Object.assign(sink, size());
    screen.forget();
    store.dispatch({ type: 'resized', ...size() });
  };
  const suspend = () => {
    screen.pause();
    stdin.setRawMode(false);
    process.kill(process.pid, 'SIGSTOP');
  };
  const resume = () => {
    stdin.setRawMode(true);
    screen.enter();
    onResize();
    poller()
      .poll()
      .catch((error: unknown) => fail(error));
  };
  const act = async (effect: Effect): Promise<void> => {
    switch (effect.do) {
      case 'quit':
        return finish('quit');
      case 'interrupt':
        return finish('interrupt');
      case 'suspend':
        return suspend();
      case 'probe':
        return poller().poll();
      case 'redraw':
        return onResize();
      case 'interval':
        return options.still === true
          ? undefined
          : pollers.forEach((one) => {
              one.restart();
            });
      case 'lane':
        store.show(effect.at);
        pollers.forEach((one) => {
          one.restart();
        });
        return poller().poll();
      case 'copy':
        screen.raw(`\u001b]52;c;${Buffer.from(effect.text).toString('base64')}\u0007`);
        return store.dispatch({ type: 'told', text: `sent to the clipboard: ${effect.text}`, at: clock.now() });
      case 'snapshot': {
        const { data } = store.state;
        const text = await options
          .snapshot({
            view: data.view,
            events: data.events,
            polls: data.polls,
            nodes: data.nodes.map(({ id, url, good, rtts, entries }) => ({
              id,
              url,
              facts: good?.view ?? null,
              roundTripsMs: rtts,
              entries: entries.entries,
            })),
          })
          .then(
            (path) => `written: ${path}`,
            (error: unknown) => `could not write it: ${error instanceof Error ? error.message : String(error)}`,
          );
        return store.dispatch({ type: 'told', text, at: clock.now() });
      }
    }
  };
  const onKey = (key: Key) => {
    const { state, effect } = press(store.state, key);
    store.set({ ...state, now: clock.now(), wall: clock.wall() });
    // A height that was just opened is read at once, not only with the next probe.
    if (options.still === true && state.ui.detail?.of === 'height')
      act({ do: 'probe' }).catch((error: unknown) => fail(error));
    if (effect !== null) act(effect).catch((error: unknown) => fail(error));
  };
  const onAbort = () => finish('signal');
  const unsubscribe = store.subscribe(() => {
    if (options.count !== undefined && store.state.data.polls >= options.count) finish('quit');
  });

  screen.enter();
  const app = render(<App store={store} onKey={onKey} />, {
    stdout: sink as unknown as NodeJS.WriteStream,
    stderr: sink as unknown as NodeJS.WriteStream,
    stdin,
    debug: true,
    exitOnCtrlC: false,
    patchConsole: false,
    isScreenReaderEnabled: false,
  });
  const failed = app.waitUntilExit().then(() => 'quit' as const);
  stdout.on('resize', onResize);
  process.on('SIGTSTP', suspend);
  process.on('SIGCONT', resume);
  signal.addEventListener('abort', onAbort, { once: true });
  stdin.on('end', onAbort);
  let stopClock = () => undefined as void;
  const beat = () => {
    stopClock = clock.after(1000, beat);
    // Faster probes update the clock by themselves.
    if (store.state.ui.intervalMs > 1000) store.dispatch({ type: 'clock', at: clock.now(), wall: clock.wall() });
  };
  try {
    beat();
    // An error of probing ends the session here. The terminal is restored before the error is shown.
    const probing = watching(
      pollers,
      options.still === true,
      (ms) =>
        new Promise((resolve) => {
          clock.after(ms, resolve);
        }),
    );
    return await Promise.race([ended, failed, probing.then(() => ended)]);
  } finally {
    pollers.forEach((one) => {
      one.stop();
    });
    stopClock();
    unsubscribe();
    stdout.off('resize', onResize);
    process.off('SIGTSTP', suspend);
    process.off('SIGCONT', resume);
    signal.removeEventListener('abort', onAbort);
    stdin.off('end', onAbort);
    sink.close();
    app.unmount();
    failed.catch(() => undefined);
    if (stdin.isTTY) stdin.setRawMode(false);
    screen.leave();
    process.off('exit', onExit);
  }
}
