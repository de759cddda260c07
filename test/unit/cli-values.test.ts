// How values are read: durations, sizes, counts, addresses, settings, suggestions, fields. Tables.
import { describe, expect, test } from 'vitest';
import { parseCount, parseDuration, parseSize, formatDuration, formatSize } from '../../src/cli/support/units.js';
import { checkUrl, parseNodeFlag, withoutSecrets } from '../../src/cli/support/node-url.js';
import { commonCluster } from '../../src/core/view/cluster-name.js';
import { pickFields } from '../../src/cli/present/fields.js';
import { envelope, wire } from '../../src/cli/present/envelope.js';
import { setting, asDuration, type Sources } from '../../src/cli/config/settings.js';
import { suggest } from '../../src/cli/support/suggest.js';
import { SeqError } from '../../src/core/errors.js';
import { nameNodes } from '../../src/cli/cluster/identity.js';

const outcome = <T>(run: () => T): T | string => {
  try {
    return run();
  } catch (error) {
    return error instanceof SeqError ? `${error.code} ${error.exit}` : String(error);
  }
};

describe('values', () => {
  test.each([
    ['500ms', 500],
    ['2s', 2000],
    ['1h30m', 5_400_000],
    ['1.5s', 1500],
    ['0', 0],
    ['1d', 86_400_000],
    ['0ms', 0],
    ['2', 'BAD_VALUE 64'],
    ['', 'BAD_VALUE 64'],
    ['2x', 'BAD_VALUE 64'],
    ['-2s', 'BAD_VALUE 64'],
    ['1s1h', 'BAD_VALUE 64'],
    ['1s1s', 'BAD_VALUE 64'],
    ['1e3s', 'BAD_VALUE 64'],
    [' 2s', 'BAD_VALUE 64'],
    ['99999999999999999s', 'BAD_VALUE 64'],
  ])('duration: %j → %j', (text, expected) => expect(outcome(() => parseDuration(text))).toBe(expected));

  test.each([
    ['1000', 1000],
    ['256KiB', 262_144],
    ['16MiB', 16_777_216],
    ['1.5MiB', 1_572_864],
    ['1MB', 1_000_000],
    ['0', 0],
    ['16mib', 'BAD_VALUE 64'],
    ['', 'BAD_VALUE 64'],
    ['-1', 'BAD_VALUE 64'],
    ['1.5', 'BAD_VALUE 64'],
    ['0x10', 'BAD_VALUE 64'],
    ['9999999GiB', 'BAD_VALUE 64'],
  ])('size: %j → %j', (text, expected) => expect(outcome(() => parseSize(text))).toBe(expected));

  test.each([
    ['0', 0],
    ['9007199254740991', 9_007_199_254_740_991],
    ['9007199254740992', 'BAD_VALUE 64'],
    ['1e3', 'BAD_VALUE 64'],
    ['0x10', 'BAD_VALUE 64'],
    ['+1', 'BAD_VALUE 64'],
    ['-1', 'BAD_VALUE 64'],
    ['1.0', 'BAD_VALUE 64'],
    ['', 'BAD_VALUE 64'],
  ])('count: %j → %j', (text, expected) => expect(outcome(() => parseCount(text))).toBe(expected));

  test.each([
    [0, '0ms'],
    [1500, '1.5s'],
    [5_400_000, '1h30m'],
    [60_000, '1m'],
    [999, '999ms'],
  ])('duration: %d ms → %s and back', (ms, text) => {
    expect(formatDuration(ms)).toBe(text);
    expect(parseDuration(text)).toBe(ms);
  });

  test('size: what is printed can be read', () =>
    expect([formatSize(512), formatSize(262_144), formatSize(16 * 1024 ** 2)]).toEqual(['512B', '256KiB', '16MiB']));
});

