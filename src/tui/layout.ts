// What is where on the screen: state and size → bands of rows, top to bottom. Pure. Rows that one panel does not need
// go to another: below few SEQUENCERS there is room for AGREEMENT.
import { banner } from './panels/banner.js';
import { PANELS, sizeClass, type Panel } from './size.js';
import type { WatchState } from './model-state.js';

type BandKind =
  | 'tabs'
  | 'banner'
  | 'top'
  | 'lease'
  | 'nodes'
  | 'plain-nodes'
  | 'bottom'
  | 'plain-events'
  | 'detail'
  | 'help'
  | 'next';
export interface Band {
  kind: BandKind;
  height: number;
}

/** A frame, a heading and one height. */
const AGREEMENT_LEAST = 4;

/** Whether what is shown needs the newest entries to be read. */
export function wantsEntries(state: WatchState): boolean {
  return state.ui.detail?.of === 'height' || panelsOf(state).includes('agreement');
}

/** Keys go to one of these panels. In a hidden panel a key would have no visible effect. */
export function panelsOf(state: WatchState): readonly Panel[] {
  const kind = sizeClass(state.size);
  if (kind === 'tiny' || kind === 'line') return ['nodes'];
  if (kind === 'small') return ['lease', 'nodes', 'events'];
  const bottom = panelBands(state).find((band) => band.kind === 'bottom')?.height ?? 0;
  return PANELS.filter((panel) => panel !== 'agreement' || agreementHeight(state, bottom) > 0);
}

/** How many rows of the last band AGREEMENT gets, below SEQUENCERS: those that are not needed there. */
export function agreementHeight(state: WatchState, height: number): number {
  const sequencers = Math.max(1, state.data.view?.sequencers.length ?? 0) + 3;
  const spare = height - sequencers;
  const least = sizeClass(state.size) === 'full' ? Math.max(AGREEMENT_LEAST, Math.floor(height / 3)) : 0;
  return Math.max(spare, least) < AGREEMENT_LEAST ? 0 : Math.max(spare, least);
}

export function bands(state: WatchState): Band[] {
  const { ui } = state;
  const kind = sizeClass(state.size);
  if (kind === 'line' || (!ui.help && ui.detail === null)) return panelBands(state);
  const head = headOf(state);
  return [...head, { kind: ui.help ? 'help' : 'detail', height: bodyOf(state, head) }, { kind: 'next', height: 1 }];
}

function headOf(state: WatchState): Band[] {
  const { rows, columns } = state.size;
  const height =
    sizeClass(state.size) === 'tiny' ? 1 : banner(state, { colour: false, unicode: false }, columns, rows >= 16).length;
  return [...(state.tabs.length > 1 ? [{ kind: 'tabs', height: 1 } as const] : []), { kind: 'banner', height }];
}

/** The rows between the head and the line with the next command. */
function bodyOf({ size }: WatchState, head: readonly Band[]): number {
  return Math.max(1, size.rows - 1) - head.reduce((sum, band) => sum + band.height, 0) - 1;
}

/** The panels, whether or not a detail covers them now. */
function panelBands(state: WatchState): Band[] {
  const kind = sizeClass(state.size);
  if (kind === 'line') return [{ kind: 'banner', height: 1 }];
  const head = headOf(state);
  const next: Band = { kind: 'next', height: 1 };
  const body = bodyOf(state, head);
  const nodes = state.data.nodes.length;
  if (kind === 'tiny') return [...head, { kind: 'plain-nodes', height: body }, next];
  if (kind === 'small') {
    const lease = 2;
    const middle = Math.max(4, Math.min(nodes + 3, body - lease - 3));
    return [
      ...head,
      { kind: 'lease', height: lease },
      { kind: 'nodes', height: middle },
      { kind: 'plain-events', height: body - lease - middle },
      next,
    ];
  }
  const top = kind === 'normal' ? 5 : 8;
  const least = kind === 'normal' ? 4 : kind === 'large' ? 6 : 2 * AGREEMENT_LEAST;
  const middle = Math.max(4, Math.min(nodes + 3, body - top - least));
  return [
    ...head,
    { kind: 'top', height: top },
    { kind: 'nodes', height: middle },
    { kind: 'bottom', height: body - top - middle },
    next,
  ];
}
