// The settings in effect with their origins, as `seq config show` prints them. For a secret only its source is shown,
// never its value.
import { DEFAULT_LIMITS, DEFAULT_TIMING } from '../../core/config.js';
import { SeqError } from '../../core/errors.js';
import { asCount, asDuration, asLane, asSize, asSwitch, asText, setting } from '../config/settings.js';
import { formatDuration, formatSize } from '../support/units.js';
import type { NodeSettings, Surroundings } from './settings.js';

export interface EffectiveSetting {
  name: string;
  value: string | boolean | null;
  origin: string;
  from: string;
}

export interface EffectiveNode {
  [column: string]: string | boolean | null;
  id: string | null;
  url: string;
  username: string | null;
  /** `file PATH`, `command`, `environment NAME`, or null. */
  password: string | null;
  tls: boolean;
}

export function effectiveSettings(around: Surroundings): { settings: EffectiveSetting[]; nodes: EffectiveNode[] } {
  const { sources } = around;
  const lane = setting(sources, 'lane', asLane, sources.context?.entry.lane ?? '');
  const laneOfContext = lane.origin === 'default' && sources.context?.entry.lane !== undefined;
  const found: [
    name: string,
    resolved: { value: unknown; origin: string; from: string },
    show?: (value: never) => string,
  ][] = [
    ['lane', laneOfContext ? { ...lane, origin: 'context', from: `context ${sources.context?.name}` } : lane],
    ['timeout', setting(sources, 'timeout', asDuration, 10_000), formatDuration],
    ['node-timeout', setting(sources, 'node-timeout', asDuration, DEFAULT_TIMING.nodeTimeoutMs), formatDuration],
    ['interval', setting(sources, 'interval', asDuration, 1000), formatDuration],
    ['output', setting<string>(sources, 'output', asText, 'table on a terminal, plain in a pipe')],
    ['no-color', setting(sources, 'no-color', asSwitch, false)],
    ['no-input', setting(sources, 'no-input', asSwitch, false)],
    ['ttl', setting(sources, 'ttl', asDuration, DEFAULT_TIMING.ttlMs), formatDuration],
    ['block-time', setting(sources, 'block-time', asDuration, DEFAULT_TIMING.blockTimeMs), formatDuration],
    ['max-block-bytes', setting(sources, 'max-block-bytes', asSize, DEFAULT_LIMITS.maxBlockBytes), formatSize],
    ['retain-blocks', setting(sources, 'retain-blocks', asCount, DEFAULT_LIMITS.retainBlocks)],
    ['retain-bytes', setting(sources, 'retain-bytes', asSize, DEFAULT_LIMITS.retainBytes), formatSize],
  ];
  const settings = found.map(([name, { value, origin, from }, show]) => ({
    name,
    origin,
    from,
    value: typeof value === 'boolean' ? value : show ? show(value as never) : String(value),
  }));
  return { settings, nodes: nodesOf(around) };
}

function nodesOf(around: Surroundings): EffectiveNode[] {
  try {
    return around.clusterSettings().nodes.map((node) => ({
      id: node.id,
      url: node.url,
      username: node.username ?? null,
      password: placeOf(node),
      tls: node.url.startsWith('rediss:'),
    }));
  } catch (error) {
    // Showing the configuration must work while no cluster is named. Any other error ends the command.
    if (error instanceof SeqError && error.code === 'NO_CLUSTER') return [];
    throw error;
  }
}

function placeOf(node: NodeSettings): string | null {
  if (node.passwordFile !== undefined) return `file ${node.passwordFile}`;
  if (node.passwordCommand !== undefined) return 'command';
  return node.passwordEnv === undefined ? null : `environment ${node.passwordEnv}`;
}
