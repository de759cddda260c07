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

const SHOWN: Record<SizeClass, readonly Panel[]> = {
  full: PANELS,
  large: PANELS.filter((one) => one !== 'agreement'),
  normal: PANELS.filter((one) => one !== 'agreement'),
  small: ['lease', 'nodes', 'events'],
  tiny: ['nodes'],
  line: ['nodes'],
};

/** Keys go to one of these panels. In a hidden panel a key would have no visible effect. */
export function panelsAt(size: Size): readonly Panel[] {
  return SHOWN[sizeClass(size)];
}

/** The smallest size that shows this panel. */
export function roomFor(panel: Panel): string {
  return panel === 'agreement' ? '140x40' : SHOWN.small.includes(panel) ? '60x16' : '80x24';
}
