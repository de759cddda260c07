// What is wrong with one server of a cluster, or will be? Pure: its readings in, findings out. Each function answers
// one question. The findings are in the order of the questions.
import type { NodeCheckup } from '../ports.js';
import { describeReply } from '../protocol/describe.js';
import { deniedText, grantOn } from '../view/no-answer.js';
import { isHanging, reachCommand } from '../view/reach-command.js';
import { mib, partOf } from './doctor-memory.js';
import type { CheckedNode, DoctorFinding, DoctorOptions, Severity } from './doctor-finding.js';

const MIB = 1024 * 1024;

/** A finding on the server in question. The name of the server is added at the end. */
type Remark = Omit<DoctorFinding, 'node'>;

type Facts = Pick<NodeCheckup, 'info' | 'config'>;
type SetCommand = (setting: string, value: string) => string;

export function ofNode(node: CheckedNode, options: DoctorOptions, noCluster: boolean): DoctorFinding[] {
  const remarks = [...ofView(node, options, noCluster), ...ofServer(node, options)];
  return remarks.map(({ severity, check, what, fix }) => ({ severity, check, node: node.id, what, fix }));
}

function remark(severity: Severity, check: string, what: string, fix: string): Remark {
  return { severity, check, what, fix };
}

/** May its copies count? */
function ofView({ id, url, view, checkup }: CheckedNode, options: DoctorOptions, noCluster: boolean): Remark[] {
  const judged = judgedOf(id, options);
  if (view.outcome === 'accepted' && view.value.admission !== 'admitted' && judged === undefined) {
    const { admission, admissionWhy } = view.value;
    const why = admissionWhy === '' ? '' : ` (${admissionWhy})`;
    // No leader takes over another cluster's data. Before there is a cluster, no leader admits any node.
    const fix =
      admission === 'foreign' ? 'seq config show' : noCluster ? 'seq cluster init' : `seq node admit --on ${id}`;
    return [remark('WARN', 'admission', `not admitted: ${admission}${why}`, `${fix} ${options.target}`.trim())];
  }
  if (view.outcome === 'refused') {
    const { reason, detail } = view;
    // The same is said with the rights, where the server has named them.
    if (reason === 'NOPERM' && checkup.outcome === 'accepted' && (checkup.value.denied ?? []).length > 0) return [];
    const fix =
      reason === 'NOAUTH'
        ? `SEQ_PASSWORD_FILE=/path/to/file seq doctor ${options.target}`.trim()
        : reason === 'NOPERM'
          ? grantOn(url, detail.grant)
          : `seq explain ${reason}`;
    return [remark(judged ?? 'CRIT', 'rights', `our scripts cannot run: ${describeReply(view)}`, fix)];
  }
  return [];
}

/** What the judge of `seq status` says of a node is as bad for the doctor. */
function judgedOf(id: string, { judged = [] }: DoctorOptions): Severity | undefined {
  return judged.find(({ nodes }) => nodes.includes(id))?.verdict;
}

function ofServer({ id, url, view, checkup, diskFreeBytes }: CheckedNode, options: DoctorOptions): Remark[] {
  if (checkup.outcome !== 'accepted') {
    const why = describeReply(checkup);
    if (view.outcome === 'refused') return [];
    const longer = `seq node list --on ${id} --node-timeout 5s ${options.target}`.trim();
    return [remark('WARN', 'reach', `could not be examined: ${why}`, isHanging(why) ? longer : reachCommand(url, why))];
  }
  const facts = checkup.value;
  const set: SetCommand = (setting, value) => `redis-cli -u ${url} config set ${setting} ${value}`;
  return [
    ...ofKind(facts, judgedOf(id, options)),
    ...ofMemory(facts, options, set),
    ...ofPersistence(facts, set),
    ...ofWriting(facts, set),
    ...ofDisk(facts, diskFreeBytes),
    ...ofReading(facts, largestBlock(view, options), set),
    ...ofNotifications(facts, set),
    ...ofRights(url, facts),
    ...ofLatency(facts, options),
    ...ofUptime(facts),
  ];
}

/** Is it a plain master of a version that we can use? */
function ofKind({ info }: Facts, judged: Severity | undefined): Remark[] {
  const found: Remark[] = [];
  const version = info['redis_version'];
  const [major = 0, minor = 0] = (version ?? '').split('.').map(Number);
  // Without +info nothing is known of the server, not even that it is too old.
  if (version !== undefined && (major < 6 || (major === 6 && minor < 2))) {
    const what = `Redis ${version}: 6.2 or newer is needed`;
    found.push(remark('CRIT', 'version', what, 'install a newer redis-server there'));
  }
  if (info['cluster_enabled'] === '1') {
    const what = 'runs in cluster mode: keys of one chain would be spread';
    found.push(remark('CRIT', 'version', what, 'name plain servers'));
  }
  const replica = info['role'] === 'slave';
  // The judge, which sees all nodes, knows what helps.
  const fix = judged === undefined ? 'name its master' : '';
  if (replica) found.push(remark(judged ?? 'CRIT', 'version', 'is a replica: it cannot be written to', fix));
  const attached = Number(info['connected_slaves'] ?? 0);
  if (!replica && attached > 0) {
    const what =
      `${attached} ${attached === 1 ? 'replica is' : 'replicas are'} attached: none of them is a copy that counts; ` +
      'to attach the first or to take away the last while no sequencer runs makes this node restarted';
    found.push(remark('INFO', 'replica', what, 'attach and detach replicas while a sequencer runs'));
  }
  return found;
}

