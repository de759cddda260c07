// One entry of the lane registry, and what the registries of several nodes say together (docs/decisions/0015). The
// registry says which lanes there are. No rule of safety depends on it. Pure.
import { quorumOf } from '../config.js';
import { MAX_NUMBER, type LaneText } from '../protocol/types.js';

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

/** As lua/note_lanes.lua takes it. Later versions of seq may add words behind these. */
const ENTRY = /^(0|[1-9]\d{0,14}) (open|closed|removed) ([0-9a-f]+) at=(0|[1-9]\d{0,14}) by=([!-~]+)(?: [ -~]*)?$/;
const NAME = /^[a-z0-9-]{1,32}$/;
const MOST_BYTES = 512;

export function entryText({ version, state, writer, atMs, by }: LaneEntry): string {
  return `${version} ${state} ${writer} at=${atMs} by=${by.replace(/[^!-~]/g, '_').slice(0, 200) || '-'}`;
}

/** Null for a text that no version of seq wrote. Every entry replaces such a text. */
export function parseEntry({ name, text }: LaneText): LaneEntry | null {
  const [, digits, state, writer = '', at, by = ''] = ENTRY.exec(text) ?? [];
  if (digits === undefined || text.length > MOST_BYTES || !NAME.test(name)) return null;
  const [version, atMs] = [Number(digits), Number(at)];
  if (version > MAX_NUMBER || atMs > MAX_NUMBER) return null;
  return { name, version, state: state as LaneState, writer, by, atMs };
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
  return byName(merged);
}

function byName(lanes: Lanes): Lanes {
  return new Map([...lanes].sort(([a], [b]) => (a < b ? -1 : 1)));
}

export interface Judged {
  /** The newest change of each lane that counts: q nodes have it, or a later one. */
  lanes: Lanes;
  /** The newest change of each lane that may count, by the nodes that did not answer. At least that of `lanes`. */
  possible: Lanes;
  /** The greatest version of each lane, whoever wrote it. */
  highest: ReadonlyMap<string, number>;
}

/**
 * What the nodes that remember the registry say together. One node's word is no quorum's word: a change that it alone
 * has does not count. It was broken off, or written by hand.
 */
export function judgeLanes(registries: readonly Lanes[], members: number): Judged {
  const quorum = quorumOf(members);
  const silent = members - registries.length;
  const lanes = new Map<string, LaneEntry>();
  const possible = new Map<string, LaneEntry>();
  const highest = new Map<string, number>();
  for (const name of new Set(registries.flatMap((one) => [...one.keys()]))) {
    const told = registries.flatMap((one) => one.get(name) ?? []).sort((a, b) => (isNewer(a, b) ? -1 : 1));
    highest.set(name, told[0]!.version);
    // A node that has a later change has passed this one.
    const counted = told[quorum - 1];
    const maybe = told[Math.max(0, quorum - silent - 1)];
    if (counted !== undefined) lanes.set(name, counted);
    if (maybe !== undefined) possible.set(name, maybe);
  }
  return { lanes: byName(lanes), possible: byName(possible), highest };
}

/**
 * The version of the next change. One that was written by hand near the end of the numbers is not counted on from: a
 * quorum passes it by.
 */
export function nextVersion({ lanes, highest }: Judged, name: string): number {
  const greatest = highest.get(name) ?? 0;
  return (greatest < MAX_NUMBER ? greatest : Math.min(lanes.get(name)?.version ?? 0, MAX_NUMBER - 1)) + 1;
}

/** The entries that a node lacks, or has in an older version. */
export function missingFrom(lanes: Lanes, merged: Lanes): LaneEntry[] {
  return [...merged.values()].filter((entry) => isNewer(entry, lanes.get(entry.name)));
}
