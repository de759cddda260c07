// A right that the Redis user lacks is named by every command that meets it, with the command that gives it. That
// command is then run, and nothing is missing any more (docs/OPERATING.md, node addresses).
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { RedisNode } from '../../src/core/redis/node.js';
import { keysOf } from '../../src/core/redis/keys.js';
import { rightsOf } from '../../src/core/redis/rights.js';
import { startRedis, type RedisServer } from '../support/redis-server.js';
import { newHome, runSeq, type Ran } from '../support/spawn-seq.js';

const IDENTITY = { cluster: '', lane: '' };
const home = newHome();
const env = { SEQ_PASSWORD: 'secret', SEQ_USERNAME: 'lim' };
let server: RedisServer;
let admin: Redis;

const seq = (...args: string[]): Promise<Ran> =>
  runSeq(home, [...args, '--node', `r1=${server.url}`, '--node-timeout', '500ms'], { env });

/** Everything but these. */
async function lack(...words: string[]): Promise<void> {
  await admin.call('ACL', 'SETUSER', 'lim', 'reset', 'on', '>secret', '~*', '&*', '+@all', ...words);
}

beforeAll(async () => {
  server = await startRedis();
  admin = new Redis(server.port, '127.0.0.1', { protocol: 2 });
  await lack();
  expect((await seq('cluster', 'init')).code).toBe(0);
}, 120_000);
afterAll(async () => {
  admin.disconnect();
  await server.stop();
});

/** Without these two nobody can say what else is missing. */
const TELLERS = new Set(['acl|whoami', 'acl|dryrun']);
const RIGHTS = [...new Set(rightsOf(keysOf(''), 'seq:hints').map(([command]) => command))];

describe('rights: what is missing is named', () => {
  test('each right alone: the node names it, in the words of ACL SETUSER', async () => {
    const wrong: string[] = [];
    for (const right of RIGHTS.filter((one) => !TELLERS.has(one))) {
      await lack(`-${right}`);
      const node = new RedisNode({
        id: 'r1',
        url: server.url,
        identity: IDENTITY,
        username: 'lim',
        password: 'secret',
      });
      const reply = await node.call({ script: 'inspect' }, 5000);
      const checkup = await node.checkup(5000);
      await node.close();
      const given = `+${right}`;
      const grant = right.includes('|') ? `ACL SETUSER lim '${given}'` : `ACL SETUSER lim ${given}`;
      if (reply.outcome === 'refused' && (reply.detail.grant !== grant || !reply.detail.message?.includes(given)))
        wrong.push(`${right}: inspect says ${JSON.stringify(reply)}`);
      // Without ping there is no connection, and the denial itself names it.
      const said = checkup.outcome === 'accepted' ? checkup.value.grant : reply.outcome;
      if (said !== grant && !(right === 'ping' && said === 'refused')) wrong.push(`${right}: the checkup says ${said}`);
    }
    expect(wrong).toEqual([]);
  }, 120_000);

  test.each([
    ['in a script', ['-info'], '+info', ''],
    ['at the handshake', ['-ping'], '+ping', ''],
    ['the keys', ['resetkeys', '~elsewhere:*'], '~seq:*', ''],
    ['and who could name it', ['-info', '-acl|dryrun'], 'a right that the server does not name', '+info'],
  ])(
    'rights: %s → status, doctor and run name it, and the command of next gives it',
    async (_, words, named, given) => {
      await lack(...words);
      const node = new RedisNode({
        id: 'r1',
        url: server.url,
        identity: IDENTITY,
        username: 'lim',
        password: 'secret',
      });
      const reply = await node.call({ script: 'inspect' }, 5000);
      await node.close();
      const grant = reply.outcome === 'refused' ? (reply.detail.grant ?? '') : '';
      const next = `redis-cli -u ${server.url} --user ADMIN --askpass ${grant}`;
      expect(grant).toContain(given || named);
      const [status, doctor, run] = await Promise.all([
        seq('status'),
        seq('doctor'),
        seq('run', '--id', 'a', '--store', join(home, 'a'), '--http', '127.0.0.1:0'),
      ]);
      for (const [ran, code] of [
        [status, 77],
        [doctor, 0],
        [run, 77],
      ] as const) {
        const said = ran.stdout + ran.stderr;
        expect([ran.code, said.includes(next)], `${said}\n${next}`).toEqual([code, true]);
        expect(said).not.toMatch(/executing the script|@user_script|\bERR\b/);
      }
      expect(status.stdout).toContain(named);
      // The command as the operator runs it. The admin of this server is the default user, who needs no password.
      const { stdout } = await promisify(execFile)('/bin/sh', ['-c', next.replace(' --user ADMIN --askpass', '')]);
      expect(stdout.trim()).toBe('OK');
      expect((await seq('status')).code).toBe(0);
    },
    120_000,
  );
});