/** Can it hold what a node must hold, and does it never drop it? */
function ofMemory({ info }: Facts, options: DoctorOptions, set: SetCommand): Remark[] {
  const found: Remark[] = [];
  const policy = info['maxmemory_policy'] ?? 'noeviction';
  if (policy !== 'noeviction') {
    const what = `maxmemory-policy ${policy}: it may forget a promise`;
    found.push(remark('CRIT', 'eviction', what, set('maxmemory-policy', 'noeviction')));
  }
  const limit = Number(info['maxmemory'] ?? 0);
  const need = Math.ceil((options.retainBytes * 1.25 + 2 * options.maxBlockBytes) / MIB) + 64;
  if (limit > 0 && limit < need * MIB) {
    const what =
      `maxmemory ${Math.floor(limit / MIB)} MiB; the retained range, orphans and one block more need ` +
      `about ${need} MiB`;
    found.push(remark('WARN', 'memory', what, set('maxmemory', `${need}mb`)));
  }
  return found;
}

/** What is left of its data after a restart or a power cut? */
function ofPersistence({ info, config }: Facts, set: SetCommand): Remark[] {
  const found: Remark[] = [];
  const appends = info['aof_enabled'] === '1';
  if (config === null) {
    const what =
      `${appends ? 'append-only file on' : 'no append-only file'}; fsync policy ` +
      'and notifications cannot be read (CONFIG is not allowed, and not needed)';
    found.push(remark('INFO', 'persistence', what, 'look at redis.conf there'));
  }
  if (info['aof_enabled'] === '0') {
    const snapshots = config !== null && (config['save'] ?? '') !== '';
    const what =
      `${snapshots ? 'snapshots only' : 'memory only'}: when a quorum restarts at once, acknowledged ` +
      `blocks are left in the sequencers' stores alone`;
    found.push(remark('WARN', 'persistence', what, set('appendonly', 'yes')));
  }
  if (appends && config?.['appendfsync'] === 'no') {
    const what = 'appendfsync no: a power cut may take half a minute of blocks from this node';
    found.push(remark('WARN', 'fsync', what, set('appendfsync', 'always')));
  }
  if (appends && config?.['appendfsync'] === 'everysec') {
    const what =
      'appendfsync everysec: a power cut of a quorum may take the last second from the nodes (the stores have it)';
    found.push(remark('INFO', 'fsync', what, set('appendfsync', 'always')));
  }
  return found;
}

/** Did its last writes succeed, and will it go on writing? */
function ofWriting({ info, config }: Facts, set: SetCommand): Remark[] {
  const found: Remark[] = [];
  const fix = 'look at its disk: df, dmesg';
  if (info['aof_last_write_status'] === 'err')
    found.push(remark('CRIT', 'disk', 'the last write to its append-only file failed', fix));
  if (info['rdb_last_bgsave_status'] === 'err')
    found.push(remark('CRIT', 'disk', 'its last snapshot failed: it may refuse writes (MISCONF)', fix));
  if (info['aof_last_bgrewrite_status'] === 'err') {
    const what = 'its last rewrite of the append-only file failed: the file grows without bound';
    found.push(remark('WARN', 'disk', what, fix));
  }
  const delayed = info['aof_delayed_fsync'] ?? 0;
  if (Number(delayed) > 0) {
    const what = `${delayed} writes waited for an fsync since it started: its disk is slower than the load`;
    found.push(remark('WARN', 'fsync', what, 'a faster disk, or appendfsync everysec'));
  }
  const wanted = Number(config?.['min-replicas-to-write'] ?? 0);
  if (wanted > 0) {
    const what = `min-replicas-to-write ${wanted}: it refuses every write while fewer replicas are connected`;
    found.push(remark('WARN', 'persistence', what, set('min-replicas-to-write', '0')));
  }
  return found;
}

