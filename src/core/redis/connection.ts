// One connection to one server. It opens when it is first needed, and no caller waits longer than its own limit
// (docs/PROTOCOL.md section 11). A call is sent at most once: nothing is queued while offline, nothing is resent. After
// a deadline the outcome is unknown. After the second deadline in a row the connection is given up. Otherwise calls
// would pile up in the buffers of a silent server, and all would run when it wakes.
import { Redis, type RedisOptions } from 'ioredis';
import type { Refused, Step, Unknown } from '../protocol/types.js';
import { fairDeadline, idleDeadline } from './deadline.js';
import { parseErrorReply } from './replies.js';
import { assertMaster, sentinelOptions, type SentinelSettings } from './sentinel.js';
import { tlsCause } from '../tls-causes.js';
import type { NodeUrl } from './url.js';
import { OwnWire } from './own-resp/own-wire.js';
import { ClientWire } from './wire/client-wire.js';
import type { Part, Wire } from './wire/wire.js';

export type { SentinelSettings } from './sentinel.js';

export interface TlsSettings {
  /** PEM texts. */
  ca?: string;
  cert?: string;
  key?: string;
  serverName?: string;
  /** False accepts any certificate. */
  verify?: boolean;
}

/** What may have changed since the last connect. A part that is absent stays as it was. */
interface Renewed {
  password?: string;
  tls?: TlsSettings;
  /** The password for the sentinels. */
  sentinelPassword?: string;
}

export interface ConnectionSettings {
  address: NodeUrl;
  username?: string;
  password?: string;
  tls?: TlsSettings;
  sentinel?: SentinelSettings;
  /** Reads secrets and certificates again. Called before every connect, because they are rotated while this runs. */
  renew?: () => Promise<Renewed>;
  /** false: ioredis writes the commands and reads the answers (SEQ_DISABLE=own-resp). */
  ownResp?: boolean;
  /** Many lanes use it: what they send at one moment goes out in one piece. */
  gathers?: boolean;
}

export type Answer<T> = { answered: true; value: T } | { answered: false; reply: Refused | Unknown };
type Work<T> = (client: Wire, at: { step: Step }) => Promise<T>;
type Session = { client: Wire } | { failed: Refused | Unknown };
interface Opening {
  startedAt: number;
  step: Step;
  session: Promise<Session>;
  abort: () => void;
}

/** How long an attempt to connect may go on in the background after its first caller has given up. */
const CONNECT_LIMIT_MS = 1000;
/** Deadlines in a row after which a connection is given up. */
const MAX_SILENCES = 2;
const BACKOFF_MIN_MS = 50;
const BACKOFF_MAX_MS = 1000;
const RESOLVE_ERRORS = new Set(['ENOTFOUND', 'EAI_AGAIN', 'EAI_FAIL', 'EAI_NODATA', 'EAI_NONAME']);

export function unknown(step: Step, cause: string, limitMs?: number): Unknown {
  // What is left of a larger limit is a fraction. Show people whole milliseconds.
  return limitMs === undefined
    ? { outcome: 'unknown', step, cause }
    : { outcome: 'unknown', step, cause, limitMs: Math.round(limitMs) };
}

/** True for an error that the server itself sent. */
export function isErrorReply(error: unknown): error is Error {
  return error instanceof Error && error.name === 'ReplyError';
}

/** Sends one command now. Rejects at once when the connection is not open. */
export function send(client: Wire, name: string, args: readonly Part[]): Promise<unknown> {
  return client.send(name, args);
}

export class Connection {
  /** Increases with every established connection that is lost. */
  generation = 0;
  private client: Wire | null = null;
  private opening: Opening | null = null;
  private failure: { reply: Refused | Unknown; retryAt: number; backoffMs: number } | null = null;
  private closed = false;
  private attempts = 0;
  /**
   * Deadlines that passed in a row without any answer. Calls that were under way together are silent once: a moment in
   * which the server does nothing hits all of them.
   */
  private silences = 0;
  private silentSince = -Infinity;
  private readonly lossListeners = new Set<() => void>();

  constructor(private readonly settings: ConnectionSettings) {}

