// seq doctor: what is wrong with real servers, each finding with the command that mends it; and the pure part row by
// row.
import { Redis } from 'ioredis';
import { describe, expect, it, test } from 'vitest';
import { diagnose } from '../../src/core/report/doctor.js';
import type { CheckedNode } from '../../src/core/report/doctor-finding.js';
import type { NodeCheckup } from '../../src/core/ports.js';
import type { NodeView, Presence } from '../../src/core/protocol/types.js';
import { startRedis } from '../support/redis-server.js';
import { schemaProblems } from '../support/schemas.js';
import { newHome, runSeq } from '../support/spawn-seq.js';

const OPTIONS = {
  nodeTimeoutMs: 100,
  ttlMs: 3000,
  retainBytes: 256 * 1024 * 1024,
  maxBlockBytes: 1024 * 1024,
  target: '',
};

function checked(
  id: string,
  over: { info?: Record<string, string>; checkup?: Partial<NodeCheckup>; view?: Partial<NodeView> } = {},
): CheckedNode {
  const info = {
    redis_version: '7.0.15',
    role: 'master',
    maxmemory: '0',
    maxmemory_policy: 'noeviction',
    aof_enabled: '1',
    uptime_in_seconds: '90000',
    ...over.info,
  };
  const config = { appendfsync: 'always', 'notify-keyspace-events': 'Exg', save: '' };
  return {
    id,
    url: `redis://${id}`,
    view: {
      outcome: 'accepted',
      incarnation: 'n',
      value: {
        admission: 'admitted',
        admissionWhy: '',
        config: '',
        sequencers: [],
        ...over.view,
      } as unknown as NodeView,
    },
    checkup: {
      outcome: 'accepted',
      incarnation: '',
      value: {
        info,
        config,
        user: 'default',
        denied: [],
        grant: '',
        roundTripsMs: [0.2, 0.3],
        clockMs: 1,
        aclRule: '',
        ...over.checkup,
      },
    },
  };
}
const config = (more: Record<string, string>): { checkup: Partial<NodeCheckup> } => ({
  checkup: { config: { appendfsync: 'always', 'notify-keyspace-events': 'Exg', save: '', ...more } },
});
const LIMITS = (mib: number) =>
  `normal ${mib * 1024 * 1024} 0 0 slave 268435456 67108864 60 pubsub 33554432 8388608 60`;
const sequencer = (id: string, configDigest: string, ttlMs: string): Presence =>
  ({ id, configDigest, url: '', extra: { ttlMs } }) as unknown as Presence;
const producing = (id: string, producer: string): Presence =>
  ({ id, configDigest: '', url: '', extra: { producer } }) as unknown as Presence;
const AGREED = '1.0 dedup-ms=1 dedup-items=2 max-block=4096';
const wrongClock = (id: string, clockOffMs: string): Presence =>
  ({ id, configDigest: '', url: '', extra: { clockOffMs } }) as unknown as Presence;

