// How long does it take from "the lock is free" to "may write", on three servers? It is compared with redlock's acquire
// on the same servers. The work: promote, claim (which fences and reads the heads), propose again the block that the
// last term left. Three cases. A follower has probed when the lease ended or was released, and has read the last block
// as it came. In the second case, the store has that block already, so nothing is left to settle. In the cold case, the
// time includes a probe and a read. Releases are outside the measured time.
import Redlock from 'redlock';
import { genesisHash } from '../src/core/chain/block.js';
import { usableLeaseMs } from '../src/core/config.js';
import { localChain } from '../src/core/sequencer/local-chain.js';
import { probe, votesOf } from '../src/core/nodes/probe.js';
import { systemClock, systemRandom } from '../src/core/nodes/system-clock.js';
import { TermDriver, type TermHooks } from '../src/core/sequencer/lead/term-driver.js';
import type { Block } from '../src/core/protocol/types.js';
import { MemoryStore } from '../test/support/memory-store.js';
import { interleave } from './harness/rounds.js';
import { atMost, type Bench } from './harness/words.js';
import { accepted, CLUSTER, Lane, OWNER, Servers } from './support/lane.js';

const TTL_MS = 10_000;
const LIMIT_MS = 1000;
const PER_ROUND = 25;
/** Acquisitions of each side before anything counts, so that both sides run compiled code, as for commits. */
const WARM = 500;

interface Lock {
  unlock(): Promise<void>;
}
type Callback = (error: Error | null, result?: unknown) => void;

/** redlock 4 uses callbacks, and passes the arguments as a list. The client answers with promises only. */
function redlockOn(servers: Servers): { lock(resource: string, ttlMs: number): Promise<Lock> } {
  const clients = servers.bare.map((client) => {
    const call = (command: string, args: (string | number)[], callback: Callback): void => {
      client.call(command, ...args.map(String)).then(
        (result) => callback(null, result),
        (error: unknown) => callback(error as Error),
      );
    };
    return {
      evalsha: (hash: string, args: (string | number)[], callback: Callback) =>
        call('EVALSHA', [hash, ...args], callback),
      eval: (args: (string | number)[], callback: Callback) => call('EVAL', args, callback),
    };
  });
  return new (Redlock as unknown as new (clients: object[], options: object) => ReturnType<typeof redlockOn>)(clients, {
    retryCount: 0,
  });
}

/** The block that the last term left. */
let left: Block | undefined;

/**
 * Runs one term until it may write; returns ms. Its store lacks the head, as after a crash, so the head is settled and
 * adopted. `cold`: the time includes the read and the probe. `current`: its store has the head.
 */
async function lead(lane: Lane, quorum: number, as: 'follower' | 'cold' | 'current'): Promise<number> {
  const store = new MemoryStore({ cluster: CLUSTER, lane: '', clock: systemClock });
  const cold = as === 'cold';
  if (as === 'current' && left !== undefined) void store.append({ ...left, epoch: 0 });
  const append = (block: Block, epoch: number): void => {
    void store.append({ ...block, epoch });
  };
  const chain = localChain(
    store,
    genesisHash(CLUSTER, ''),
    () => ({ retainBlocks: 1000, retainBytes: 2 ** 28 }),
    () => 0,
    (_, hash) => (!cold && left?.hash === hash ? left : undefined),
  );
  const probedAt = performance.now();
  const { votes } = votesOf(await probe(lane.nodes, quorum, LIMIT_MS, systemClock), lane.nodes, 'bench');
  const startedAt = cold ? probedAt : performance.now();
  return new Promise((resolve, reject) => {
    let tookMs = -1;
    const hooks: TermHooks = {
      leading: () => {
        tookMs = performance.now() - startedAt;
        setImmediate(() => driver.stepdown('STOPPED', 'measured'));
      },
      ready: () => {},
      request: () => {},
      node: () => {},
      alarm: () => {},
      backfilled: () => {},
      committed: (block, epoch) => {
        left = block;
        append(block, epoch);
      },
      adopted: (blocks) => {
        for (const block of blocks) append(block, 0);
      },
    };
    const driver = new TermDriver({
      nodes: lane.nodes,
      clock: systemClock,
      store,
      chain,
      settings: {
        owner: `bench/${systemRandom.hex(8)}`,
        nodes: lane.nodes.length,
        quorum,
        ttlMs: TTL_MS,
        usableLeaseMs: usableLeaseMs(TTL_MS),
        nodeTimeoutMs: LIMIT_MS,
        graceMs: 3,
        retryMs: 5,
        regainMs: 500,
        maxAdopt: 1000,
        readmit: false,
        renewNotBefore: lane.nodes.map(() => 0),
      },
      hooks,
    });
    driver
      .run(votes)
      .then(async (end) => {
        await driver.release();
        if (tookMs < 0) throw new Error(`no leadership: ${end.code}, ${end.reason}`);
        resolve(tookMs);
      })
      .catch(reject);
  });
}

export const bench: Bench = {
  title: 'acquiring leadership, against redlock',
  limitS: 40,
  async run(on) {
    const servers = await Servers.start(3, 'none');
    const lane = await new Lane(servers, '', 1, Buffer.alloc(1024, 7)).begin();
    const led = await new Lane(servers, 'led', 20, Buffer.alloc(1024, 7)).begin();
    try {
      for (const node of lane.nodes) await accepted(node, { script: 'release_lock', owner: OWNER });
      const redlock = redlockOn(servers);
      const measured = await interleave(
        [
          {
            name: 'redlock acquire',
            work: async () => {
              const startedAt = performance.now();
              const lock = await redlock.lock('bench:redlock', TTL_MS);
              const tookMs = performance.now() - startedAt;
              await lock.unlock();
              return tookMs;
            },
          },
          {
            name: 'three commits of a leader',
            work: async () => {
              for (let round = 0; round < 3; round += 1) await led.commit();
            },
          },
          { name: 'seq leads', work: () => lead(lane, servers.quorum, 'follower') },
          { name: 'seq leads, its store has the head', work: () => lead(lane, servers.quorum, 'current') },
          { name: 'seq leads, from cold', work: () => lead(lane, servers.quorum, 'cold') },
        ],
        { rounds: on.pick(40, 16), perRound: PER_ROUND, warm: WARM / PER_ROUND },
      );
      on.table({
        title: 'From a free lock to the right to write, 3 servers without persistence',
        unit: 'ms',
        rows: measured.rows.map((row) => ({ ...row, perSecond: null })),
      });
      on.ratio({
        id: 'leadership.p50',
        what: "p50 over redlock's acquire",
        ...measured.ratio('redlock acquire', 'seq leads'),
        goal: atMost(3),
      });
      on.note(
        'redlock sets one key a node. seq promotes, claims, and proposes the last head again under its ' +
          'own epoch: three round trips. A follower has probed before, and has read the head as it came. ' +
          'Where it knows that the head is committed, there is nothing to propose again: two round trips. ' +
          'From cold, the probe and the reading are measured too: five. Three commits, one after the other ' +
          'and each on a quorum, are the cheapest three rounds that seq has.',
      );
    } finally {
      await Promise.all([lane.close(), led.close()]);
      await servers.stop();
    }
  },
};
