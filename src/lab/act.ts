// What a person does to a running lab: kill, pause, unpause, start, wipe. Each function returns after its effect was
// seen, not after it was requested. An unknown name is error 66 with the list of names. An action on a dead process is
// error 76, because it did not have the intended effect.
import { rmSync } from 'node:fs';
import { EXIT, SeqError } from '../core/errors.js';
import { pathsOf } from './plan.js';
import { stopProcess, waitUntil, waitUntilDead } from './processes.js';
import { signalIfOurs, stateOf, type ProcessIdentity, type ProcessState } from './process-identity.js';
import { startRecorded } from './start.js';
import { openState, withLabLock, type LabState, type ProcessRecord } from './state.js';

/** What was done to which process. `state` is the state that was seen afterwards. */
export interface ActResult {
  name: string;
  pid: number;
  state: ProcessState;
  /** False when the process was already in that state. */
  changed: boolean;
}

/** Signals that end a process unless it handles them. After one of these we wait for the end. */
const ENDING: ReadonlySet<string> = new Set(['SIGKILL', 'SIGTERM', 'SIGINT', 'SIGQUIT', 'SIGHUP', 'SIGABRT']);
const END_LIMIT_MS = 10_000;
const EFFECT_LIMIT_MS = 2_000;

/** Sends a signal (SIGKILL by default). */
export async function labKill(directory: string, name: string, signal: NodeJS.Signals = 'SIGKILL'): Promise<ActResult> {
  const { record, identity } = living(openState(directory), name);
  if (!signalIfOurs(identity, signal)) throw alreadyDead(record);
  // A stopped process handles no signal but SIGKILL and SIGCONT until it is continued.
  if (ENDING.has(signal) && (signal === 'SIGKILL' || stateOf(identity) !== 'paused'))
    await waitUntilDead(identity, END_LIMIT_MS);
  return { name, pid: identity.pid, state: stateOf(identity), changed: true };
}

/** SIGSTOP: alive, connected and silent. */
export async function labPause(directory: string, name: string): Promise<ActResult> {
  return reach(directory, name, 'SIGSTOP', 'paused');
}

export async function labUnpause(directory: string, name: string): Promise<ActResult> {
  return reach(directory, name, 'SIGCONT', 'running');
}

/** Starts a dead process with its data, under its name and port. */
export async function labStart(directory: string, name: string, abort?: AbortSignal): Promise<ActResult> {
  return withLabLock(directory, async () => {
    const state = openState(directory);
    const record = find(state, name);
    const before = record.identity === null ? 'dead' : stateOf(record.identity);
    if (record.identity !== null && before === 'running')
      return { name, pid: record.identity.pid, state: 'running', changed: false };
    if (before === 'paused') {
      throw new SeqError({
        code: 'PROCESS_PAUSED',
        exit: EXIT.precondition,
        message: `${name} is paused, not dead`,
        why: 'it was stopped with SIGSTOP',
        changed: 'nothing',
        next: [`seq lab unpause ${name}`],
      });
    }
    if (record.port === 0) {
      throw new SeqError({
        code: 'LAB_UNFINISHED',
        exit: EXIT.precondition,
        message: `${name} never started`,
        why: 'an earlier `seq lab up` was broken off before it',
        changed: 'nothing',
        next: ['seq lab up'],
      });
    }
    await startRecorded({ directory, state, record, ...(abort === undefined ? {} : { signal: abort }) });
    return seen(record);
  });
}

/** Makes a node come back without its memory: it is killed, its data is removed, and it is started empty. */
export async function labWipe(directory: string, name: string, abort?: AbortSignal): Promise<ActResult> {
  return withLabLock(directory, async () => {
    const state = openState(directory);
    const record = find(state, name);
    if (record.kind !== 'redis') {
      const nodes = state.processes.filter((other) => other.kind === 'redis').map((other) => other.name);
      throw notFound(`${name} is a sequencer; only a node can be wiped`, nodes);
    }
    if (
      record.identity !== null &&
      signalIfOurs(record.identity, 'SIGKILL') &&
      !(await waitUntilDead(record.identity, EFFECT_LIMIT_MS))
    ) {
      await stopProcess(record.identity, 0);
    }
    rmSync(pathsOf(directory, name).data, { recursive: true, force: true });
    await startRecorded({ directory, state, record, ...(abort === undefined ? {} : { signal: abort }) });
    return seen(record);
  });
}

/** Throws SeqError (66) with every name that exists. */
export function find(state: LabState, name: string): ProcessRecord {
  const record = state.processes.find((other) => other.name === name);
  if (record !== undefined) return record;
  throw notFound(
    `there is no ${name} in this lab`,
    state.processes.map((other) => other.name),
  );
}

async function reach(
  directory: string,
  name: string,
  signal: NodeJS.Signals,
  wanted: ProcessState,
): Promise<ActResult> {
  const { record, identity } = living(openState(directory), name);
  const before = stateOf(identity);
  if (before === wanted) return { name, pid: identity.pid, state: wanted, changed: false };
  if (!signalIfOurs(identity, signal)) throw alreadyDead(record);
  await waitUntil({ what: `${name} to be ${wanted}`, timeoutMs: EFFECT_LIMIT_MS, everyMs: 2 }, () => {
    const now = stateOf(identity);
    if (now === 'dead') throw alreadyDead(record);
    return now === wanted ? true : undefined;
  });
  return { name, pid: identity.pid, state: wanted, changed: true };
}

function living(state: LabState, name: string): { record: ProcessRecord; identity: ProcessIdentity } {
  const record = find(state, name);
  if (record.identity === null || stateOf(record.identity) === 'dead') throw alreadyDead(record);
  return { record, identity: record.identity };
}

function seen(record: ProcessRecord): ActResult {
  if (record.identity === null) throw alreadyDead(record);
  return { name: record.name, pid: record.identity.pid, state: stateOf(record.identity), changed: true };
}

function alreadyDead(record: ProcessRecord): SeqError {
  return new SeqError({
    code: 'PROCESS_DEAD',
    exit: EXIT.precondition,
    message: `${record.name} is not running`,
    why: record.identity === null ? 'it never started' : `process ${record.identity.pid} is gone`,
    changed: 'nothing',
    next: [`seq lab start ${record.name}`, 'seq lab status'],
  });
}

function notFound(message: string, names: string[]): SeqError {
  return new SeqError({
    code: 'NO_SUCH_PROCESS',
    exit: EXIT.notFound,
    message,
    why: `there are: ${names.join(', ')}`,
    changed: 'nothing',
    next: ['seq lab status'],
  });
}
