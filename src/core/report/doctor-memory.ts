// How much memory will each node need once the retained range is full, and when will it be full? The answer comes from
// what the leader says about its blocks (docs/PROTOCOL.md sections 6 and 8). It is a forecast from the newest blocks,
// not a promise. There is no forecast where nobody leads. Pure.
import { duration } from '../duration.js';
import type { NodeView } from '../protocol/types.js';
import type { DoctorFinding, CheckedNode } from './doctor-finding.js';

export interface MemoryForecast {
  node: string;
  usedBytes: number;
  /** maxmemory, or else the host's memory. null when neither is known. */
  limitBytes: number | null;
  limited: boolean;
  /** Bytes once the retained range is full. null when no leader says how large its blocks are. */
  fullBytes: number | null;
  /** Time until the limit is reached, at the pace of the newest blocks. null: it is not expected. */
  reachedInMs: number | null;
}

/** What Redis stores for each block besides the payload: names, two hashes, the owner. */
const PER_BLOCK = 300;
const COMFORT = 0.9;
const MIB = 1024 * 1024;

export function forecastOf(nodes: readonly CheckedNode[]): MemoryForecast[] {
  const views = nodes.flatMap(({ view }) => (view.outcome === 'accepted' ? [view.value] : []));
  const told =
    views
      .flatMap((view) => view.sequencers)
      .find((one) => one.role === 'leader' && Number(one.extra['blockBytes']) >= 0)?.extra ?? {};
  const of = (name: string): number => Number(told[name] ?? NaN);
  const [size, everyMs, retainBlocks, retainBytes] = [
    of('blockBytes'),
    of('blockEveryMs'),
    of('retainBlocks'),
    of('retainBytes'),
  ];
  const perBlock = size + PER_BLOCK;
  const blocks = Math.min(retainBlocks, size > 0 ? retainBytes / size : Infinity);
  return nodes.flatMap(({ id, view, checkup }): MemoryForecast[] => {
    if (checkup.outcome !== 'accepted') return [];
    const { info } = checkup.value;
    const usedBytes = Number(info['used_memory'] ?? 0);
    const most = Number(info['maxmemory'] ?? 0);
    const host = Number(info['total_system_memory'] ?? 0);
    const limitBytes = most > 0 ? most : host > 0 ? host : null;
    const base = { node: id, usedBytes, limitBytes, limited: most > 0 };
    if (view.outcome !== 'accepted' || !Number.isFinite(blocks) || !Number.isFinite(perBlock))
      return [{ ...base, fullBytes: null, reachedInMs: null }];
    const missing = Math.max(0, Math.round(blocks) - retained(view.value));
    const fullBytes = Math.round(usedBytes + missing * perBlock);
    const reached = limitBytes !== null && fullBytes > COMFORT * limitBytes && everyMs > 0;
    return [
      {
        ...base,
        fullBytes,
        reachedInMs: reached
          ? Math.max(0, Math.round(((COMFORT * limitBytes - usedBytes) / perBlock) * everyMs))
          : null,
      },
    ];
  });
}

function retained({ head, floor }: NodeView): number {
  return Math.max(0, head - floor);
}

export function ofForecast(nodes: readonly CheckedNode[]): DoctorFinding[] {
  return forecastOf(nodes).flatMap((one): DoctorFinding[] => {
    if (one.reachedInMs === null || one.fullBytes === null || one.limitBytes === null) return [];
    const { url } = nodes.find(({ id }) => id === one.node)!;
    const need = Math.ceil((one.fullBytes * 1.25) / MIB);
    const what =
      `${mib(one.usedBytes)} are used, about ${mib(one.fullBytes)} will be once the retained range is ` +
      `full; ${mib(one.limitBytes)} ${one.limited ? 'is its maxmemory' : 'is what its host has'}: nine ` +
      'tenths of that ' +
      `${one.reachedInMs === 0 ? 'are reached' : `in about ${duration(one.reachedInMs)}`}`;
    return [
      {
        severity: 'WARN',
        check: 'memory',
        node: one.node,
        what: one.limited ? `${what}; the leader keeps fewer blocks from then on` : what,
        fix: one.limited
          ? `redis-cli -u ${url} config set maxmemory ${need}mb`
          : 'lower --retain-blocks or --retain-bytes of every sequencer',
      },
    ];
  });
}

export function mib(bytes: number): string {
  return `${(bytes / MIB).toFixed(bytes < 10 * MIB ? 1 : 0)} MiB`;
}

/** The value that a part of the values (0 to 1) does not exceed. */
export function partOf(sorted: readonly number[], part: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0;
}
