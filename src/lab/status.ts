// What is there: one row per process of the lab, in the order nodes, sequencers.
import { urlOf, type ProcessKind } from './plan.js';
import { stateOf, type ProcessState } from './process-identity.js';
import type { LabState } from './state.js';

export interface ProcessRow {
  name: string;
  kind: ProcessKind;
  /** Null when it never started. The pid of the last process under this name otherwise, also when that is dead. */
  pid: number | null;
  /** Null, like the url, until the first start chose one. */
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
