// Starts one process of the lab and waits until it answers: a node to PING, a sequencer on /livez.
// Invariant: the process is in the state file before this waits for anything; one that did not come up is stopped and reported with its last words.
import { mkdirSync, writeFileSync } from 'node:fs';
import { get } from 'node:http';
import { EXIT, SeqError } from '../core/errors.js';
import { pathsOf, redisSpec, sequencerSpec } from './plan.js';
import { lastLines, spawnDetached, stopProcess, waitUntil } from './processes.js';
import { stateOf, type ProcessIdentity } from './process-identity.js';
import { findRedisServer, pingRedis, redisConfig } from './redis-server.js';
import { writeState, type LabState, type ProcessRecord } from './state.js';

const START_LIMIT_MS = 15_000;

/** Everything that a process needs to be started; `record` is one of `state.processes`. */
export interface StartOptions {
  directory: string;
  state: LabState;
  record: ProcessRecord;
  signal?: AbortSignal;
}

/** Throws SeqError (69) when it does not answer in time. On any failure the record is as it was before. */
export async function startRecorded(options: StartOptions): Promise<void> {
  const { directory, state, record } = options;
  const before = record.identity;
  const paths = pathsOf(directory, record.name);
  mkdirSync(paths.data, { recursive: true, mode: 0o700 });
  const spec = record.kind === 'redis'
    ? redisSpec(directory, record, findRedisServer())
    : sequencerSpec({ directory, place: record, places: state.processes, settings: state.settings });
  if (record.kind === 'redis') {
    writeFileSync(paths.config, redisConfig({ port: record.port, dataDirectory: paths.data, persist: state.settings.persist }), { mode: 0o600 });
  }
  record.identity = await spawnDetached(spec);
  writeState(directory, state);
  try {
    await waitUntilAnswering(record, record.identity, paths.log, options.signal);
  } catch (error) {
    await stopProcess(record.identity, 1000);
    record.identity = before;
    writeState(directory, state);
    throw error;
  }
}

async function waitUntilAnswering(record: ProcessRecord, identity: ProcessIdentity, log: string, signal?: AbortSignal): Promise<void> {
  const what = record.kind === 'redis' ? `${record.name} to answer PING on port ${record.port}` : `${record.name} to answer /livez on port ${record.port}`;
  await waitUntil({ what, timeoutMs: START_LIMIT_MS, everyMs: 20, ...(signal === undefined ? {} : { signal }) }, async () => {
    // Asked first: when the port belongs to somebody else, that one answers and our process is dead.
    const answers = record.kind === 'redis' ? (await pingRedis(record.port, 500)) === 'up' : (await httpStatus(record.port, '/livez', 500)) === 200;
    if (stateOf(identity) === 'dead') throw endedAtOnce(record, log);
    return answers ? true : undefined;
  });
}

/** Status of a GET on loopback, null when there is no answer in time. */
export function httpStatus(port: number, path: string, limitMs: number): Promise<number | null> {
  return httpGet(port, path, limitMs).then((answer) => answer?.status ?? null);
}

/** A bounded GET on loopback; null when there is no answer in time. Bodies are cut at 1 MiB. */
export function httpGet(port: number, path: string, limitMs: number): Promise<{ status: number; body: string } | null> {
  return new Promise((resolve) => {
    const request = get({ host: '127.0.0.1', port, path, agent: false }, (response) => {
      let body = '';
      response.setEncoding('utf8');
      response.on('data', (chunk: string) => {
        if (body.length < 1024 * 1024) body += chunk;
      });
      response.on('end', () => end({ status: response.statusCode ?? 0, body }));
      response.on('error', () => end(null));
    });
    const end = (result: { status: number; body: string } | null): void => {
      clearTimeout(timer);
      request.destroy();
      resolve(result);
    };
    const timer = setTimeout(() => end(null), limitMs);
    request.on('error', () => end(null));
  });
}

function endedAtOnce(record: ProcessRecord, log: string): SeqError {
  return new SeqError({
    code: 'PROCESS_ENDED', exit: EXIT.noQuorum, message: `${record.name} ended while it was starting`,
    why: `the end of its log: ${lastLines(log, 4).join(' | ') || '(empty)'}`, changed: 'nothing', next: [`seq lab logs ${record.name}`, 'seq lab status'],
  });
}
