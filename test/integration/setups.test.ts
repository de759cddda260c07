// Set-ups that operators really have, on real servers: a user with exactly the printed rights, every missing right
// named, a renamed command, a unix socket, another database, TLS with a client certificate. docs/PROTOCOL.md sections
// 8 and 11.
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { genesisHash, makeBlock } from '../../src/core/chain/block.js';
import type { NodeCall } from '../../src/core/protocol/types.js';
import { hintChannelOf, keysOf } from '../../src/core/redis/keys.js';
import { RedisNode, type RedisNodeOptions } from '../../src/core/redis/node.js';
import { aclRule, rightsOf } from '../../src/core/redis/rights.js';
import { luaDirectory } from '../../src/core/redis/scripts.js';
import { makeCertificates } from '../support/certificates.js';
import { onFreePort, startRedis, type RedisServer } from '../support/redis-server.js';
import { newHome, runSeq } from '../support/spawn-seq.js';

const IDENTITY = { cluster: 'c1.1', lane: '' };
const GENESIS = genesisHash('c1', '');
const OWNER = 'seq-a/00000000000000aa';
const keys = keysOf('');
const channel = hintChannelOf('');
const block = makeBlock({ height: 1, parent: GENESIS, timestamp: 1000, data: Buffer.from('one') });
const two = makeBlock({ height: 2, parent: block.hash, timestamp: 2000, data: Buffer.from('two') });
const other = makeBlock({ height: 2, parent: block.hash, timestamp: 2000, data: Buffer.from('other') });
const presence = {
  id: 'seq-a',
  role: 'leader',
  height: 1,
  version: '1',
  url: '',
  pid: 1,
  configDigest: 'd',
  extra: {},
} as const;
const request = { id: 'q', kind: 'stepdown', to: '', plan: '', by: 'me', reason: '', epoch: 2 } as const;

/** The whole life of a node: every script is accepted once. */
const LIFE: NodeCall[] = [
  { script: 'bootstrap_prepare', nonce: 'n0' },
  { script: 'bootstrap_commit', nonce: 'n0' },
  { script: 'inspect' },
  { script: 'promote_leader', owner: OWNER, expectedEpoch: 0, ttlMs: 60_000 },
  { script: 'claim', owner: OWNER, epoch: 1 },
  ...[block, two].map((b): NodeCall => ({
    script: 'write_block',
    owner: OWNER,
    epoch: 1,
    ttlMs: 60_000,
    mode: 'append',
    block: b,
    entryEpoch: 1,
  })),
  { script: 'raise_epoch', value: 2, ofOwner: OWNER, highestSeen: 1, mayDepose: false },
  { script: 'write_block', owner: OWNER, epoch: 2, ttlMs: 60_000, mode: 'repair', block: other, entryEpoch: 2 },
  { script: 'set_hold', by: 'me', reason: 'r', ttlMs: 1000 },
  { script: 'clear_hold' },
  { script: 'request_leader', request, ttlMs: 1000 },
  { script: 'clear_request', id: 'q' },
  { script: 'announce', presence, ttlMs: 1000 },
  { script: 'audit', record: { a: 'b' }, maxRecords: 5 },
  { script: 'rebase', owner: OWNER, epoch: 2, floor: 5, floorHash: 'a'.repeat(64), nonce: 'rb', keepMs: 1000 },
  {
    script: 'begin_admission',
    owner: OWNER,
    epoch: 2,
    nonce: 'n1',
    floor: 0,
    floorHash: GENESIS,
    keepMs: 1000,
    replaces: 'n0',
  },
  { script: 'backfill', owner: OWNER, epoch: 2, nonce: 'n1', block, entryEpoch: 1 },
  { script: 'admit', owner: OWNER, epoch: 2, nonce: 'n1', ttlMs: 60_000, head: 1, headHash: block.hash },
  { script: 'release_lock', owner: OWNER, handover: { to: 'seq-b', ttlMs: 1000 } },
];

