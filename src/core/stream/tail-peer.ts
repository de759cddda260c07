// Uses a sequencer's feed as an archive. The first block here names its own parent. That is harmless, because the chain
// is checked up to the nodes' floor.
import { errorWord, inBetween, parseObject } from '../http-answer.js';
import { httpCall, type ClientTls } from '../http-call.js';
import type { CommittedBlock } from '../ports.js';
import type { Height } from '../protocol/types.js';
import { fetchFromPeer } from '../nodes/peer-feed.js';
import { NotReached, type Archive } from './tail-archive.js';

export interface PeerAccess {
  token?: string;
  tls?: ClientTls;
  /** Time limit to connect, and between two blocks. */
  limitMs: number;
}

export function peerArchive(id: string, url: string, access: PeerAccess): Archive {
  const { token, tls, limitMs } = access;
  const secrets = { ...(token === undefined ? {} : { token }), ...(tls === undefined ? {} : { tls }) };
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
        const error = errorWord(body);
        if (!error) throw new Error(inBetween(first));
        const head = typeof error.facts['head'] === 'number' ? error.facts['head'] : Infinity;
        throw error.code === 'NO_BLOCK' && head < from ? new NotReached(error.message) : new Error(error.message);
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
