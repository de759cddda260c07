// Timing and size rules of a cluster, with their defaults and bounds (docs/PROTOCOL.md section 10). Every reader of a
// configuration checks it here.
import { EXIT, SeqError } from './errors.js';

export { quorumOf } from './protocol/quorum.js';

export interface Timing {
  ttlMs: number;
  blockTimeMs: number;
  nodeTimeoutMs: number;
  retryMs: number;
  retryJitterMs: number;
  pollMs: number;
  pollJitterMs: number;
}

export interface Limits {
  /** Largest payload of one block, bytes. */
  maxBlockBytes: number;
  /** Blocks kept on the nodes (exact). */
  retainBlocks: number;
  /** Payload bytes kept on the nodes (exact). */
  retainBytes: number;
}

export const DEFAULT_TIMING: Timing = {
  ttlMs: 3000,
  blockTimeMs: 1000,
  nodeTimeoutMs: 100,
  retryMs: 200,
  retryJitterMs: 100,
  pollMs: 500,
  pollJitterMs: 200,
};
export const MIB = 1024 * 1024;
export const DEFAULT_LIMITS: Limits = { maxBlockBytes: MIB, retainBlocks: 1000, retainBytes: 256 * MIB };
/** The largest block any configuration may allow. */
export const MAX_BLOCK_BYTES = 16 * MIB;

/** The usable part of a lease: ttl − ttl/100 − 2 ms. The difference allows for clock drift between hosts. */
export function usableLeaseMs(ttlMs: number): number {
  return ttlMs - ttlMs / 100 - 2;
}

/** Throws SeqError (78) for values that are well-formed but cannot work together. */
export function checkTiming(timing: Timing): void {
  const least = 2 * timing.blockTimeMs + timing.nodeTimeoutMs;
  if (timing.ttlMs < least) {
    const slowest = Math.floor((timing.ttlMs - timing.nodeTimeoutMs) / 2);
    throw new SeqError({
      code: 'TTL_TOO_SHORT',
      exit: EXIT.config,
      message: `ttl ${timing.ttlMs} ms is below 2 × block-time + node-timeout = ${least} ms`,
      why:
        'only an accepted write renews the lease: two block times and one node timeout must fit into it, ' +
        'or one late write loses leadership',
      changed: 'nothing',
      next: [
        `raise --ttl to at least ${least}ms${slowest >= 1 ? `, or lower --block-time to at most ${slowest}ms` : ''}`,
      ],
    });
  }
}
