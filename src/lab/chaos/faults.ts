// The faults of a cluster of real processes: what each does, to which target, for how long, and how it is healed. A
// fault takes its target exclusively, because two at once on one process would undo each other. Different targets may
// fail at the same time.
import { readdirSync, statfsSync, statSync, truncateSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import type { PrivateCluster } from '../private-cluster.js';
import type { TcpProxy } from '../tcp-proxy.js';
import { openControl } from './control.js';
import { MEMBER_FAULTS } from './member-faults.js';
import { RESIZE } from './resize-fault.js';
import type { Memory } from './memory.js';
import type { Prng } from './prng.js';
import { aNode, aNodeThatMayForget, aPlace, aSequencer, proxiesAt, revive, sleep, type Fault } from './targets.js';

const MIB = 1024 * 1024;
const FLOOD = 200;

export const FAULTS: readonly Fault[] = [
  {
    name: 'kill-sequencer',
    help: 'SIGKILL of a sequencer, started again after up to three leases',
    aim: aSequencer,
    begin: async ({ cluster, ttlMs }, target, prng) => {
      await cluster.kill(target, 'SIGKILL');
      return { what: `kill -9 ${target}`, holdMs: prng.between(0, 3 * ttlMs), heal: () => revive(cluster, target) };
    },
  },
  {
    name: 'term-sequencer',
    help: 'SIGTERM of a sequencer, started again',
    aim: aSequencer,
    begin: async ({ cluster, ttlMs }, target, prng) => {
      await cluster.kill(target, 'SIGTERM', 20_000);
      return { what: `SIGTERM ${target}`, holdMs: prng.between(0, 2 * ttlMs), heal: () => revive(cluster, target) };
    },
  },
  {
    name: 'pause-sequencer',
    help: 'SIGSTOP of a sequencer, mostly beyond its lease, then SIGCONT',
    aim: aSequencer,
    begin: async ({ cluster, ttlMs }, target, prng) => {
      const holdMs = ttlMs * prng.between(0.3, 4);
      await cluster.pause(target);
      return {
        what: `SIGSTOP ${target} for ${Math.round(holdMs)} ms`,
        holdMs,
        heal: async () => cluster.unpause(target),
      };
    },
  },
  {
    name: 'kill-node',
    help: 'SIGKILL of a Redis server, started again with its data',
    aim: aNodeThatMayForget,
    begin: async ({ cluster, memory, ttlMs }, target, prng) => {
      await endNode(cluster, memory, target);
      return {
        what: `kill -9 ${target}, its data kept`,
        holdMs: prng.between(0, 4 * ttlMs),
        heal: () => revive(cluster, target),
      };
    },
  },
  {
    name: 'truncate-node',
    help: 'SIGKILL of a Redis server, started again with the end of its append-only file cut off',
    aim: aNodeThatMayForget,
    begin: async ({ cluster, memory, ttlMs }, target, prng) => {
      await endNode(cluster, memory, target);
      const cut = truncateAppendOnly(cluster.dataDirectory(target), prng);
      return {
        what: `kill -9 ${target}, ${cut}`,
        holdMs: prng.between(0, 4 * ttlMs),
        heal: () => revive(cluster, target),
      };
    },
  },
  {
    name: 'wipe-node',
    help: 'SIGKILL of a Redis server, started again without its data',
    aim: aNodeThatMayForget,
    begin: async ({ cluster, memory, ttlMs }, target, prng) => {
      await endNode(cluster, memory, target);
      cluster.removeData(target);
      return {
        what: `kill -9 ${target}, its data removed`,
        holdMs: prng.between(0, 4 * ttlMs),
        heal: () => revive(cluster, target),
      };
    },
  },
  {
    name: 'pause-node',
    help: 'SIGSTOP of a Redis server, then SIGCONT: late answers and late writes',
    aim: aNode,
    begin: async ({ cluster, ttlMs }, target, prng) => {
      const holdMs = ttlMs * prng.between(0.1, 6);
      await cluster.pause(target);
      return {
        what: `SIGSTOP ${target} for ${Math.round(holdMs)} ms`,
        holdMs,
        heal: async () => cluster.unpause(target),
      };
    },
  },
  {
    name: 'fsync-stall',
    help:
      'appendfsync always on a Redis server, and the whole server stopped in bursts, as a disk that ' +
      'stalls under fsync stops it',
    aim: aNode,
    begin: async ({ cluster, ttlMs }, target, prng) => {
      const port = cluster.port(target);
      await command(port, 'CONFIG', 'SET', 'appendfsync', 'always');
      const bursts = prng.int(3, 10);
      let healed = false;
      const stalling = (async () => {
        for (let burst = 0; burst < bursts && !healed; burst++) {
          await cluster.pause(target);
          await sleep(ttlMs * prng.between(0.05, 0.6));
          cluster.unpause(target);
          await sleep(prng.between(10, 150));
        }
      })();
      return {
        what: `fsync stalls on ${target}: ${bursts} bursts`,
        holdMs: bursts * ttlMs * 0.4,
        heal: async () => {
          healed = true;
          await stalling.finally(() => cluster.unpause(target));
          await command(port, 'CONFIG', 'SET', 'appendfsync', 'everysec');
        },
      };
    },
  },
  {
    name: 'clock-jump',
    help:
      'what a jump of its clock does to a Redis server: every key with a TTL expires at once, or lives ' +
      'ten leases longer',
    aim: aNode,
    begin: async ({ cluster, ttlMs }, target, prng) => {
      const forward = prng.chance(0.7);
      const keys = await jump(cluster.port(target), forward ? null : 10 * ttlMs);
      return {
        what:
          `clock of ${target} jumps ${forward ? 'forward' : 'back'}: ${keys} TTL keys ` +
          `${forward ? 'expire' : `live ${10 * ttlMs} ms longer`}`,
        holdMs: 0,
        heal: async () => undefined,
      };
    },
  },
  {
    name: 'cut',
    help: 'open connections between sequencers and nodes reset',
    aim: aPlace,
    begin: async ({ cluster }, target) => {
      const proxies = proxiesAt(cluster, target);
      const open = proxies.reduce((sum, proxy) => sum + proxy.open, 0);
      for (const proxy of proxies) proxy.cut();
      return { what: `${open} connections of ${target} cut`, holdMs: 0, heal: async () => undefined };
    },
  },
  {
    name: 'partition',
    help: 'connections swallow everything, or one direction of it, open ones and new ones alike',
    aim: aPlace,
    begin: async ({ cluster, ttlMs }, target, prng) => {
      const proxies = proxiesAt(cluster, target);
      const which = prng.pick(['both directions', 'requests', 'replies']);
      const holdMs = ttlMs * prng.between(0.2, 5);
      for (const proxy of proxies) {
        if (which !== 'replies') proxy.set('up', { drop: true });
        if (which !== 'requests') proxy.set('down', { drop: true });
      }
      return {
        what: `${target} partitioned (${which}) for ${Math.round(holdMs)} ms`,
        holdMs,
        heal: async () => cleanEnd(proxies),
      };
    },
  },
  {
    name: 'refuse',
    help: 'connections reset, new ones refused',
    aim: aPlace,
    begin: async ({ cluster, ttlMs }, target, prng) => {
      const proxies = proxiesAt(cluster, target);
      const holdMs = ttlMs * prng.between(0.2, 4);
      for (const proxy of proxies) {
        proxy.onConnect(prng.chance(0.5) ? 'refuse' : 'silent');
        proxy.cut();
      }
      return {
        what: `${target} refuses connections for ${Math.round(holdMs)} ms`,
        holdMs,
        heal: async () => cleanEnd(proxies),
      };
    },
  },
  {
    name: 'delay',
    help: 'one or both directions delayed by up to twice the node timeout',
    aim: aPlace,
    begin: async ({ cluster, ttlMs, nodeTimeoutMs }, target, prng) => {
      const proxies = proxiesAt(cluster, target);
      const up = prng.chance(0.7) ? prng.int(1, 2 * nodeTimeoutMs) : 0;
      const down = up === 0 || prng.chance(0.5) ? prng.int(1, 2 * nodeTimeoutMs) : 0;
      const holdMs = ttlMs * prng.between(0.5, 6);
      for (const proxy of proxies) {
        proxy.set('up', { delayMs: up });
        proxy.set('down', { delayMs: down });
      }
      // The link is not cut: delayed bytes arrive, late and in order.
      return {
        what: `${target} delayed by ${up} ms up, ${down} ms down for ${Math.round(holdMs)} ms`,
        holdMs,
        heal: async () => proxies.forEach((proxy) => proxy.heal()),
      };
    },
  },
  {
    name: 'lost-reply',
    help: 'nodes run what they are asked and the replies are lost, then the connection ends',
    aim: aPlace,
    begin: async ({ cluster, nodeTimeoutMs }, target, prng) => {
      const proxies = proxiesAt(cluster, target);
      for (const proxy of proxies) proxy.dropReplies();
      return {
        what: `replies to ${target} lost`,
        holdMs: prng.between(10, 2 * nodeTimeoutMs),
        heal: async () => cleanEnd(proxies),
      };
    },
  },
  {
    name: 'half-open',
    help: 'open connections go silent for good without a reset; new ones work',
    aim: aPlace,
    begin: async ({ cluster }, target) => {
      const count = proxiesAt(cluster, target).reduce((sum, proxy) => sum + proxy.halfOpen(), 0);
      return { what: `${count} connections of ${target} half-open`, holdMs: 0, heal: async () => undefined };
    },
  },
  {
    name: 'corrupt',
    help: 'bits of the answers flipped, or requests replaced by noise, in a share of what is sent',
    aim: aPlace,
    begin: async ({ cluster, ttlMs }, target, prng) => {
      const proxies = proxiesAt(cluster, target);
      const answers = prng.chance(0.7);
      const share = prng.pick([0.02, 0.2]);
      const holdMs = ttlMs * prng.between(0.3, 4);
      for (const proxy of proxies) {
        if (answers) proxy.set('down', { flip: share });
        else proxy.set('up', { garbage: true });
      }
      return {
        what: answers
          ? `a bit in ${share * 100} % of the answers to ${target} flipped for ${Math.round(holdMs)} ms`
          : `requests of ${target} replaced by noise for ${Math.round(holdMs)} ms`,
        holdMs,
        heal: async () => cleanEnd(proxies),
      };
    },
  },
  ...MEMBER_FAULTS,
  RESIZE,
  {
    name: 'flood',
    help:
      `${FLOOD} further connections to one Redis server, whose maxclients leaves no room for that ` +
      'many; its links cut',
    aim: aNode,
    begin: async ({ cluster, ttlMs }, target, prng) => {
      const port = cluster.port(target);
      const control = await openControl(port);
      const room = Number(/connected_clients:(\d+)/.exec(String(await control.send('INFO', 'clients')))?.[1] ?? 20);
      await control.send('CONFIG', 'SET', 'maxclients', room + FLOOD / 2);
      const sockets: Socket[] = Array.from({ length: FLOOD }, () => {
        const socket = connect({ host: '127.0.0.1', port });
        socket.on('error', () => socket.destroy());
        socket.on('connect', () => socket.write('PING\r\n'));
        socket.resume();
        return socket;
      });
      await sleep(30);
      for (const proxy of proxiesAt(cluster, target)) proxy.cut();
      return {
        what: `${FLOOD} connections flood ${target}`,
        holdMs: ttlMs * prng.between(0.5, 4),
        heal: async () => {
          for (const socket of sockets) socket.destroy();
          await control.send('CONFIG', 'SET', 'maxclients', 10_000).finally(() => control.close());
        },
      };
    },
  },
  {
    name: 'big-blocks',
    help: 'items of 1 to 4 MiB submitted',
    aim: () => ({ target: 'big', locks: ['big'] }),
    begin: async ({ big }, _target, prng) => {
      const sizes = Array.from({ length: prng.int(1, 3) }, () => prng.int(MIB, 4 * MIB - 1024));
      big.sendBig(sizes);
      return {
        what: `items of ${sizes.map((size) => `${(size / MIB).toFixed(1)} MiB`).join(', ')} submitted`,
        holdMs: 0,
        heal: async () => undefined,
      };
    },
  },
  {
    name: 'full-disk',
    help: "the file system of one sequencer's store is full (root only: a small tmpfs)",
    aim: ({ disk }) =>
      disk === null ? { skip: 'no small file system could be mounted' } : { target: disk.owner, locks: [disk.owner] },
    begin: async ({ cluster, disk, ttlMs }, target, prng) => {
      if (disk === null) throw new Error('there is no small disk');
      const { bavail, bsize } = statfsSync(disk.path);
      disk.fill();
      return {
        what: `the disk of ${target} is full (${Math.round((bavail * bsize) / MIB)} MiB were free)`,
        holdMs: ttlMs * prng.between(1, 5),
        afterMs: 20_000,
        heal: async () => {
          disk.empty();
          // A sequencer that cannot store committed blocks ends some time later. That is correct, and it is the only
          // allowed reason.
          await revive(cluster, target);
        },
      };
    },
  },
];

/**
 * Ends a fault that drops bytes. No connection that lost bytes may stay open, because TCP would not allow that either.
 */
function cleanEnd(proxies: readonly TcpProxy[]): void {
  for (const proxy of proxies) {
    proxy.cut();
    proxy.heal();
  }
}

async function endNode(cluster: PrivateCluster, memory: Memory, target: string): Promise<void> {
  const gone = memory.lose(target);
  await cluster.kill(target, 'SIGKILL');
  gone();
}

/** Cuts off up to half of what was appended last. The server has then lost its newest writes and does not know it. */
function truncateAppendOnly(directory: string, prng: Prng): string {
  const folder = join(directory, 'appendonlydir');
  const files = readdirSync(folder)
    .filter((name) => name.endsWith('.incr.aof'))
    .map((name) => join(folder, name));
  const last = files.sort((a, b) => statSync(a).mtimeMs - statSync(b).mtimeMs).at(-1);
  if (last === undefined) return 'no append-only file to cut';
  const { size } = statSync(last);
  const cut = Math.min(size, prng.chance(0.5) ? prng.int(1, 4096) : Math.floor(size * prng.between(0.01, 0.5)));
  truncateSync(last, size - cut);
  return `the last ${cut} of ${size} bytes of its append-only file cut off`;
}

/**
 * Makes every TTL key of the server expire at once, or moves its expiry by `laterMs`. Returns how many keys there were.
 */
async function jump(port: number, laterMs: number | null): Promise<number> {
  const control = await openControl(port);
  try {
    let cursor = '0';
    let count = 0;
    do {
      const [next, keys] = (await control.send('SCAN', cursor, 'MATCH', 'seq:*', 'COUNT', 1000)) as [string, string[]];
      cursor = next;
      for (const key of keys) {
        const left = Number(await control.send('PTTL', key));
        if (left < 0) continue;
        count++;
        await control.send('PEXPIRE', key, laterMs === null ? 1 : left + laterMs);
      }
    } while (cursor !== '0');
    return count;
  } finally {
    control.close();
  }
}

async function command(port: number, ...words: string[]): Promise<void> {
  const control = await openControl(port);
  await control.send(...words).finally(() => control.close());
}
