// What can be read over HTTP: blocks, the confirmed head, and the status.
import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { SequencerApi } from '../ports.js';
import { blockLine, writeFeed } from './feed.js';
import { envelope, failureFrom, HttpError, malformed, unavailable } from './envelope.js';
import { ID_HEADER } from './forward.js';
import { maxItemBytes, MAX_KEY_BYTES, type HttpLimits } from './limits.js';

export interface ReadRouteOptions {
  /** Who answers this request. Throws for a lane that does not run here. */
  apiOf(request: FastifyRequest): SequencerApi;
  /** In front of every path. */
  prefix: string;
  /** How many feeds are being served now. */
  feeds: { open: number };
  limits: HttpLimits;
  headMs: number;
  stallMs: number;
  /** Aborted when the server closes: ends live feeds. */
  closing: AbortSignal;
}

/** The path of a feed ends so. */
export const FEED_ROUTE = '/blocks';

interface FeedQuery {
  from?: string;
  to?: string;
}

/** Digits only (`1e3` and `0x10` are not heights), from 1, within 2^53−1. */
export function heightOf(text: unknown, name: string): number {
  const height = typeof text === 'string' && /^\d{1,16}$/.test(text) ? Number(text) : NaN;
  if (!(height >= 1 && height <= Number.MAX_SAFE_INTEGER))
    throw malformed(`${name} is not a height`, 'a height is written in decimal digits, from 1 to 2^53-1');
  return height;
}

export function readRoutes(app: FastifyInstance, options: ReadRouteOptions): void {
  blockRoute(app, options);
  feedRoutes(app, options);
  headRoute(app, options);
  statusRoute(app, options);
}

function blockRoute(app: FastifyInstance, { apiOf, prefix }: ReadRouteOptions): void {
  app.get<{ Params: { height: string } }>(`${prefix}/blocks/:height`, async (request, reply) => {
    const api = apiOf(request as FastifyRequest);
    const height = heightOf(request.params.height, 'the last part of the path');
    const block = api.block(height);
    if (block) return reply.type('application/json').send(blockLine(block));
    const head = api.status().height;
    const ahead = height > head;
    throw new HttpError({
      status: 404,
      code: 'NO_BLOCK',
      message: `there is no block ${height} here`,
      retryable: ahead,
      why: ahead ? `the highest committed block here is ${head}` : `this store begins at ${floorOf(api, head) + 1}`,
      next: ahead ? [`GET /v1/blocks?from=${height} waits for it`] : ['ask another sequencer'],
      facts: { head, floor: floorOf(api, head) },
    });
  });
}

/** Throws what is wrong with the heights that a feed is asked for. */
function rangeOf({ from: first, to: last }: FeedQuery): { from: number; to?: number } {
  const from = heightOf(first, 'from');
  if (last === undefined) return { from };
  const to = heightOf(last, 'to');
  if (to < from) throw malformed('to is below from', 'a feed goes upwards');
  return { from, to };
}

function feedRoutes(app: FastifyInstance, options: ReadRouteOptions): void {
  const { apiOf, prefix, feeds, limits, closing, stallMs } = options;
  const path = `${prefix}${FEED_ROUTE}`;
  // A feed's place is for somebody who reads. HEAD reads nothing, so it gets the headers alone.
  app.head<{ Querystring: FeedQuery }>(path, async (request, reply) => {
    apiOf(request as FastifyRequest);
    rangeOf(request.query);
    return reply.type('application/x-ndjson').header('cache-control', 'no-store').send();
  });
  app.get<{ Querystring: FeedQuery }>(path, { exposeHeadRoute: false }, async (request, reply) => {
    const api = apiOf(request as FastifyRequest);
    const range = rangeOf(request.query);
    if (closing.aborted) throw unavailable('STOPPING', 'this sequencer is stopping', 'ask another one');
    if (feeds.open >= limits.maxFeeds)
      throw unavailable(
        'TOO_MANY_FEEDS',
        `${limits.maxFeeds} feeds are being served`,
        'each holds memory of its own',
        5000,
      );
    feeds.open += 1;
    try {
      reply.hijack();
      reply.raw.setHeader(ID_HEADER, api.status().id);
      reply.raw.socket?.setKeepAlive(true, 30_000);
      await writeFeed(api, reply.raw, { ...range, stallMs, signal: closing });
    } catch (error) {
      // The response is hijacked: Fastify does not answer for us any more.
      const failure = failureFrom(error);
      const head = api.status().height;
      if (failure.status === 404) failure.facts = { head, floor: floorOf(api, head) };
      reply.raw
        .writeHead(failure.status, { 'content-type': 'application/json' })
        .end(JSON.stringify(envelope(failure)));
    } finally {
      feeds.open -= 1;
    }
  });
}

function headRoute(app: FastifyInstance, { apiOf, prefix, headMs }: ReadRouteOptions): void {
  app.get(`${prefix}/head`, async (request) => {
    const api = apiOf(request);
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<{ confirmed: false; why: string }>((resolve) => {
      const why = `no quorum confirmed it within ${headMs} ms`;
      timer = setTimeout(resolve, headMs, { confirmed: false, why });
    });
    const head = await Promise.race([api.confirmHead(), late]).finally(() => clearTimeout(timer));
    if (head.confirmed) return { height: head.height, hash: head.hash, epoch: head.epoch };
    const { leader, id } = api.status();
    const failure = unavailable('NOT_CONFIRMED', 'the committed head could not be confirmed', head.why).failure;
    if (leader && leader.id !== id && leader.url !== '')
      failure.next = [`ask the leader ${leader.id}: GET ${leader.url.replace(/\/$/, '')}/v1/head`];
    throw new HttpError(failure);
  });
}

function statusRoute(app: FastifyInstance, { apiOf, prefix, limits }: ReadRouteOptions): void {
  app.get(`${prefix}/status`, async (request) => ({
    ...apiOf(request).status(),
    limits: {
      maxBlockBytes: limits.maxBlockBytes,
      maxItemBytes: maxItemBytes(limits.maxBlockBytes, MAX_KEY_BYTES),
      maxKeyBytes: MAX_KEY_BYTES,
      maxBatchItems: limits.maxBatchItems,
      maxBodyBytes: limits.maxBodyBytes,
    },
  }));
}

/** The height below the store's first block, by bisection. Stores are contiguous (I6). */
function floorOf(api: SequencerApi, head: number): number {
  let low = 0;
  let high = head;
  while (low < high) {
    const middle = Math.floor((low + high) / 2) + 1;
    if (middle <= head && !holds(api, middle)) low = middle;
    else high = middle - 1;
  }
  return low;
}

/** A damaged block is there, although nobody gets it. */
function holds(api: SequencerApi, height: number): boolean {
  try {
    return api.block(height) !== undefined;
  } catch {
    return true;
  }
}
