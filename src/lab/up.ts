// `seq lab up`: brings a lab to its first commit. It starts from nothing, from where an earlier `up` was interrupted,
// or from what `down --keep` or a restart of the machine left. Invariant: it starts only processes that were never
// started, and sequencers that a recovery of their cluster ended. Any other process that is dead now was killed by
// somebody; it stays dead until `lab start`. A kept lab, and one of which nothing lives any more, is like one after a
// power cut: all of it is started, and a recovery gives it a new generation before anything is written.
import { EXIT, SeqError } from '../core/errors.js';
import { makeFolder } from '../core/home.js';
import { isPortTaken } from './answering.js';
import { freePort } from './free-port.js';
import {
  checkSettings,
  DEFAULT_SETTINGS,
  nodeNames,
  pathsOf,
  sequencerNames,
  urlOf,
  type LabSettings,
  type ProcessKind,
} from './plan.js';
import { lastLines, stopProcess, waitUntil } from './processes.js';
import { stateOf } from './process-identity.js';
import { findRedisServer } from './redis-server.js';
import { httpGet } from './http-get.js';
import { startRecorded } from './start.js';
import { readState, withLabLock, writeState, type LabState, type ProcessRecord } from './state.js';
import { rowsOf, type ProcessRow } from './status.js';

/** What the lab needs from the rest of the program. */
export interface LabOutside {
  /** The same bootstrap as `seq cluster init`, on nodes that answer. */
  bootstrap(nodes: { id: string; url: string }[], signal?: AbortSignal): Promise<void>;
  /** Makes `seq … -c lab` find these nodes and sequencers. */
  writeContext(nodes: { id: string; url: string }[], sequencerUrls: string[]): Promise<void>;
  /**
   * The same recovery as `seq cluster recover`, confirmed, on all nodes of a kept lab. Throws when it is not confirmed.
   */
  recover(
    nodes: { id: string; url: string }[],
    stores: { id: string; dir: string }[],
    signal?: AbortSignal,
  ): Promise<Recovered>;
}

/** What a kept lab continues from. */
export interface Recovered {
  cluster: string;
  head: number;
  warnings: string[];
}

export interface UpOptions {
  directory: string;
  /** Only the settings that were asked for. The rest come from the existing lab or from the defaults. */
  wanted: Partial<LabSettings>;
  outside: LabOutside;
  report: (line: string) => void;
  signal?: AbortSignal;
}

export interface UpResult {
  processes: ProcessRow[];
  started: string[];
  settings: LabSettings;
  /** Null when there was nothing to recover from. */
  recovered: Recovered | null;
}

const PORT_ATTEMPTS = 3;

export async function labUp(options: UpOptions): Promise<UpResult> {
  return withLabLock(options.directory, () => up(options));
}

async function up(options: UpOptions): Promise<UpResult> {
  const { directory, report } = options;
  const state = agree(afterRestart(readState(directory)), options.wanted);
  const missing = state.processes.some((record) => isToStart(directory, state, record));
  if (missing) {
    // Checked before anything is written: without a Redis server there is no lab.
    findRedisServer();
    makeFolder(directory, 0o700);
  }
  writeState(directory, state);
  const started = await startMissing(options, state, 'redis');

  const nodes = state.processes
    .filter((record) => record.kind === 'redis')
    .map((record) => ({ id: record.name, url: urlOf(record) }));
  if (state.phase === 'starting') {
    await options.outside.bootstrap(nodes, options.signal);
    state.phase = 'bootstrapped';
    writeState(directory, state);
    report(`bootstrap: ${nodes.length} nodes admitted`);
  }
  let recovered: Recovered | null = null;
  if (state.kept) {
    // Written before the recovery: an operator who does not confirm it at once wants to see the present state.
    await options.outside.writeContext(nodes, []);
    const stores = state.processes
      .filter((record) => record.kind === 'sequencer')
      .map((record) => ({ id: record.name, dir: pathsOf(directory, record.name).data }));
    if (state.settings.persist === 'none')
      report(
        'with --persist none the servers wrote nothing to disk: the stores of the sequencers are the ' +
          'last copy, and the nodes are filled from them',
      );
    recovered = await options.outside.recover(nodes, stores, options.signal);
    report(`recovered: ${recovered.cluster} goes on above height ${recovered.head}`);
  }
  started.push(...(await startMissing(options, state, 'sequencer')));
  await options.outside.writeContext(nodes, state.processes.filter((record) => record.kind === 'sequencer').map(urlOf));
  if (recovered !== null) {
    report(`next commit: height ${await commitAbove(recovered.head, directory, state, options.signal)}`);
    const { kept: _over, ...rest } = state;
    writeState(directory, { ...rest, phase: 'committed' });
    return { processes: rowsOf(state), started, settings: state.settings, recovered };
  }
  if (state.phase === 'bootstrapped') {
    const height = await commitAbove(0, directory, state, options.signal);
    state.phase = 'committed';
    writeState(directory, state);
    report(`first commit: height ${height}`);
  }
  return { processes: rowsOf(state), started, settings: state.settings, recovered };
}