  /** The client if it is connected at this moment. */
  get ready(): Wire | null {
    return this.client;
  }

  onLost(listener: () => void): void {
    this.lossListeners.add(listener);
  }

  /**
   * Runs `work` on a connected client. All of it, connecting included, takes at most limitMs. When `work` rejects, an
   * error of the server becomes a reply; any other error means unknown. `at` tells which step `work` waits for.
   */
  run<T>(limitMs: number, work: Work<T>): Promise<Answer<T>> {
    const startedAt = performance.now();
    if (this.client !== null) return this.attempt(this.client, limitMs, limitMs, work);
    return this.openThrough(limitMs, startedAt).then((session) => {
      if ('failed' in session) return { answered: false, reply: session.failed };
      const leftMs = limitMs - (performance.now() - startedAt);
      return this.attempt(session.client, Math.max(0, leftMs), limitMs, work);
    });
  }

  /** As `run`, for long answers: `limitMs` is the longest silence, however long all of the answer takes. */
  stream<T>(limitMs: number, work: Work<T>): Promise<Answer<T>> {
    const once = (client: Wire): Promise<Answer<T>> =>
      this.attempt(client, limitMs, limitMs, work, (due) => idleDeadline(limitMs, () => received(client), due));
    if (this.client !== null) return once(this.client);
    return this.openThrough(limitMs, performance.now()).then((session) =>
      'failed' in session ? { answered: false, reply: session.failed } : once(session.client),
    );
  }

  close(): void {
    this.closed = true;
    this.opening?.abort();
    if (this.client !== null) this.drop(this.client);
  }

  /** Gives a connection up. Every call that waits on it is rejected. */
  drop(client: Wire): void {
    // Many calls may give up the same client; the first one has done it.
    if (this.client !== client) return;
    this.client = null;
    this.generation += 1;
    discard(client.redis);
    for (const listener of this.lossListeners) listener();
  }

  private attempt<T>(
    client: Wire,
    leftMs: number,
    limitMs: number,
    work: Work<T>,
    deadline: (due: () => void) => () => void = (due) => fairDeadline(leftMs, due),
  ): Promise<Answer<T>> {
    return new Promise((resolve) => {
      const at: { step: Step } = { step: 'call' };
      const startedAt = performance.now();
      let settled = false;
      const cancel = deadline(() => {
        settled = true;
        // One late answer is no reason to lose the other calls that are under way. A second silence in a row is.
        if (this.silent(startedAt) >= MAX_SILENCES) this.drop(client);
        resolve({ answered: false, reply: unknown(at.step, 'no answer', limitMs) });
      });
      work(client, at).then(
        (value) => {
          if (this.client === client) this.silences = 0;
          if (settled) return;
          cancel();
          resolve({ answered: true, value });
        },
        (error: unknown) => {
          if (settled) return;
          cancel();
          if (isErrorReply(error)) {
            resolve({ answered: false, reply: parseErrorReply(error.message) });
            return;
          }
          // A lost connection, or bytes that are not the protocol: nothing more can be read from this client.
          this.drop(client);
          resolve({ answered: false, reply: unknown(at.step, lossCause(error)) });
        },
      );
    });
  }

  private silent(startedAt: number): number {
    if (this.silences > 0 && startedAt <= this.silentSince) return this.silences;
    this.silentSince = performance.now();
    return ++this.silences;
  }

  /**
   * A sentinel that names a wrong server does not cost a wait. Every sentinel is asked once before the back-off begins.
   */
  private async openThrough(limitMs: number, startedAt: number): Promise<Session> {
    for (;;) {
      const leftMs = limitMs - (performance.now() - startedAt);
      const session = await this.open(Math.max(0, leftMs));
      const spent = performance.now() - startedAt >= limitMs;
      if (
        !('failed' in session) ||
        session.failed.outcome === 'refused' ||
        spent ||
        this.closed ||
        !this.anotherSentinel()
      )
        return session;
    }
  }

  private anotherSentinel(): boolean {
    const { sentinel } = this.settings;
    return sentinel !== undefined && this.attempts % sentinel.nodes.length !== 0;
  }

