// Faults of who the nodes are and what time it is: single processes have it wrong (docs/PROTOCOL.md sections 6 and 8).
// An address leads to another server, a list is edited, a clock is hours off.
import type { PrivateCluster } from '../private-cluster.js';
import { openControl } from './control.js';
import { aNodeThatMayForget, aSequencer, revive, sleep, type Fault } from './targets.js';

export const MEMBER_FAULTS: readonly Fault[] = [
  {
    name: 'redirect',
    help:
      'the address of one node leads some or all sequencers to another server, an empty one or a ' +
      'promoted replica of it',
    aim: aNodeThatMayForget,
    begin: async ({ cluster, memory, ttlMs }, target, prng) => {
      const gone = memory.lose(target);
      const replica = prng.chance(0.5);
      const port = await startOther(cluster, target, replica).catch((error: unknown) => {
        gone();
        throw error;
      });
      const all = cluster.sequencers.map(({ name }) => name);
      const led = prng.chance(0.4) ? all : prng.shuffled(all).slice(0, prng.int(1, Math.max(1, all.length - 1)));
      const kept = prng.chance(0.4);
      const proxies = led.map((name) => cluster.proxy(name, target));
      for (const proxy of proxies) {
        proxy.redirect(port);
        if (!kept) proxy.cut();
      }
      return {
        what:
          `${target} is ${replica ? 'a promoted replica' : 'an empty server'} for ${led.join(', ')}` +
          `${kept ? ', open connections stay' : ''}`,
        holdMs: ttlMs * prng.between(1, 8),
        heal: async () => {
          for (const proxy of proxies) {
            proxy.redirect(null);
            proxy.cut();
          }
          await cluster.kill(otherOf(target));
          gone();
        },
      };
    },
  },
  {
    name: 'edit-context',
    help:
      'a sequencer started again with an edited list: another server for a node, a part of the nodes, ' +
      'or a server that is no member',
    aim: (setting, prng) => {
      const sequencer = aSequencer(setting, prng);
      const node = aNodeThatMayForget(setting, prng);
      if ('skip' in sequencer) return sequencer;
      // A list that names no other server for a node touches no memory.
      return 'skip' in node
        ? sequencer
        : { target: `${sequencer.target}/${node.target}`, locks: [...sequencer.locks, ...node.locks] };
    },
    begin: async ({ cluster, memory, ttlMs }, aimed, prng) => {
      const [target, contested] = aimed.split('/') as [string, string | undefined];
      const kind = contested === undefined ? 'part' : prng.pick(['elsewhere', 'elsewhere', 'part', 'more']);
      const gone = kind === 'elsewhere' ? memory.lose(contested!) : () => undefined;
      const replica = kind === 'elsewhere' && prng.chance(0.5);
      const port =
        contested === undefined || kind === 'part'
          ? 0
          : await startOther(cluster, contested, replica).catch((error: unknown) => {
              gone();
              throw error;
            });
      const url = `redis://127.0.0.1:${port}`;
      const only = prng.pick(cluster.nodes).name;
      const listed =
        kind === 'elsewhere'
          ? `another server for ${contested}`
          : kind === 'more'
            ? 'a server that is no member'
            : `${only} only`;
      await cluster.kill(target, 'SIGKILL');
      cluster.edit(
        target,
        kind === 'elsewhere'
          ? { nodes: { [contested!]: url } }
          : kind === 'more'
            ? { args: ['--node', `r9=${url}`] }
            : { nodes: Object.fromEntries(cluster.nodes.flatMap(({ name }) => (name === only ? [] : [[name, '']]))) },
      );
      await cluster.startProcess(target, { wait: false });
      return {
        what: `${target} lists ${listed}`,
        holdMs: ttlMs * prng.between(4, 14),
        heal: async () => {
          await cluster.kill(target, 'SIGKILL');
          cluster.edit(target, null);
          await revive(cluster, target);
          if (port !== 0) await cluster.kill(otherOf(contested!));
          gone();
        },
      };
    },
  },
  {
    name: 'clock-lie',
    help: 'a sequencer started again with a wall clock that is hours off, for 2.5 s or until it is started once more',
    aim: aSequencer,
    begin: async ({ cluster, ttlMs }, target, prng) => {
      const hours = prng.pick([25, 25, -25, 2, -2]);
      const forMs = prng.chance(0.5) ? 2500 : 1e12;
      await cluster.kill(target, 'SIGKILL');
      cluster.edit(target, { env: { NODE_OPTIONS: `--import=${lyingClock(hours * 3_600_000, forMs)}` } });
      await cluster.startProcess(target, { wait: false });
      return {
        what: `the clock of ${target} is ${hours} h off${forMs === 2500 ? ' for 2.5 s' : ''}`,
        holdMs: ttlMs * prng.between(8, 20),
        heal: async () => {
          await cluster.kill(target, 'SIGKILL');
          cluster.edit(target, null);
          await revive(cluster, target);
        },
      };
    },
  },
];

function otherOf(node: string): string {
  return `other-${node}`;
}

/** Another server that answers for the node: empty, or one that was its replica until now. Returns its port. */
async function startOther(cluster: PrivateCluster, node: string, replica: boolean): Promise<number> {
  const port = await cluster.startSpare(otherOf(node));
  if (!replica) return port;
  const control = await openControl(port);
  try {
    await control.send('REPLICAOF', '127.0.0.1', cluster.port(node));
    for (let tries = 0; tries < 200; tries++) {
      if (String(await control.send('INFO', 'replication')).includes('master_link_status:up')) break;
      await sleep(20);
    }
    await control.send('REPLICAOF', 'NO', 'ONE');
  } finally {
    control.close();
  }
  return port;
}

/** A process that lies for a while has started when it begins to. */
const FROM_MS = 3000;

/** A module that moves the wall clock of its process. No clock of this machine is set. */
function lyingClock(offMs: number, forMs: number): string {
  const until = FROM_MS + forMs;
  const code =
    `const real=Date.now,off=()=>performance.now()>${FROM_MS}&&performance.now()<${until}?${offMs}:0;` +
    'globalThis.Date=class extends Date{constructor(...a){if(a.length)super(...a);else super(real()+off())}' +
    'static now(){return Math.floor(real()+off())}}';
  return `data:text/javascript,${encodeURIComponent(code)}`;
}