/**
 * A lab of which nothing lives any more is like a kept one: the machine was restarted, or all of it was killed. What is
 * left of it goes on.
 */
function afterRestart(there: LabState | null): LabState | null {
  if (there === null || there.phase !== 'committed') return there;
  const gone = there.processes.every(({ identity }) => identity !== null && stateOf(identity) === 'dead');
  return gone ? { ...there, kept: true } : there;
}

/**
 * The lab as wanted: a new one, or the existing one with sequencers added. Throws SeqError (76) when the existing lab
 * differs in anything else.
 */
function agree(there: LabState | null, wanted: Partial<LabSettings>): LabState {
  if (there === null) {
    const settings = { ...DEFAULT_SETTINGS, ...wanted };
    checkSettings(settings);
    return withPlaces({ version: 1, settings, phase: 'starting', processes: [] });
  }
  const differing = (Object.keys(wanted) as (keyof LabSettings)[]).filter(
    (name) => wanted[name] !== undefined && wanted[name] !== there.settings[name],
  );
  const settings = { ...there.settings, sequencers: Math.max(there.settings.sequencers, wanted.sequencers ?? 0) };
  const refused = differing.filter((name) => name !== 'sequencers' || settings.sequencers !== wanted.sequencers);
  if (refused.length > 0) {
    const differences = refused.map(
      (name) => `${name} is ${String(there.settings[name])}, not ${String(wanted[name])}`,
    );
    throw new SeqError({
      code: 'LAB_DIFFERS',
      exit: EXIT.precondition,
      message: `the lab that is ${there.kept ? 'kept' : 'up'} has other settings: ` + differences.join('; '),
      why: 'a lab keeps its settings until it is taken down; only sequencers can be added',
      changed: 'nothing',
      next: there.kept
        ? ['seq lab up', 'or seq lab down, which removes what was kept']
        : ['seq lab down', 'then lab up again, with the flags you want'],
    });
  }
  checkSettings(settings);
  return withPlaces({ ...there, settings });
}

function withPlaces(state: LabState): LabState {
  const known = new Map(state.processes.map((record) => [record.name, record]));
  const placesOf = (kind: ProcessKind, names: string[]) =>
    names.map((name) => known.get(name) ?? { name, kind, port: 0, identity: null });
  return {
    ...state,
    processes: [
      ...placesOf('redis', nodeNames(state.settings.nodes)),
      ...placesOf('sequencer', sequencerNames(state.settings.sequencers)),
    ],
  };
}

