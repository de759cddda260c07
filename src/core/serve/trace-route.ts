// GET /v1/trace tells what this sequencer knows of one item (docs/HTTP.md): its position in the chain, when its block
// came here, and what became of its submissions to this port. `?key=KEY`, or `?height=H&index=I`. An item that nobody
// knows is an answer, not an error. All times are ms since 1970 by this process' clock, which `nowMs` shows.
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { decodeBlockData, keyProblem } from '../chain/items.js';
import type { BlockTimes, SequencerApi } from '../ports.js';
import { malformed } from './envelope.js';
import { heightOf } from './read-routes.js';
import type { RecentSubmissions, SubmittedItem } from './recent-submissions.js';

interface TraceRouteOptions {
  apiOf(request: FastifyRequest): SequencerApi;
  prefix: string;
  recent: RecentSubmissions;
}

interface TraceAnswer {
  id: string;
  lane: string;
  /** Only a leader is sure to have every block that is committed. */
  role: string;
  nowMs: number;
  /** Submissions to this port before this time are forgotten. null: none came. */
  rememberedSinceMs: number | null;
  key: string | null;
  /** Where it is in the chain, as far as this store knows. */
  item: { height: number; index: number } | null;
  /** What this store remembers of the key is damaged, and is being repaired. */
  damaged: boolean;
  /** `items`: how many the block holds. null: its data has no format that this version knows. */
  block: { height: number; hash: string; epoch: number; timestamp: number; items: number | null } | null;
  times: Pick<BlockTimes, 'proposedMs' | 'committedMs' | 'syncedMs'> | null;
  submissions: SubmittedItem[];
}

type Wanted = { key: string } | { height: number; index: number };

export function traceRoute(app: FastifyInstance, { apiOf, prefix, recent }: TraceRouteOptions): void {
  app.get<{ Querystring: Record<string, string> }>(`${prefix}/trace`, async (request): Promise<TraceAnswer> => {
    const api = apiOf(request as FastifyRequest);
    const { id, lane, role } = api.status();
    return {
      id,
      lane,
      role,
      nowMs: Date.now(),
      rememberedSinceMs: recent.sinceMs,
      ...trace(api, wantedOf(request.query), recent),
    };
  });
}

function wantedOf({ key, height, index = '0' }: Record<string, string>): Wanted {
  if ((key === undefined) === (height === undefined))
    throw malformed('exactly one of key and height is needed', 'an item is known by its key or by its position');
  if (height !== undefined) {
    if (!/^\d{1,9}$/.test(index)) throw malformed('index is no index', 'items of a block are counted from 0');
    return { height: heightOf(height, 'height'), index: Number(index) };
  }
  const problem = keyProblem(key!);
  if (problem !== null) throw malformed('this is no key', problem);
  return { key: key! };
}

function trace(
  api: SequencerApi,
  wanted: Wanted,
  recent: RecentSubmissions,
): Omit<TraceAnswer, 'id' | 'lane' | 'role' | 'nowMs' | 'rememberedSinceMs'> {
  const receipt = 'key' in wanted ? api.receipt(wanted.key) : undefined;
  const position = 'key' in wanted ? (receipt === 'unproven' ? undefined : receipt) : wanted;
  const block = position && api.block(position.height);
  const content = block && decodeBlockData(block.data);
  const items = content?.format === 'items' ? content.items : content?.format === 'exec' ? content.taken : null;
  const key = 'key' in wanted ? wanted.key : (items?.[wanted.index]?.key ?? null);
  // A position that a block does not have is no position.
  const there = position && (items === null || position.index < items.length) ? position : undefined;
  const times = there && api.blockTimes(there.height);
  return {
    key,
    item: there === undefined || block === undefined ? null : { height: there.height, index: there.index },
    damaged: receipt === 'unproven',
    block: block
      ? {
          height: block.height,
          hash: block.hash,
          epoch: block.epoch,
          timestamp: block.timestamp,
          items: items?.length ?? null,
        }
      : null,
    times: times ? { proposedMs: times.proposedMs, committedMs: times.committedMs, syncedMs: times.syncedMs } : null,
    submissions: recent.find(api.status().lane, key === null ? (there ?? {}) : { key }),
  };
}
