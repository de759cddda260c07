// What fits on a terminal of a given size? Pure. There is never a "too small" message: on a small screen the most
// important panels remain.
export const PANELS = ['lease', 'chain', 'nodes', 'sequencers', 'agreement', 'events'] as const;
export type Panel = (typeof PANELS)[number];
export type SizeClass = 'full' | 'large' | 'normal' | 'small' | 'tiny' | 'line';
export interface Size {
  columns: number;
  rows: number;
}

export function sizeClass({ columns, rows }: Size): SizeClass {
  if (columns >= 140 && rows >= 40) return 'full';
  if (columns >= 100 && rows >= 30) return 'large';
  if (columns >= 80 && rows >= 24) return 'normal';
  if (columns >= 60 && rows >= 16) return 'small';
  return columns >= 40 && rows >= 8 ? 'tiny' : 'line';
}

/** From where on this panel is shown. Below 140x40, AGREEMENT gets the rows that SEQUENCERS does not need. */
export function roomFor(panel: Panel): string {
  if (panel === 'agreement') return '80x24 on, if few sequencers run';
  return panel === 'lease' || panel === 'events' ? '60x16 on' : '80x24 on';
}