  private async open(limitMs: number): Promise<Session> {
    if (this.closed) return { failed: unknown('connect', 'the connection is closed') };
    const now = performance.now();
    let waitMs = limitMs;
    if (this.opening === null) {
      const { failure } = this;
      if (failure !== null && now < failure.retryAt) return { failed: waiting(failure.reply, failure.retryAt - now) };
      this.opening = this.startOpening(Math.max(limitMs, CONNECT_LIMIT_MS));
    } else {
      // Another call is connecting already. The wait ends limitMs after that attempt began, so that not every call
      // waits its whole limit again.
      waitMs = this.opening.startedAt + limitMs - now;
      if (waitMs <= 0) {
        return {
          failed: unknown(
            this.opening.step,
            `connecting for ${Math.round(now - this.opening.startedAt)} ms already`,
            limitMs,
          ),
        };
      }
    }
    const { opening } = this;
    return new Promise((resolve) => {
      const cancel = fairDeadline(waitMs, () => resolve({ failed: unknown(opening.step, 'no answer', limitMs) }));
      void opening.session.then((session) => {
        cancel();
        resolve(session);
      });
    });
  }

  private startOpening(connectLimitMs: number): Opening {
    const opening: Opening = {
      startedAt: performance.now(),
      step: 'connect',
      abort: () => undefined,
      session: Promise.resolve<Session>({ failed: unknown('connect', '') }),
    };
    const { settings } = this;
    opening.session =
      settings.renew === undefined
        ? this.connect(opening, settings, connectLimitMs)
        : settings.renew().then(
            (renewed) => this.connect(opening, withRenewed(settings, renewed), connectLimitMs),
            // A secret that cannot be read now is tried as it was.
            () => this.connect(opening, settings, connectLimitMs),
          );
    return opening;
  }

  private connect(opening: Opening, settings: ConnectionSettings, connectLimitMs: number): Promise<Session> {
    if (this.closed) {
      if (this.opening === opening) this.opening = null;
      return Promise.resolve({ failed: unknown('connect', 'the connection is closed') });
    }
    const redis = new Redis(clientOptions(settings, connectLimitMs, this.attempts++));
    let lastError: Error | null = null;
    const client = settings.ownResp === false ? new ClientWire(redis) : new OwnWire(redis, settings.gathers);
    redis.on('error', (error: Error) => {
      lastError = error;
    });
    return new Promise<Session>((resolve) => {
      let settled = false;
      const settle = (session: Session): void => {
        if (settled) return;
        settled = true;
        cancel();
        if (this.opening === opening) this.opening = null;
        if ('failed' in session) {
          discard(redis);
          const backoffMs = Math.min(BACKOFF_MAX_MS, Math.max(BACKOFF_MIN_MS, (this.failure?.backoffMs ?? 0) * 2));
          this.failure = {
            reply: session.failed,
            retryAt: performance.now() + (this.anotherSentinel() ? 0 : backoffMs),
            backoffMs,
          };
        } else {
          this.failure = null;
          this.silences = 0;
          this.client = client;
        }
        resolve(session);
      };
      const cancel = fairDeadline(connectLimitMs, () =>
        settle({ failed: unknown(opening.step, 'no answer', connectLimitMs) }),
      );
      opening.abort = () => settle({ failed: unknown(opening.step, 'the connection is closed') });
      redis.once('end', () => {
        settle({ failed: unknown(stepOf(opening.step, lastError), lossCause(lastError)) });
        if (this.client === client) this.drop(client);
      });
      redis.once('ready', () => {
        opening.step = 'handshake';
        handshake(client, settings).then(
          () => settle({ client }),
          (error: unknown) =>
            settle({
              failed: isErrorReply(error) ? parseErrorReply(error.message) : unknown('handshake', lossCause(error)),
            }),
        );
      });
      redis.connect().catch((error: unknown) => {
        const cause = lastError ?? (error instanceof Error ? error : null);
        settle({ failed: unknown(stepOf(opening.step, cause), lossCause(cause)) });
      });
    });
  }
}

function withRenewed(settings: ConnectionSettings, { sentinelPassword, ...renewed }: Renewed): ConnectionSettings {
  const { sentinel } = settings;
  return {
    ...settings,
    ...renewed,
    ...(sentinel === undefined || sentinelPassword === undefined
      ? {}
      : { sentinel: { ...sentinel, password: sentinelPassword } }),
  };
}

