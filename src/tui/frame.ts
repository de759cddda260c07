// What is where on the screen: state and size → bands of rows, top to bottom. Pure, so that `--once`, the live screen
// and the soak test draw the same. A frame has one row less than the terminal, and each row is exactly as wide as the
// terminal. There is never a "too small" message: on a small screen the most important bands remain.
import { banner, nextLine } from './panels/banner.js';
import { beside, box } from './panels/box.js';
import { chainRows } from './panels/chain.js';
import { detailRows, detailTitle, helpRows } from './panels/detail.js';
import { leaseLines, leaseRows } from './panels/lease.js';
import { agreementRows, eventRows, sequencerRows } from './panels/lists.js';
import { nodeRows, plainNodeRows } from './panels/nodes.js';
import { tabsLine } from './panels/tabs.js';
import { sizeClass } from './size.js';
import type { Theme } from './theme.js';
import type { WatchState } from './model-state.js';

type BandKind =
  | 'tabs'
  | 'banner'
  | 'top'
  | 'lease'
  | 'nodes'
  | 'plain-nodes'
  | 'bottom'
  | 'agreement'
  | 'events'
  | 'plain-events'
  | 'detail'
  | 'help'
  | 'next';
export interface Band {
  kind: BandKind;
  height: number;
}

/** Whether what is shown needs the newest entries to be read. */
export function wantsEntries(state: WatchState): boolean {
  return sizeClass(state.size) === 'full' || state.ui.detail?.of === 'height';
}

export function bands(state: WatchState): Band[] {
  const { rows, columns } = state.size;
  const total = Math.max(1, rows - 1);
  const kind = sizeClass(state.size);
  if (kind === 'line') return [{ kind: 'banner', height: 1 }];
  const bannerHeight =
    kind === 'tiny' ? 1 : banner(state, { colour: false, unicode: false }, columns, rows >= 16).length;
  const head: Band[] = [
    ...(state.tabs.length > 1 ? [{ kind: 'tabs', height: 1 } as const] : []),
    { kind: 'banner', height: bannerHeight },
  ];
  const next: Band = { kind: 'next', height: 1 };
  const body = total - head.reduce((sum, band) => sum + band.height, 0) - 1;
  if (state.ui.help || state.ui.detail !== null)
    return [...head, { kind: state.ui.help ? 'help' : 'detail', height: body }, next];
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
  const least = kind === 'normal' ? 4 : 6;
  const middle = Math.max(4, Math.min(nodes + 3, body - top - least));
  const rest = body - top - middle;
  if (kind !== 'full')
    return [
      ...head,
      { kind: 'top', height: top },
      { kind: 'nodes', height: middle },
      { kind: 'bottom', height: rest },
      next,
    ];
  const events = Math.max(5, Math.floor(rest / 3));
  return [
    ...head,
    { kind: 'top', height: top },
    { kind: 'nodes', height: middle },
    { kind: 'agreement', height: rest - events },
    { kind: 'events', height: events },
    next,
  ];
}

function bandRows(band: Band, state: WatchState, theme: Theme): string[] {
  const width = state.size.columns;
  const { height } = band;
  const { panel } = state.ui;
  const boxed = (
    title: string,
    focused: boolean,
    outer: number,
    draw: (inner: number, lines: number) => string[] | { rows: string[]; note: string },
  ): string[] => {
    const drawn = draw(outer - 4, height - 2);
    const { rows, note } = Array.isArray(drawn) ? { rows: drawn, note: '' } : drawn;
    return box(theme, rows, { title, width: outer, height, focused, note: note === '' ? '' : `(${note})` });
  };
  const left = Math.floor(width / 2);
  const sequencersWide =
    band.kind === 'bottom'
      ? width >= 120
        ? Math.floor(width / 2)
        : Math.floor(width * 0.48)
      : Math.min(76, Math.floor(width / 2));
  switch (band.kind) {
    case 'banner':
      return banner(state, theme, width, height > 1);
    case 'tabs':
      return [tabsLine(state, theme, width)];
    case 'next':
      return [nextLine(state, theme, width)];
    case 'lease':
      return leaseLines(state, theme, width);
    case 'plain-events':
      return eventRows(state, theme, width, height).rows;
    case 'top':
      return beside(
        boxed('LEASE', panel === 'lease', left, (w, h) => leaseRows(state, theme, w, h)),
        boxed('CHAIN', panel === 'chain', width - left, (w, h) => chainRows(state, theme, w, h)),
      );
    case 'nodes':
      return boxed('NODES', panel === 'nodes', width, (w, h) => nodeRows(state, theme, w, h));
    case 'plain-nodes':
      return plainNodeRows(state, theme, width, height);
    case 'bottom':
      return beside(
        boxed('SEQUENCERS', panel === 'sequencers', sequencersWide, (w, h) => sequencerRows(state, theme, w, h)),
        boxed('EVENTS', panel === 'events', width - sequencersWide, (w, h) => eventRows(state, theme, w, h)),
      );
    case 'agreement':
      return beside(
        boxed('SEQUENCERS', panel === 'sequencers', sequencersWide, (w, h) => sequencerRows(state, theme, w, h)),
        boxed('AGREEMENT', panel === 'agreement', width - sequencersWide, (w, h) => agreementRows(state, theme, w, h)),
      );
    case 'events':
      return boxed('EVENTS', panel === 'events', width, (w, h) => eventRows(state, theme, w, h));
    case 'detail':
      return boxed(state.ui.detail === null ? '' : detailTitle(state.ui.detail), true, width, (w, h) =>
        detailRows(state, theme, w, h),
      );
    case 'help':
      return boxed('KEYS', true, width, (w, h) => helpRows(state, theme, w, h));
  }
}

/** Exactly as many rows as the height of the band. */
export function bandText(band: Band, state: WatchState, theme: Theme): string {
  const rows = bandRows(band, state, theme);
  return Array.from({ length: band.height }, (_, at) => rows[at] ?? ' '.repeat(state.size.columns)).join('\n');
}

export function frame(state: WatchState, theme: Theme): string[] {
  return bands(state).flatMap((band) => bandText(band, state, theme).split('\n'));
}
