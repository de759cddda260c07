// Every command of the program under exactly the rule that `seq doctor --acl` prints, on real servers that know
// nobody else: none is denied anything, and whatever right is missing is named with user and command, before anything
// is done (docs/PROTOCOL.md section 8).
import { spawn, type ChildProcess } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startRedis, type RedisServer } from '../support/redis-server.js';
import { bin, environment, newHome, runSeq, type Ran } from '../support/spawn-seq.js';

const home = newHome();
const env = { SEQ_PASSWORD: 'secret', SEQ_USERNAME: 'seq' };
const servers: RedisServer[] = [];
const admins: Redis[] = [];
const children: ChildProcess[] = [];
process.on('exit', () => {
  for (const child of children) child.kill('SIGKILL');
});

/** The words of `ACL SETUSER …` as the program prints them, with a password in the place of the placeholder. */
let rule: string[] = [];
let flags: string[] = [];

async function seq(...args: string[]): Promise<Ran> {
  return runSeq(home, [...args, '-c', 'walled', '--node-timeout', '2s'], { env, limitMs: 120_000 });
}

/** Everything that was denied since the log was last read, by user and object. */
async function denials(): Promise<string[]> {
  const found = new Set<string>();
  for (const admin of admins) {
    for (const entry of (await admin.call('ACL', 'LOG')) as string[][]) {
      const of = (name: string): string => String(entry[entry.indexOf(name) + 1]);
      found.add(`${of('username')} ${of('reason')} ${of('object')}`);
    }
    await admin.call('ACL', 'LOG', 'RESET');
  }
  // CONFIG is asked for but not needed. Without it the answer has less to say.
  return [...found].filter((one) => one !== 'seq command config|get');
}

beforeAll(async () => {
  servers.push(...(await Promise.all([1, 2, 3].map(() => startRedis()))));
  flags = servers.flatMap(({ url }, at) => ['--node', `r${at + 1}=${url}`]);
  const printed = await runSeq(home, ['doctor', '--acl', ...flags]);
  rule = printed.stdout
    .split('\n')
    .find((line) => line.includes('ACL SETUSER'))!
    .replace('PASSWORD', 'secret')
    .trim()
    .split(/\s+/)
    .slice(1);
  expect(rule.slice(0, 3)).toEqual(['SETUSER', 'seq', 'on']);
  for (const { port } of servers) {
    const admin = new Redis(port, '127.0.0.1', { protocol: 2 });
    admin.on('error', () => undefined);
    admins.push(admin);
    await admin.call('ACL', 'SETUSER', 'keeper', 'on', '>keeper', '~*', '&*', '+@all');
    await admin.call('AUTH', 'keeper', 'keeper');
    await admin.call('ACL', ...rule);
    await admin.call('ACL', 'SETUSER', 'default', 'off');
  }
  expect((await runSeq(home, ['context', 'set', 'walled', ...flags])).code).toBe(0);
  expect(await seq('cluster', 'init')).toMatchObject({ code: 0 });
  expect(await denials()).toEqual([]);
}, 300_000);
afterAll(async () => {
  for (const child of children) child.kill('SIGKILL');
  for (const admin of admins) admin.disconnect();
  await Promise.all(servers.map((server) => server.stop()));
});

/** In this order; what it may end with, when not with 0. */
const COMMANDS: [args: string[], exits?: number[]][] = [
  [['status']],
  [['node', 'list']],
  [['watch', '--once']],
  [['epoch', 'show']],
  [['history']],
  [['doctor']],
  [
    ['check', 'all'],
    [0, 1],
  ],
  [['stream', 'inspect']],
  [['stream', 'verify', '--exit-code']],
  [['stream', 'diff', '--on', 'r1']],
  [['stream', 'orphans']],
  [['stream', 'tail', '--limit', '2']],
  [['stream', 'export', '--file', 'one.bundle']],
  [['submit', 'items.txt']],
  [['hold', '--for', '1m', '--reason', 'a test']],
  [['resume']],
  [['epoch', 'heal', '--dry-run']],
  [['repair', 'plan']],
  [
    ['repair', 'verify'],
    [0, 1],
  ],
  [['stepdown', '--yes', '--timeout', '30s']],
  [['cluster', 'init'], [76]],
  [['cluster', 'recover']],
  [['node', 'admit', '--on', 'r1', '--timeout', '30s']],
  [['wait', '--for', 'healthy', '--timeout', '30s']],
];

describe('acl: exactly the rule that doctor prints', () => {
  it(
    'acl: two sequencers and every command under it → nothing is denied, a node that was emptied is ' +
      'admitted again',
    async () => {
      for (const id of ['a', 'b']) {
        children.push(
          spawn(
            process.execPath,
            [
              bin,
              'run',
              ...flags,
              '--id',
              id,
              '--store',
              join(home, id),
              '--http',
              '127.0.0.1:0',
              '--node-timeout',
              '500ms',
            ],
            { env: environment(home, env), cwd: home, stdio: 'ignore' },
          ),
        );
      }
      writeFileSync(join(home, 'items.txt'), 'one\ntwo\n');
      expect((await seq('wait', '--for', 'healthy', '--timeout', '40s')).code).toBe(0);
      const wrong: string[] = [];
      for (const [args, exits = [0]] of COMMANDS) {
        const ran = await seq(...args);
        if (!exits.includes(ran.code ?? -1)) wrong.push(`${args.join(' ')}: ${ran.code} ${ran.stderr.slice(0, 300)}`);
        wrong.push(...(await denials()).map((one) => `${args.join(' ')}: ${one}`));
      }
      expect(wrong).toEqual([]);
      await admins[2]!.flushall();
      const admitted = await seq('node', 'admit', '--on', 'r3', '--timeout', '40s');
      expect(admitted.code, admitted.stderr).toBe(0);
      expect(await denials()).toEqual([]);
    },
    300_000,
  );

  it.each([
    ['a command', ['-xrevrange'], /xrevrange/],
    ['a channel', ['resetchannels'], /publish|subscribe/],
    ['the keys', ['resetkeys', '~elsewhere:*'], /hmget|get/],
  ])(
    'acl: %s is missing → doctor names user and command; seq run ends with 77 and says it',
    async (_, more, named) => {
      for (const admin of admins) await admin.call('ACL', 'SETUSER', 'seq', ...more);
      try {
        const checked = await seq('doctor', '--exit-code');
        expect(checked.code).toBe(1);
        expect(checked.stdout).toMatch(named);
        const ran = await runSeq(home, ['run', ...flags, '--id', 'late', '--store', join(home, 'late')], { env });
        expect(ran.code, ran.stdout + ran.stderr).toBe(77);
        expect(ran.stdout + ran.stderr).toMatch(named);
      } finally {
        for (const admin of admins) await admin.call('ACL', ...rule);
      }
    },
    300_000,
  );
});