async function startMissing(options: UpOptions, state: LabState, kind: ProcessKind): Promise<string[]> {
  const { directory, report, signal } = options;
  const missing = state.processes.filter((record) => record.kind === kind && isToStart(directory, state, record));
  const anotherPort = async (record: ProcessRecord): Promise<void> => {
    record.port = await freePort(new Set(state.processes.map((other) => other.port)));
  };
  // All ports are chosen first, because a sequencer's command names its peers.
  for (const record of missing) if (record.port === 0) await anotherPort(record);
  for (let at = 0, lost = 0; at < missing.length;) {
    const record = missing[at]!;
    try {
      await startRecorded({ directory, state, record, ...(signal === undefined ? {} : { signal }) });
    } catch (error) {
      // A free port may be taken a moment later. With another port it may work.
      lost += 1;
      if (lost === PORT_ATTEMPTS || !isPortTaken(error)) throw error;
      await anotherPort(record);
      if (kind === 'redis') continue;
      for (const started of missing.slice(0, at)) await forget(started, directory, state);
      at = 0;
      continue;
    }
    report(`started ${record.name} (pid ${pidOf(record)}, port ${record.port})`);
    at += 1;
  }
  return missing.map((record) => record.name);
}

/** True for a process that was never started, and for a dead one of a kept lab: nobody killed that one. */
function isToStart(directory: string, state: LabState, record: ProcessRecord): boolean {
  const { identity } = record;
  if (identity === null) return true;
  return stateOf(identity) === 'dead' && (state.kept === true || endedByRecovery(directory, record));
}

/** Nobody killed it: no term of the old generation may act any more, so it ended by itself. Its last lines say so. */
function endedByRecovery(directory: string, { kind, name }: ProcessRecord): boolean {
  if (kind !== 'sequencer') return false;
  return lastLines(pathsOf(directory, name).log, 6).some((line) => line.startsWith('CLUSTER_RECOVERED:'));
}

/** Its command names a peer's port that has changed, so it must be started again. */
async function forget(record: ProcessRecord, directory: string, state: LabState): Promise<void> {
  if (record.identity !== null) await stopProcess(record.identity, 2000);
  record.identity = null;
  writeState(directory, state);
}

function pidOf(record: ProcessRecord): number | string {
  return record.identity?.pid ?? 'none';
}

/** Waits until a sequencer has a committed block in its store. The block was on a quorum of nodes before that (I10). */
async function commitAbove(head: number, directory: string, state: LabState, signal?: AbortSignal): Promise<number> {
  const sequencers = state.processes.filter((record) => record.kind === 'sequencer');
  const timeoutMs = 3 * state.settings.ttlMs + 20_000;
  return waitUntil(
    {
      what: head === 0 ? 'the first committed block' : `a committed block above height ${head}`,
      timeoutMs,
      everyMs: 25,
      ...(signal === undefined ? {} : { signal }),
    },
    async () => {
      for (const record of sequencers) {
        const height = await storedHeight(record.port);
        if (height !== null && height > head) return height;
      }
      const dead = sequencers.filter((record) => record.identity === null || stateOf(record.identity) === 'dead');
      if (dead.length < sequencers.length) return undefined;
      const first = dead[0]!;
      throw new SeqError({
        code: 'LAB_NO_SEQUENCER',
        exit: EXIT.noQuorum,
        message: `no sequencer is left that could commit a ${head === 0 ? 'first' : 'next'} block`,
        why: `${first.name} ended: ${lastLines(pathsOf(directory, first.name).log, 3).join(' | ')}`,
        changed: 'some',
        changedNodes: state.processes.filter((record) => record.kind === 'redis').map((record) => record.name),
        next: [`seq lab logs ${first.name}`, 'seq lab down'],
      });
    },
  );
}

/** The height in a sequencer's store. Null when the sequencer does not answer. */
async function storedHeight(port: number, limitMs = 500): Promise<number | null> {
  const answer = await httpGet(port, '/v1/status', limitMs);
  if (answer === null || answer.status !== 200) return null;
  try {
    const body = JSON.parse(answer.body) as { height?: unknown; data?: { height?: unknown } };
    const height = Number(body.height ?? body.data?.height);
    return Number.isSafeInteger(height) ? height : null;
  } catch {
    return null;
  }
}
