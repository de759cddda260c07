// What is there? One row per process of the lab, nodes first, then sequencers.
import { urlOf, type ProcessKind } from './plan.js';
import { stateOf, type ProcessState } from './process-identity.js';
import type { LabState } from './state.js';

export interface ProcessRow {
  name: string;
  kind: ProcessKind;
  /** Null when it never started. Otherwise the pid of the last process under this name, also when that is dead. */
  pid: number | null;
  /** Null, like the url, until the first start has chosen one. */
  port: number | null;
  url: string | null;
  state: ProcessState;
}

export function rowsOf(state: Pick<LabState, 'processes'>): ProcessRow[] {
  return state.processes.map((record) => ({
    name: record.name,
    kind: record.kind,
    pid: record.identity?.pid ?? null,
    port: record.port === 0 ? null : record.port,
    url: record.port === 0 ? null : urlOf(record),
    state: record.identity === null ? 'dead' : stateOf(record.identity),
  }));
}
