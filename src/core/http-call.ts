// Sends one HTTP request once, with a limit on every part of it. Callers need to know whether anything may have been
// sent. A request that was "not sent" is safe to repeat. After anything was sent, the outcome is unknown. Without
// `agents` each call opens its own connection: when a kept connection dies under a request, the two cases look the
// same.
import {
  Agent as HttpAgent,
  request as httpRequest,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type RequestOptions,
} from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';

/** How a server over TLS is trusted, and what is shown to one that asks for a certificate. All of it is PEM. */
export interface ClientTls {
  /** The authority of a server whose certificate no known authority has signed. */
  ca?: string | Buffer;
  cert?: string | Buffer;
  key?: string | Buffer;
}

export interface HttpCall {
  /** Base URL, http or https. */
  url: string;
  path: string;
  method?: 'GET' | 'POST';
  body?: Buffer;
  headers?: Record<string, string>;
  /** Sent as a bearer token. */
  token?: string;
  tls?: ClientTls;
  /** Time limit until the whole answer has arrived. */
  limitMs: number;
  connectMs: number;
  maxReplyBytes: number;
  signal?: AbortSignal;
  /** Keeps connections between calls. Without it, every call opens a new connection. */
  agents?: Agents;
}

export type HttpAnswer =
  | { outcome: 'answered'; status: number; headers: IncomingHttpHeaders; body: Buffer }
  | { outcome: 'not-sent'; why: string }
  | { outcome: 'unknown'; why: string };

/** Nobody whom this process trusts has signed the certificate. Waiting does not change that. */
const UNTRUSTED = new Set([
  'SELF_SIGNED_CERT_IN_CHAIN',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'CERT_SIGNATURE_FAILURE',
]);
export const TRUST_IT = 'name the authority that signed it (--http-ca FILE, SEQ_HTTP_CA)';

export class Agents {
  readonly http: HttpAgent;
  readonly https: HttpsAgent;
  /** `maxSockets`: connections to one host; a call beyond them waits for its turn, and its limits run meanwhile. */
  constructor(tls: ClientTls = {}, maxSockets = 8) {
    this.http = new HttpAgent({ keepAlive: true, maxSockets });
    this.https = new HttpsAgent({ keepAlive: true, maxSockets, ...tls });
  }
  close(): void {
    this.http.destroy();
    this.https.destroy();
  }
}

/** The URL to call, or a sentence that says what is wrong with it. */
export function targetOf(url: string, path: string): URL | string {
  let target: URL;
  try {
    const base = new URL(url);
    target = new URL(base.pathname.replace(/\/$/, '') + path, base);
  } catch {
    return `${JSON.stringify(url)} is not a URL`;
  }
  return target.protocol === 'http:' || target.protocol === 'https:'
    ? target
    : `${JSON.stringify(url)} is neither http nor https`;
}

/** Starts a request. Whole answers and streams use the same options. */
export function openRequest(
  target: URL,
  call: Pick<HttpCall, 'method' | 'body' | 'headers' | 'token' | 'tls' | 'agents'>,
) {
  const secure = target.protocol === 'https:';
  const options: RequestOptions & ClientTls = {
    method: call.method ?? 'GET',
    agent: call.agents ? (secure ? call.agents.https : call.agents.http) : false,
    ...call.tls,
    headers: {
      ...call.headers,
      ...(call.body === undefined ? {} : { 'content-length': String(call.body.length) }),
      ...(call.token === undefined ? {} : { authorization: `Bearer ${call.token}` }),
    },
  };
  return (secure ? httpsRequest : httpRequest)(target, options);
}

export function httpCall(call: HttpCall): Promise<HttpAnswer> {
  return new Promise((resolve) => {
    const target = targetOf(call.url, call.path);
    if (typeof target === 'string') return resolve({ outcome: 'not-sent', why: target });
    let connected = false;
    let settled = false;
    const settle = (answer: HttpAnswer) => {
      if (settled) return;
      settled = true;
      clearTimeout(connecting);
      clearTimeout(deadline);
      call.signal?.removeEventListener('abort', aborted);
      resolve(answer);
      if (answer.outcome !== 'answered') request.destroy();
    };
    const failed = (why: string) => settle(connected ? { outcome: 'unknown', why } : { outcome: 'not-sent', why });
    const aborted = () =>
      failed(typeof call.signal?.reason === 'string' ? call.signal.reason : 'given up by the caller');
    const connecting = setTimeout(() => {
      if (!connected) failed(`connecting to ${target.host} took longer than ${call.connectMs} ms`);
    }, call.connectMs);
    const deadline = setTimeout(() => failed(`${target.host} did not answer within ${call.limitMs} ms`), call.limitMs);

    const request = openRequest(target, call);
    request.on('socket', (socket) => {
      if (request.reusedSocket) connected = true;
      else
        socket.once(target.protocol === 'https:' ? 'secureConnect' : 'connect', () => {
          connected = true;
        });
    });
    request.on('error', (error: Error & { code?: string }) => {
      const remedy = UNTRUSTED.has(error.code ?? '') ? `: ${TRUST_IT}` : '';
      failed(`the connection to ${target.host} failed: ${error.message || error.code}${remedy}`);
    });
    request.on('response', (response: IncomingMessage) => {
      const chunks: Buffer[] = [];
      let size = 0;
      response.on('data', (chunk: Buffer) => {
        size += chunk.length;
        if (size > call.maxReplyBytes)
          failed(`the answer of ${target.host} is larger than ${call.maxReplyBytes} bytes`);
        else chunks.push(chunk);
      });
      response.on('error', (error) => failed(`the answer of ${target.host} broke off: ${error.message}`));
      response.on('end', () =>
        settle({
          outcome: 'answered',
          status: response.statusCode ?? 0,
          headers: response.headers,
          body: Buffer.concat(chunks, size),
        }),
      );
    });
    if (call.signal?.aborted) aborted();
    else call.signal?.addEventListener('abort', aborted, { once: true });
    request.end(call.body);
  });
}
