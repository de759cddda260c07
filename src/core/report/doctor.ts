// What is wrong with the servers of a cluster, or will be? Each finding has its severity and the command that repairs
// it. Pure: readings in, findings out (docs/PROTOCOL.md sections 8 and 10, docs/PERSISTENCE.md). What could not be read
// is reported. It never counts as healthy.
import { describeReply } from '../protocol/describe.js';
import { quorumOf } from '../protocol/quorum.js';
import { MAX_EPOCH_LEAP } from '../protocol/types.js';
import { deleteEpoch } from '../view/epochs.js';
import { forecastOf, mib, ofForecast } from './doctor-memory.js';
import { ofSequencers } from './doctor-sequencers.js';
import type { Finding } from '../view/cluster-view.js';
import type { CheckedNode, DoctorFinding, Severity } from './doctor-finding.js';

export interface DoctorOptions {
  nodeTimeoutMs: number;
  ttlMs: number;
  retainBytes: number;
  maxBlockBytes: number;
  target: string;
  /** What the one judge says of the cluster: `seq status` says the same. */
  judged?: readonly Finding[];
}

const MIB = 1024 * 1024;
const RANK: Record<Severity, number> = { CRIT: 0, UNKNOWN: 1, WARN: 2, INFO: 3 };

export function diagnose(nodes: readonly CheckedNode[], options: DoctorOptions): DoctorFinding[] {
  const views = nodes.flatMap(({ view }) => (view.outcome === 'accepted' ? [view.value] : []));
  const noCluster = views.every(({ admission }) => admission === 'pristine');
  const found = [
    ...ofJudge(options.judged ?? []),
    ...nodes.flatMap((node) => ofNode(node, options, noCluster)),
    ...((options.judged ?? []).some(({ code }) => code === 'NODE_FENCED') ? [] : ofEpochs(nodes)),
    ...ofClocks(nodes, options),
    ...ofSequencers(nodes),
    ...ofForecast(nodes),
    ...ofReach(nodes),
  ];
  return found.sort((a, b) => RANK[a.severity] - RANK[b.severity]);
}

/** The doctor looks at servers. What the cluster adds up to is judged in one place (view/verdict.ts). */
function ofJudge(judged: readonly Finding[]): DoctorFinding[] {
  return judged
    .filter(({ code }) => !OWN_WORDS.has(code))
    .map(({ verdict, nodes, reason, next }) => ({
      severity: verdict,
      check: 'cluster',
      node: nodes.length === 1 ? (nodes[0] as string) : '',
      what: reason,
      fix: next[0] ?? '',
    }));
}

/** The doctor measures these itself, and says more about them. */
const OWN_WORDS: ReadonlySet<string> = new Set(['CLOCK_OFF', 'CONFIG_DRIFT', 'RETENTION_NARROWED']);

