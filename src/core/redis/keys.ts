// The names of all keys that `seq` keeps on a node (docs/PROTOCOL.md section 2): prefix `seq:`, in lane L `seq:L:`.
// A lane is a second, independent chain on the same servers.
import { EXIT, SeqError } from '../errors.js';

export interface NodeKeys {
  lock: string;
  epoch: string;
  stream: string;
  admission: string;
  orphans: string;
  hold: string;
  handover: string;
  request: string;
  /** The index of presence records. */
  sequencers: string;
  /** Prefix of presence records. */
  sequencer: string;
  audit: string;
  /** The lane registry. It belongs to no lane: there is one on each server. */
  lanes: string;
}
export type KeyName = keyof NodeKeys;

const LANE = /^[A-Za-z0-9_.-]{1,64}$/;

function prefixOf(lane: string): string {
  if (lane === '') return 'seq:';
  if (!LANE.test(lane)) {
    throw new SeqError({
      code: 'BAD_LANE',
      exit: EXIT.config,
      message: `'${lane.slice(0, 80)}' cannot be the name of a lane`,
      why: 'a lane is part of every key: 1 to 64 of A-Z, a-z, 0-9, dot, underscore, hyphen',
      changed: 'nothing',
      next: ['choose another --lane'],
    });
  }
  return `seq:${lane}:`;
}

export function keysOf(lane: string): NodeKeys {
  const prefix = prefixOf(lane);
  return {
    lock: `${prefix}leader:lock`,
    epoch: `${prefix}epoch:token`,
    stream: `${prefix}block:stream`,
    admission: `${prefix}node:admission`,
    orphans: `${prefix}block:orphans`,
    hold: `${prefix}leader:hold`,
    handover: `${prefix}leader:handover`,
    request: `${prefix}leader:request`,
    sequencers: `${prefix}sequencers`,
    sequencer: `${prefix}sequencer:`,
    audit: `${prefix}ops:audit`,
    lanes: 'seq:lanes',
  };
}

/** Where scripts publish `released` and `request`. */
export function hintChannelOf(lane: string): string {
  return `${prefixOf(lane)}hints`;
}
