// Uses a sequencer's feed as an archive. The first block here names its own parent. That is harmless, because the chain
// is checked up to the nodes' floor.
import { httpCall } from '../http-call.js';
import type { CommittedBlock } from '../ports.js';
import type { Height } from '../protocol/types.js';
import { fetchFromPeer } from '../nodes/peer-feed.js';
import { parseObject } from '../nodes/sequencer-client.js';
import { NotReached, type Archive } from './tail-archive.js';

export interface PeerAccess {
  token?: string;
  ca?: string | Buffer;
  /** Time limit to connect, and between two blocks. */
  limitMs: number;
}

export function peerArchive(id: string, url: string, access: PeerAccess): Archive {
  const { token, ca, limitMs } = access;
  const secrets = { ...(token === undefined ? {} : { token }), ...(ca === undefined ? {} : { ca }) };
  return {
    name: id === '' ? `the peer at ${url}` : `${id} at ${url}`,
    id: id === '' ? url : id,
    async *read(from: Height, to: Height, signal: AbortSignal | undefined): AsyncIterable<CommittedBlock> {
      const first = await httpCall({
        url,
        path: `/v1/blocks/${from}`,
        ...secrets,
        limitMs,
        connectMs: limitMs,
        maxReplyBytes: 32 * 1024 * 1024,
        ...(signal === undefined ? {} : { signal }),
      });
      if (first.outcome !== 'answered') throw new Error(first.why);
      const body = parseObject(first.body);
      const block = (body?.['data'] !== null && typeof body?.['data'] === 'object' ? body['data'] : body) as
        Record<string, unknown> | undefined;
      const parent = block?.['parent'];
      if (first.status !== 200 || typeof parent !== 'string') {
        const error = body?.['error'] as { code?: unknown; message?: unknown; head?: unknown } | undefined;
        const why = typeof error?.message === 'string' ? error.message.slice(0, 200) : `it answered ${first.status}`;
        const head = typeof error?.head === 'number' ? error.head : Infinity;
        throw error?.code === 'NO_BLOCK' && head < from ? new NotReached(why) : new Error(why);
      }
      yield* fetchFromPeer({
        url,
        after: { height: from - 1, hash: parent },
        to,
        ...secrets,
        signal: signal ?? new AbortController().signal,
        idleMs: limitMs,
      });
    },
  };
}
