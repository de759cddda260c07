// The HTTP server of one sequencer: fastify over a SequencerApi. It decides who may call, how much one caller may cost,
// and how requests end. When the process stops, every request and every live feed is finished or cut within a bound. It
// knows nothing about Redis or the protocol.
import type { ClientTls } from '../http-call.js';
import { createHash, timingSafeEqual } from 'node:crypto';
import type { AddressInfo } from 'node:net';
import { Server as TlsServer, type TLSSocket } from 'node:tls';
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import type { ErrorCode } from '../error-codes.js';
import type { SeqEvent } from '../events.js';
import type { SequencerApi } from '../ports.js';
import { mostConnections, limitConnections } from './connections.js';
import { envelope, failureFrom, HttpError, retryAfter } from './envelope.js';
import { ID_HEADER } from './forward.js';
import { httpLimits, type HttpLimits } from './limits.js';
import { checkListen, isLoopback, listenError, type Listen } from './listen.js';
import { BodyReader } from './body.js';
import { LANE_PREFIX, laneNeeded, laneOf, lanesRoute, laneUrl, type LaneDirectory } from './lanes.js';
import { Metrics, type MetricsOptions, type ServerMetrics } from './metrics.js';
import { FEED_ROUTE, readRoutes } from './read-routes.js';
import { RecentSubmissions } from './recent-submissions.js';
import { healthRoutes } from './health-routes.js';
import type { HttpToken, Scope } from './tokens.js';
import { submitRoute } from './submit-route.js';
import { traceRoute } from './trace-route.js';

export interface HttpServerOptions {
  /** Of one lane. Of a process that runs many, `status` alone is asked: who it is, and whether its loop turns. */
  api: SequencerApi;
  /** The lanes of a process that runs many. Then no path without a lane answers for one. */
  lanes?: LaneDirectory;
  listen: Listen;
  maxBlockBytes: number;
  /** Bearer token that every route except /livez requires. It is also sent when forwarding to the leader. */
  token?: string;
  /** The tokens that are taken now, in place of `token`. The first one is sent when forwarding. */
  tokens?: () => readonly [HttpToken, ...HttpToken[]];
  /** A port of its own for health and metrics alone, with connections of its own. */
  admin?: Listen;
  /** `clientCa`: every caller shows a certificate of this authority. The port of `admin` asks for none. */
  tls?: ServerTls;
  /** As it is now, for forwarding to a leader that has a private certificate, or asks for one. */
  outgoingTls?: () => ClientTls;
  /** What /metrics shows beyond the events of this process. */
  metrics?: MetricsOptions;
  /** In place of those. */
  serverMetrics?: ServerMetrics;
  /** For tests and rare needs; the defaults are below. */
  bounds?: Partial<Bounds>;
  limits?: Partial<HttpLimits>;
}

interface ServerTls {
  cert: string | Buffer;
  key: string | Buffer;
  clientCa?: string | Buffer;
}

interface Bounds {
  /** A submission whose outcome is not known by then is answered as unknown. */
  submitMs: number;
  connectMs: number;
  /** How long a submission is kept for the next leader when nobody accepts it. */
  holdMs: number;
  headMs: number;
  /** A request (headers and body) that has not arrived completely by then is cut. */
  requestMs: number;
  /** A feed reader that takes nothing for this long is dropped. */
  stallMs: number;
  loopAgeLimitMs: number;
  /** Time that close() gives requests under way. */
  closeMs: number;
  /** Connections at once. Beyond it, the one that has been idle longest is closed. */
  connections: number;
  /** The same for the port of health and metrics. */
  adminConnections: number;
}

export const DEFAULT_BOUNDS: Bounds = {
  submitMs: 30_000,
  connectMs: 1000,
  holdMs: 4000,
  headMs: 5000,
  requestMs: 30_000,
  stallMs: 120_000,
  loopAgeLimitMs: 10_000,
  closeMs: 2000,
  connections: mostConnections(),
  adminConnections: 64,
};

/** How long the last answer on a connection has to reach its caller. */
const LINGER_MS = 1000;

export interface HttpServer {
  /** `http://127.0.0.1:7070`, with the actual port. */
  readonly url: string;
  readonly port: number;
  /** The address of health and metrics alone. '' when there is none. */
  readonly adminUrl: string;
  /** New connections get this certificate. Open ones go on. */
  useCertificate(tls: ServerTls): void;
  /** Call it with every SeqEvent of the engine. It feeds the counters of /metrics. */
  observe(event: SeqEvent): void;
  /** Ends feeds, lets requests finish for closeMs, then cuts the remaining ones. */
  close(): Promise<void>;
}

