// What a terminal of some size has room for. Pure. Never a "too small" wall: what matters most stays longest.
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

const SHOWN: Record<SizeClass, readonly Panel[]> = {
  full: PANELS,
  large: PANELS.filter((one) => one !== 'agreement'),
  normal: PANELS.filter((one) => one !== 'agreement'),
  small: ['lease', 'nodes', 'events'],
  tiny: ['nodes'],
  line: ['nodes'],
};

/** The keys go to one of these: to one that cannot be seen they would do nothing that can. */
export function panelsAt(size: Size): readonly Panel[] {
  return SHOWN[sizeClass(size)];
}

/** The least size that shows it. */
export function roomFor(panel: Panel): string {
  return panel === 'agreement' ? '140x40' : SHOWN.small.includes(panel) ? '60x16' : '80x24';
}
