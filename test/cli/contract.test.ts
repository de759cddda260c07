// What holds for every command alike: formats, exit codes, purity of stdout, pipes, signals, limits. Held on the
// commands that need no cluster, and on one that asks a server that never answers.
import { spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { schemaProblems } from '../support/schemas.js';
import { STANDSTILL_MS } from '../support/patience.js';
import { bin, environment, newHome, runSeq } from '../support/spawn-seq.js';

const home = newHome();
let silent: Server;
let silentUrl = '';

beforeAll(async () => {
  silent = createServer((socket) => {
    socket.on('error', () => undefined);
  });
  await new Promise<void>((resolve) => {
    silent.listen(0, '127.0.0.1', resolve);
  });
  silentUrl = `redis://127.0.0.1:${(silent.address() as { port: number }).port}`;
  await runSeq(home, [
    'context',
    'set',
    'a',
    '--node',
    'r1=redis://127.0.0.1:7001',
    '--node',
    'r2=redis://127.0.0.1:7002',
    '--node',
    'r3=redis://127.0.0.1:7003',
  ]);
});
afterAll(() => {
  silent.close();
});

const KINDS: [args: string[], kind: string][] = [
  [['context', 'ls'], 'context.ls'],
  [['config', 'show'], 'config.show'],
  [['config', 'show', '--origin'], 'config.show'],
  [['config', 'validate'], 'config.validate'],
  [['explain', 'FENCING_ERROR'], 'explain'],
  [['explain'], 'explain'],
  [['completion', 'bash'], 'completion'],
  [['completion', 'ids', 'contexts'], 'completion.ids'],
];

describe('formats', () => {
  // SEQ_NODES is no setting, and every command warns of it.
  test.each(['table', 'plain', 'csv', 'ndjson', 'json', 'yaml'])(
    'a warning is kept in every format: %s',
    async (format) => {
      const env = { SEQ_NODES: 'redis://127.0.0.1:1' };
      const { code, stdout, stderr } = await runSeq(home, ['context', 'ls', '-o', format], { env });
      const [kept, clean] = format === 'json' || format === 'yaml' ? [stdout, stderr] : [stderr, stdout];
      expect([code, kept.match(/SEQ_NODES/g)?.length, clean.includes('SEQ_NODES')]).toEqual([0, 1, false]);
      if (format === 'ndjson')
        expect(
          stdout
            .trim()
            .split('\n')
            .map((line) => JSON.parse(line)),
        ).toMatchObject([{ name: 'a' }]);
    },
  );

  test.each(KINDS)('json: seq %j → one document that fits its schema', async (args, kind) => {
    const { code, stdout, stderr } = await runSeq(home, [...args, '-o', 'json']);
    expect([code, stderr]).toEqual([0, '']);
    const document = JSON.parse(stdout) as { kind: string; ok: boolean };
    expect([document.kind, document.ok]).toEqual([kind, true]);
    expect(schemaProblems(document)).toEqual([]);
  });

  test.each(KINDS)('yaml: seq %j → the same document', async (args) => {
    const { stdout } = await runSeq(home, [...args, '-o', 'yaml']);
    expect(schemaProblems(parse(stdout))).toEqual([]);
  });

  test('plain: a pipe gets tabs, no colour, nothing cut; it is the default', async () => {
    const { stdout } = await runSeq(home, ['context', 'ls']);
    expect(stdout).toBe(
      'NAME\tCURRENT\tNODES\tLANE\tCLUSTER\tURLS\na\t*\t3\t\t\tredis://127.0.0.1:7001 ' +
        'redis://127.0.0.1:7002 redis://127.0.0.1:7003\n',
    );
  });

  test.each([
    [['-q'], 'a\t*\t3\t\t\tredis://127.0.0.1:7001 redis://127.0.0.1:7002 redis://127.0.0.1:7003\n'],
    [['--fields', 'name,nodes'], 'NAME\tNODES\na\t3\n'],
    [['-q', '--fields', 'name'], 'a\n'],
    [['-o', 'csv', '--fields', 'name,nodes'], 'name,nodes\na,3\n'],
    [['-o', 'table'], 'NAME  CURRENT  NODES  LANE  CLUSTER\na     *            3  -     -\n'],
  ])('text: context ls %j', async (args, expected) => {
    expect((await runSeq(home, ['context', 'ls', ...args])).stdout).toBe(expected);
  });

  test('ndjson: one line an item', async () => {
    const { stdout } = await runSeq(home, ['explain', '-o', 'ndjson']);
    const lines = stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as { code: string });
    expect(lines.length).toBeGreaterThan(60);
    expect(lines.every((line) => typeof line.code === 'string')).toBe(true);
  });

  test('table: 40 columns → no line is wider, everything is there', async () => {
    const { stdout } = await runSeq(home, ['config', 'show', '-o', 'table'], { env: { COLUMNS: '40' } });
    expect(stdout).toContain('127.0.0.1:7003');
    const { stdout: list } = await runSeq(home, ['context', 'ls', '-o', 'table'], { env: { COLUMNS: '40' } });
    expect(Math.max(...list.split('\n').map((line) => line.length))).toBeLessThanOrEqual(40);
  });

  test('json: -o csv together with --json → 64, as an envelope', async () => {
    const { code, stdout } = await runSeq(home, ['context', 'ls', '-o', 'csv', '--json']);
    expect([code, schemaProblems(JSON.parse(stdout))]).toEqual([64, []]);
  });

  test('fields: json keeps only those; an unknown one → 64', async () => {
    const { stdout } = await runSeq(home, ['context', 'ls', '-o', 'json', '--fields', 'contexts.name']);
    expect((JSON.parse(stdout) as { data: unknown }).data).toEqual({ contexts: [{ name: 'a' }] });
    for (const format of ['json', 'plain'])
      expect((await runSeq(home, ['context', 'ls', '-o', format, '--fields', 'nope'])).code).toBe(64);
  });

  test('settings: SEQ_OUTPUT=json → json, also on failure; a flag wins', async () => {
    const failed = await runSeq(home, ['context', 'use', 'nope'], { env: { SEQ_OUTPUT: 'json' } });
    expect(failed.code).toBe(66);
    expect(schemaProblems(JSON.parse(failed.stdout))).toEqual([]);
    expect(
      (await runSeq(home, ['context', 'ls', '-o', 'plain', '-q'], { env: { SEQ_OUTPUT: 'json' } })).stdout,
    ).toMatch(/^a\t/);
  });
});