/** Listens, or throws SeqError 78 (HTTP_NOT_LOOPBACK, PORT_IN_USE, HTTP_ADDRESS). */
export async function startHttpServer(options: HttpServerOptions): Promise<HttpServer> {
  const protection = { token: tokensOf(options) !== undefined, tls: options.tls !== undefined };
  checkListen(options.listen, protection);
  if (options.admin) checkListen(options.admin, protection, '--admin');
  const bounds: Bounds = { ...DEFAULT_BOUNDS, ...options.bounds };
  const limits: HttpLimits = { ...httpLimits(options.maxBlockBytes), ...options.limits };
  const metrics = options.serverMetrics ?? new Metrics(options.metrics);
  const closing = new AbortController();
  const app = createApp(options, bounds, bounds.connections, true);
  const feeds = { open: 0 };
  const bodies = new BodyReader(limits);
  const recent = new RecentSubmissions();
  const directory = options.lanes ?? onlyLane(options.api);
  const apiOf = options.lanes === undefined ? () => options.api : laneNeeded;
  for (const one of [
    { prefix: '/v1', apiOf },
    { prefix: LANE_PREFIX, apiOf: laneOf(directory) },
  ]) {
    const shared = { ...one, limits, metrics };
    readRoutes(app, {
      ...shared,
      feeds,
      headMs: bounds.headMs,
      stallMs: bounds.stallMs,
      closing: closing.signal,
    });
    traceRoute(app, { ...one, recent });
    submitRoute(app, {
      ...shared,
      bodies,
      recent,
      submitMs: bounds.submitMs,
      connectMs: bounds.connectMs,
      holdMs: bounds.holdMs,
      outgoingToken: () => tokensOf(options)?.()[0].token,
      ...(options.outgoingTls === undefined ? {} : { outgoingTls: options.outgoingTls }),
    });
  }
  lanesRoute(app, directory);
  const admin = options.admin ? createApp(options, bounds, bounds.adminConnections, false) : undefined;
  const apps = admin ? [app, admin] : [app];
  for (const one of apps) {
    countAnswers(one, metrics);
    healthRoutes(one, {
      ...{ api: options.api, metrics, feeds: () => feeds.open, loopAgeLimitMs: bounds.loopAgeLimitMs },
      ...(options.lanes === undefined ? {} : { lanes: options.lanes }),
    });
  }
  try {
    const url = await listenOn(app, options.listen, options.tls !== undefined);
    const adminUrl = admin ? await listenOn(admin, options.admin!, options.tls !== undefined, '--admin') : '';
    let closed: Promise<void> | undefined;
    return {
      url,
      port: (app.server.address() as AddressInfo).port,
      adminUrl,
      useCertificate(tls) {
        for (const one of apps)
          if (one.server instanceof TlsServer) one.server.setSecureContext(secureContext(tls, one === app));
      },
      observe: (event) => metrics.observe(event),
      // Health is answered until the end.
      close: () =>
        (closed ??= closeApp(app, closing, bounds.closeMs).finally(() => admin && closeApp(admin, closing, 0))),
    };
  } catch (error) {
    await Promise.all(apps.map((one) => one.close()));
    throw error;
  }
}

/** A sequencer of one lane answers for it under its name, too. */
function onlyLane(api: SequencerApi): LaneDirectory {
  const { lane } = api.status();
  return {
    get: (name) => (name === lane ? api : undefined),
    list: () => (lane === '' ? [] : [{ name: lane, api }]),
    wanted: () => (lane === '' ? 0 : 1),
  };
}

function countAnswers(app: FastifyInstance, metrics: ServerMetrics): void {
  app.addHook('onResponse', async ({ method, routeOptions }, reply) => {
    // A path that is no route of ours, or a method that nobody knows, must not become a label.
    const route = routeOptions.url ?? 'none';
    metrics.answered({
      route,
      method: route === 'none' ? '' : method,
      status: reply.raw.statusCode,
      ms: route.endsWith(FEED_ROUTE) && method === 'GET' ? null : reply.elapsedTime,
    });
  });
}

/** Returns the address, with the actual port. Throws SeqError 78. */
async function listenOn(app: FastifyInstance, listen: Listen, secure: boolean, flag = '--http'): Promise<string> {
  try {
    await app.listen(listen);
  } catch (error) {
    throw listenError(listen, error, flag);
  }
  const { port } = app.server.address() as AddressInfo;
  const host = listen.host.includes(':') ? `[${listen.host}]` : listen.host;
  return `${secure ? 'https' : 'http'}://${host}:${port}`;
}

