// One sitting in front of the live screen: terminal, keys, looks and drawing joined; ends when asked to and gives the terminal back.
// Ink draws into a stream of ours and never into the terminal: what reaches it are the rows that changed (screen.ts).
import { EventEmitter } from 'node:events';
import type { Clock, NodePort } from '../core/ports.js';
import type { SummarizeOptions } from '../core/engine/inspect-model.js';
import { initialState } from './model.js';
import { press, type Effect, type Key } from './model-ui.js';
import { lastWords } from './panels/banner.js';
import { Poller, type PollOptions } from './poll.js';
import { Screen, terminalOf } from './screen.js';
import { WatchStore } from './store.js';
import type { Theme } from './theme.js';

export interface SessionOptions {
  title: string;
  /** The nodes are files: one look, and keys. */
  still?: boolean;
  nodes: readonly NodePort[];
  rediscover?: PollOptions['rediscover'];
  limitMs: number;
  intervalMs: number;
  clock: Clock;
  summarize: SummarizeOptions;
  theme: Theme;
  signal: AbortSignal;
  stdin: NodeJS.ReadStream;
  stdout: NodeJS.WriteStream;
  /** End after that many looks. */
  count?: number;
  /** Writes what is known to a file and says where. */
  snapshot(data: unknown): Promise<string>;
}

export type SessionEnd = 'quit' | 'interrupt' | 'signal';

/** Stands between Ink and the terminal: in its debug mode Ink writes every frame whole. */
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

/** Only on a real terminal. */
export async function loadInk() {
  // Ink draws nothing until the end where it believes to run in CI; this is a terminal, whatever the environment says.
  process.env['CI'] = '0';
  process.env['CONTINUOUS_INTEGRATION'] = '0';
  const [{ render }, { App }] = await Promise.all([import('ink'), import('./components/app.js')]);
  return { render, App };
}

export async function runSession(options: SessionOptions): Promise<SessionEnd> {
  const { clock, stdin, stdout, signal, theme } = options;
  const { render, App } = await loadInk();
  if (signal.aborted) return 'signal';

  const size = () => ({ columns: stdout.columns || 80, rows: stdout.rows || 24 });
  const store = new WatchStore(initialState({
    title: options.title, still: options.still, nodes: options.nodes, size: size(), at: clock.now(), wall: clock.wall(), intervalMs: options.intervalMs, summarize: options.summarize,
  }), theme);
  const screen = new Screen(terminalOf((stdout as NodeJS.WriteStream & { fd: number }).fd), () => lastWords(store.state, theme));
  const sink = new FrameSink((frame) => screen.draw(frame));
  Object.assign(sink, size());
  const poller = new Poller({ nodes: options.nodes, still: options.still, rediscover: options.rediscover, limitMs: options.limitMs, clock, state: () => store.state, dispatch: store.dispatch, onError: (error) => fail(error) });

  let finish: (end: SessionEnd) => void = () => undefined;
  let fail: (error: unknown) => void = () => undefined;
  const ended = new Promise<SessionEnd>((resolve, reject) => { finish = resolve; fail = reject; });

  // Also on the way out of a crash: whatever ends the process passes here.
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
    poller.look().catch((error: unknown) => fail(error));
  };
  const act = async (effect: Effect): Promise<void> => {
    switch (effect.do) {
      case 'quit': return finish('quit');
      case 'interrupt': return finish('interrupt');
      case 'suspend': return suspend();
      case 'look': return poller.look();
      case 'redraw': return onResize();
      case 'interval': return options.still === true ? undefined : poller.restart();
      case 'copy':
        screen.raw(`\u001b]52;c;${Buffer.from(effect.text).toString('base64')}\u0007`);
        return store.dispatch({ type: 'told', text: `sent to the clipboard: ${effect.text}`, at: clock.now() });
      case 'snapshot': {
        const { data } = store.state;
        const text = await options.snapshot({ view: data.view, events: data.events, looks: data.looks, nodes: data.nodes.map(({ id, url, good, rtts, entries }) => ({ id, url, facts: good?.view ?? null, roundTripsMs: rtts, entries: entries.entries })) })
          .then((path) => `written: ${path}`, (error: unknown) => `could not write it: ${error instanceof Error ? error.message : String(error)}`);
        return store.dispatch({ type: 'told', text, at: clock.now() });
      }
    }
  };
  const onKey = (key: Key) => {
    const { state, effect } = press(store.state, key);
    store.set({ ...state, now: clock.now(), wall: clock.wall() });
    // A height that was just opened is read at once; otherwise the next look would.
    if (options.still === true && state.ui.detail?.of === 'height') act({ do: 'look' }).catch((error: unknown) => fail(error));
    if (effect !== null) act(effect).catch((error: unknown) => fail(error));
  };
  const onAbort = () => finish('signal');
  const unsubscribe = store.subscribe(() => {
    if (options.count !== undefined && store.state.data.looks >= options.count) finish('quit');
  });

  screen.enter();
  const app = render(<App store={store} onKey={onKey} />, {
    stdout: sink as unknown as NodeJS.WriteStream, stderr: sink as unknown as NodeJS.WriteStream, stdin, debug: true, exitOnCtrlC: false, patchConsole: false, isScreenReaderEnabled: false,
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
    // Faster looks carry the clock themselves.
    if (store.state.ui.intervalMs > 1000) store.dispatch({ type: 'clock', at: clock.now(), wall: clock.wall() });
  };
  try {
    beat();
    // Whatever goes wrong in looking goes wrong here, and the terminal is given back before it is told.
    const looking = poller.first().then(() => (options.still === true ? undefined : poller.start()));
    return await Promise.race([ended, failed, looking.then(() => ended)]);
  } finally {
    poller.stop();
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
