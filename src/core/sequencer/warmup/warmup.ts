// Takeover code is warmed up at start (docs/ARCHITECTURE.md, "A failover"), so that the first takeover of a process is
// not its slowest. A follower runs one whole life on an in-memory cluster: probe, promotion, claim, adoption, blocks, a
// stepdown on request, promotion again, release. The code is the one that a failover runs, so it is compiled when a
// real failover comes. Nothing leaves this process: no real node, store, log line or metric sees the warm-up.
import { tellAll } from '../../nodes/ask-all.js';
import { makeBlock } from '../../chain/block.js';
import { encodeItems } from '../../chain/items.js';
import { DEFAULT_LIMITS, type Timing } from '../../config.js';
import type { Clock, NodePort, Producer, Random } from '../../ports.js';
import type { EmitEvent } from '../../events.js';
import { Inbox } from '../lead/inbox.js';
import { Sequencer } from '../sequencer.js';
import { IN_MEMORY_CLUSTER, WARMUP_GENESIS, InMemoryNode, InMemoryStore } from './in-memory-cluster.js';

/** The lease is longer than a warm-up takes, and the block time is short. */
const TIMING: Timing = {
  ttlMs: 60_000,
  blockTimeMs: 2,
  nodeTimeoutMs: 1000,
  retryMs: 2,
  retryJitterMs: 1,
  pollMs: 1000,
  pollJitterMs: 0,
};
const LIFE_LIMIT_MS = 2000;
/**
 * The first warm-up runs soon after the start. Then it runs often enough that the runtime does not throw away the
 * compiled code.
 */
const FIRST_MS = 250;
const FIRST_LIVES = 3;
const AGAIN_MS = 60_000;
/** Nobody waits for this call. A short limit would close the connection of a node that is only slow. */
const PREPARE_LIMIT_MS = 1000;
const ITEM = { data: new Uint8Array(200) };
/** As many submissions as typically wait for a successor when a lease has run out. */
const WAITING = 64;

export interface WarmUpOptions {
  nodes: number;
  /** Makes a producer like the real one. It is closed with the in-memory cluster. */
  producer: () => Producer;
  clock: Clock;
  random: Random;
  /** Gets the events of the warm-up, as the log gets real events. It must not pass them on. */
  tell?: EmitEvent;
}

/** Runs one life. False when it failed or did not end within the limit. Never throws. */
export async function warmUp(options: WarmUpOptions): Promise<boolean> {
  const { clock, random } = options;
  const left = makeBlock({
    height: 1,
    parent: WARMUP_GENESIS,
    timestamp: clock.wall(),
    data: encodeItems([{ key: 'warmup-0', ...ITEM }]),
  });
  const nodes = Array.from({ length: options.nodes }, (_, i) => new InMemoryNode(`s${i + 1}`, clock, left));
  const store = new InMemoryStore();
  const producer = options.producer();
  const inbox = new Inbox({
    store,
    clock,
    maxItems: 1000,
    maxBytes: 1_000_000,
    maxItemBytes: 10_000,
    retryAfterMs: 1,
    unknownAfterMs: 1000,
  });
  let terms = 0;
  let over = (_: boolean): void => {};
  const end = new Promise<boolean>((resolve) => {
    over = resolve;
  });
  const cancel = clock.after(LIFE_LIMIT_MS, () => over(false));
  const sequencer = new Sequencer({
    id: 'warmup',
    nodes,
    identity: IN_MEMORY_CLUSTER,
    store,
    inbox,
    producer,
    clock,
    random,
    timing: TIMING,
    limits: { ...DEFAULT_LIMITS, retainBlocks: 2 },
    maxItemsBytes: 100_000,
    eager: true,
    readmit: true,
    priority: 0,
    version: '',
    url: '',
    pid: 0,
    extra: {},
    peers: [],
    catchUp: async () => {},
    emit: (event) => {
      options.tell?.(event);
      if (event.type === 'role' && event.to === 'leader') terms++;
      else if (event.type === 'stored' && event.height === 4 && terms === 1) {
        const request = {
          id: 'warmup',
          kind: 'stepdown' as const,
          to: 'warmup',
          plan: '',
          by: 'warmup',
          reason: '',
          epoch: sequencer.status().epoch,
        };
        for (const node of nodes) node.ask(request);
      } else if (event.type === 'stored' && terms === 2 && event.height >= 8) over(true);
    },
  });
  const handedIn = sequencer.onLeadership(({ role }) => {
    if (role === 'leader')
      void sequencer.submit([
        ITEM,
        ...Array.from({ length: WAITING }, (_, i) => ({ key: `stage-${terms}-${i}`, ...ITEM })),
      ]);
  });
  sequencer.failure.then(
    () => over(false),
    () => over(false),
  );
  try {
    sequencer.start();
    return await end;
  } catch {
    return false;
  } finally {
    cancel();
    handedIn();
    await sequencer.stop('STOPPED', 'the warm-up is over').catch(() => undefined);
    for (const node of nodes) await node.close();
    await producer.close();
  }
}

/**
 * Warms up soon after the start, and again from time to time. It never runs while `busy`: a real promotion or stop is
 * under way, or may begin in a moment. Returns a function that stops it.
 */
export function keepWarm(options: WarmUpOptions & { real: readonly NodePort[]; busy: () => boolean }): () => void {
  const { clock, real, busy } = options;
  let stopped = false;
  let cancel = (): void => {};
  const later = (ms: number, lives: number): void => {
    cancel = clock.after(ms, () => void play(lives));
  };
  const play = async (lives: number): Promise<void> => {
    if (busy()) return later(FIRST_MS, lives);
    await tellAll(real, async (node) => node.prepare?.(PREPARE_LIMIT_MS));
    for (let life = 0; life < lives && !stopped && !busy(); life++) if (!(await warmUp(options))) break;
    if (!stopped) later(AGAIN_MS, 1);
  };
  later(FIRST_MS, FIRST_LIVES);
  return () => {
    stopped = true;
    cancel();
  };
}
