// The answer of `seq doctor`: the findings, worst first, and below them each server in numbers.
import { duration } from '../../../core/duration.js';
import { mib } from '../../../core/report/doctor-memory.js';
import type { DoctorFinding, Severity } from '../../../core/report/doctor-finding.js';
import type { CheckedFacts } from '../../../core/report/doctor.js';
import type { Result } from '../result.js';

export interface DoctorData {
  verdict: Severity | 'OK';
  findings: readonly DoctorFinding[];
  nodes: readonly CheckedFacts[];
  nodesChecked: number;
  aclRules: readonly string[];
}

export function doctorResult(data: DoctorData, asked: number): Result {
  const { findings, nodes, nodesChecked } = data;
  return {
    data,
    facts: [
      ['checked', `${nodesChecked} of ${asked} nodes`],
      ['findings', findings.length],
    ],
    tables: [
      {
        columns: [{ key: 'severity' }, { key: 'check' }, { key: 'node' }, { key: 'what' }, { key: 'fix' }],
        rows: findings.map((one) => ({ ...one, node: one.node === '' ? 'cluster' : one.node })),
      },
      serverTable(nodes),
    ],
    items: [...findings],
    meta: { nodesAnswered: nodesChecked },
  };
}

/** `--acl`: the rules alone, as they are given to Redis. Nothing was judged. */
export function aclResult(aclRules: readonly string[]): Result {
  const text = aclRules.map((rule) => `${rule}\n`).join('');
  const data: DoctorData = { verdict: 'UNKNOWN', findings: [], nodes: [], nodesChecked: 0, aclRules };
  return { data, texts: { table: text, wide: text, plain: text } };
}

function serverTable(nodes: readonly CheckedFacts[]): NonNullable<Result['tables']>[number] {
  return {
    columns: [
      { key: 'node' },
      { key: 'p50', align: 'right' },
      { key: 'p95', align: 'right' },
      { key: 'max', align: 'right' },
      { key: 'clock', align: 'right' },
      { key: 'up', align: 'right' },
      { key: 'used', align: 'right' },
      { key: 'limit', align: 'right' },
      { key: 'full', label: 'RETENTION FULL', align: 'right' },
    ],
    rows: nodes.map((one) => ({
      node: one.node,
      p50: ms(one.roundTripMs?.p50),
      p95: ms(one.roundTripMs?.p95),
      max: ms(one.roundTripMs?.max),
      clock: one.clockMs === null ? '?' : `${one.clockMs > 0 ? '+' : ''}${one.clockMs}ms`,
      up: one.uptimeSeconds === null ? '?' : duration(1000 * one.uptimeSeconds),
      used: size(one.usedBytes),
      limit: size(one.limitBytes),
      full: size(one.fullBytes),
    })),
  };
}

function ms(value: number | undefined): string {
  return value === undefined ? '?' : `${value.toFixed(1)}ms`;
}

function size(bytes: number | null): string {
  return bytes === null ? '?' : mib(bytes);
}
