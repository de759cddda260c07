// Probes without a screen, one after the other.
import { pause } from '../core/nodes/pause.js';
import type { Clock, NodePort } from '../core/ports.js';
import type { SummarizeOptions } from '../core/view/cluster-view.js';
import { initialState, reduce } from './model.js';
import { Poller, type PollOptions } from './poll.js';
import type { WatchState } from './model-state.js';

export interface LoopOptions {
  title: string;
  still?: boolean;
  nodes: readonly NodePort[];
  rediscover?: PollOptions['rediscover'];
  identified?: boolean;
  fixed?: boolean;
  limitMs: number;
  intervalMs: number;
  clock: Clock;
  summarize: SummarizeOptions;
  signal: AbortSignal;
  count?: number;
}

export async function watchLoop(options: LoopOptions, onProbe: (state: WatchState) => Promise<void>): Promise<void> {
  const { nodes, limitMs, intervalMs, clock, signal, count = Infinity } = options;
  let state = initialState({
    title: options.title,
    still: options.still,
    nodes,
    size: { columns: 80, rows: 24 },
    at: clock.now(),
    wall: clock.wall(),
    intervalMs,
    summarize: options.summarize,
  });
  const poller = new Poller({
    nodes,
    still: options.still,
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
  try {
    await poller.first();
    for (let probes = 1; !signal.aborted; probes += 1) {
      await onProbe(state);
      if (probes >= count) return;
      await pause(clock, intervalMs, signal);
      if (!signal.aborted) await poller.poll();
    }
  } finally {
    poller.stop();
  }
}