/** Is there room for a rewrite or a snapshot? Each writes all data once more, next to the existing files. */
function ofDisk({ info, config }: Facts, free: number | null | undefined): Remark[] {
  const writes = info['aof_enabled'] === '1' || (config?.['save'] ?? '') !== '';
  const room = Math.max(64 * MIB, 2 * Number(info['used_memory'] ?? 0));
  if (!writes || typeof free !== 'number' || free >= room) return [];
  const what = `${mib(free)} are left where it keeps its data; a rewrite or snapshot may need ${mib(room)}`;
  return [remark(free < room / 4 ? 'CRIT' : 'WARN', 'disk', what, `df -h ${config?.['dir'] ?? ''}`.trim())];
}

/** As the sequencers announce it: they know what the cluster has agreed on. */
function largestBlock(view: CheckedNode['view'], { maxBlockBytes }: DoctorOptions): number {
  const told = view.outcome === 'accepted' ? view.value.sequencers : [];
  return Math.max(maxBlockBytes, ...told.map(({ extra }) => Number(extra['maxBlockBytes'] ?? 0) || 0));
}

/** Can the largest block be read from it? */
function ofReading({ config }: Facts, largest: number, set: SetCommand): Remark[] {
  if (config === null) return []; // that CONFIG cannot be read is said once
  const words = (config['client-output-buffer-limit'] ?? '').split(/\s+/);
  const [, hard = '0', soft = '0', seconds = '0'] = words.slice(words.indexOf('normal'));
  const limits = [Number(hard), ...(Number(seconds) > 0 ? [Number(soft)] : [])].filter((limit) => limit > 0);
  const least = Math.min(...limits);
  const need = largest + MIB;
  if (!(least < need)) return [];
  const what =
    `client-output-buffer-limit normal ${hard} ${soft} ${seconds}: it ends the connection of whoever reads a block ` +
    `of ${mib(largest)}, the largest that the cluster allows`;
  return [remark('WARN', 'reach', what, set('client-output-buffer-limit', "'normal 0 0 0'"))];
}

/** Does it tell at once that a lease ended? */
function ofNotifications({ config }: Facts, set: SetCommand): Remark[] {
  const notify = config?.['notify-keyspace-events'];
  if (notify === undefined) return [];
  const tells = notify.includes('E') && (notify.includes('A') || (notify.includes('x') && notify.includes('g')));
  if (tells) return [];
  const what = `notify-keyspace-events '${notify}': the end of a lease is noticed by polling alone, up to 700 ms later`;
  return [remark('INFO', 'notify', what, set('notify-keyspace-events', 'Exg'))];
}

/** May our user run every command that we need? */
function ofRights(url: string, { denied, user, grant, scriptsOnly }: NodeCheckup): Remark[] {
  const found: Remark[] = [];
  if (denied === null) {
    const what = 'rights cannot be tried beforehand (ACL DRYRUN is missing or not allowed)';
    found.push(remark('INFO', 'rights', what, 'seq doctor --acl'));
  }
  // One line for everything that one command gives, and one for each command that the server hides.
  const hidden = (denied ?? []).filter((one) => one.includes('rename-command'));
  const lacking = (denied ?? []).filter((one) => !hidden.includes(one));
  if (lacking.length > 0) found.push(remark('CRIT', 'rights', deniedText(user, lacking), grantOn(url, grant)));
  for (const one of hidden) {
    const fix = 'take rename-command for it out of redis.conf there';
    found.push(remark('CRIT', 'rights', `user ${user} may not run ${one}`, fix));
  }
  const [spared] = scriptsOnly ?? [];
  if (spared !== undefined) {
    const what =
      `user ${user} may not run ${spared}: each block costs this server a script, about ` + 'twice the processor time';
    found.push(remark('INFO', 'rights', what, 'seq doctor --acl'));
  }
  return found;
}

/** Does it answer well within the node timeout? */
function ofLatency({ roundTripsMs }: NodeCheckup, { nodeTimeoutMs }: DoctorOptions): Remark[] {
  const trips = [...roundTripsMs].sort((a, b) => a - b);
  const [middle, worst] = [trips[Math.floor(trips.length / 2)] ?? 0, trips.at(-1) ?? 0];
  if (worst <= nodeTimeoutMs && middle <= nodeTimeoutMs / 4) return [];
  const what =
    `round trips: ${middle.toFixed(1)} ms in the middle, ${partOf(trips, 0.95).toFixed(1)} ms for 95 ` +
    `of 100, ${worst.toFixed(1)} ms at worst; the node timeout is ${nodeTimeoutMs} ms`;
  const severity = middle > nodeTimeoutMs / 2 ? 'CRIT' : 'WARN';
  return [remark(severity, 'latency', what, '--node-timeout at least four times the middle one')];
}

/** Did it restart a moment ago? */
function ofUptime({ info }: Facts): Remark[] {
  const uptime = Number(info['uptime_in_seconds'] ?? 300);
  return uptime < 300 ? [remark('INFO', 'uptime', `its server was started ${uptime} s ago`, '')] : [];
}