describe('doctor: what was read → findings', () => {
  test.each<[string, Parameters<typeof checked>[1], string[]]>([
    ['all is well', {}, []],
    ['an old server', { info: { redis_version: '6.0.9' } }, ['CRIT version']],
    ['6.2 is enough', { info: { redis_version: '6.2.0' } }, []],
    ['eviction', { info: { maxmemory_policy: 'allkeys-lru' } }, ['CRIT eviction']],
    ['too little memory', { info: { maxmemory: '104857600' } }, ['WARN memory']],
    ['enough memory', { info: { maxmemory: '1073741824' } }, []],
    ['memory only', { info: { aof_enabled: '0' } }, ['WARN persistence']],
    ['fsync no', config({ appendfsync: 'no' }), ['WARN fsync']],
    ['fsync everysec', config({ appendfsync: 'everysec' }), ['INFO fsync']],
    ['a failed write', { info: { aof_last_write_status: 'err' } }, ['CRIT disk']],
    ['no notifications', config({ 'notify-keyspace-events': '' }), ['INFO notify']],
    ['notifications without del', config({ 'notify-keyspace-events': 'Ex' }), ['INFO notify']],
    ['all notifications', config({ 'notify-keyspace-events': 'AE' }), []],
    ['a buffer limit above the largest block', config({ 'client-output-buffer-limit': LIMITS(8) }), []],
    ['a buffer limit below the largest block', config({ 'client-output-buffer-limit': LIMITS(1) }), ['WARN reach']],
    [
      'a buffer limit below the largest block that the cluster has agreed on',
      {
        ...config({ 'client-output-buffer-limit': LIMITS(8) }),
        view: { sequencers: [{ id: 'a', configDigest: '', url: '', extra: { maxBlockBytes: '16777216' } } as never] },
      },
      ['WARN reach'],
    ],
    ['CONFIG not allowed', { checkup: { config: null } }, ['INFO persistence']],
    ['a right missing', { checkup: { denied: ['xadd: no permission'] } }, ['CRIT rights']],
    ['no transactions', { checkup: { scriptsOnly: ['multi: no permission', 'exec: no permission'] } }, ['INFO rights']],
    ['rights unknown', { checkup: { denied: null } }, ['INFO rights']],
    ['slow now and then', { checkup: { roundTripsMs: [1, 1, 150] } }, ['WARN latency']],
    ['slow', { checkup: { roundTripsMs: [60, 70, 80] } }, ['CRIT latency']],
    ['a clock ahead', { checkup: { clockMs: 900 } }, ['WARN clock']],
    ["a sequencer's clock, by its own word", { view: { sequencers: [wrongClock('a', '-90000000')] } }, ['WARN clock']],
    ['just started', { info: { uptime_in_seconds: '5' } }, ['INFO uptime']],
    ['not admitted', { view: { admission: 'restarted' } }, ['WARN admission']],
    ["another node's data, which no admission takes over", { view: { admission: 'foreign' } }, ['WARN admission']],
    [
      'two node lists, two timings',
      { view: { sequencers: [sequencer('a', 'x', '3000'), sequencer('b', 'y', '500')] } },
      ['WARN sequencers', 'WARN sequencers'],
    ],
    [
      'two producers',
      { view: { sequencers: [producing('a', 'batch:seq/items/1'), producing('b', 'exec:seq/exec/1')] } },
      ['WARN sequencers'],
    ],
    ['a lane that has agreed on no producer', { view: { config: `${AGREED} | r1=n@u` } }, ['INFO sequencers']],
    ['a lane that has', { view: { config: `${AGREED} producer=batch:seq/items/1 | r1=n@u` } }, []],
  ])('doctor: %s → %j', (_, over, expected) => {
    const found = diagnose([checked('r1', over), checked('r2'), checked('r3')], OPTIONS);
    expect(found.map((one) => `${one.severity} ${one.check}`)).toEqual(expected);
    for (const one of found) expect(one.fix.length > 0 || one.check === 'uptime', one.what).toBe(true);
  });

  test.each<[string, CheckedNode[], string]>([
    ['forgot', [checked('r1'), checked('r2', { view: { admission: 'wiped' } })], 'seq node admit --on r2'],
    [
      "bears another node's data",
      [checked('r1'), checked('r2', { view: { admission: 'foreign' } })],
      'seq config show',
    ],
    ['is empty, and so are all', [checked('r2', { view: { admission: 'pristine' } })], 'seq cluster init'],
    [
      'wants a password',
      [{ ...checked('r2'), view: { outcome: 'refused', reason: 'NOAUTH', detail: {} } }],
      'SEQ_PASSWORD_FILE=/path/to/file seq doctor',
    ],
    [
      'lacks a command',
      [checked('r2', { checkup: { denied: ['evalsha: the server does not know it (rename-command?)'] } })],
      'take rename-command for it out of redis.conf there',
    ],
  ])('doctor: a node %s → the command that mends it', (_, nodes, fix) => {
    expect(diagnose(nodes, OPTIONS).map((one) => one.fix)).toEqual([fix]);
  });

  test('doctor: two of three silent → said for the cluster, nothing taken for good', () => {
    const silent = (id: string): CheckedNode => ({
      id,
      url: `redis://${id}`,
      view: { outcome: 'unknown', step: 'connect', cause: 'ECONNREFUSED' },
      checkup: { outcome: 'unknown', step: 'connect', cause: 'ECONNREFUSED' },
    });
    expect(
      diagnose([checked('r1'), silent('r2'), silent('r3')], OPTIONS).map(
        (one) => `${one.severity} ${one.check} ${one.node}`,
      ),
    ).toEqual(['CRIT reach ', 'WARN reach r2', 'WARN reach r3']);
  });
});

describe('doctor: the command', () => {
  it(
    'doctor: a server that evicts, without notifications → named, mended by the printed commands; ' +
      '--exit-code, --acl',
    async () => {
      const server = await startRedis({ args: ['--maxmemory', '50mb', '--maxmemory-policy', 'allkeys-lru'] });
      const admin = new Redis(server.port, '127.0.0.1');
      try {
        const home = newHome();
        const doctor = async (...args: string[]) => runSeq(home, ['doctor', '--node', `r1=${server.url}`, ...args]);
        const first = await doctor('--json', '--exit-code');
        const document = JSON.parse(first.stdout) as {
          data: { verdict: string; findings: { check: string; severity: string; fix: string }[] };
        };
        expect(schemaProblems(document), first.stdout).toEqual([]);
        expect(first.code).toBe(1);
        expect(document.data.verdict).toBe('CRIT');
        expect(document.data.findings.map(({ check }) => check)).toEqual(
          expect.arrayContaining(['eviction', 'memory', 'persistence', 'notify', 'cluster']),
        );
        for (const { fix } of document.data.findings) {
          const [, setting, value] = /config set (\S+) (\S+)$/.exec(fix) ?? [];
          if (setting !== undefined && setting !== 'appendonly') await admin.config('SET', setting, value!);
        }
        const second = JSON.parse((await doctor('--json')).stdout) as typeof document;
        expect(second.data.findings.filter(({ check }) => ['eviction', 'memory', 'notify'].includes(check))).toEqual(
          [],
        );
        const { stdout, code } = await doctor('--acl');
        expect(code).toBe(0);
        expect(stdout).toMatch(/^ACL SETUSER seq on >PASSWORD .*~seq:\* .*\+xadd .*\n$/);
        // The rule is needed before any server runs: without a cluster, and without an answer, it is the same one.
        for (const flags of [[], ['--node', 'r1=redis://127.0.0.1:1']])
          expect(await runSeq(home, ['doctor', '--acl', ...flags])).toMatchObject({ code: 0, stdout, stderr: '' });
        const own = await runSeq(home, ['doctor', '--acl', '--node', 'redis://app@127.0.0.1:1/3', '--lane', 'eu']);
        expect(own.stdout).toMatch(/^ACL SETUSER app on .* ~seq:eu:\* &seq:eu:hints &__keyevent@3__:expired /);
      } finally {
        admin.disconnect();
        await server.stop();
      }
    },
    300_000,
  );
});
