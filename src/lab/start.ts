// Starts one process of the lab and waits until it answers: a node to PING, a sequencer on /livez. Invariant: the
// process is in the state file before any wait. A process that did not come up is stopped and reported with the last
// lines of its log.
import { mkdirSync, writeFileSync } from 'node:fs';
import { waitUntilAnswering } from './answering.js';
import { pathsOf, redisSpec, sequencerSpec } from './plan.js';
import { spawnDetached, stopProcess } from './processes.js';
import { findRedisServer, redisConfig } from './redis-server.js';
import { writeState, type LabState, type ProcessRecord } from './state.js';

/** Everything that is needed to start a process. `record` is one of `state.processes`. */
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
  const spec =
    record.kind === 'redis'
      ? redisSpec(directory, record, findRedisServer())
      : sequencerSpec({ directory, place: record, places: state.processes, settings: state.settings });
  if (record.kind === 'redis') {
    writeFileSync(
      paths.config,
      redisConfig({ port: record.port, dataDirectory: paths.data, persist: state.settings.persist }),
      { mode: 0o600 },
    );
  }
  record.identity = await spawnDetached(spec);
  writeState(directory, state);
  try {
    await waitUntilAnswering(directory, record, record.identity, options.signal);
  } catch (error) {
    await stopProcess(record.identity, 1000);
    record.identity = before;
    writeState(directory, state);
    throw error;
  }
}