describe('node addresses', () => {
  test.each([
    ['redis://Host:6379/0', 'redis://host:6379'],
    ['host:7001', 'redis://host:7001'],
    ['redis://h', 'redis://h:6379'],
    ['redis://h:1/2', 'redis://h:1/2'],
    ['rediss://h:1', 'rediss://h:1'],
    ['redis://[::1]:7000', 'redis://[::1]:7000'],
    ['/run/redis.sock', 'unix:/run/redis.sock'],
    ['unix:///run/r.sock?db=3', 'unix:/run/r.sock?db=3'],
    ['unix:/run/r.sock', 'unix:/run/r.sock'],
    ['sentinel://s1,s2:26380/main', 'sentinel://s1:26379,s2:26380/main'],
    ['redis://user@h:1', 'redis://h:1'],
    ['http://h', 'BAD_NODE_URL 64'],
    ['redis://', 'BAD_NODE_URL 64'],
    ['redis://h:0', 'BAD_NODE_URL 64'],
    ['redis://h:99999', 'BAD_NODE_URL 64'],
    ['redis://h:1/x', 'BAD_NODE_URL 64'],
    ['', 'BAD_NODE_URL 64'],
    ['redis://:secret@h', 'BAD_NODE_URL 64'],
    ['redis://u:secret@h', 'BAD_NODE_URL 64'],
    ['redis://h?password=secret', 'BAD_NODE_URL 64'],
    ['unix:relative', 'BAD_NODE_URL 64'],
  ])('address: %j → %j', (text, expected) => {
    const found = outcome(() => checkUrl(text).url);
    expect(found).toBe(expected);
  });

  test('address: a refused password is in no part of the error', () => {
    for (const text of [
      'redis://u:hunter2@h',
      'redis://:hunter2@h:1',
      'redis://h?password=hunter2',
      'n1=redis://u:hunter2@h',
      'redis://u:p@hunter2@h',
    ]) {
      try {
        parseNodeFlag(text);
        expect.unreachable();
      } catch (error) {
        expect(JSON.stringify({ ...(error as SeqError), message: (error as Error).message })).not.toContain('hunter2');
      }
      expect(withoutSecrets(text)).not.toContain('hunter2');
    }
  });

  test('address: ID=URL → id and url', () =>
    expect(parseNodeFlag('r1=redis://u@h:1')).toEqual({ id: 'r1', url: 'redis://h:1', username: 'u' }));
});

describe('discovery', () => {
  const seen = (node: string, cluster: string) => ({
    outcome: 'accepted' as const,
    incarnation: '',
    value: { node, cluster },
  });
  const silent = { outcome: 'unknown' as const, step: 'connect' as const, cause: '' };
  test.each([
    ['all recorded', [null, null, null], [seen('a', 'c.1'), seen('b', 'c.1'), seen('d', 'c.1')], ['a', 'b', 'd']],
    ['one silent', [null, null, null], [seen('a', 'c.1'), silent, seen('d', 'c.1')], ['a', 'n2', 'd']],
    ['none recorded', [null, null], [seen('', ''), silent], ['n1', 'n2']],
    ['two claim one id', [null, null], [seen('a', 'c.1'), seen('a', 'c.1')], ['a', 'n2']],
    ['a configured id wins', ['x', null], [seen('a', 'c.1'), seen('x', 'c.1')], ['x', 'n2']],
    ['n2 is taken by the first', [null, null], [seen('n2', 'c.1'), silent], ['n2', 'n1']],
    [
      'another order, the first is silent',
      [null, null, null],
      [silent, seen('n1', 'c.1'), seen('n3', 'c.1')],
      ['n2', 'n1', 'n3'],
    ],
  ])('ids: %s', (_, ids, replies, expected) =>
    expect(
      nameNodes(
        ids.map((id) => ({ id })),
        replies,
      ),
    ).toEqual(expected),
  );

  const at = (ids: string[]) => ids.map((id) => ({ id, url: `redis://${id}:6379` }));
  const c1 = (id: string) => seen(id, 'c.1');
  test.each([
    [
      'a silent one at its address',
      ['r1', 'r2', 'r3'],
      ['h', 'h', 'r2'],
      [c1('r1'), c1('r3'), silent],
      ['r1', 'r3', 'r2'],
    ],
    ['the only one left', ['r1', 'r2', 'r3'], ['h', 'h', 'h'], [c1('r1'), silent, c1('r3')], ['r1', 'r2', 'r3']],
    ['two are left: a guess', ['r1', 'r2', 'r3', 'r4', 'r5'], ['h', 'h'], [c1('r1'), silent], ['r1', 'n2']],
    ['too few answered', ['r1', 'r2'], ['h', 'h', 'h'], [c1('r1'), silent, silent], ['r1', 'n2', 'n3']],
    ['the one left has another record', ['r1', 'r2'], ['h', 'h'], [c1('r1'), seen('r1', 'd.1')], ['r1', 'n2']],
  ])('ids, members are known: %s', (_, members, hosts, replies, expected) =>
    expect(
      nameNodes(
        hosts.map((host) => ({ id: null, url: `redis://${host}:6379` })),
        replies,
        at(members),
      ),
    ).toEqual(expected),
  );

  test.each([
    [['a.1', 'a.1', 'b.1'], 'a.1'],
    [['a.1', 'a.2', 'a.2'], 'a.2'],
    [['a.1', 'a.1 lost', 'a.2'], 'a.2'],
    [['a.1 lost', 'a.1 lost', 'a.2 pending'], 'a.2'],
    [['a.1', 'a.1', 'a.2'], 'a.1'],
    [['a.1', 'a.1', 'a.9007199254740991'], 'a.1'],
    [['a.1', 'a.9007199254740991', 'a.9007199254740991'], 'a.1'],
    [['a.1', 'a.-1', 'a.-1'], 'a.1'],
    [['a.1', 'a', 'a'], 'a.1'],
    [['a.1', 'a.x', 'a.x'], 'a.1'],
    [['', ''], ''],
  ])('cluster: nodes show %j (with their memory, unless said) → %j', (shown, expected) => {
    const replies = shown.map((text) => {
      const [cluster = '', how = ''] = text.split(' ');
      const { value, ...rest } = seen('', cluster);
      const pending = how === 'pending' ? 'n' : '';
      return { ...rest, value: { ...value, pending, runId: 'now', admittedRunId: how === 'lost' ? 'then' : 'now' } };
    });
    expect(commonCluster(replies)).toBe(expected);
  });
});

