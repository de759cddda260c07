// Is every changing command safe when it ends in the middle and is run again? This file has the table and the checks. A
// row makes its own servers or processes and stops the command half way (strike.ts). Then the same command finishes the
// change, as a person would do it, and the row checks the result.
import { Redis } from 'ioredis';
import { expect } from 'vitest';
import { makeBlock } from '../../src/core/chain/block.js';
import type { ScriptName } from '../../src/core/protocol/types.js';
import { RedisNode } from '../../src/core/redis/node.js';
import { ChainWriter } from './chain-writer.js';
import { withLab, type Lab } from './lab.js';
import { clusterOf, probe, untilIdentical } from './node-hands.js';
import { startRedis, type RedisServer } from './redis-server.js';
import { schemaProblems } from './schemas.js';
import { newHome, runSeq } from './spawn-seq.js';
import { strike } from './strike.js';

interface Answer {
  code: number | null;
  data: Record<string, never>;
  error: { code: string; message: string; changed: string } | null;
}

const CLUSTER = 'c0ffee00c0ffee00.1';
const home = newHome();

/** What a row works with: the nodes, the command that is stopped, and the same commands without a fault. */
class Breaking {
  constructor(
    private readonly row: Row,
    private readonly signal: 'SIGKILL' | 'SIGINT',
    readonly nodes: readonly { id: string; port: number }[],
  ) {}

  /**
   * Runs the command until the moment of the row and ends it there. An interrupted command must never say that nothing
   * changed.
   */
  async breakOff(args: readonly string[], dryRun: readonly string[] | null = null): Promise<void> {
    const struck = await strike(home, args, this.nodes, this.row.at, this.signal, {
      nth: this.row.nth,
      before: this.row.before,
      dryRun,
    });
    expect(struck.at, `${args.join(' ')} ended by itself: ${struck.stdout} ${struck.stderr}`).not.toBe('');
    if (this.signal === 'SIGKILL') {
      expect(struck.signal).toBe('SIGKILL');
      return;
    }
    const document = JSON.parse(struck.stdout) as Answer;
    expect(schemaProblems(document), struck.stdout).toEqual([]);
    expect([struck.code, document.error?.code], struck.stdout).toEqual([130, 'INTERRUPTED']);
    expect(['some', 'unknown'], struck.stdout).toContain(document.error?.changed);
  }

  async seq(args: readonly string[]): Promise<Answer> {
    const flags = this.nodes.flatMap(({ id, port }) => ['--node', `${id}=redis://127.0.0.1:${port}`]);
    const ran = await runSeq(home, [...args, ...flags, '--node-timeout', '2s', '-o', 'json'], { limitMs: 120_000 });
    const document = JSON.parse(ran.stdout) as Answer;
    expect(schemaProblems(document), ran.stdout).toEqual([]);
    return { ...document, code: ran.code };
  }