describe('exit codes', () => {
  const FAILURES: [name: string, args: string[], code: number, error: string, env?: Record<string, string>][] = [
    ['unknown flag', ['context', 'ls', '--bogus'], 64, 'USAGE'],
    ['bad format', ['context', 'ls', '-o', 'xml'], 64, 'USAGE'],
    ['missing argument', ['context', 'use'], 64, 'USAGE'],
    ['argument too many', ['context', 'ls', 'x'], 64, 'USAGE'],
    ['bare duration', ['context', 'ls', '--timeout', '5'], 64, 'BAD_VALUE'],
    ['bare duration in the environment', ['context', 'ls'], 64, 'BAD_VALUE', { SEQ_TIMEOUT: '5' }],
    ['password on argv', ['status', '--node', 'redis://u:hunter2@127.0.0.1:1'], 64, 'BAD_NODE_URL'],
    ['not an address', ['status', '--node', 'http://127.0.0.1:1'], 64, 'BAD_NODE_URL'],
    ['bad lane', ['status', '--node', 'redis://127.0.0.1:1', '--lane', 'A_B'], 64, 'BAD_VALUE'],
    [
      'duplicate node',
      ['status', '--node', 'redis://localhost:7001', '--node', 'localhost:7001/0'],
      78,
      'DUPLICATE_NODE',
    ],
    [
      'duplicate id',
      ['status', '--node', 'a=redis://127.0.0.1:7001', '--node', 'a=redis://127.0.0.1:7002'],
      78,
      'DUPLICATE_NODE',
    ],
    ['no cluster', ['status'], 78, 'NO_CLUSTER', { XDG_CONFIG_HOME: '/nonexistent' }],
    [
      'unset password variable',
      ['status', '--node', 'redis://127.0.0.1:1'],
      78,
      'SECRET_UNREADABLE',
      { SEQ_PASSWORD_FILE: '/nonexistent/password' },
    ],
    ['zero node timeout', ['status', '--node', 'redis://127.0.0.1:1', '--node-timeout', '0'], 78, 'BAD_CONFIG'],
    ['no such context', ['status', '-c', 'nope'], 66, 'CONTEXT_NOT_FOUND'],
    ['no such context in the environment', ['config', 'show'], 66, 'CONTEXT_NOT_FOUND', { SEQ_CONTEXT: 'nope' }],
    ['no such node', ['status', '--node', 'a=redis://127.0.0.1:1', '--on', 'zz'], 66, 'NODE_NOT_FOUND'],
    ['nothing known', ['explain', 'zzzz'], 66, 'UNKNOWN_CODE'],
    [
      'named config file missing',
      ['context', 'use', 'a'],
      78,
      'CONFIG_NOT_FOUND',
      { SEQ_CONFIG: '/tmp/seq-nonexistent-dir-x/config.yaml' },
    ],
  ];

  test.each(FAILURES)('%s: seq %j → %d %s, in text and in JSON', async (_, args, code, error, env) => {
    const jsonArgs = args.includes('xml') ? [...args.slice(0, 2), '--bogus', '-o', 'json'] : [...args, '-o', 'json'];
    const [text, json] = await Promise.all([
      runSeq(home, args, { env: env ?? {} }),
      runSeq(home, jsonArgs, { env: env ?? {} }),
    ]);
    expect([text.code, text.stdout]).toEqual([code, '']);
    expect(text.stderr).toMatch(new RegExp(`^${error}: .+\\n {2}why: .+\\n {2}changed: nothing\\n {2}next: .+`));
    expect(json.code).toBe(code);
    const document = JSON.parse(json.stdout) as { error: { code: string } };
    expect(schemaProblems(document)).toEqual([]);
    expect(document.error.code).toBe(error);
    for (const output of [text.stderr, json.stdout, json.stderr]) expect(output).not.toContain('hunter2');
  });
});

