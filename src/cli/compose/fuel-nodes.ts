// Turns flags and settings into the nodes of the other dialect. They are read and never written (docs/FUEL.md). A
// command that cannot read that dialect says so.
import { systemClock } from '../../core/nodes/system-clock.js';
import { EXIT, SeqError } from '../../core/errors.js';
import type { FuelOptions } from '../../core/dialect-fuel/probe.js';
import { fuelQuorumOf } from '../../core/dialect-fuel/types.js';
import { openFuelNodes } from './open-cluster.js';
import { usageError } from '../support/failure.js';
import { asCount, asDialect, asText, setting } from '../config/settings.js';
import { targetFlags } from './target.js';
import { readOnlyDialect } from '../cluster/errors.js';
import type { ClusterSettings, Surroundings } from '../cluster/settings.js';

export interface FuelCluster extends Omit<FuelOptions, 'signal'> {
  settings: ClusterSettings;
  budget: number;
  close(): Promise<void>;
}

/** Commands that write, in addition to those that have --dry-run. */
const WRITERS = /^(run|submit|chaos|bench|lab:|cluster:|repair|stepdown|node:(admit|replace))/;

/** null: the nodes hold this program's own keys. */
export async function openFuel(around: Surroundings): Promise<FuelCluster | null> {
  const { sources } = around;
  const { flags } = sources;
  const dialect = setting<'seq' | 'fuel'>(sources, 'dialect', asDialect, 'seq').value;
  if (dialect === 'seq') {
    const alone = ['lease-key', 'quorum-budget'].find((name) => flags[name] !== undefined);
    if (alone !== undefined)
      throw usageError(`--${alone} is for --dialect fuel`, [`add --dialect fuel, or leave --${alone} out`]);
    return null;
  }
  const leaseKey = setting(sources, 'lease-key', asText, '').value;
  if (leaseKey === '')
    throw usageError('--dialect fuel needs the key of the lock', [
      'add --lease-key KEY, e.g. --lease-key poa:leader:lock',
    ]);
  if (leaseKey.length > 512 || /[\u0000-\u001f\u007f]/.test(leaseKey))
    throw usageError('--lease-key is no key of a lock', [
      'give it as it is configured there: up to 512 printable characters',
    ]);
  if (flags['lane'] !== undefined)
    throw usageError('--lane is for clusters of seq', ['name another --lease-key instead']);
  const budget = setting(sources, 'quorum-budget', asCount, 0).value;
  const { settings, nodes } = await openFuelNodes(around, leaseKey);
  return {
    settings,
    nodes,
    leaseKey,
    budget,
    quorum: fuelQuorumOf(nodes.length, budget),
    limitMs: settings.nodeTimeoutMs,
    clock: systemClock,
    target: [targetFlags({ ...settings, lane: '' }, nodes), ...dialectFlags(sources.flags, leaseKey, budget)]
      .filter(Boolean)
      .join(' '),
    close: async () => {
      await Promise.allSettled(nodes.map((node) => node.close()));
    },
  };
}

/**
 * Flags of this command line must be repeated in the next command. Settings of the context or the environment apply to
 * the next command too.
 */
function dialectFlags(flags: Record<string, unknown>, leaseKey: string, budget: number): string[] {
  const quoted = /^[A-Za-z0-9:._@/-]+$/.test(leaseKey) ? leaseKey : `'${leaseKey.replaceAll("'", "'\\''")}'`;
  return [
    ...(flags['dialect'] === undefined ? [] : ['--dialect fuel']),
    ...(flags['lease-key'] === undefined ? [] : [`--lease-key ${quoted}`]),
    ...(flags['quorum-budget'] === undefined ? [] : [`--quorum-budget ${budget}`]),
  ];
}

export function refuseDialect(id: string, flags: object): SeqError {
  const command = `seq ${id.replaceAll(':', ' ')}`;
  if ('dry-run' in flags || WRITERS.test(id)) return readOnlyDialect(command);
  return new SeqError({
    code: 'DIALECT_NOT_READ',
    exit: EXIT.usage,
    message: `${command} cannot read the streams of another program`,
    why: 'it reads what only this program keeps',
    changed: 'nothing',
    next: ['status, stream inspect, stream verify, stream diff and check read them'],
  });
}
