// A follower hands a submission to the leader, once: the hop header stops two sequencers that each take the other for
// the leader from passing it on for ever. Each hop has a connection of its own, so that "not sent" is known for sure
// where it is said.
import { httpCall, type HttpAnswer } from '../http-call.js';

export const HOP_HEADER = 'seq-hop';
/** Receipts of a full batch are far smaller; more than this is not an answer of ours. */
const MAX_REPLY_BYTES = 16 * 1024 * 1024;

export interface ForwardRequest {
  /** Base URL of the leader. */
  url: string;
  body: Buffer;
  headers: Record<string, string>;
  token?: string;
  ca?: string | Buffer;
  limitMs: number;
  connectMs: number;
  /** Aborted (with a sentence) when the caller gives up, or another leader is seen. */
  signal: AbortSignal;
}

export function forward(to: ForwardRequest): Promise<HttpAnswer> {
  return httpCall({
    ...to,
    path: '/v1/submit',
    method: 'POST',
    headers: { ...to.headers, [HOP_HEADER]: '1' },
    maxReplyBytes: MAX_REPLY_BYTES,
  });
}