describe('settings', () => {
  const sources = (over: Partial<Sources>): Sources => ({
    flags: {},
    env: {},
    config: null,
    configPath: '/c',
    context: null,
    ...over,
  });
  const all = {
    flags: { 'node-timeout': 1 },
    env: { SEQ_NODE_TIMEOUT: '2ms' },
    context: { name: 'x', entry: { nodes: [], settings: { nodeTimeout: '3ms' } } },
    config: { contexts: {}, settings: { nodeTimeout: '4ms' } },
  };
  test.each([
    [all, 1, 'flag'],
    [{ ...all, flags: {} }, 2, 'environment'],
    [{ ...all, flags: {}, env: {} }, 3, 'context'],
    [{ config: all.config }, 4, 'config file'],
    [{}, 5, 'default'],
    [{ env: { SEQ_NODE_TIMEOUT: '' } }, 5, 'default'],
  ])('precedence: case %# → %d from %s', (over, value, origin) => {
    const found = setting(sources(over as Partial<Sources>), 'node-timeout', asDuration, 5);
    expect([found.value, found.origin]).toEqual([value, origin]);
  });
  test('precedence: a bad value in a file is 78, in the environment 64', () => {
    expect(
      outcome(() =>
        setting(sources({ config: { contexts: {}, settings: { nodeTimeout: '3' } } }), 'node-timeout', asDuration, 5),
      ),
    ).toBe('BAD_CONFIG 78');
    expect(outcome(() => setting(sources({ env: { SEQ_NODE_TIMEOUT: '3' } }), 'node-timeout', asDuration, 5))).toBe(
      'BAD_VALUE 64',
    );
  });
});

describe('shapes', () => {
  test('envelope: what a command judges, and what to do next → in `data`, beside what it found', () => {
    const meta = { context: null, lane: '', at: '', durationMs: 0, nodesAsked: 0, nodesAnswered: 0, quorum: 0 };
    const verdict = { verdict: 'WARN', reason: 'r2 is away', reasonCode: 'NODE_DOWN' } as const;
    const found = { data: { terms: [] }, verdict, next: ['seq status -c lab'] };
    expect(envelope('history', meta, { result: found }).data).toEqual({
      ...verdict,
      next: ['seq status -c lab'],
      terms: [],
    });
  });

  test('wire: heights, epochs, floors, heads and bigints → strings, the rest as it is', () => {
    expect(
      wire({
        height: 9,
        epochFrom: 3,
        lag: 1,
        nodes: [{ headEpoch: 2, floor: 0, rttMs: 0.5 }],
        big: 5n,
        gone: undefined,
        bytes: new Uint8Array([1]),
      }),
    ).toEqual({
      height: '9',
      epochFrom: '3',
      lag: 1,
      nodes: [{ headEpoch: '2', floor: '0', rttMs: 0.5 }],
      big: '5',
      bytes: 'AQ==',
    });
  });
  test('fields: paths are kept through lists, unknown ones are told', () => {
    expect(
      pickFields(
        {
          a: 1,
          nodes: [
            { id: 'x', head: 2 },
            { id: 'y', head: 3 },
          ],
        },
        ['nodes.id', 'zz'],
      ),
    ).toEqual({ data: { nodes: [{ id: 'x' }, { id: 'y' }] }, unknown: ['zz'] });
  });
  test.each([
    ['stauts', 'status'],
    ['repair plna', 'repair plan'],
    ['str', 'stream'],
    ['zzzzz', undefined],
  ])('suggest: %s → %s', (word, expected) => {
    expect(suggest(word, ['status', 'stream', 'repair plan', 'repair apply'])[0]).toBe(expected);
  });
});
