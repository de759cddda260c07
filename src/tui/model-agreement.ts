// Newest heights × nodes: the same letter is the same block. Uses the same ledger as `seq stream diff`. Pure.
// docs/PROTOCOL.md section 9.
import { shownBy } from '../core/protocol/copies.js';
import { readLedger, type HeightVerdict, type NodeLedger } from '../core/protocol/ledger.js';
import type { Height } from '../core/protocol/types.js';
import { membershipOf } from '../core/view/membership.js';
import { checked } from './model-entries.js';
import { memberTracks, type Data, type NodeTrack } from './model-state.js';

export interface AgreementRow {
  verdict: HeightVerdict;
  /** One per member, in order: a letter per block, `.` absent, `?` no answer, `!` damaged, `_` hole, `-` trimmed. */
  marks: string[];
  /** The block's own time, ms since the Unix epoch. Null when no copy was read. */
  timestamp: number | null;
}

/** Cached, because one frame asks for the same rows several times. */
const made = new WeakMap<Data, { count: number; rows: AgreementRow[] }>();

export function agreement(data: Data, count: number): AgreementRow[] {
  const before = made.get(data);
  if (before?.count === count) return before.rows;
  const rows = newest(data, count);
  made.set(data, { count, rows });
  return rows;
}

function newest(data: Data, count: number): AgreementRow[] {
  const heads = memberTracks(data).flatMap((node) =>
    node.probe?.reply.outcome === 'accepted' ? [node.probe.reply.value.head] : [],
  );
  const top = Math.max(0, ...heads);
  if (top === 0 || count <= 0) return [];
  return agreementOf(data, { from: Math.max(1, top - count + 1), to: top }).reverse();
}

export function agreementOf(data: Data, range: { from: Height; to: Height }): AgreementRow[] {
  const { configuration } = membershipOf(data.nodes.flatMap(({ probe }) => probe ?? []));
  const nodes = memberTracks(data);
  const ledgers = nodes.map((node) => ({
    ...ledgerOf(node, data, range),
    ...(configuration !== null && node.probe?.reply.outcome === 'accepted'
      ? { shown: shownBy(node.probe.reply.value) }
      : {}),
  }));
  const configured = Math.max(nodes.length, data.view?.configured ?? 0);
  return readLedger(ledgers, configured, range).map((verdict) => ({
    verdict,
    marks: nodes.map((node) => mark(node, verdict)),
    timestamp: timestampAt(data, verdict),
  }));
}

function ledgerOf(node: NodeTrack, data: Data, range: { from: Height; to: Height }): NodeLedger {
  const reply = node.probe?.reply;
  const row = data.view?.nodes.find((one) => one.id === node.id);
  if (reply?.outcome !== 'accepted' || row?.state === 'FOREIGN') return { id: node.id, answered: false };
  const newest = checked(node.entries, reply.value);
  const pinned = checked(node.pinned, reply.value);
  const known = range.from < newest.from && pinned.from <= range.from && pinned.to >= range.from ? pinned : newest;
  return {
    id: node.id,
    answered: true,
    admitted: reply.value.admission === 'admitted',
    facts: reply.value,
    epoch: reply.value.epoch,
    entries: known.entries,
    damaged: known.damaged,
    covers: { from: known.from, to: known.to >= reply.value.head ? Number.MAX_SAFE_INTEGER : known.to },
  };
}

/** The entry that the node was seen to hold at that height, whether or not it counts. */
export function entryAt(node: NodeTrack, height: Height) {
  return (
    node.entries.entries.find((entry) => entry.height === height) ??
    node.pinned.entries.find((entry) => entry.height === height)
  );
}

function mark(node: NodeTrack, verdict: HeightVerdict): string {
  const { id } = node;
  if (node.probe?.reply.outcome !== 'accepted') return '?';
  if (verdict.damaged.some((one) => one.node === id)) return '!';
  if (verdict.missing.includes(id)) return '_';
  if (verdict.trimmed.includes(id)) return '-';
  const hashes = [
    ...new Set([...(verdict.hash === null ? [] : [verdict.hash]), ...verdict.candidates.map((one) => one.hash)]),
  ];
  const own =
    verdict.candidates.find((one) => one.nodes.includes(id))?.hash ??
    (verdict.leftOut.includes(id) ? entryAt(node, verdict.height)?.hash : undefined);
  if (own !== undefined) {
    const at = hashes.indexOf(own);
    return at < 0 ? 'z' : String.fromCharCode(65 + Math.min(at, 24));
  }
  return verdict.unknown.includes(id) ? '?' : '.';
}

function timestampAt(data: Data, verdict: HeightVerdict): number | null {
  for (const node of memberTracks(data)) {
    const entry = entryAt(node, verdict.height);
    if (entry !== undefined && (verdict.hash === null || entry.hash === verdict.hash)) return entry.timestamp;
  }
  return null;
}
