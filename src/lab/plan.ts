// What does a lab consist of? Names, ports, directories and the exact command of each process. Pure: nothing is started
// or read here. Nodes are r1 … rN. Sequencers are seq-a, seq-b, … and use that name as their --id, so that a leader id
// names a process.
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { EXIT, SeqError } from '../core/errors.js';
import { checkTiming, DEFAULT_TIMING } from '../core/config.js';
import type { ProcessSpec } from './processes.js';
import type { Persistence } from './redis-server.js';

export interface LabSettings {
  nodes: number;
  sequencers: number;
  persist: Persistence;
  ttlMs: number;
  blockTimeMs: number;
  eager: boolean;
}

export const DEFAULT_SETTINGS: LabSettings = {
  nodes: 3,
  sequencers: 2,
  persist: 'none',
  ttlMs: 3000,
  blockTimeMs: 1000,
  eager: false,
};

export type ProcessKind = 'redis' | 'sequencer';

/** A process of the lab and where it listens. */
export interface Place {
  name: string;
  kind: ProcessKind;
  port: number;
}

const MOST_NODES = 9;
const MOST_SEQUENCERS = 26;

/** This program, started as a separate process. The file is the same in a clone and in an installed package. */
export const SELF = fileURLToPath(new URL('../../bin/run.js', import.meta.url));

export function nodeNames(count: number): string[] {
  return Array.from({ length: count }, (_, index) => `r${index + 1}`);
}

export function sequencerNames(count: number): string[] {
  return Array.from({ length: count }, (_, index) => `seq-${String.fromCharCode(97 + index)}`);
}

/** Throws SeqError (78) for settings that cannot work. */
export function checkSettings(settings: LabSettings): void {
  checkCount('nodes', settings.nodes, MOST_NODES);
  checkCount('sequencers', settings.sequencers, MOST_SEQUENCERS);
  checkTiming({ ...DEFAULT_TIMING, ttlMs: settings.ttlMs, blockTimeMs: settings.blockTimeMs });
}

export function urlOf(place: Place): string {
  return `${place.kind === 'redis' ? 'redis' : 'http'}://127.0.0.1:${place.port}`;
}

export interface Paths {
  /** All files of this process; removed by `wipe` and `down`. */
  home: string;
  data: string;
  /** Redis only. */
  config: string;
  log: string;
}

export function pathsOf(directory: string, name: string): Paths {
  const home = join(directory, name);
  return {
    home,
    data: join(home, 'data'),
    config: join(home, 'redis.conf'),
    log: join(directory, 'logs', `${name}.log`),
  };
}

export function redisSpec(directory: string, place: Place, program: string): ProcessSpec {
  const paths = pathsOf(directory, place.name);
  return {
    name: place.name,
    command: program,
    args: [paths.config],
    cwd: paths.home,
    logFile: paths.log,
    env: cleanEnvironment(directory),
  };
}

export interface SequencerPlan {
  directory: string;
  place: Place;
  /** Every process of the lab. */
  places: readonly Place[];
  settings: LabSettings;
  /** The address under which this sequencer reaches a node, when it is not the node's own; '' leaves the node out. */
  nodeUrl?: (sequencer: string, node: Place) => string;
  extraArgs?: readonly string[];
  env?: Readonly<Record<string, string>>;
}

export function sequencerSpec(plan: SequencerPlan): ProcessSpec {
  const { directory, place, places, settings } = plan;
  const paths = pathsOf(directory, place.name);
  const args = [SELF, 'run', '--id', place.name];
  for (const node of places.filter((other) => other.kind === 'redis')) {
    const url = plan.nodeUrl?.(place.name, node) ?? urlOf(node);
    if (url !== '') args.push('--node', `${node.name}=${url}`);
  }
  args.push(
    '--store',
    paths.data,
    '--ttl',
    `${settings.ttlMs}ms`,
    '--block-time',
    `${settings.blockTimeMs}ms`,
    '--http',
    `127.0.0.1:${place.port}`,
  );
  for (const peer of places.filter((other) => other.kind === 'sequencer' && other.name !== place.name))
    args.push('--peer', urlOf(peer));
  if (settings.eager) args.push('--eager');
  args.push(...(plan.extraArgs ?? []));
  return {
    name: place.name,
    command: process.execPath,
    args,
    cwd: paths.home,
    logFile: paths.log,
    env: { ...cleanEnvironment(directory), ...plan.env },
  };
}

/**
 * The operator's own SEQ_* variables, contexts and configuration must not reach the lab's processes: a lane set there
 * would split the lab. Only SEQ_DISABLE is passed on, for measurements: it changes speed and nothing else.
 */
function cleanEnvironment(directory: string): NodeJS.ProcessEnv {
  const kept = Object.entries(process.env).filter(
    ([name]) => !/^(SEQ_(?!DISABLE$)|VITEST|NODE_OPTIONS$|NODE_CHANNEL)/.test(name),
  );
  return { ...Object.fromEntries(kept), NODE_ENV: 'production', XDG_CONFIG_HOME: join(directory, 'no-config') };
}

function checkCount(what: string, count: number, most: number): void {
  if (Number.isSafeInteger(count) && count >= 1 && count <= most) return;
  throw new SeqError({
    code: 'BAD_LAB_SIZE',
    exit: EXIT.config,
    message: `--${what} ${count} is not possible: 1 to ${most}`,
    why: 'a lab is a handful of processes on one machine',
    changed: 'nothing',
    next: [`seq lab up --${what} ${what === 'nodes' ? 3 : 2}`],
  });
}