  /**
   * Repeats the command while its answer is "try again": exit code 75 (the locks of the killed command have not
   * expired), or a plan that is stale because they have.
   */
  async again(what: () => Promise<Answer>, limitMs = 120_000): Promise<Answer> {
    const until = performance.now() + limitMs;
    for (;;) {
      const answer = await what();
      if ((answer.code !== 75 && answer.error?.code !== 'PLAN_STALE') || performance.now() > until) return answer;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }

  /** Waits until no lock is left: the lock of a killed command expires by itself. */
  async locksEnd(limitMs = 120_000): Promise<void> {
    const until = performance.now() + limitMs;
    for (;;) {
      const locks = await this.everywhere((redis) => redis.get('seq:leader:lock'));
      if (locks.every((lock) => lock === null)) return;
      expect(performance.now(), `still locked: ${locks.join(' ')}`).toBeLessThan(until);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }

  /** Makes the plan, then runs the command with its digest. */
  confirmed(args: readonly string[], dryRun: readonly string[] = [...args, '--dry-run']): Promise<Answer> {
    return this.again(async () => {
      const plan = await this.seq(dryRun);
      const digest = (plan.data as { digest?: string } | null)?.digest;
      return plan.code !== 0 || !digest ? plan : this.seq([...args, '--confirm', digest]);
    });
  }

  async raw<T>(at: number, run: (redis: Redis) => Promise<T>): Promise<T> {
    const redis = new Redis(this.nodes[at]!.port, '127.0.0.1');
    try {
      return await run(redis);
    } finally {
      redis.disconnect();
    }
  }

  everywhere<T>(run: (redis: Redis) => Promise<T>): Promise<T[]> {
    return Promise.all(this.nodes.map((_, at) => this.raw(at, run)));
  }
}

type Row = { at: ScriptName; nth?: number; before?: boolean };

async function onServers(
  row: Row,
  signal: 'SIGKILL' | 'SIGINT',
  blocks: number,
  body: (b: Breaking, writer: ChainWriter, nodes: RedisNode[], servers: RedisServer[]) => Promise<void>,
  persist: 'none' | 'always' = 'none',
): Promise<void> {
  const servers = await Promise.all([1, 2, 3].map(() => startRedis({ persist })));
  const nodes = servers.map(
    (server, i) => new RedisNode({ id: `r${i + 1}`, url: server.url, identity: { cluster: CLUSTER, lane: '' } }),
  );
  const writer = new ChainWriter(nodes, CLUSTER);
  try {
    if (blocks >= 0) {
      await writer.bootstrap();
      await writer.lead();
      for (let i = 0; i < blocks; i++) await writer.write([{ data: Buffer.from(`item ${i + 1}`) }]);
    }
    await body(
      new Breaking(
        row,
        signal,
        servers.map(({ port }, at) => ({ id: `r${at + 1}`, port })),
      ),
      writer,
      nodes,
      servers,
    );
  } finally {
    await Promise.all(nodes.map((node) => node.close()));
    await Promise.all(servers.map((server) => server.stop()));
  }
}

async function release(writer: ChainWriter): Promise<void> {
  await Promise.all(writer.nodes.map((node) => node.call({ script: 'release_lock', owner: writer.owner }, 5000)));
  writer.owner = `seq-a/${String(Number(writer.owner.slice(-4)) + 1).padStart(16, '0')}`;
}

/** Checks that all streams are identical. Returns `height hash` of the head. */
async function identicalHead(b: Breaking): Promise<string> {
  const streams = await b.everywhere(async (redis) =>
    (await redis.xrange('seq:block:stream', '-', '+')).map(
      ([id, fields]) => `${id.split('-')[0]} ${fields[fields.indexOf('hash') + 1]}`,
    ),
  );
  for (const stream of streams) expect(stream).toEqual(streams[0]);
  return streams[0]!.at(-1)!;
}

// --- one scene for each command

type Scene = (row: Row, signal: 'SIGKILL' | 'SIGINT') => Promise<void>;

/** r3 is 20 blocks behind, and the newest block is on r2 only. */
const repairAlone: Scene = (row, signal) =>
  onServers(row, signal, 3, async (b, writer, nodes) => {
    for (let i = 0; i < 20; i++) await writer.write([], nodes.slice(0, 2));
    const last = await writer.write([], [nodes[1]!]);
    await release(writer);
    const plan = await b.seq(['repair', 'plan']);
    await b.breakOff(['repair', 'apply', '--confirm', plan.data['digest'] as unknown as string]);
    const done = await b.confirmed(['repair', 'apply'], ['repair', 'plan']);
    expect([done.code, done.error]).toEqual([0, null]);
    expect((await b.seq(['repair', 'verify'])).code).toBe(0);
    expect(await identicalHead(b)).toBe(`${last.height} ${last.hash}`);
    await b.locksEnd();
  });

/** Repair has put block y in the place of block x. The undo puts x back. */
const undo: Scene = (row, signal) =>
  onServers(row, signal, 3, async (b, writer, nodes) => {
    const x = await writer.write([], nodes.slice(0, 1));
    const y = {
      ...makeBlock({ height: x.height, parent: x.parent, timestamp: x.timestamp + 1, data: Buffer.from('y') }),
      epoch: 0,
    };
    await writer.put(y, nodes.slice(1, 2));
    await release(writer);
    await writer.leave();
    const choose = ['--choose-block', y.hash.slice(0, 16)];
    const repaired = await b.confirmed(['repair', 'apply', ...choose], ['repair', 'plan', ...choose]);
    expect([repaired.code, repaired.error, await identicalHead(b)]).toEqual([0, null, `${y.height} ${y.hash}`]);
    const plan = await b.seq(['repair', 'undo', '--dry-run']);
    await b.breakOff(['repair', 'undo', '--replace-committed', '--confirm', plan.data['digest'] as unknown as string]);
    const done = await b.confirmed(['repair', 'undo', '--replace-committed'], ['repair', 'undo', '--dry-run']);
    expect([done.code, done.error]).toEqual([0, null]);
    expect((await b.seq(['repair', 'verify'])).code).toBe(0);
    expect(await identicalHead(b)).toBe(`${x.height} ${x.hash}`);
  });

const hold: Scene = (row, signal) =>
  onServers(row, signal, 2, async (b) => {
    const args = ['hold', '--for', '5m', '--reason', 'broken off'];
    await b.breakOff(args);
    const done = await b.seq(args);
    expect([done.code, done.data]).toMatchObject([0, { hold: { nodes: 3 } }]);
  });

const resume: Scene = (row, signal) =>
  onServers(row, signal, 2, async (b) => {
    expect((await b.seq(['hold', '--for', '5m', '--reason', 'x'])).code).toBe(0);
    await b.breakOff(['resume']);
    const done = await b.seq(['resume']);
    expect([done.code, done.data]).toMatchObject([0, { hold: null }]);
    expect(await b.everywhere((redis) => redis.exists('seq:leader:hold'))).toEqual([0, 0, 0]);
  });

const heal: Scene = (row, signal) =>
  onServers(row, signal, 2, async (b, writer, nodes) => {
    await release(writer);
    await nodes[0]!.call({ script: 'raise_epoch', value: 9, highestSeen: 9, mayDepose: false }, 5000);
    const plan = await b.seq(['epoch', 'heal', '--dry-run']);
    await b.breakOff(['epoch', 'heal', '--confirm', plan.data['digest'] as unknown as string]);
    const done = await b.confirmed(['epoch', 'heal']);
    expect([done.code, done.error]).toEqual([0, null]);
    expect(await b.everywhere((redis) => redis.get('seq:epoch:token'))).toEqual(['9', '9', '9']);
  });

const init: Scene = (row, signal) =>
  onServers(row, signal, -1, async (b) => {
    await b.breakOff(['cluster', 'init']);
    const done = await b.seq(['cluster', 'init']);
    expect([done.code, done.error]).toEqual([0, null]);
    expect(new Set(await b.everywhere((redis) => redis.hget('seq:node:admission', 'cluster'))).size).toBe(1);
    expect((await b.seq(['status'])).data).toMatchObject({
      reasonCode: 'NO_LEADER',
      nodes: ['r1', 'r2', 'r3'].map((id) => ({ id, admitted: true })),
    });
  });

/** A power cut: no server is admitted any more, and one of them lost its data, too. */
const recover: Scene = (row, signal) =>
  onServers(
    row,
    signal,
    8,
    async (b, writer, _, servers) => {
      const head = writer.blocks.at(-1)!;
      await release(writer);
      for (const [at, server] of servers.entries()) await server.restart({ wipe: at === 2 });
      const sure = ['--accept-possible-loss'];
      const plan = await b.seq(['cluster', 'recover', '--dry-run']);
      await b.breakOff(['cluster', 'recover', ...sure, '--confirm', plan.data['digest'] as unknown as string]);
      const done = await b.confirmed(['cluster', 'recover', ...sure]);
      expect([done.code, done.error]).toEqual([0, null]);
      expect(await identicalHead(b)).toBe(`${head.height} ${head.hash}`);
      await b.locksEnd();
      expect((await b.seq(['status'])).data).toMatchObject({
        reasonCode: 'NO_LEADER',
        nodes: ['r1', 'r2', 'r3'].map((id) => ({ id, admitted: true })),
      });
    },
    'always',
  );

const bench: Scene = (row, signal) =>
  onServers(row, signal, 2, async (b) => {
    const args = ['bench', '--duration', '1s', '--yes'];
    await b.breakOff(args);
    // An interrupted bench removes its keys. The keys of a killed one have an expiry, at the latest after the next run.
    const done = await b.seq(args);
    expect([done.code, done.error]).toEqual([0, null]);
    const lives = (
      await b.everywhere(async (redis) => Promise.all((await redis.keys('seq:bench-*')).map((key) => redis.pttl(key))))
    ).flat();
    for (const life of lives) expect(life).toBeGreaterThan(0);
  });

async function onLab(
  row: Row,
  signal: 'SIGKILL' | 'SIGINT',
  sequencers: number,
  body: (b: Breaking, lab: Lab, leader: string) => Promise<void>,
): Promise<void> {
  await withLab({ sequencers, ttlMs: 5000, blockTimeMs: 200 }, async (lab) => {
    const leader = await lab.waitForLeader();
    for (const { name } of lab.sequencers) await lab.waitForHeight(name, 6);
    await body(
      new Breaking(
        row,
        signal,
        lab.nodes.map(({ name, port }) => ({ id: name, port })),
      ),
      lab,
      leader,
    );
  });
}

const otherOf = (lab: Lab, leader: string): string =>
  lab.sequencers.map(({ name }) => name).find((name) => name !== leader)!;

const stepdown: Scene = (row, signal) =>
  onLab(row, signal, 2, async (b, lab, leader) => {
    const to = otherOf(lab, leader);
    await lab.waitFor(`${to} to be ready`, 120_000, async () =>
      (await b.seq(['stepdown', '--dry-run', '--to', to])).code === 0 ? true : undefined,
    );
    await b.breakOff(['stepdown', '--to', to, '--yes']);
    // One node has the request. Either the leader carries it out, or it expires. In both cases the same command ends
    // with the other sequencer leading.
    const done = await b.again(async () => {
      const answer = await b.seq(['stepdown', '--to', to, '--yes']);
      return answer.code === 76 && (await lab.leader()) !== to ? { ...answer, code: 75 } : answer;
    });
    expect([0, 76], JSON.stringify(done)).toContain(done.code);
    expect(await lab.waitForLeader()).toBe(to);
    await lab.waitForHeight(to, Number((await lab.status(to))?.['height']) + 2);
    expect((await b.seq(['stream', 'verify', '--exit-code'])).code).toBe(0);
  });

const revoke: Scene = (row, signal) =>
  onLab(row, signal, 2, async (b, lab, leader) => {
    const to = otherOf(lab, leader);
    await lab.waitFor(`${to} to be ready`, 120_000, async () =>
      (await b.seq(['stepdown', '--dry-run', '--to', to])).code === 0 ? true : undefined,
    );
    await lab.pause(leader);
    await b.breakOff(['stepdown', '--revoke', '--yes']);
    // The other sequencer leads, whether the command runs again before or after the lease expires.
    const done = await b.seq(['stepdown', '--revoke', '--yes']);
    expect([0, 76], JSON.stringify(done)).toContain(done.code);
    expect(await lab.waitForLeader(20_000, [leader])).toBe(to);
    lab.unpause(leader);
    await lab.waitForHeight(leader, Number((await lab.status(to))?.['height']) + 2);
    await untilIdentical(lab);
  });

const admitDamaged: Scene = (row, signal) =>
  onLab(row, signal, 1, async (b, lab) => {
    const cluster = await clusterOf(lab);
    const before = await probe(lab, 'r2', cluster);
    const args = ['node', 'admit', '--on', 'r2', '--damaged', '--yes', '--timeout', '30s'];
    await b.breakOff(args);
    const done = await b.again(() => b.seq(args));
    expect([done.code, done.error]).toEqual([0, null]);
    expect((await probe(lab, 'r2', cluster)).incarnation).not.toBe(before.incarnation);
    await untilIdentical(lab);
  });

const replace: Scene = (row, signal) =>
  onLab(row, signal, 1, async (b, lab, leader) => {
    const spare = await startRedis();
    try {
      const args = ['node', 'replace', '--on', 'r3', '--to', spare.url];
      await b.breakOff(args, [...args, '--dry-run']);
      const done = await b.confirmed(args);
      expect([done.code, done.error]).toEqual([0, null]);
      const now = new Breaking(
        row,
        signal,
        b.nodes.map((node) => (node.id === 'r3' ? { id: 'r3', port: spare.port } : node)),
      );
      expect((await now.seq(['wait', '--for', 'healthy', '--timeout', '30s'])).code).toBe(0);
      expect(await lab.leader()).toBe(leader);
    } finally {
      await spare.stop();
    }
  });

const resize =
  (broken: 'add' | 'remove'): Scene =>
  (row, signal) =>
    onLab(row, signal, 1, async (b, lab, leader) => {
      const spare = await startRedis();
      try {
        const add = ['cluster', 'resize', '--add', `r4=${spare.url}`, '--yes', '--timeout', '30s'];
        const remove = ['cluster', 'resize', '--remove', 'r4', '--yes', '--timeout', '30s'];
        if (broken === 'add') await b.breakOff(add);
        const added = await b.again(() => b.seq(add));
        expect([added.code, added.error]).toEqual([0, null]);
        // This list also names r4. Before the nodes have noted the change, only such a list knows its address.
        const all = new Breaking(row, signal, [...b.nodes, { id: 'r4', port: spare.port }]);
        if (broken === 'remove') await all.breakOff(remove);
        if (row.before) {
          const unknown = await b.again(() => b.seq(remove));
          expect([unknown.code, unknown.data], JSON.stringify(unknown)).toMatchObject([
            0,
            { alreadyDone: true, retired: 'unknown' },
          ]);
          expect(await all.raw(3, (redis) => redis.hget('seq:node:admission', 'cluster'))).not.toMatch(/^retired:/);
        }
        const done = await b.again(() => all.seq(remove));
        expect([done.code, done.error]).toEqual([0, null]);
        expect(done.data).toMatchObject({ retired: 'retired' });
        expect(await all.raw(3, (redis) => redis.hget('seq:node:admission', 'cluster'))).toMatch(/^retired:/);
        expect((await b.seq(['wait', '--for', 'healthy', '--timeout', '30s'])).code).toBe(0);
        expect(await lab.leader()).toBe(leader);
        await untilIdentical(lab);
      } finally {
        await spare.stop();
      }
    });

/** Another operator, who knows nothing of the removal that was broken off, removes another node. Then it is taken up. */
const removeAnother: Scene = (row, signal) =>
  onLab(row, signal, 1, async (b, lab, leader) => {
    const spares = await Promise.all([startRedis(), startRedis()]);
    try {
      const resize = (...what: string[]) => ['cluster', 'resize', ...what, '--yes', '--timeout', '30s'];
      for (const [at, { url }] of spares.entries())
        expect((await b.again(() => b.seq(resize('--add', `r${at + 4}=${url}`)))).error).toBeNull();
      const more = spares.map(({ port }, at) => ({ id: `r${at + 4}`, port }));
      const all = new Breaking(row, signal, [...b.nodes, ...more]);
      await all.breakOff(resize('--remove', 'r5'));
      for (const id of ['r4', 'r5']) {
        const done = await b.again(() => all.seq(resize('--remove', id)));
        expect([id, done.code, done.error]).toEqual([id, 0, null]);
      }
      expect((await b.seq(['wait', '--for', 'healthy', '--timeout', '30s'])).code).toBe(0);
      expect(await lab.leader()).toBe(leader);
      const members = await b.everywhere((redis) => redis.hget('seq:node:admission', 'config'));
      for (const text of members) expect(text).toMatch(/\| r1=\S+ r2=\S+ r3=\S+$/);
      await untilIdentical(lab);
    } finally {
      await Promise.all(spares.map((spare) => spare.stop()));
    }
  });

/** An entry is changed by hand. The active leader never reads this entry again. */
const repairByLeader: Scene = (row, signal) =>
  onLab(row, signal, 1, async (b, lab, leader) => {
    await b.raw(1, (redis) =>
      redis.eval(
        `
    local all = redis.call('XRANGE', KEYS[1], '-', '+')
    redis.call('DEL', KEYS[1])
    for at, entry in ipairs(all) do
      if at == 3 then for i = 1, #entry[2], 2 do if entry[2][i] == 'timestamp' then entry[2][i + 1] = string.format('%d', tonumber(entry[2][i + 1]) + 1) end end end
      redis.call('XADD', KEYS[1], entry[1], unpack(entry[2]))
    end`,
        1,
        'seq:block:stream',
      ),
    );
    const plan = await b.seq(['repair', 'plan']);
    expect(plan.data).toMatchObject({ by: 'leader', steps: [{ node: 'r2', kind: 'replace' }] });
    await b.breakOff(['repair', 'apply', '--confirm', plan.data['digest'] as unknown as string, '--timeout', '20s']);
    const done = await b.again(async () => {
      const answer = await b.confirmed(['repair', 'apply', '--timeout', '20s'], ['repair', 'plan']);
      return answer.code === 76 ? { ...answer, code: 75 } : answer; // fixed between plan and apply
    });
    expect([done.code, done.error]).toEqual([0, null]);
    await lab.waitFor('nothing left to repair', 120_000, async () =>
      (await b.seq(['repair', 'verify'])).code === 0 ? true : undefined,
    );
    await untilIdentical(lab);
    expect(await lab.leader()).toBe(leader);
  });

/** A call that runs on one node only. `before`: it runs on no node. */
type Moment = ScriptName | `before ${ScriptName}`;

const CALLS: readonly [verb: string, scene: Scene, at: readonly Moment[], short?: ScriptName][] = [
  ['repair apply', repairAlone, ['promote_leader', 'claim', 'write_block', 'release_lock', 'audit'], 'write_block'],
  ['repair apply, by the leader', repairByLeader, ['request_leader']],
  ['repair undo', undo, ['promote_leader', 'claim', 'write_block', 'release_lock', 'audit'], 'write_block'],
  ['hold', hold, ['set_hold', 'audit'], 'set_hold'],
  ['resume', resume, ['clear_hold', 'audit']],
  ['epoch heal', heal, ['raise_epoch', 'audit'], 'raise_epoch'],
  ['cluster init', init, ['bootstrap_prepare', 'bootstrap_commit'], 'bootstrap_commit'],
  ['cluster recover', recover, ['recover_node', 'backfill', 'admit', 'release_lock', 'audit'], 'recover_node'],
  [
    'bench',
    bench,
    ['bootstrap_prepare', 'bootstrap_commit', 'promote_leader', 'claim', 'write_block'],
    'bootstrap_prepare',
  ],
  ['stepdown', stepdown, ['request_leader'], 'request_leader'],
  ['stepdown --revoke', revoke, ['release_lock']],
  ['node admit --damaged', admitDamaged, ['request_leader']],
  ['node replace', replace, ['retire_node', 'request_leader']],
  ['cluster resize --add', resize('add'), ['request_leader']],
  ['cluster resize --remove', resize('remove'), ['request_leader', 'before retire_node', 'retire_node', 'audit']],
  [
    'cluster resize --remove, another one follows,',
    removeAnother,
    ['request_leader', 'before retire_node', 'retire_node', 'audit'],
  ],
];

export interface BrokenRow {
  name: string;
  short: boolean;
  run: () => Promise<void>;
}

export const BROKEN_OFF: readonly BrokenRow[] = CALLS.flatMap(([verb, scene, calls, short]) =>
  calls.flatMap((moment) =>
    (['SIGKILL', 'SIGINT'] as const).map((signal) => {
      const before = moment.startsWith('before ');
      const at = moment.replace('before ', '') as ScriptName;
      return {
        name: `${verb} ${before ? '' : 'at '}${moment}, ${signal}`,
        short: moment === short && signal === 'SIGKILL',
        run: () => scene({ at, before, ...(verb === 'bench' && at === 'write_block' ? { nth: 10 } : {}) }, signal),
      };
    }),
  ),
);