/** AUTH, SELECT, and a PING that proves that the server answers, in one round trip. */
async function handshake(client: Wire, settings: ConnectionSettings): Promise<void> {
  const username = settings.username ?? settings.address.username;
  const password = settings.password ?? settings.address.password;
  const sent: Promise<unknown>[] = [];
  if (password !== undefined)
    sent.push(
      send(client, 'auth', username === undefined ? [password] : [username, password]).catch(ignoreNeedlessPassword),
    );
  if (settings.address.db !== 0) sent.push(send(client, 'select', [settings.address.db]));
  if (settings.sentinel !== undefined) sent.push(assertMaster(client));
  sent.push(send(client, 'ping', []));
  const results = await Promise.allSettled(sent);
  for (const result of results) if (result.status === 'rejected') throw result.reason;
  const pong = (results[results.length - 1] as PromiseFulfilledResult<unknown>).value;
  if (!Buffer.isBuffer(pong) && typeof pong !== 'string') throw new Error('PING was answered with something else');
  if (pong.toString() !== 'PONG') throw new Error('PING was answered with something else');
}

/** A password for a server that has none is a configuration matter, not a reason to refuse the server. */
function ignoreNeedlessPassword(error: unknown): void {
  if (isErrorReply(error) && error.message.includes('without any password configured')) return;
  throw error;
}

function clientOptions(settings: ConnectionSettings, connectLimitMs: number, attempt: number): RedisOptions {
  const { address, tls, sentinel } = settings;
  const options: RedisOptions = {
    protocol: 2,
    lazyConnect: true,
    retryStrategy: () => null,
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    autoResubscribe: false,
    maxRetriesPerRequest: 0,
    enableReadyCheck: false,
    disableClientInfo: true,
    connectTimeout: connectLimitMs,
    disconnectTimeout: 50,
    noDelay: true,
  };
  if (address.transport === 'tls' || tls !== undefined) {
    options.tls = {
      ...(tls?.ca === undefined ? {} : { ca: tls.ca }),
      ...(tls?.cert === undefined ? {} : { cert: tls.cert }),
      ...(tls?.key === undefined ? {} : { key: tls.key }),
      ...(tls?.serverName === undefined ? {} : { servername: tls.serverName }),
      rejectUnauthorized: tls?.verify !== false,
    };
  }
  if (sentinel !== undefined) return { ...options, ...sentinelOptions(sentinel, options.tls, connectLimitMs, attempt) };
  if (address.transport === 'unix') return { ...options, path: address.path };
  return { ...options, host: address.host, port: address.port };
}

function discard(client: Redis): void {
  client.disconnect();
  // `disconnect` waits for the peer to close; a silent peer never does.
  (client as unknown as { stream?: { destroy(): void } }).stream?.destroy();
}

/** Bytes that came over this client's socket so far. */
export function received(client: Wire): number {
  return (client.redis as unknown as { stream?: { bytesRead?: number } }).stream?.bytesRead ?? 0;
}

function stepOf(step: Step, error: Error | null): Step {
  const code = (error as NodeJS.ErrnoException | null)?.code ?? '';
  return RESOLVE_ERRORS.has(code) ? 'resolve' : step;
}

/** The cause as text, without the arguments of commands, because these may hold secrets. */
function lossCause(error: unknown): string {
  if (!(error instanceof Error)) return 'the connection was lost';
  const code = (error as NodeJS.ErrnoException).code;
  if (typeof code === 'string' && code !== '') return tlsCause(code) ?? code;
  if (error.name === 'ParserError' || /Protocol error/.test(error.message))
    return 'it does not speak the Redis protocol';
  if (/closed|writeable|aborted/i.test(error.message)) return 'the connection was lost';
  return error.message.split('\n', 1)[0]?.slice(0, 120) ?? 'the connection was lost';
}

function waiting(reply: Refused | Unknown, leftMs: number): Refused | Unknown {
  if (reply.outcome === 'refused') return reply;
  return { ...reply, retryInMs: Math.ceil(leftMs) };
}
