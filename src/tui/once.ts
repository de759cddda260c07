// One frame as text, made from two probes of all nodes, as in `seq status`.
import type { Clock, NodePort } from '../core/ports.js';
import type { SummarizeOptions } from '../core/view/cluster-view.js';
import { frame } from './frame.js';
import { initialState, reduce } from './model.js';
import { Poller, type PollOptions } from './poll.js';
import type { Theme } from './theme.js';
import { type WatchState, INITIAL_UI } from './model-state.js';

export interface OnceOptions {
  title: string;
  still?: boolean;
  nodes: readonly NodePort[];
  rediscover?: PollOptions['rediscover'];
  identified?: boolean;
  fixed?: boolean;
  limitMs: number;
  clock: Clock;
  summarize: SummarizeOptions;
  size: { columns: number; rows: number };
  theme: Theme;
}

export async function watchOnce(options: OnceOptions): Promise<{ text: string; state: WatchState }> {
  const { title, still, nodes, limitMs, clock, summarize, size, theme } = options;
  let state = initialState({
    title,
    still,
    nodes,
    size,
    at: clock.now(),
    wall: clock.wall(),
    intervalMs: INITIAL_UI.intervalMs,
    summarize,
  });
  const poller = new Poller({
    nodes,
    still,
    rediscover: options.rediscover,
    identified: options.identified,
    fixed: options.fixed,
    limitMs,
    clock,
    state: () => state,
    dispatch: (input) => {
      state = reduce(state, input);
    },
  });
  await poller.first();
  poller.stop();
  return {
    text: `${frame(state, theme)
      .map((row) => row.trimEnd())
      .join('\n')}\n`,
    state,
  };
}