async function closeApp(app: FastifyInstance, closing: AbortController, closeMs: number): Promise<void> {
  closing.abort();
  const cut = setTimeout(() => app.server.closeAllConnections(), closeMs);
  try {
    await app.close();
  } finally {
    clearTimeout(cut);
  }
}

/**
 * A client certificate is asked for on the port that can put items into the chain and read it. A caller without one is
 * told so by `requireCertificate`: a connection that is only cut would tell nothing.
 */
function secureContext({ cert, key, clientCa }: ServerTls, asksClients: boolean) {
  return asksClients && clientCa !== undefined
    ? { cert, key, ca: clientCa, requestCert: true, rejectUnauthorized: false }
    : { cert, key };
}

function createApp(
  options: HttpServerOptions,
  bounds: Bounds,
  connections: number,
  asksClients: boolean,
): FastifyInstance {
  // Says who answers: an address may lead to another sequencer than the one that announced it.
  const { id } = options.api.status();
  const shared = {
    logger: false as const,
    forceCloseConnections: 'idle' as const,
    requestTimeout: bounds.requestMs,
    // Longer than the 60 s of common balancers: the side that waits for answers must not be the one that closes.
    keepAliveTimeout: 75_000,
    routerOptions: { maxParamLength: 64 },
    rewriteUrl: (request: { url?: string }) => laneUrl(request.url ?? '/'),
    frameworkErrors: (error: Error, _request: unknown, reply: unknown) => {
      sendFailure((reply as FastifyReply).header(ID_HEADER, id), error);
    },
    clientErrorHandler(error: Error & { code?: string }, socket: import('node:stream').Duplex) {
      if (error.code === 'ECONNRESET' || !socket.writable) return void socket.destroy();
      const [status, code]: readonly [string, ErrorCode] =
        error.code === 'HPE_HEADER_OVERFLOW'
          ? ['431 Request Header Fields Too Large', 'HEADERS_TOO_LARGE']
          : error.code === 'ERR_HTTP_REQUEST_TIMEOUT'
            ? ['408 Request Timeout', 'REQUEST_TIMEOUT']
            : ['400 Bad Request', 'MALFORMED'];
      const body = JSON.stringify(
        envelope({
          status: 0,
          code,
          message: 'the request could not be read',
          why: error.message,
          next: [],
          retryable: false,
        }),
      );
      socket.end(
        `HTTP/1.1 ${status}\r\n${ID_HEADER}: ${id}\r\nContent-Type: application/json\r\nContent-Length: ` +
          `${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
      );
      // Without this the caller keeps the half-closed connection as long as it likes.
      setTimeout(() => socket.destroy(), LINGER_MS).unref();
    },
  };
  const http = {
    maxHeaderSize: 16 * 1024,
    headersTimeout: Math.min(10_000, bounds.requestMs),
    connectionsCheckingInterval: 1000,
  };
  const app = (options.tls
    ? Fastify({ ...shared, https: { ...http, ...secureContext(options.tls, asksClients), handshakeTimeout: 10_000 } })
    : Fastify({ ...shared, http })) as unknown as FastifyInstance;
  limitConnections(app.server, connections, options.tls !== undefined);
  // Bodies stay streams: routes read them within their own bounds. An item is bytes, whatever its Content-Type says.
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', (_request, payload, done) => done(null, payload));
  app.addHook('onRequest', async (_request, reply) => void reply.header(ID_HEADER, id));
  if (asksClients && options.tls?.clientCa !== undefined) app.addHook('onRequest', requireCertificate);
  const tokens = tokensOf(options);
  if (tokens !== undefined) app.addHook('onRequest', authorize(tokens));
  else {
    app.addHook('onRequest', refuseBrowsers);
    // A certificate is proof of the name already.
    if (!options.tls) app.addHook('onRequest', refuseOtherNames);
  }
  app.setErrorHandler((error, _request, reply) => {
    sendFailure(reply, error);
  });
  app.setNotFoundHandler((request, reply) => {
    sendFailure(
      reply,
      new HttpError({
        status: 404,
        code: 'NO_ROUTE',
        message: `there is no ${request.method} ${request.url.slice(0, 200)}`,
        why: 'the path or the method is not one of ours',
        next: [
          'POST /v1/submit',
          'GET /v1/blocks/HEIGHT',
          'GET /v1/blocks?from=HEIGHT',
          'GET /v1/head',
          'GET /v1/status',
          'GET /v1/trace?key=KEY',
          'GET /v1/lanes',
          'POST /v1/lanes/LANE/submit',
          'GET /livez',
          'GET /readyz',
          'GET /leader',
          'GET /metrics',
        ],
        retryable: false,
      }),
    );
  });
  return app;
}

function sendFailure(reply: FastifyReply, error: unknown): void {
  const failure = failureFrom(error);
  const wait = retryAfter(failure);
  if (wait !== undefined) reply.header('retry-after', wait);
  if (failure.status === 401) reply.header('www-authenticate', 'Bearer');
  void reply
    .code(failure.status)
    .type('application/json')
    .send(JSON.stringify(envelope(failure)));
}

function tokensOf({ token, tokens }: HttpServerOptions): HttpServerOptions['tokens'] {
  return tokens ?? (token === undefined ? undefined : () => [{ token, scopes: ['submit', 'read', 'metrics'] }]);
}

/** What a caller needs to be allowed for. Null: every token will do. A submitter has to find the leader first. */
function scopeOf({ method, url }: FastifyRequest): Scope | null {
  const path = url.split('?', 1)[0]!;
  if (/^\/v1(\/lanes\/[^/]+)?\/(status|head)$/.test(path)) return null;
  if (path === '/metrics' || path === '/readyz' || path === '/leader') return 'metrics';
  return method === 'POST' ? 'submit' : 'read';
}

function authorize(tokens: NonNullable<HttpServerOptions['tokens']>) {
  const digest = (text: string) => createHash('sha256').update(text).digest();
  return async (request: FastifyRequest): Promise<void> => {
    if (request.url === '/livez') return;
    const given = /^Bearer +(\S+)$/i.exec(request.headers.authorization ?? '')?.[1];
    // Digests are compared, so the time reveals neither the content nor the length of the token.
    const asked = given === undefined ? null : digest(given);
    const known = asked && tokens().filter(({ token }) => timingSafeEqual(asked, digest(token)));
    const scope = scopeOf(request);
    if (known?.some(({ scopes }) => scope === null || scopes.includes(scope))) return;
    if (known && known.length > 0)
      throw new HttpError({
        status: 403,
        code: 'TOKEN_SCOPE',
        message: `this token is not for ${request.method} ${request.url.split('?', 1)[0]!.slice(0, 100)}`,
        why: `it is for ${known[0]!.scopes.join(', ')}; this needs ${scope}`,
        next: ['send another token', `or add ${scope} to its line in the file of --http-token-file`],
        retryable: false,
      });
    throw new HttpError({
      status: 401,
      code: 'TOKEN_NEEDED',
      message: given === undefined ? 'a bearer token is needed' : 'the bearer token is wrong',
      why: 'this server listens with --http-token-file',
      next: ['send Authorization: Bearer TOKEN'],
      retryable: false,
    });
  };
}

async function requireCertificate({ raw }: FastifyRequest): Promise<void> {
  const { authorized, authorizationError } = raw.socket as TLSSocket;
  if (authorized) return;
  throw new HttpError({
    status: 403,
    code: 'CERTIFICATE_NEEDED',
    message: "a certificate of this server's authority is needed",
    why: `the caller showed none that counts: ${String(authorizationError)}`,
    next: ['call with a certificate and its key (seq: --http-cert, --http-key; curl: --cert, --key)'],
    retryable: false,
  });
}

/**
 * Without a token, loopback is the only protection, and every web page that is open on this machine can reach loopback.
 * Browsers send an Origin, programs do not.
 */
async function refuseBrowsers(request: FastifyRequest): Promise<void> {
  if (request.method === 'GET' || request.method === 'HEAD' || request.headers.origin === undefined) return;
  throw new HttpError({
    status: 403,
    code: 'BROWSER_REFUSED',
    message: 'requests from web pages are not taken',
    why: 'without a token any page open on this machine could submit items',
    next: ['run with --http-token-file and send the token'],
    retryable: false,
  });
}

/**
 * Without a token the port is open to this machine alone. A web page can give its own name this machine's address, and
 * then read what the port answers. So only the names of loopback are answered.
 */
async function refuseOtherNames(request: FastifyRequest): Promise<void> {
  const { host } = request.headers;
  if (
    host === undefined ||
    isLoopback(
      host
        .replace(/:\d*$/, '')
        .replace(/^\[(.*)\]$/, '$1')
        .toLowerCase(),
    )
  )
    return;
  throw new HttpError({
    status: 403,
    code: 'HOST_REFUSED',
    message: `this port does not answer for the host name ${JSON.stringify(host.slice(0, 100))}`,
    why: 'without a token it is for this machine alone, under the names localhost, 127.0.0.1 and [::1]',
    next: ['name 127.0.0.1 in the request', 'or run with --http-token-file and send the token'],
    retryable: false,
  });
}
