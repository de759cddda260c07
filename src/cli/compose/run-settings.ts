// All settings of `seq run`, checked before anything is opened: flags, SEQ_*, context and config file, in that order.
import type { ErrorCode } from '../../core/error-codes.js';
import { existsSync, readdirSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { checkTiming, DEFAULT_LIMITS, DEFAULT_TIMING, type Limits, type Timing } from '../../core/config.js';
import { EXIT, SeqError } from '../../core/errors.js';
import { stateHome } from '../../core/home.js';
import { targetOf } from '../../core/http-call.js';
import type { LogLevel } from '../../core/log/log.js';
import { lanePattern } from '../../core/fleet/pattern.js';
import { HttpFiles } from '../../core/serve/http-files.js';
import { checkListen, parseListen, type Listen } from '../../core/serve/listen.js';
import { disabledShortcuts } from '../../core/shortcuts.js';
import { checkAdvertised } from './advertised-url.js';
import { agreedGiven, type AgreedGiven } from './agreed-settings.js';
import { usageError } from '../support/failure.js';
import { asCount, asDuration, asList, asSize, asSwitch, asText, setting, type Sources } from '../config/settings.js';
import type { ClusterSettings } from '../cluster/settings.js';

export interface RunSettings {
  id: string;
  /** Which lanes the process runs; ''  for the one of --lane. */
  lanes: string;
  storeDir(cluster: string, lane: string): string;
  /** The stores that this sequencer has at the usual place. [] when its store is named. */
  formerStores(): string[];
  timing: Timing;
  limits: Limits;
  eager: boolean;
  priority: number;
  listen: Listen | null;
  /** The address for other sequencers. '' to find one. */
  advertise: string;
  /** Where health and metrics alone are answered. */
  admin: Listen | null;
  /** Tokens, certificate and authority. They may change while it runs. */
  files: HttpFiles;
  peers: string[];
  exec: { command: string; args: string[] } | null;
  bootstrap: boolean;
  adoptNodes: boolean;
  adoptProducer: boolean;
  /** While it runs, a node is sought at the address that the cluster has, too. */
  seeksNodes: boolean;
  readmit: boolean;
  /** false: switched off by SEQ_DISABLE. */
  warmUp: boolean;
  /** Settings that the cluster fixes when it is made. */
  agreed: AgreedGiven;
  version: string;
  logLevel: LogLevel;
  /** Values that no line may show. */
  secrets: string[];
}

export const SEQUENCER_LOG_LEVELS = [
  'trace',
  'debug',
  'info',
  'warn',
  'error',
  'fatal',
  'silent',
] as const satisfies readonly LogLevel[];

export async function runSettings(
  sources: Sources,
  cluster: ClusterSettings,
  rest: string[],
  child: string[] | null,
  version: string,
): Promise<RunSettings> {
  const get = <T>(flag: string, parse: (text: string, what: string) => T, fallback: T): T =>
    setting(sources, flag, parse, fallback).value;
  if (rest.length > 0)
    throw usageError(`unexpected argument ${rest[0]}`, [
      "a producer's command goes after --: seq run --producer exec -- CMD …",
    ]);
  const exec = execOf(get('producer', asText, child ? 'exec' : 'batch'), child);
  const timing: Timing = {
    ...DEFAULT_TIMING,
    ttlMs: get('ttl', asDuration, DEFAULT_TIMING.ttlMs),
    blockTimeMs: get('block-time', asDuration, DEFAULT_TIMING.blockTimeMs),
    nodeTimeoutMs: cluster.nodeTimeoutMs,
  };
  timing.pollMs = Math.min(DEFAULT_TIMING.pollMs, Math.max(50, timing.ttlMs / 4));
  timing.pollJitterMs = Math.min(DEFAULT_TIMING.pollJitterMs, timing.pollMs / 2);
  timing.retryMs = Math.min(DEFAULT_TIMING.retryMs, Math.max(20, timing.ttlMs / 10));
  timing.retryJitterMs = Math.min(DEFAULT_TIMING.retryJitterMs, timing.retryMs / 2);
  if (timing.blockTimeMs < 1)
    throw bad(
      'BAD_BLOCK_TIME',
      '--block-time must be at least 1ms',
      'work is the heartbeat of the lease: blocks without a pause would be all the nodes do',
    );
  checkTiming(timing);
  const agreed = agreedGiven(
    (flag, parse, fallback) => setting(sources, flag, parse, fallback),
    child ? 'exec' : 'batch',
  );
  const limits = {
    maxBlockBytes: agreed.maxBlockBytes.value,
    retainBlocks: get('retain-blocks', asCount, DEFAULT_LIMITS.retainBlocks),
    retainBytes: get('retain-bytes', asSize, DEFAULT_LIMITS.retainBytes),
  };
  if (limits.retainBlocks < 2)
    throw bad(
      'BAD_RETENTION',
      '--retain-blocks must be at least 2',
      'the newest block and the one it proves are always kept',
    );
  const http = get('http', asText, '');
  const files = new HttpFiles({
    tokens: get('http-token-file', asText, ''),
    certificate: get('http-cert', asText, ''),
    key: get('http-key', asText, ''),
    authority: get('http-ca', asText, ''),
    clientAuthority: get('http-client-ca', asText, ''),
  });
  const listen = http === '' ? null : parseListen(http);
  const admin = adminOf(get('admin', asText, ''), listen);
  // Checked again before binding. It is checked here so that a bad address is reported before the nodes are asked.
  const protection = { token: files.tokens !== undefined, tls: files.certificate !== undefined };
  if (listen) checkListen(listen, protection);
  if (admin) checkListen(admin, protection, '--admin');
  const bootstrap = get('bootstrap', asSwitch, false);
  const adoptNodes = get('adopt-nodes', asSwitch, false);
  const lanes = lanesOf(get('lanes', asText, ''), cluster, { exec, bootstrap, adoptNodes });
  const id = idOf(get('id', asText, hostname()));
  const store = get('store', asText, '');
  const peers = get('peer', asList, [] as string[]);
  for (const peer of peers) {
    const target = targetOf(peer, '/v1/blocks');
    if (typeof target === 'string')
      throw bad('PEER_URL', `--peer: ${target}`, 'a peer is the HTTP address of a sequencer, http://HOST:PORT');
  }
  return {
    id,
    lanes,
    timing,
    limits,
    exec,
    peers,
    version,
    eager: get('eager', asSwitch, false),
    priority: get('priority', asCount, 0),
    bootstrap,
    adoptNodes,
    adoptProducer: get('adopt-producer', asSwitch, false),
    seeksNodes: !get('listed-addresses', asSwitch, false),
    readmit: !get('no-readmit', asSwitch, false),
    warmUp: !disabledShortcuts(sources.env['SEQ_DISABLE']).has('warm-up'),
    listen,
    advertise: checkAdvertised(get('advertise', asText, '')),
    admin,
    files,
    agreed,
    storeDir: (clusterId, lane) =>
      store !== ''
        ? store
        : join(stateHome(sources.env), 'seq', 'run', lane === '' ? clusterId : `${clusterId}-${lane}`, id),
    formerStores: () => (store !== '' ? [] : storesBelow(join(stateHome(sources.env), 'seq', 'run'), id)),
    logLevel: get('log-level', asText, 'info') as LogLevel,
    secrets: files.tokens === undefined ? [] : files.tokens.current().map((one) => one.token),
  };
}

function storesBelow(place: string, id: string): string[] {
  try {
    return readdirSync(place)
      .map((cluster) => join(place, cluster, id))
      .filter((dir) => existsSync(dir));
  } catch {
    return []; // there is none
  }
}

function execOf(producer: string, child: string[] | null): RunSettings['exec'] {
  if (producer === 'batch' && child)
    throw usageError('--producer batch takes no command', ['use --producer exec -- CMD …']);
  if (producer !== 'exec') return null;
  const [command, ...args] = child ?? [];
  if (command === undefined)
    throw usageError('--producer exec needs a command after --', ['seq run --producer exec -- CMD …']);
  return { command, args };
}

/** Throws for what does not go together with many lanes. */
function lanesOf(
  text: string,
  cluster: ClusterSettings,
  given: Record<'exec' | 'bootstrap' | 'adoptNodes', unknown>,
): string {
  if (text === '') return '';
  lanePattern(text);
  if (cluster.lane !== '')
    throw usageError(`--lanes runs many lanes, and lane ${cluster.lane} is named as the only one`, [
      'leave out --lane (and the lane of the context)',
    ]);
  if (given.exec)
    throw usageError('--lanes and --producer exec do not go together: a child serves one lane', [
      'seq run --lane LANE',
    ]);
  if (given.bootstrap)
    throw usageError('--lanes and --bootstrap do not go together', ['seq cluster init', 'seq lane add LANE']);
  if (given.adoptNodes)
    throw usageError('--lanes and --adopt-nodes do not go together', ['seq run --adopt-nodes, for one lane at a time']);
  return text;
}

function idOf(text: string): string {
  if (/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/.test(text)) return text;
  throw bad(
    'BAD_ID',
    `${JSON.stringify(text)} cannot be the id of a sequencer`,
    'an id is 1 to 64 letters, digits, dots, dashes or underscores: it stands in owner tokens, keys and logs',
  );
}

function adminOf(text: string, listen: Listen | null): Listen | null {
  if (text === '') return null;
  if (listen !== null) return parseListen(text, '--admin');
  throw usageError('--admin needs --http', ['health and metrics are those of the HTTP server: add --http HOST:PORT']);
}

function bad(code: ErrorCode, message: string, why: string): SeqError {
  return new SeqError({ code, exit: EXIT.config, message, why, changed: 'nothing', next: ['seq run --help'] });
}