function ofNode(node: CheckedNode, options: DoctorOptions, noCluster: boolean): DoctorFinding[] {
  const { id, url, view, checkup } = node;
  const found: DoctorFinding[] = [];
  const add = (severity: Severity, check: string, what: string, fix: string): void =>
    void found.push({ severity, check, node: id, what, fix });
  const set = (setting: string, value: string): string => `redis-cli -u ${url} config set ${setting} ${value}`;
  const said = (options.judged ?? []).some(({ nodes }) => nodes.includes(id));
  if (view.outcome === 'accepted' && view.value.admission !== 'admitted' && !said) {
    const { admission, admissionWhy } = view.value;
    // No leader takes over another cluster's data. Before there is a cluster, no leader admits any node.
    const fix =
      admission === 'foreign' ? 'seq config show' : noCluster ? 'seq cluster init' : `seq node admit --on ${id}`;
    add(
      'WARN',
      'admission',
      `not admitted: ${admission}${admissionWhy === '' ? '' : ` (${admissionWhy})`}`,
      `${fix} ${options.target}`.trim(),
    );
  } else if (view.outcome === 'refused') {
    const password = view.reason === 'NOAUTH';
    add(
      'CRIT',
      'rights',
      `our scripts cannot run: ${describeReply(view)}`,
      password ? `SEQ_PASSWORD_FILE=/path/to/file seq doctor ${options.target}`.trim() : 'seq doctor --acl',
    );
  }
  if (checkup.outcome !== 'accepted') {
    add('WARN', 'reach', `could not be examined: ${describeReply(checkup)}`, `redis-cli -u ${url} ping`);
    return found;
  }
  const { info, config, denied, roundTripsMs } = checkup.value;
  const [major = 0, minor = 0] = (info['redis_version'] ?? '').split('.').map(Number);
  if (major < 6 || (major === 6 && minor < 2))
    add(
      'CRIT',
      'version',
      `Redis ${info['redis_version'] ?? '?'}: 6.2 or newer is needed`,
      'install a newer redis-server there',
    );
  if (info['cluster_enabled'] === '1')
    add('CRIT', 'version', 'runs in cluster mode: keys of one chain would be spread', 'name plain servers');
  if (info['role'] === 'slave') add('CRIT', 'version', 'is a replica: it cannot be written to', 'name its master');
  const replicas = Number(info['connected_slaves'] ?? 0);
  if (info['role'] !== 'slave' && replicas > 0)
    add(
      'INFO',
      'replica',
      `${replicas} ${replicas === 1 ? 'replica is' : 'replicas are'} attached: none of them is a copy that counts; ` +
        'to attach the first or to take away the last while no sequencer runs makes this node restarted',
      'attach and detach replicas while a sequencer runs',
    );
  if ((info['maxmemory_policy'] ?? 'noeviction') !== 'noeviction')
    add(
      'CRIT',
      'eviction',
      `maxmemory-policy ${info['maxmemory_policy']}: it may forget a promise`,
      set('maxmemory-policy', 'noeviction'),
    );
  const limit = Number(info['maxmemory'] ?? 0);
  const need = Math.ceil((options.retainBytes * 1.25 + 2 * options.maxBlockBytes) / MIB) + 64;
  if (limit > 0 && limit < need * MIB)
    add(
      'WARN',
      'memory',
      `maxmemory ${Math.floor(limit / MIB)} MiB; the retained range, orphans and one block more need ` +
        `about ${need} MiB`,
      set('maxmemory', `${need}mb`),
    );
  if (config === null)
    add(
      'INFO',
      'persistence',
      `${info['aof_enabled'] === '1' ? 'append-only file on' : 'no append-only file'}; fsync policy ` +
        'and notifications cannot be read (CONFIG is not allowed, and not needed)',
      'look at redis.conf there',
    );
  if (info['aof_enabled'] === '0') {
    const snapshots = config !== null && (config['save'] ?? '') !== '';
    add(
      'WARN',
      'persistence',
      `${snapshots ? 'snapshots only' : 'memory only'}: when a quorum restarts at once, acknowledged ` +
        `blocks are left in the sequencers' stores alone`,
      set('appendonly', 'yes'),
    );
  }
  if (info['aof_enabled'] === '1' && config?.['appendfsync'] === 'no')
    add(
      'WARN',
      'fsync',
      'appendfsync no: a power cut may take half a minute of blocks from this node',
      set('appendfsync', 'always'),
    );
  if (info['aof_enabled'] === '1' && config?.['appendfsync'] === 'everysec')
    add(
      'INFO',
      'fsync',
      'appendfsync everysec: a power cut of a quorum may take the last second from the nodes (the stores have it)',
      set('appendfsync', 'always'),
    );
  if (info['aof_last_write_status'] === 'err')
    add('CRIT', 'disk', 'the last write to its append-only file failed', 'look at its disk: df, dmesg');
  if (info['rdb_last_bgsave_status'] === 'err')
    add('CRIT', 'disk', 'its last snapshot failed: it may refuse writes (MISCONF)', 'look at its disk: df, dmesg');
  if (info['aof_last_bgrewrite_status'] === 'err')
    add(
      'WARN',
      'disk',
      'its last rewrite of the append-only file failed: the file grows without bound',
      'look at its disk: df, dmesg',
    );
  if (Number(info['aof_delayed_fsync'] ?? 0) > 0)
    add(
      'WARN',
      'fsync',
      `${info['aof_delayed_fsync']} writes waited for an fsync since it started: its disk is slower than the load`,
      'a faster disk, or appendfsync everysec',
    );
  const wanted = Number(config?.['min-replicas-to-write'] ?? 0);
  if (wanted > 0)
    add(
      'WARN',
      'persistence',
      `min-replicas-to-write ${wanted}: it refuses every write while fewer replicas are connected`,
      set('min-replicas-to-write', '0'),
    );
  // A rewrite or a snapshot writes all data once more, next to the existing files.
  const writes = info['aof_enabled'] === '1' || (config?.['save'] ?? '') !== '';
  const room = Math.max(64 * MIB, 2 * Number(info['used_memory'] ?? 0));
  const { diskFreeBytes } = node;
  if (writes && typeof diskFreeBytes === 'number' && diskFreeBytes < room)
    add(
      diskFreeBytes < room / 4 ? 'CRIT' : 'WARN',
      'disk',
      `${mib(diskFreeBytes)} are left where it keeps its data; a rewrite or snapshot may need ${mib(room)}`,
      `df -h ${config?.['dir'] ?? ''}`.trim(),
    );
  const notify = config?.['notify-keyspace-events'];
  if (
    notify !== undefined &&
    !(notify.includes('E') && (notify.includes('A') || (notify.includes('x') && notify.includes('g'))))
  )
    add(
      'INFO',
      'notify',
      `notify-keyspace-events '${notify}': the end of a lease is noticed by polling alone, up to 700 ms later`,
      set('notify-keyspace-events', 'Exg'),
    );
  if (denied === null)
    add(
      'INFO',
      'rights',
      'rights cannot be tried beforehand (ACL DRYRUN is missing or not allowed)',
      'seq doctor --acl',
    );
  else
    for (const one of denied)
      add(
        'CRIT',
        'rights',
        `user ${checkup.value.user} may not run ${one}`,
        one.includes('rename-command') ? 'take rename-command for it out of redis.conf there' : 'seq doctor --acl',
      );
  const [spared] = checkup.value.scriptsOnly ?? [];
  if (spared !== undefined)
    add(
      'INFO',
      'rights',
      `user ${checkup.value.user} may not run ${spared}: each block costs this server a script, about ` +
        'twice the processor time',
      'seq doctor --acl',
    );
  const trips = [...roundTripsMs].sort((a, b) => a - b);
  const [middle, worst] = [trips[Math.floor(trips.length / 2)] ?? 0, trips.at(-1) ?? 0];
  if (worst > options.nodeTimeoutMs || middle > options.nodeTimeoutMs / 4)
    add(
      middle > options.nodeTimeoutMs / 2 ? 'CRIT' : 'WARN',
      'latency',
      `round trips: ${middle.toFixed(1)} ms in the middle, ${share(trips, 0.95).toFixed(1)} ms for 95 ` +
        `of 100, ${worst.toFixed(1)} ms at worst; the node timeout is ${options.nodeTimeoutMs} ms`,
      '--node-timeout at least four times the middle one',
    );
  const uptime = Number(info['uptime_in_seconds'] ?? 0);
  if (uptime < 300) add('INFO', 'uptime', `its server was started ${uptime} s ago`, '');
  return found;
}

