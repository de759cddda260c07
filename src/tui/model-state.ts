// What `seq watch` knows and shows: the facts of each node, of the cluster, and where the operator is on the screen.
// Types and first values only. How the state changes: model.ts (answers of nodes) and model-ui.ts (keys).
import type { ClusterView, NodeProbe, SummarizeOptions } from '../core/view/cluster-view.js';
import type { Height, NodeView } from '../core/protocol/types.js';
import type { KnownEntries } from './model-entries.js';
import type { WatchEvent } from './model-events.js';
import type { Sample } from './model-series.js';
import type { Panel } from './size.js';

export interface NodeTrack {
  id: string;
  url: string;
  probe: NodeProbe | null;
  /** When the call was sent whose outcome `probe` holds. */
  askedAt: number;
  answeredAt: number;
  /** What it said when it last said something. */
  good: { view: NodeView; at: number } | null;
  /** Round trips, ms. */
  rtts: readonly number[];
  lags: readonly Sample[];
  entries: KnownEntries;
  /** The height that is open as a detail (and the one above it), once it has left `entries`. */
  pinned: KnownEntries;
}

/** What is known of the cluster. Freezing keeps one of these on the screen while the next ones are made. */
export interface Data {
  at: number;
  wall: number;
  /** Probes that are complete. */
  polls: number;
  nodes: readonly NodeTrack[];
  view: ClusterView | null;
  proofs: readonly { at: number; committed: ClusterView['committed']; pending: ClusterView['pending'] }[];
  events: readonly WatchEvent[];
  /** `sinceStart`: it led already when the watch began. */
  term: { owner: string; at: number; sinceStart: boolean } | null;
  elections: number;
  /**
   * Leaders that ceased to lead and were heard of afterwards, in the same process; and those that were not: killed,
   * ended, cut off.
   */
  stepdowns: number;
  gone: number;
  /** Leaders that ceased to lead and of which that cannot be said yet. */
  ceased: readonly Ceased[];
  /** `at`: when the committed height was first seen; `sinceStart`: it may be older. */
  committed: { height: Height; at: number; sinceStart: boolean } | null;
  heights: readonly Sample[];
  /**
   * One value per probe, null where it cannot be said: blocks per second, the greatest lag, the leader's own commit
   * latency (median, ms).
   */
  rates: readonly (number | null)[];
  lags: readonly (number | null)[];
  commits: readonly (number | null)[];
  /** When each of those probes was. */
  probedAt: readonly number[];
}

/** A term that is over. `at`: when that was seen. */
export interface Ceased {
  id: string;
  epoch: number;
  pid: number | null;
  at: number;
}

/** One of several lanes that are watched at once. */
export interface Tab {
  name: string;
  verdict: string;
}

export interface WatchState {
  title: string;
  /** Empty where only one lane is watched. */
  tabs: readonly Tab[];
  /** Which of them this is. */
  tab: number;
  /** What is shown is remembered (a bundle) and does not move. */
  still: boolean;
  options: SummarizeOptions;
  size: { columns: number; rows: number };
  now: number;
  wall: number;
  data: Data;
  ui: UiState;
}

export type Detail =
  | { of: 'node'; id: string }
  | { of: 'height'; height: number }
  | { of: 'sequencer'; id: string }
  | { of: 'event'; seq: number }
  | { of: 'history' };

export interface UiState {
  panel: Panel;
  /** Cursor per panel, counted in what the panel lists now. */
  cursors: Readonly<Record<Panel, number>>;
  filters: Readonly<Record<Panel, string>>;
  sorts: Readonly<Record<Panel, number>>;
  /** The filter being typed, null when none is. */
  typing: string | null;
  detail: Detail | null;
  scroll: number;
  help: boolean;
  frozen: Data | null;
  intervalMs: number;
  /** What a key brought about; shown for a few seconds. */
  told: { text: string; at: number } | null;
}

const each = <T>(value: T): Record<Panel, T> => ({
  lease: value,
  chain: value,
  nodes: value,
  sequencers: value,
  agreement: value,
  events: value,
});

export const INITIAL_UI: UiState = {
  panel: 'nodes',
  cursors: each(0),
  filters: each(''),
  sorts: each(0),
  typing: null,
  detail: null,
  scroll: 0,
  help: false,
  frozen: null,
  intervalMs: 1000,
  told: null,
};

/** What the screen shows: the frozen moment, or now. */
export function shown(state: WatchState): Data {
  return state.ui.frozen ?? state.data;
}
