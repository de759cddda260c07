// What `seq watch` knows and shows: the facts of each node, of the cluster, and where the operator is on the screen.
// Types and initial values only. model.ts changes the state after answers of nodes, model-ui.ts after keys.
import type { ClusterView, NodeProbe, SummarizeOptions } from '../core/view/cluster-view.js';
import type { EntriesRead, Height, NodeReply, NodeView } from '../core/protocol/types.js';
import type { KnownEntries } from './model-entries.js';
import type { WatchEvent } from './model-events.js';
import type { Sample } from './model-series.js';
import type { Panel } from './size.js';

export interface NodeTrack {
  id: string;
  url: string;
  probe: NodeProbe | null;
  /** When the call was sent that gave the outcome in `probe`. */
  askedAt: number;
  answeredAt: number;
  /** Its last good answer, and when it came. */
  good: { view: NodeView; at: number } | null;
  /** Round trips, ms. */
  rtts: readonly number[];
  lags: readonly Sample[];
  entries: KnownEntries;
  /** The height that is open as a detail (and the one above it), once it is no longer in `entries`. */
  pinned: KnownEntries;
  /** While it is behind: what the chain has at its head, as another node said. */
  chainAtHead: { height: Height; read: NodeReply<EntriesRead> } | null;
}

/** What is known of the cluster. A frozen screen keeps one of these objects while new ones are made. */
export interface Data {
  at: number;
  wall: number;
  /** How many probes are complete. */
  polls: number;
  nodes: readonly NodeTrack[];
  view: ClusterView | null;
  proofs: readonly ({ at: number } & NonNullable<SummarizeOptions['earlier']>)[];
  events: readonly WatchEvent[];
  /** `sinceStart`: this term had already begun when the watch started. */
  term: { owner: string; at: number; sinceStart: boolean } | null;
  elections: number;
  /**
   * Leaders that stopped leading. `stepdowns`: they were seen later in the same process. `gone`: they were not, because
   * they were killed, ended or cut off.
   */
  stepdowns: number;
  gone: number;
  /** Leaders that stopped leading, and for which it is not known yet whether they stepped down. */
  ceased: readonly Ceased[];
  /** `at`: when the committed height was first seen. `sinceStart`: it may be older. */
  committed: { height: Height; at: number; sinceStart: boolean } | null;
  heights: readonly Sample[];
  /**
   * One value per probe, null where it is unknown: blocks per second, the greatest lag, the leader's own commit latency
   * (median, ms).
   */
  rates: readonly (number | null)[];
  lags: readonly (number | null)[];
  commits: readonly (number | null)[];
  /** The time of each of those probes. */
  probedAt: readonly number[];
}

/** A term that has ended. `at`: when that was seen. */
export interface Ceased {
  id: string;
  epoch: number;
  pid: number | null;
  at: number;
}

/** One of several lanes that are watched at the same time. */
export interface Tab {
  name: string;
  verdict: string;
}

export interface WatchState {
  title: string;
  /** Empty when only one lane is watched. */
  tabs: readonly Tab[];
  /** Index of this lane among the tabs. */
  tab: number;
  /** The screen shows a recorded state (a bundle) that does not change. */
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
  | { of: 'history' }
  | { of: 'since' };

export interface UiState {
  panel: Panel;
  /** Cursor per panel: its position in what the panel lists now. */
  cursors: Readonly<Record<Panel, number>>;
  filters: Readonly<Record<Panel, string>>;
  sorts: Readonly<Record<Panel, number>>;
  /** The filter being typed; null when none is. */
  typing: string | null;
  detail: Detail | null;
  scroll: number;
  help: boolean;
  frozen: Data | null;
  /** What was known when the operator last looked and said so. */
  mark: Data | null;
  intervalMs: number;
  /** The result of a key; shown for a few seconds. */
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
  mark: null,
  intervalMs: 1000,
  told: null,
};

/** What the screen shows: the frozen data, or the present data. */
export function shown(state: WatchState): Data {
  return state.ui.frozen ?? state.data;
}

/** The nodes that count. A node that is no member is shown, and is part of nothing else. */
export function memberTracks({ nodes, view }: Data): readonly NodeTrack[] {
  const strangers = new Set(view?.nodes.filter(({ state }) => state === 'STRANGER').map(({ id }) => id));
  return strangers.size === 0 ? nodes : nodes.filter(({ id }) => !strangers.has(id));
}