/** One server in numbers, for people who read them without a finding. */
export interface CheckedFacts {
  node: string;
  roundTripMs: { p50: number; p95: number; max: number } | null;
  clockMs: number | null;
  uptimeSeconds: number | null;
  usedBytes: number | null;
  limitBytes: number | null;
  fullBytes: number | null;
}

export function factsOf(nodes: readonly CheckedNode[]): CheckedFacts[] {
  const forecasts = forecastOf(nodes);
  return nodes.map(({ id, checkup }) => {
    if (checkup.outcome !== 'accepted')
      return {
        node: id,
        roundTripMs: null,
        clockMs: null,
        uptimeSeconds: null,
        usedBytes: null,
        limitBytes: null,
        fullBytes: null,
      };
    const trips = checkup.value.roundTripsMs.map((ms) => Number(ms.toFixed(3))).sort((a, b) => a - b);
    const forecast = forecasts.find(({ node }) => node === id);
    return {
      node: id,
      roundTripMs: trips.length === 0 ? null : { p50: share(trips, 0.5), p95: share(trips, 0.95), max: trips.at(-1)! },
      clockMs: checkup.value.clockMs,
      uptimeSeconds: Number(checkup.value.info['uptime_in_seconds'] ?? 0),
      usedBytes: forecast?.usedBytes ?? null,
      limitBytes: forecast?.limitBytes ?? null,
      fullBytes: forecast?.fullBytes ?? null,
    };
  });
}

function share(sorted: readonly number[], part: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0;
}

/**
 * A clock that jumps frees locks early or holds them too long. Safety does not depend on clocks (I9), but availability
 * does.
 */
function ofClocks(nodes: readonly CheckedNode[], { ttlMs }: DoctorOptions): DoctorFinding[] {
  const read = nodes.flatMap((node) =>
    node.checkup.outcome === 'accepted' ? [{ id: node.id, at: node.checkup.value.clockMs }] : [],
  );
  const middle = [...read].sort((a, b) => a.at - b.at)[Math.floor(read.length / 2)]?.at ?? 0;
  return read
    .filter(({ at }) => Math.abs(at - middle) > Math.max(100, ttlMs / 10))
    .map(({ id, at }): DoctorFinding => ({
      severity: 'WARN',
      check: 'clock',
      node: id,
      what: `its clock is ${Math.round(at - middle)} ms off the others'`,
      fix: 'chronyc tracking (on that host)',
    }));
}

/** An epoch that no term has reached was written by hand. No leader has such an epoch, so the node takes no block. */
function ofEpochs(nodes: readonly CheckedNode[]): DoctorFinding[] {
  const admitted = nodes.flatMap(({ id, url, view }) =>
    view.outcome === 'accepted' && view.value.admission === 'admitted' ? [{ id, url, epoch: view.value.epoch }] : [],
  );
  const epochs = admitted.map(({ epoch }) => epoch).sort((a, b) => a - b);
  const reachedByAll = epochs[quorumOf(nodes.length) - 1] ?? Infinity;
  return admitted
    .filter(({ epoch }) => epoch > reachedByAll + MAX_EPOCH_LEAP)
    .map(({ id, url, epoch }) => ({
      severity: 'WARN',
      check: 'epoch',
      node: id,
      what: `its epoch ${epoch} was reached by no term (the others are at ${reachedByAll}): it takes no block`,
      fix: deleteEpoch(url),
    }));
}

function ofReach(nodes: readonly CheckedNode[]): DoctorFinding[] {
  const silent = nodes.filter(({ view }) => view.outcome === 'unknown');
  if (nodes.length - silent.length >= quorumOf(nodes.length)) return [];
  return [
    {
      severity: 'CRIT',
      check: 'reach',
      node: '',
      what: `${silent.map(({ id }) => id).join(', ')} gave no answer that can be used: fewer than a quorum are left`,
      fix: silent.map(({ url }) => `redis-cli -u ${url} ping`)[0] ?? '',
    },
  ];
}
