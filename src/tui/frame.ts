// Draws the bands of the layout as rows of text. Pure, so that `--once`, the live screen and the soak test draw the
// same. A frame has one row less than the terminal, and each row is exactly as wide as the terminal. There is never a
// "too small" message: on a small screen the most important bands remain.
import { agreementHeight, bands, type Band } from './layout.js';
import { banner, nextLine } from './panels/banner.js';
import { beside, box } from './panels/box.js';
import { chainRows } from './panels/chain.js';
import { detailRows, detailTitle, helpRows } from './panels/detail.js';
import { leaseLines, leaseRows } from './panels/lease.js';
import { agreementRows, eventRows, sequencerRows } from './panels/lists.js';
import { nodeRows, plainNodeRows } from './panels/nodes.js';
import { tabsLine } from './panels/tabs.js';
import type { Theme } from './theme.js';
import type { WatchState } from './model-state.js';

function bandRows(band: Band, state: WatchState, theme: Theme): string[] {
  const width = state.size.columns;
  const { height } = band;
  const { panel } = state.ui;
  const boxed = (
    title: string,
    focused: boolean,
    outer: number,
    draw: (inner: number, lines: number) => string[] | { rows: string[]; note: string },
    tall = height,
  ): string[] => {
    const drawn = draw(outer - 4, tall - 2);
    const { rows, note } = Array.isArray(drawn) ? { rows: drawn, note: '' } : drawn;
    return box(theme, rows, { title, width: outer, height: tall, focused, note: note === '' ? '' : `(${note})` });
  };
  const left = Math.floor(width / 2);
  const sequencersWide = width >= 120 ? left : Math.floor(width * 0.48);
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
    case 'bottom': {
      const below = agreementHeight(state, height);
      const [wide, above] = [sequencersWide, height - below];
      return beside(
        [
          ...boxed('SEQUENCERS', panel === 'sequencers', wide, (w, h) => sequencerRows(state, theme, w, h), above),
          ...(below === 0
            ? []
            : boxed('AGREEMENT', panel === 'agreement', wide, (w, h) => agreementRows(state, theme, w, h), below)),
        ],
        boxed('EVENTS', panel === 'events', width - wide, (w, h) => eventRows(state, theme, w, h)),
      );
    }
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
