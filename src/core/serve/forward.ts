// A follower hands a submission to the leader, once: the hop header stops two sequencers that each take the other for the leader from
// passing it on for ever. Whether anything was sent decides the answer when it fails: "not sent" may be retried freely, everything after
// that is unknown. A connection of its own per hop, because a kept one that died under the request could not tell the two apart.
import { request as httpRequest, type IncomingHttpHeaders } from 'node:http';
import { request as httpsRequest } from 'node:https';

export const HOP_HEADER = 'seq-hop';
/** Receipts of a full batch are far smaller; more than this is not an answer of ours. */
const MAX_REPLY_BYTES = 16 * 1024 * 1024;

export interface ForwardRequest {
  /** Base URL of the leader. */
  url: string;
  body: Buffer;
  headers: Record<string, string>;
  token?: string;
  /** For a leader whose certificate is not signed by a known authority. */
  ca?: string | Buffer;
  deadlineMs: number;
  connectMs: number;
  /** Aborted when the caller gives up, or another leader is seen. */
  signal: AbortSignal;
}

export type ForwardReply =
  | { outcome: 'answered'; status: number; headers: IncomingHttpHeaders; body: Buffer }
  | { outcome: 'not-sent'; why: string }
  | { outcome: 'unknown'; why: string };

export function forward(to: ForwardRequest): Promise<ForwardReply> {
  return new Promise((resolve) => {
    let target: URL;
    try {
      target = new URL('/v1/submit', to.url);
    } catch {
      resolve({ outcome: 'not-sent', why: `the leader's address ${JSON.stringify(to.url)} is not a URL` });
      return;
    }
    if (target.protocol !== 'http:' && target.protocol !== 'https:') {
      resolve({ outcome: 'not-sent', why: `the leader's address ${JSON.stringify(to.url)} is neither http nor https` });
      return;
    }
    let connected = false;
    let settled = false;
    const settle = (reply: ForwardReply) => {
      if (settled) return;
      settled = true;
      clearTimeout(connecting);
      clearTimeout(deadline);
      to.signal.removeEventListener('abort', aborted);
      resolve(reply);
      if (reply.outcome !== 'answered') request.destroy();
    };
    const failed = (why: string) => settle(connected ? { outcome: 'unknown', why } : { outcome: 'not-sent', why });
    const aborted = () => failed(String(to.signal.reason ?? 'given up'));
    const connecting = setTimeout(() => { if (!connected) failed(`connecting to the leader at ${target.host} took longer than ${to.connectMs} ms`); }, to.connectMs);
    const deadline = setTimeout(() => failed(`the leader at ${target.host} did not answer within ${to.deadlineMs} ms`), to.deadlineMs);

    const request = (target.protocol === 'https:' ? httpsRequest : httpRequest)(target, {
      method: 'POST', agent: false, ...(to.ca === undefined ? {} : { ca: to.ca }),
      headers: {
        ...to.headers, [HOP_HEADER]: '1', 'content-length': String(to.body.length),
        ...(to.token === undefined ? {} : { authorization: `Bearer ${to.token}` }),
      },
    });
    request.on('socket', (socket) => socket.once(target.protocol === 'https:' ? 'secureConnect' : 'connect', () => { connected = true; }));
    request.on('error', (error) => failed(`the connection to the leader at ${target.host} failed: ${error.message}`));
    request.on('response', (response) => {
      const chunks: Buffer[] = [];
      let size = 0;
      response.on('data', (chunk: Buffer) => {
        size += chunk.length;
        if (size > MAX_REPLY_BYTES) failed(`the leader's answer is larger than ${MAX_REPLY_BYTES} bytes`);
        else chunks.push(chunk);
      });
      response.on('error', (error) => failed(`the leader's answer broke off: ${error.message}`));
      response.on('end', () => {
        if (!response.complete) failed("the leader's answer broke off");
        else settle({ outcome: 'answered', status: response.statusCode ?? 502, headers: response.headers, body: Buffer.concat(chunks, size) });
      });
    });
    if (to.signal.aborted) aborted();
    else to.signal.addEventListener('abort', aborted, { once: true });
    request.end(to.body);
  });
}
