// What is there: one row per process of the lab, in the order nodes, sequencers.
import { urlOf, type ProcessKind } from './plan.js';
import { stateOf, type ProcessState } from './process-identity.js';
import type { LabState } from './state.js';

export interface ProcessRow {
  name: string;
  kind: ProcessKind;
  /** Null when it never started. The pid of the last process under this name otherwise, also when that is dead. */
  pid: number | null;
  port: number;
  url: string;
  state: ProcessState;
}

export function rowsOf(state: LabState): ProcessRow[] {
  return state.processes.map((record) => ({
    name: record.name, kind: record.kind, pid: record.identity?.pid ?? null, port: record.port, url: urlOf(record),
    state: record.identity === null ? 'dead' : stateOf(record.identity),
  }));
}
