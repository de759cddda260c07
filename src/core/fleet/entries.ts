// One entry of the lane registry, and what the registries of several nodes say together (docs/decisions/0015). The
// registry says which lanes there are. No rule of safety depends on it. Pure.
import type { LaneText } from '../protocol/types.js';

/** `removed` stays for good: a lane's name is used once, because stores of the old chain would fit a new one. */
export type LaneState = 'open' | 'closed' | 'removed';

export interface LaneEntry {
  name: string;
  /** Grows with every change of this lane. */
  version: number;
  state: LaneState;
  /** Hex, new for each change. It decides between two changes that did not know each other. */
  writer: string;
  /** user@host */
  by: string;
  /** When it was written, by the writer's clock, ms. */
  atMs: number;
}

const STATES: ReadonlySet<string> = new Set(['open', 'closed', 'removed']);
const ENTRY = /^(\d{1,15}) ([a-z]+) ([0-9a-f]+) at=(\d{1,15}) by=(\S+)/;

/** Later versions of seq may add words behind these. */
export function entryText({ version, state, writer, atMs, by }: LaneEntry): string {
  return `${version} ${state} ${writer} at=${atMs} by=${by.replace(/[^!-~]/g, '_').slice(0, 200) || '-'}`;
}

/** Null for a text that no version of seq wrote. */
export function parseEntry({ name, text }: LaneText): LaneEntry | null {
  const [, version, state = '', writer = '', atMs, by = ''] = ENTRY.exec(text) ?? [];
  if (version === undefined || !STATES.has(state)) return null;
  return { name, version: Number(version), state: state as LaneState, writer, by, atMs: Number(atMs) };
}

export type Lanes = ReadonlyMap<string, LaneEntry>;

export function entriesOf(texts: readonly LaneText[]): Lanes {
  return new Map(texts.flatMap((one) => parseEntry(one) ?? []).map((entry) => [entry.name, entry]));
}

/** As lua/note_lanes.lua decides: the higher version, then the greater writer. */
function isNewer(entry: LaneEntry, than: LaneEntry | undefined): boolean {
  if (than === undefined) return true;
  return entry.version > than.version || (entry.version === than.version && entry.writer > than.writer);
}

/** The newest entry of each lane, by name. */
export function mergeLanes(registries: readonly Lanes[]): Lanes {
  const merged = new Map<string, LaneEntry>();
  for (const lanes of registries)
    for (const entry of lanes.values()) if (isNewer(entry, merged.get(entry.name))) merged.set(entry.name, entry);
  return new Map([...merged].sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** The entries that a node lacks, or has in an older version. */
export function missingFrom(lanes: Lanes, merged: Lanes): LaneEntry[] {
  return [...merged.values()].filter((entry) => isNewer(entry, lanes.get(entry.name)));
}