async function live(options: Omit<RedisNodeOptions, 'id' | 'identity'>): Promise<string[]> {
  const node = new RedisNode({ id: 'r1', identity: IDENTITY, ...options });
  try {
    const bad: string[] = [];
    for (const call of LIFE) {
      const reply = await node.call(call, 3000);
      if (reply.outcome !== 'accepted') bad.push(`${call.script}: ${JSON.stringify(reply)}`);
    }
    const read = await node.read({ from: 0, to: 10, limit: 10, data: true }, 3000);
    if (read.outcome !== 'accepted' || read.value.entries.length !== 1) bad.push(`read: ${JSON.stringify(read)}`);
    const tail = await node.tail('', 100, 10);
    if (tail.outcome !== 'accepted') bad.push(`tail: ${JSON.stringify(tail)}`);
    return bad;
  } finally {
    await node.close();
  }
}

describe('setups: an ACL user', () => {
  let server: RedisServer;
  let admin: Redis;
  const user = { username: 'seq', password: 'secret' };
  const grant = (...more: string[]) =>
    admin.call('ACL', ...aclRule('seq', keys, channel, 0).replace('PASSWORD', 'secret').split(' ').slice(1), ...more);
  beforeAll(async () => {
    server = await startRedis();
    admin = new Redis(server.port, '127.0.0.1');
    admin.on('error', () => undefined);
  });
  afterAll(async () => {
    admin.disconnect();
    await server.stop();
  });

  it(
    'setups: exactly the rule of doctor --acl → every script, reads, tail and hints work; the server ' +
      'logs no denial',
    async () => {
      await grant();
      await admin.call('ACL', 'LOG', 'RESET');
      expect(await live({ url: server.url, ...user })).toEqual([]);
      const node = new RedisNode({ id: 'r1', url: server.url, identity: IDENTITY, ...user });
      const heard = new Promise((resolve) => {
        node.onHint(resolve);
      });
      const told = setInterval(() => void admin.publish(channel, 'released'), 20);
      expect(await heard).toBe('released');
      clearInterval(told);
      expect(await node.checkup(3000)).toMatchObject({
        outcome: 'accepted',
        value: { user: 'seq', denied: [], scriptsOnly: [] },
      });
      await node.close();
      // CONFIG is asked for and not needed: that denial is the only one.
      const log = (await admin.call('ACL', 'LOG')) as string[][];
      expect(log.map((entry) => entry[entry.indexOf('object') + 1]).filter((what) => what !== 'config|get')).toEqual(
        [],
      );
    },
  );

  it('setups: any one right missing → doctor names the command', async () => {
    const commands = [...new Set(rightsOf(keys, channel).map(([command]) => command))].filter(
      (command) => !['ping', 'info', 'select'].includes(command) && !command.startsWith('acl'),
    );
    for (const command of commands) {
      await grant(`-${command}`);
      const node = new RedisNode({ id: 'r1', url: server.url, identity: IDENTITY, ...user });
      const reply = await node.checkup(3000);
      await node.close();
      expect(reply.outcome === 'accepted' ? reply.value.denied?.join('\n') : reply, command).toContain(`${command}:`);
    }
    await grant('-multi');
    const slower = new RedisNode({ id: 'r1', url: server.url, identity: IDENTITY, ...user });
    expect(await slower.checkup(3000)).toMatchObject({
      value: { denied: [], scriptsOnly: [expect.stringContaining('multi:')] },
    });
    await slower.close();
    await grant('resetkeys', '~other:*');
    const node = new RedisNode({ id: 'r1', url: server.url, identity: IDENTITY, ...user });
    expect(await node.checkup(3000)).toMatchObject({
      value: { denied: expect.arrayContaining([expect.stringContaining('get: ')]) },
    });
    await node.close();
  });

  it('setups: the list of rights names every command of every script', () => {
    const granted = new Set(rightsOf(keys, channel).map(([command]) => command));
    const used = new Set<string>();
    for (const file of readdirSync(luaDirectory()).filter((name) => name.endsWith('.lua'))) {
      const code = readFileSync(join(luaDirectory(), file), 'utf8')
        .split('\n')
        .filter((line) => !line.startsWith('--'))
        .join('\n');
      for (const [, command] of code.matchAll(/(?:redis\.p?call|must)\('([A-Z]+)'/g)) used.add(command!.toLowerCase());
      for (const [, command] of code.matchAll(/look\(\w+, '([A-Z]+)'/g)) used.add(command!.toLowerCase());
    }
    expect([...used].filter((command) => !granted.has(command))).toEqual([]);
  });
});

describe('setups: ways to a server', () => {
  it('setups: a unix socket, and a database other than 0 → a whole life there, nothing in database 0', async () => {
    const dir = mkdtempSync(join(tmpdir(), 'seq-sock-'));
    const server = await startRedis({ args: ['--unixsocket', join(dir, 's')] });
    const admin = new Redis(server.port, '127.0.0.1');
    try {
      expect(await live({ url: `unix://${join(dir, 's')}` })).toEqual([]);
      await admin.flushall();
      expect(await live({ url: `${server.url}/5` })).toEqual([]);
      expect(await admin.dbsize()).toBe(0);
    } finally {
      admin.disconnect();
      await server.stop();
      rmSync(dir, { recursive: true, force: true });
    }
  });

  it('setups: rename-command takes one of ours away → refused whole, nothing half done, doctor names it', async () => {
    const server = await startRedis({ args: ['--rename-command', 'XADD', ''] });
    const node = new RedisNode({ id: 'r1', url: server.url, identity: IDENTITY });
    try {
      for (const call of LIFE.slice(0, 5)) expect((await node.call(call, 3000)).outcome).toBe('accepted');
      expect((await node.call(LIFE[5]!, 3000)).outcome).not.toBe('accepted');
      expect(await node.call({ script: 'inspect' }, 3000)).toMatchObject({
        value: { admission: 'admitted', head: 0, length: 0 },
      });
      expect(await node.checkup(3000)).toMatchObject({
        value: { denied: expect.arrayContaining([expect.stringMatching(/^xadd: the server does not know it/)]) },
      });
    } finally {
      await node.close();
      await server.stop();
    }
  });

  it(
    'setups: TLS with a CA and a client certificate → a whole life; without the certificate or the ' +
      'CA → no answer, said at which step',
    async () => {
      const dir = makeCertificates(['server', 'client']);
      const file = (name: string) => join(dir, name);
      const { server, port } = await onFreePort(async (free) => ({
        port: free,
        server: await startRedis({
          args: [
            '--tls-port',
            String(free),
            '--tls-cert-file',
            file('server.crt'),
            '--tls-key-file',
            file('server.key'),
            '--tls-ca-cert-file',
            file('ca.crt'),
            '--tls-auth-clients',
            'yes',
          ],
        }),
      }));
      const pem = (name: string) => readFileSync(file(name), 'utf8');
      const url = `rediss://127.0.0.1:${port}`;
      try {
        expect(
          await live({ url, tls: { ca: pem('ca.crt'), cert: pem('client.crt'), key: pem('client.key') } }),
        ).toEqual([]);
        for (const tls of [{ ca: pem('ca.crt') }, { cert: pem('client.crt'), key: pem('client.key') }]) {
          const node = new RedisNode({ id: 'r1', url, identity: IDENTITY, tls });
          expect(await node.call({ script: 'inspect' }, 2000)).toMatchObject({
            outcome: 'unknown',
            step: expect.stringMatching(/connect|handshake/),
          });
          await node.close();
        }
      } finally {
        await server.stop();
        rmSync(dir, { recursive: true, force: true });
      }
    },
    300_000,
  );
});

describe('setups: seq run', () => {
  it(
    'setups: a user without one right → seq run ends with 77 before anything is written, and names ' +
      'user and command',
    async () => {
      const server = await startRedis();
      const admin = new Redis(server.port, '127.0.0.1');
      const home = newHome();
      try {
        expect((await runSeq(home, ['cluster', 'init', '--node', `r1=${server.url}`])).code).toBe(0);
        await admin.call(
          'ACL',
          ...aclRule('seq', keys, channel, 0).replace('PASSWORD', 'secret').split(' ').slice(1),
          '-xdel',
        );
        const ran = await runSeq(home, ['run', '--id', 'a', '--node', `r1=${server.url}`], {
          env: { SEQ_USERNAME: 'seq', SEQ_PASSWORD: 'secret' },
        });
        expect(ran.code, ran.stderr).toBe(77);
        expect(ran.stderr + ran.stdout).toMatch(/user seq may not run xdel/);
        expect(await admin.xlen(keys.stream)).toBe(0);
        expect(await admin.get(keys.epoch)).toBe('0');
      } finally {
        admin.disconnect();
        await server.stop();
      }
    },
    300_000,
  );
});
