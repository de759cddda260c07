// A part of the chain, as JSON says it.
export function rangeData(range: { from: number; to: number } | null): { heightFrom: number; heightTo: number } | null {
  return range === null ? null : { heightFrom: range.from, heightTo: range.to };
}
