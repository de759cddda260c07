// What is wrong with the servers of a cluster, or will be? Each finding has its severity and the command that repairs
// it. Pure: readings in, findings out (docs/PROTOCOL.md sections 8 and 10, docs/PERSISTENCE.md). What could not be read
// is reported. It never counts as healthy.
import { quorumOf } from '../protocol/quorum.js';
import { MAX_EPOCH_LEAP } from '../protocol/types.js';
import { describeReply } from '../protocol/describe.js';
import { deleteEpoch } from '../view/epochs.js';
import { reachCommand } from '../view/reach-command.js';
import { forecastOf, ofForecast, partOf } from './doctor-memory.js';
import { ofNode } from './doctor-node.js';
import { ofSequencers } from './doctor-sequencers.js';
import type { Finding } from '../view/cluster-view.js';
import type { CheckedNode, DoctorFinding, DoctorOptions, Severity } from './doctor-finding.js';

const RANK: Record<Severity, number> = { CRIT: 0, UNKNOWN: 1, WARN: 2, INFO: 3 };

export function diagnose(nodes: readonly CheckedNode[], options: DoctorOptions): DoctorFinding[] {
  const views = nodes.flatMap(({ view }) => (view.outcome === 'accepted' ? [view.value] : []));
  const noCluster = views.every(({ admission }) => admission === 'pristine');
  const found = [
    ...ofJudge(options.judged ?? []),
    ...nodes.flatMap((node) => ofNode(node, options, noCluster)),
    ...((options.judged ?? []).some(({ code }) => code === 'NODE_FENCED') ? [] : ofEpochs(nodes, options.target)),
    ...ofClocks(nodes, options),
    ...ofSequencers(nodes),
    ...ofForecast(nodes),
    ...ofReach(nodes, options),
  ];
  return found.sort((a, b) => RANK[a.severity] - RANK[b.severity]);
}

/** The doctor looks at servers. What the cluster adds up to is judged in one place (view/verdict.ts). */
function ofJudge(judged: readonly Finding[]): DoctorFinding[] {
  return judged
    .filter(({ code }) => !OWN_WORDS.has(code))
    .map(({ verdict, nodes, reason, next }) => ({
      severity: verdict,
      check: 'cluster',
      node: nodes.length === 1 ? (nodes[0] as string) : '',
      what: reason,
      fix: next[0] ?? '',
    }));
}

/** The doctor measures these itself, and says more about them. */
const OWN_WORDS: ReadonlySet<string> = new Set(['CLOCK_OFF', 'CONFIG_DRIFT', 'RETENTION_NARROWED', 'NODE_REFUSED']);

/** One server in numbers, for people who read them without a finding. */
export interface CheckedFacts {
  node: string;
  roundTripMs: { p50: number; p95: number; max: number } | null;
  clockMs: number | null;
  uptimeSeconds: number | null;
  usedBytes: number | null;
  limitBytes: number | null;
  fullBytes: number | null;
}

export function factsOf(nodes: readonly CheckedNode[]): CheckedFacts[] {
  const forecasts = forecastOf(nodes);
  return nodes.map(({ id, checkup }) => {
    if (checkup.outcome !== 'accepted')
      return {
        node: id,
        roundTripMs: null,
        clockMs: null,
        uptimeSeconds: null,
        usedBytes: null,
        limitBytes: null,
        fullBytes: null,
      };
    const trips = checkup.value.roundTripsMs.map((ms) => Number(ms.toFixed(3))).sort((a, b) => a - b);
    const forecast = forecasts.find(({ node }) => node === id);
    return {
      node: id,
      roundTripMs:
        trips.length === 0 ? null : { p50: partOf(trips, 0.5), p95: partOf(trips, 0.95), max: trips.at(-1)! },
      clockMs: checkup.value.clockMs,
      uptimeSeconds: Number(checkup.value.info['uptime_in_seconds'] ?? 0),
      usedBytes: forecast?.usedBytes ?? null,
      limitBytes: forecast?.limitBytes ?? null,
      fullBytes: forecast?.fullBytes ?? null,
    };
  });
}

/**
 * A clock that jumps frees locks early or holds them too long. Safety does not depend on clocks (I9), but availability
 * does.
 */
function ofClocks(nodes: readonly CheckedNode[], { ttlMs }: DoctorOptions): DoctorFinding[] {
  const read = nodes.flatMap((node) =>
    node.checkup.outcome === 'accepted' ? [{ id: node.id, at: node.checkup.value.clockMs }] : [],
  );
  const middle = [...read].sort((a, b) => a.at - b.at)[Math.floor(read.length / 2)]?.at ?? 0;
  return read
    .filter(({ at }) => Math.abs(at - middle) > Math.max(100, ttlMs / 10))
    .map(({ id, at }): DoctorFinding => ({
      severity: 'WARN',
      check: 'clock',
      node: id,
      what: `its clock is ${Math.round(at - middle)} ms off the others'`,
      fix: 'chronyc tracking (on that host)',
    }));
}

/** An epoch that no term has reached was written by hand. No leader has such an epoch, so the node takes no block. */
function ofEpochs(nodes: readonly CheckedNode[], target: string): DoctorFinding[] {
  const admitted = nodes.flatMap(({ id, url, view }) =>
    view.outcome === 'accepted' && view.value.admission === 'admitted' ? [{ id, url, epoch: view.value.epoch }] : [],
  );
  const epochs = admitted.map(({ epoch }) => epoch).sort((a, b) => a - b);
  const reachedByAll = epochs[quorumOf(nodes.length) - 1] ?? Infinity;
  return admitted
    .filter(({ epoch }) => epoch > reachedByAll + MAX_EPOCH_LEAP)
    .map(({ id, url, epoch }) => ({
      severity: 'WARN',
      check: 'epoch',
      node: id,
      what: `its epoch ${epoch} was reached by no term (the others are at ${reachedByAll}): it takes no block`,
      fix: deleteEpoch(url, target),
    }));
}

/** Where a judge has seen all nodes, it says so itself. With --on, most of them are not examined here. */
function ofReach(nodes: readonly CheckedNode[], { judged }: DoctorOptions): DoctorFinding[] {
  if (judged !== undefined) return [];
  const silent = nodes.filter(({ view }) => view.outcome === 'unknown');
  if (nodes.length - silent.length >= quorumOf(nodes.length)) return [];
  return [
    {
      severity: 'CRIT',
      check: 'reach',
      node: '',
      what: `${silent.map(({ id }) => id).join(', ')} gave no answer that can be used: fewer than a quorum are left`,
      fix: silent.map(({ url, view }) => reachCommand(url, describeReply(view)))[0] ?? '',
    },
  ];
}
