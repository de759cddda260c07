// What the contract suite runs on: one node, in memory or a real redis-server, with the same hands on its data. Both
// must answer alike.
import { Redis } from 'ioredis';
import { keysOf } from '../../src/core/redis/keys.js';
import { RedisNode } from '../../src/core/redis/node.js';
import type { ClusterIdentity, NodePort } from '../../src/core/ports.js';
import { MemoryNode, MemoryServer, wipe, type MemoryNodeState, type Mutant } from '../support/memory-node.js';
import { startRedis } from '../support/redis-server.js';

export const IDENTITY: ClusterIdentity = { cluster: 'c1.1', lane: '' };
export const NODE_ID = 'r1';

/** Faults that a node may suffer between two calls. */
export type Mishap =
  /** The lock has expired. */
  | 'lock-expires'
  | 'hold-expires'
  | 'handover-expires'
  | 'request-expires'
  /** Every key is gone. */
  | 'wipe'
  /** The record names another server process (what a restart with its data looks like). */
  | 'restart'
  | 'epoch-lost'
  /** The newest entry is gone, the record is not. */
  | 'tail-cut'
  /** The oldest entry is gone. */
  | 'hole'
  /** Somebody deleted the configuration in the record, or wrote one that nobody can read. */
  | 'config-lost'
  | 'config-odd';

const ODD = '1.2 dedup-ms=abc | r1=n0';

export interface Subject {
  readonly kind: 'memory' | 'redis';
  port(id?: string, identity?: ClusterIdentity): NodePort;
  interfere(mishap: Mishap): Promise<void>;
  /** The server process really ends and starts again. */
  restartProcess(): Promise<void>;
  close(): Promise<void>;
}

export function afflict(state: MemoryNodeState, mishap: Mishap): void {
  switch (mishap) {
    case 'lock-expires':
      state.lock = null;
      break;
    case 'hold-expires':
      state.hold = null;
      break;
    case 'handover-expires':
      state.handover = null;
      break;
    case 'request-expires':
      state.request = null;
      break;
    case 'wipe':
      wipe(state);
      break;
    case 'restart':
      if (state.record !== null) state.record.run = 'former';
      break;
    case 'epoch-lost':
      state.epoch = null;
      break;
    case 'tail-cut':
      state.entries.pop();
      break;
    case 'hole':
      state.entries.shift();
      break;
    case 'config-lost':
      if (state.record !== null) state.record.config = '';
      break;
    case 'config-odd':
      if (state.record !== null) state.record.config = ODD;
      break;
  }
}

export function memorySubject(mutant: Mutant = {}): Subject {
  const server = new MemoryServer(NODE_ID, () => Date.now(), undefined, mutant);
  const clock = {
    now: () => performance.now(),
    wall: () => Date.now(),
    after: (ms: number, run: () => void) => {
      const timer = setTimeout(run, ms);
      return () => clearTimeout(timer);
    },
  };
  return {
    kind: 'memory',
    port: (id = NODE_ID, identity = IDENTITY) => new MemoryNode(server, identity, clock, id),
    async interfere(mishap) {
      afflict(server.state, mishap);
    },
    async restartProcess() {
      server.restart('all');
    },
    async close() {
      /* nothing is open */
    },
  };
}

export const KINDS = ['memory', 'redis', 'redis without shortcuts'] as const;

export async function subjectOf(kind: (typeof KINDS)[number], persist: 'none' | 'always' = 'none'): Promise<Subject> {
  return kind === 'memory' ? memorySubject() : redisSubject(persist, kind === 'redis');
}

/** Without `shortcuts`, every block goes through its script, and ioredis reads the answers (src/core/shortcuts.ts). */
export async function redisSubject(persist: 'none' | 'always' = 'none', shortcuts = true): Promise<Subject> {
  const server = await startRedis({ persist });
  const admin = new Redis(server.port, '127.0.0.1');
  admin.on('error', () => undefined);
  const keys = keysOf(IDENTITY.lane);
  const ports: RedisNode[] = [];
  return {
    kind: 'redis',
    port(id = NODE_ID, identity = IDENTITY) {
      const node = new RedisNode({ id, url: server.url, identity, ownResp: shortcuts });
      ports.push(node);
      return node;
    },
    async interfere(mishap) {
      switch (mishap) {
        case 'lock-expires':
          await admin.del(keys.lock);
          break;
        case 'hold-expires':
          await admin.del(keys.hold);
          break;
        case 'handover-expires':
          await admin.del(keys.handover);
          break;
        case 'request-expires':
          await admin.del(keys.request);
          break;
        case 'wipe':
          await admin.flushall();
          break;
        case 'restart':
          if (await admin.exists(keys.admission)) await admin.hset(keys.admission, 'run', 'former');
          break;
        case 'epoch-lost':
          await admin.del(keys.epoch);
          break;
        case 'config-lost':
          await admin.hdel(keys.admission, 'config');
          break;
        case 'config-odd':
          if (await admin.exists(keys.admission)) await admin.hset(keys.admission, 'config', ODD);
          break;
        case 'tail-cut':
        case 'hole': {
          const [entry] =
            mishap === 'hole'
              ? await admin.xrange(keys.stream, '-', '+', 'COUNT', 1)
              : await admin.xrevrange(keys.stream, '+', '-', 'COUNT', 1);
          if (entry !== undefined) await admin.xdel(keys.stream, entry[0]);
          break;
        }
      }
    },
    restartProcess: () => server.restart(),
    async close() {
      for (const port of ports) await port.close();
      admin.disconnect();
      await server.stop();
    },
  };
}
