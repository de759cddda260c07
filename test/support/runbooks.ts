// Do the pages of docs/RUNBOOKS.md work? Each page is read from the Markdown, and the lab is brought into the state
// that the page is about. Then its lines are run as they stand. A comment in the page says what to expect (`# exits 1,
// shows r3`). Without a comment, the line must exit 0.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { expect } from 'vitest';
import { RedisNode } from '../../src/core/redis/node.js';
import { waitUntil } from '../../src/lab/processes.js';
import { runBatch, type Answer } from './batch-seq.js';
import { ChainWriter } from './chain-writer.js';
import { shellWords } from './command-lines.js';
import { startRedis, type RedisServer } from './redis-server.js';
import { newHome, root } from './spawn-seq.js';

interface Step {
  line: string;
  exits: number;
  shows: string | null;
}
export interface Page {
  title: string;
  text: string;
  blocks: Step[][];
}

export const pages: Page[] = readFileSync(join(root, 'docs/RUNBOOKS.md'), 'utf8')
  .split(/^## /m)
  .slice(1)
  .map((section) => {
    const [title = '', ...rest] = section.split('\n');
    const text = rest.join('\n');
    const blocks = [...text.matchAll(/```sh\n([\s\S]*?)```/g)].map((match) =>
      (match[1] as string)
        .trim()
        .split('\n')
        .map((written): Step => {
          const [line = '', comment = ''] = written.split(/\s+# /);
          return {
            line,
            exits: Number(/exits (\d+)/.exec(comment)?.[1] ?? 0),
            shows: /shows (.+)$/.exec(comment)?.[1] ?? null,
          };
        }),
    );
    return { title, text, blocks };
  });

const home = newHome();
// A slow test machine must not make nodes appear dead. (This is only for the commands here: sequencers have their own
// settings.)
const env = { SEQ_NODE_TIMEOUT: '700ms' };
const SEQUENCERS = ['seq-a', 'seq-b'];
const UP = [
  'lab up --ttl 1500ms --block-time 200ms --persist everysec',
  'context use lab',
  'wait --for healthy --timeout 1m',
];
export const seq = (...lines: string[]): Promise<Answer[]> =>
  runBatch(
    home,
    lines.map((line) => ({ argv: shellWords(line), env })),
  );
const data = async (line: string) =>
  JSON.parse((await seq(`${line} -o json`))[0]?.stdout ?? '').data as Record<string, never>;
export async function rows(): Promise<Map<string, { name: string; state: string; url: string; port: number }>> {
  const { processes } = (await data('lab status')) as unknown as {
    processes: { name: string; state: string; url: string; port: number }[];
  };
  return new Map(processes.map((row) => [row.name, row]));
}
export async function done(...lines: string[]): Promise<void> {
  for (const { argv, code, stderr, stdout } of await seq(...lines))
    expect(code, `seq ${argv.join(' ')}\n${stdout}\n${stderr}`).toBe(0);
}
async function onNode<T>(name: string, act: (redis: Redis) => Promise<T>): Promise<T> {
  const redis = new Redis((await rows()).get(name)?.port ?? 0, '127.0.0.1');
  redis.on('error', () => undefined);
  try {
    return await act(redis);
  } finally {
    redis.disconnect();
  }
}
async function portsOf(): Promise<{ nodes: RedisNode[]; cluster: string; close(): Promise<void> }> {
  const [{ cluster }, processes] = await Promise.all([
    data('status -c lab') as unknown as Promise<{ cluster: string }>,
    rows(),
  ]);
  const nodes = [...processes.values()]
    .filter((row) => row.url.startsWith('redis:'))
    .map((row) => new RedisNode({ id: row.name, url: row.url, identity: { cluster, lane: '' } }));
  return {
    nodes,
    cluster,
    close: async () => {
      await Promise.all(nodes.map((node) => node.close()));
    },
  };
}
let newServer: RedisServer | undefined;
let spareServer: RedisServer | undefined;
/** The placeholder for an address in a page, and the real address. */
const addresses = new Map<string, string>();
const located = (line: string) => [...addresses].reduce((text, [name, url]) => text.replaceAll(name, url), line);
const STOP = SEQUENCERS.map((name) => `lab kill ${name} --signal SIGTERM`);

/** Leaves the state after a leader that died when its block had reached one node. */
async function halfWritten({ rival = false } = {}): Promise<void> {
  await done(...STOP);
  const { nodes, cluster, close } = await portsOf();
  try {
    const view = await nodes[0]?.call({ script: 'inspect' }, 3000);
    if (view?.outcome !== 'accepted' || view.value.head === 0) throw new Error(JSON.stringify(view));
    const writer = new ChainWriter(nodes, cluster, '', 'seq-z', 500);
    Object.assign(writer.chain, { height: view.value.head, hash: view.value.headHash });
    writer.epoch = view.value.epoch;
    writer.config = view.value.config;
    await writer.lead();
    // The leader dies at once, so nobody may wait for it as for a sequencer that is behind.
    await writer.leave();
    const { height, hash } = writer.chain;
    const block = (text: string) =>
      writer.chain.block([{ data: Buffer.from(text) }], { epoch: writer.epoch, timestamp: Date.now() });
    await writer.put(block('half way'), nodes.slice(0, 1));
    if (!rival) return;
    Object.assign(writer.chain, { height, hash });
    await writer.put(block('another one'), nodes.slice(1, 2));
  } finally {
    await close();
  }
}

/** Changes the bytes of one entry of one node. */
const EDIT = `local entries = redis.call('XRANGE', KEYS[1], '-', '+')
redis.call('DEL', KEYS[1])
for at, entry in ipairs(entries) do
  local fields = entry[2]
  for i = 1, #fields, 2 do if at == #entries - 4 and fields[i] == 'data' then fields[i + 1] = fields[i + 1] .. '!' end end
  redis.call('XADD', KEYS[1], entry[1], unpack(fields))
end`;

/**
 * Announces a sequencer whose clock is 25 h behind. Without `clockOffMs`, its clock is right. No clock of this machine
 * is changed.
 */
async function clockOf(extra: Record<string, string>, ttlMs: number): Promise<void> {
  const { nodes, close } = await portsOf();
  try {
    const presence = {
      id: 'seq-c',
      role: 'follower',
      height: 1,
      version: '1',
      url: '',
      pid: 1,
      configDigest: '',
      extra,
    };
    for (const node of nodes) {
      const reply = await node.call({ script: 'announce', presence: presence as never, ttlMs }, 3000);
      if (reply.outcome !== 'accepted') throw new Error(JSON.stringify(reply));
    }
  } finally {
    await close();
  }
}

/** Brings a healthy lab into the state that the page is about. */
export const STATES: Record<string, () => Promise<unknown>> = {
  'No leader': () => done(...SEQUENCERS.map((name) => `lab kill ${name}`)).then(() => noLeader()),
  'No quorum': () => done('lab pause r2', 'lab pause r3'),
  // No write is under way when the power fails. PERSISTENCE.md says what would be lost otherwise.
  'A quorum lost its memory': () =>
    done(
      ...SEQUENCERS.map((name) => `lab pause ${name}`),
      'lab kill r2',
      'lab kill r3',
      'lab start r2',
      'lab start r3',
      ...SEQUENCERS.map((name) => `lab unpause ${name}`),
    ),
  'A divergent node': () => onNode('r3', (redis) => redis.eval(EDIT, 1, 'seq:block:stream')),
  'A pending block': () => halfWritten().then(() => noLeader()),
  // No leader makes two blocks at one height under one epoch: somebody wrote this one by hand.
  'A conflict': () => halfWritten({ rival: true }).then(() => noLeader()),
  Flapping: () =>
    done(
      'stepdown -c lab --yes --timeout 30s',
      'wait -c lab --for healthy --timeout 1m',
      'stepdown -c lab --yes --timeout 30s',
      'wait -c lab --for healthy --timeout 1m',
    ),
  'A slow or hanging node': () => done('lab pause r3'),
  'A wrong epoch': async () => {
    await done(...STOP);
    await noLeader();
    await onNode('r3', (redis) => redis.incrby('seq:epoch:token', 5));
  },
  'Planned maintenance of a sequencer': async () => {
    const { leader } = (await data('status -c lab')) as unknown as { leader: { id: string } | null };
    if (leader?.id !== 'seq-a')
      await done('stepdown -c lab --to seq-a --yes --timeout 30s', 'wait -c lab --for healthy --timeout 1m');
  },
  'A rolling restart of Redis': () => Promise.resolve(),
  'A node was wiped, or restored from an old dump': () => done('lab wipe r3'),
  'A node is out of memory': () => onNode('r3', (redis) => redis.config('SET', 'maxmemory', '1mb')),
  'A clock was wrong': () => clockOf({ clockOffMs: '-90000000' }, 120_000),
  'Grow and shrink a cluster': async () => {
    spareServer = await startRedis();
    for (const name of ['r1', 'r2', 'r3'])
      addresses.set(`redis://${name.toUpperCase()}:PORT`, (await rows()).get(name)?.url ?? '');
    addresses.set('redis://R4:PORT', spareServer.url);
  },
  // The last page: the supervisor of the lab's sequencers knows only the old address.
  'Moving a node': async () => {
    newServer = await startRedis();
    for (const name of ['r1', 'r2'])
      addresses.set(`redis://${name.toUpperCase()}:PORT`, (await rows()).get(name)?.url ?? '');
    addresses.set('redis://NEW:PORT', newServer.url);
  },
};

/** What must have happened before a block can be run. A person would see it happen. */
const BEFORE: Record<string, () => Promise<unknown>> = {
  'A clock was wrong: seq wait --for healthy --timeout 1m': () => clockOf({}, 1000),
  'A quorum lost its memory: seq lab start seq-a': () =>
    waitUntil({ what: 'the old generation to end', timeoutMs: 120_000, everyMs: 200 }, async () => {
      const processes = await rows();
      return SEQUENCERS.every((name) => processes.get(name)?.state === 'dead') ? true : undefined;
    }),
};

/** Waits until the locks of the dead leader have expired. */
const noLeader = () =>
  waitUntil({ what: 'nobody to lead', timeoutMs: 120_000, everyMs: 100 }, async () =>
    (await data('status -c lab'))['leader'] === null ? true : undefined,
  );

/** The state in which every page finds the lab, and in which it leaves the lab. */
export async function healthy(): Promise<void> {
  const all = [...(await rows()).values()];
  const fix = all.flatMap(({ name, state }) =>
    state === 'paused' ? [`lab unpause ${name}`] : state === 'dead' ? [`lab start ${name}`] : [],
  );
  await seq(...fix);
  const [, waited] = await seq('resume -c lab', 'wait -c lab --for healthy --timeout 1m');
  if (waited?.code === 0) return;
  await seq('lab down');
  await done(...UP);
}

async function run(steps: readonly Step[]): Promise<void> {
  const judge = (step: Step, code: number, said: string) => {
    expect(code, `${step.line}\n${said}`).toBe(step.exits);
    if (step.shows !== null) expect(said, step.line).toContain(step.shows);
  };
  const redisCli = /^redis-cli -u redis:\/\/HOST:PORT (.+)$/;
  for (let at = 0; at < steps.length;) {
    const native = redisCli.exec(steps[at]?.line ?? '');
    if (native) {
      const [command = '', ...args] = (native[1] as string).split(' ');
      judge(steps[at] as Step, 0, String(await onNode('r3', (redis) => redis.call(command, ...args))));
      at += 1;
      continue;
    }
    const end = steps.findIndex((step, index) => index > at && redisCli.test(step.line));
    const part = steps.slice(at, end < 0 ? undefined : end);
    const answers = await seq(...part.map(({ line }) => located(line).replace(/^seq /, '')));
    part.forEach((step, index) =>
      judge(step, answers[index]?.code ?? -1, `${answers[index]?.stdout}\n${answers[index]?.stderr}`),
    );
    at += part.length;
  }
}

/** Follows one page from its first line to its last. */
export async function follow({ title, blocks }: Page): Promise<void> {
  // Blocks that wait for nothing run together, because each start of the program takes time.
  let pending: Step[] = [];
  for (const block of blocks) {
    const before = BEFORE[`${title}: ${block[0]?.line}`];
    if (before) {
      await run(pending);
      pending = [];
      await before();
    }
    pending.push(...block);
  }
  await run(pending);
}

export async function labUp(): Promise<void> {
  await done(...UP);
}

export async function labDown(): Promise<void> {
  await seq('lab down');
  await newServer?.stop();
  await spareServer?.stop();
}
