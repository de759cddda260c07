// Who led when? The terms come from the retained blocks, and the operators' changes from the nodes' records
// (docs/PROTOCOL.md section 2). A block that a later leader had to propose again counts for the term that committed it.
// Who led is read from what only a leader writes (terms.ts).
// What nobody recorded is not guessed.
import type { NodePort } from '../ports.js';
import type { Epoch, Height } from '../protocol/types.js';
import { inspectWithProbes } from '../view/inspect.js';
import { askAll } from '../nodes/ask-all.js';
import { refuseNoAnswer } from '../view/no-answer.js';
import type { ClusterView } from '../view/cluster-view.js';
import { heldRange, readChunks } from '../stream/chunks.js';
import { TermOwners, UNKNOWN_LEADER } from './terms.js';
import { rowsOf, type MatrixOptions, type MatrixRow } from '../stream/matrix.js';

export interface Term {
  epoch: Epoch;
  /** `?` where the nodes do not agree who led. */
  leader: string;
  /** Its first blocks are trimmed: it began earlier, and made more blocks. */
  trimmed: boolean;
  heightFrom: Height;
  heightTo: Height;
  blocks: number;
  /** By the timestamps of its blocks, ms. */
  firstAt: number;
  lastAt: number;
  /**
   * For how long nothing was committed when this term began. null: not known, because the blocks do not say it. The
   * first block of a term may be the last one of the term before, proposed again, and then it keeps its old time. So
   * the gap lies before or behind that block, and the longer one of the two is told.
   */
  gapBeforeMs: number | null;
  /** The time between the last block before this term and its first one. Absent for the first term that is retained. */
  openMs?: number;
  /** This term holds the lease now. */
  current: boolean;
  /** Why it ended. '' when nothing says so. */
  ended: string;
}

type AuditRecord = Record<string, string>;

export interface History {
  view: ClusterView;
  range: { from: Height; to: Height } | null;
  /** Newest first. */
  terms: Term[];
  changes: AuditRecord[];
}

export interface HistoryOptions extends MatrixOptions {
  /** Named nodes that are no members. They are judged, and their streams are not read. */
  strangers: readonly NodePort[];
  limit: number;
  /** Removes secrets from the text of operators' records. */
  clean: <T>(value: T) => T;
  progress: (done: number, total: number) => void;
}

export async function readHistory(options: HistoryOptions): Promise<History> {
  const { nodes, strangers } = options;
  const { view, probes: all } = await inspectWithProbes({ ...options, nodes: [...nodes, ...strangers] });
  refuseNoAnswer(view);
  const probes = all.filter(({ id }) => nodes.some((node) => node.id === id));
  const range = heldRange(probes);
  const terms: Term[] = [];
  const owners = new TermOwners(probes, view.configured);
  if (range !== null) {
    for await (const chunk of readChunks({ ...options, probes, ...range, newestFirst: false })) {
      owners.take(chunk.entries);
      for (const row of rowsOf(chunk, options.nodes, view.configured)) addBlock(terms, row);
      options.progress(chunk.to - range.from + 1, range.to - range.from + 1);
    }
    options.signal?.throwIfAborted();
  }
  const answering = probes.filter((o) => o.reply.outcome === 'accepted').map((o) => o.id);
  const changes = options.clean(await readChanges(options, answering));
  const current = view.leader?.epoch;
  for (const term of terms) term.leader = owners.leader(term.epoch);
  const [oldest] = terms;
  if (oldest !== undefined && range !== null) oldest.trimmed = range.from > 1;
  for (const [at, term] of terms.entries()) {
    term.current = term.epoch === current;
    term.ended = term.current ? '' : whyEnded(term, terms[at + 1], changes);
  }
  return { view, range, terms: terms.reverse().slice(0, options.limit), changes: changes.slice(0, options.limit) };
}

/** Rows come in ascending order. Only committed rows belong to a term. Pure, except that it extends the list. */
export function addBlock(terms: Term[], row: MatrixRow): void {
  if (row.class !== 'committed' || row.timestamp === null || row.epoch === 0) return;
  const last = terms.at(-1);
  if (last !== undefined && (last.epoch === row.epoch || row.epoch < last.epoch)) {
    // A backfilled copy may have another epoch than the one it was committed under. Terms never go back.
    // The second block is certainly this term's own, and was made when it was committed.
    if (last.blocks === 1 && last.openMs !== undefined)
      last.gapBeforeMs = Math.max(last.openMs, row.timestamp - last.lastAt);
    Object.assign(last, { heightTo: row.height, blocks: last.blocks + 1, lastAt: row.timestamp });
    return;
  }
  terms.push({
    epoch: row.epoch,
    leader: UNKNOWN_LEADER,
    trimmed: false,
    heightFrom: row.height,
    heightTo: row.height,
    blocks: 1,
    firstAt: row.timestamp,
    lastAt: row.timestamp,
    gapBeforeMs: null,
    ...(last === undefined ? {} : { openMs: Math.max(0, row.timestamp - last.lastAt) }),
    current: false,
    ended: '',
  });
}

function whyEnded(term: Term, next: Term | undefined, changes: readonly AuditRecord[]): string {
  const asked = changes.find(
    (record) =>
      record['epoch'] === String(term.epoch) &&
      ((record['what'] === 'request' && record['kind'] === 'stepdown' && record['outcome'] === 'done') ||
        record['what']?.startsWith('stepdown') ||
        record['what'] === 'epoch heal'),
  );
  if (asked !== undefined)
    return (
      `${asked['what'] === 'request' ? 'stepdown' : asked['what']} by ` +
      `${asked['by'] ?? '?'}${asked['reason'] ? `: ${asked['reason']}` : ''}`
    );
  if (next !== undefined && next.leader === term.leader && term.leader !== UNKNOWN_LEADER)
    return `${next.leader} went on under epoch ${next.epoch}`;
  return '';
}

/** The records of all nodes, newest first. Each record appears once. */
async function readChanges(options: HistoryOptions, answering: readonly string[]): Promise<AuditRecord[]> {
  const { nodes, limitMs, clock } = options;
  const reads = await askAll(
    nodes.filter((node) => answering.includes(node.id) && node.readAudit !== undefined),
    (node) => node.readAudit!(Math.max(200, options.limit), limitMs),
    { limitMs, clock },
  );
  const byText = new Map<string, AuditRecord>();
  for (const read of reads) {
    if (read.outcome !== 'accepted') continue;
    for (const record of read.value) byText.set(JSON.stringify(Object.entries(record).sort()), record);
  }
  return [...byText.values()].sort((a, b) => Number(b['at'] ?? 0) - Number(a['at'] ?? 0));
}
