// A follower forwards a submission to the leader, once. The hop header ends a loop of two sequencers that each take the
// other for the leader. Each hop has its own connection, so that "not sent" is always certain.
import { httpCall, type ClientTls, type HttpAnswer } from '../http-call.js';

export const HOP_HEADER = 'seq-hop';
/** On every answer of a sequencer: its id. */
export const ID_HEADER = 'seq-id';
/** Receipts of a full batch are far smaller. A larger answer does not come from a sequencer. */
const MAX_REPLY_BYTES = 16 * 1024 * 1024;

export interface ForwardRequest {
  /** Base URL of the leader. */
  url: string;
  body: Buffer;
  headers: Record<string, string>;
  token?: string;
  tls?: ClientTls;
  limitMs: number;
  connectMs: number;
  /** Aborted (with the reason) when the caller gives up, or when another leader is seen. */
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