describe('config file', () => {
  const broken: [name: string, content: string, says: RegExp][] = [
    ['not YAML', 'a: [', /not YAML/],
    ['unknown key', 'contexts: {}\nfoo: 1\n', /foo|unrecognized/i],
    ['current is missing', 'current: x\ncontexts: {}\n', /no context 'x'/],
    ['no nodes', 'contexts:\n  a:\n    nodes: []\n', /nodes/],
    ['password in an address', 'contexts:\n  a:\n    nodes:\n      - url: redis://u:hunter2@h\n', /password must not/],
    ['bad duration', 'settings:\n  timeout: 5\n', /timeout/],
    ['unknown setting', 'settings:\n  tmeout: 5s\n', /no such setting/],
    ['plain password', 'contexts:\n  a:\n    nodes:\n      - url: redis://h\n        password: hunter2\n', /password/],
    ['a list', '- 1\n', /BAD_CONFIG/],
  ];
  test.each(broken)('config: %s → 78, named, and no secret printed', async (_, content, says) => {
    const own = newHome();
    const env = environment(own);
    mkdirSync(join(env['XDG_CONFIG_HOME'] as string, 'seq'), { recursive: true });
    writeFileSync(join(env['XDG_CONFIG_HOME'] as string, 'seq', 'config.yaml'), content);
    for (const args of [['config', 'validate'], ['status'], ['context', 'use', 'a']]) {
      const { code, stderr } = await runSeq(own, args);
      expect(code, args.join(' ')).toBe(78);
      expect(stderr).toMatch(says);
      expect(stderr).not.toContain('hunter2');
    }
    expect((await runSeq(own, ['explain', 'NO_QUORUM'])).code).toBe(0);
  });

  test('context set: SEQ_CONFIG names a file that is not there → it is made; other commands name what makes it', async () => {
    const env = { SEQ_CONFIG: join(newHome(), 'etc', 'config.yaml') };
    const set = ['context', 'set', 'prod', '--node', 'redis://127.0.0.1:1', '--setting', 'httpCa=/etc/seq/ca.pem'];
    expect(await runSeq(home, ['context', 'ls'], { env })).toMatchObject({
      stdout: expect.not.stringContaining('prod'),
    });
    expect(await runSeq(home, set, { env })).toMatchObject({ code: 0, stderr: '' });
    expect((await runSeq(home, ['context', 'ls'], { env })).stdout).toMatch(/prod/);
  });

  test('config: ten writers at once → nothing is lost, 0600, no rest', async () => {
    const own = newHome();
    const names = Array.from({ length: 10 }, (_, at) => `c${at}`);
    const codes = await Promise.all(
      names.map(async (name) => (await runSeq(own, ['context', 'set', name, '--node', 'redis://127.0.0.1:1'])).code),
    );
    expect(codes).toEqual(names.map(() => 0));
    const { stdout } = await runSeq(own, ['context', 'ls', '-q', '--fields', 'name']);
    expect(stdout.trim().split('\n').sort()).toEqual(names);
    const listing = spawnSync('ls', ['-l', join(own, 'config', 'seq')], { encoding: 'utf8' }).stdout;
    expect(
      listing
        .trim()
        .split('\n')
        .slice(1)
        .map((line) => `${line.slice(0, 10)} ${line.split(' ').at(-1)}`),
    ).toEqual(['-rw------- config.yaml']);
  });

  test('context: set, use, rm', async () => {
    const own = newHome();
    await runSeq(own, ['context', 'set', 'a', '--node', 'redis://127.0.0.1:1']);
    await runSeq(own, ['context', 'set', 'b', '--node', 'redis://127.0.0.1:2', '--lane', 'x']);
    expect((await runSeq(own, ['context', 'ls', '-q', '--fields', 'name,current'])).stdout).toBe('a\t*\nb\t\n');
    expect((await runSeq(own, ['context', 'use', 'b'])).code).toBe(0);
    expect((await runSeq(own, ['config', 'show', '--origin', '-q', '--fields', 'name,value,from'])).stdout).toContain(
      'lane\tx\tcontext b\n',
    );
    expect((await runSeq(own, ['context', 'rm', 'b'])).code).toBe(0);
    expect((await runSeq(own, ['context', 'rm', 'b'])).code).toBe(66);
  });
});

describe('pipes, signals, limits', () => {
  const sh = (script: string, env: Record<string, string> = {}) =>
    spawnSync('/bin/bash', ['-c', script], {
      encoding: 'utf8',
      env: { ...environment(home), SEQ: `${process.execPath} ${bin}`, ...env },
      timeout: STANDSTILL_MS,
    });

  test('pipe: the reader leaves after one line → quiet, 0', () => {
    const { stdout, stderr } = sh('$SEQ explain -o ndjson | head -1 | wc -l; echo "${PIPESTATUS[0]}"');
    expect([stdout.trim().split(/\s+/), stderr]).toEqual([['1', '0'], '']);
  });

  test.each([
    ['closed stdin', '$SEQ context ls -q <&-', 0],
    ['closed stderr', '$SEQ context ls -q 2>&-', 0],
    ['full disk', '$SEQ explain > /dev/full', 74],
    ['full disk, json', '$SEQ explain -o json > /dev/full', 74],
  ])('streams: %s → %s exits %d', (_, script, code) => {
    expect(sh(script).status).toBe(code);
  });

  test('environment: no HOME at all → still answers', () => {
    const { status } = spawnSync(process.execPath, [bin, 'context', 'ls'], {
      env: { PATH: process.env['PATH'] ?? '' },
    });
    expect(status).toBe(0);
  });

  test('limit: a node that never answers → within node timeout, nothing hangs', async () => {
    // --timeout cannot end it. --node-timeout ends it, or it is killed from outside.
    const { code, signal } = await runSeq(home, [
      'completion',
      'ids',
      'sequencers',
      '--node',
      silentUrl,
      '--node-timeout',
      '100ms',
      '--timeout',
      '1h',
    ]);
    expect([code, signal]).toEqual([0, null]);
  });

  test('watch: no node answers at any look → every look is reported, the last one decides', async () => {
    // So many that a listener which stays behind after each look would be warned of.
    const { code, stdout, stderr } = await runSeq(home, [
      'status',
      '--node',
      'redis://127.0.0.1:1',
      '--watch',
      '--count',
      '12',
      '--interval',
      '10ms',
      '-o',
      'json',
    ]);
    const looks = stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as { error: { exit: number } });
    expect([code, looks.map((look) => look.error.exit), stderr]).toEqual([69, Array(12).fill(69), '']);
  });

  test('signal: the second Ctrl-C → ends at once', async () => {
    const { code } = await runSeq(
      home,
      ['completion', 'ids', 'sequencers', '--node', silentUrl, '--node-timeout', '1h', '--timeout', '1h'],
      {
        during: async (child) => {
          await new Promise<void>((resolve) => {
            silent.once('connection', () => resolve());
          });
          child.kill('SIGINT');
          child.kill('SIGINT');
        },
      },
    );
    expect(code).toBe(130);
  });

  test('limit: --timeout passes → 75, names the step, nothing changed', async () => {
    const { code, stdout } = await runSeq(home, [
      'completion',
      'ids',
      'sequencers',
      '--node',
      silentUrl,
      '--node-timeout',
      '20s',
      '--timeout',
      '300ms',
      '-o',
      'json',
    ]);
    const { error } = JSON.parse(stdout) as { error: { code: string; changed: string; message: string } };
    expect([code, error.code, error.changed]).toEqual([75, 'DEADLINE', 'nothing']);
    expect(error.message).toContain('300 ms');
  });

  test.each([
    ['SIGINT', 130],
    ['SIGTERM', 143],
    ['SIGHUP', 129],
  ] as const)('signal: %s → %d soon after, says what is known', async (signal, code) => {
    const ran = await runSeq(
      home,
      ['completion', 'ids', 'sequencers', '-v', '--node', silentUrl, '--node-timeout', '1h', '--timeout', '1h'],
      {
        during: async (child) => {
          await new Promise<void>((resolve) => {
            silent.once('connection', () => resolve());
          });
          child.kill(signal);
        },
      },
    );
    expect(ran.code).toBe(code);
    expect(ran.stderr).toMatch(/INTERRUPTED: [\s\S]*changed: nothing/);
  });
});
