// `seq cluster resize` and `seq cluster set` → lines before the question, and Result. Pure. The names in `data` are a
// contract (schemas/cluster.resize.json, schemas/cluster.set.json).
import { producerText } from '../../../core/protocol/producers.js';
import { duration } from '../../../core/duration.js';
import type { ChangeDone, ChangePlan, Retired } from '../../../core/operate/change-members.js';
import type { MembersChange } from '../../../core/protocol/configuration.js';
import type { Result } from '../result.js';

const RETIRED: Record<Retired, string> = {
  none: '',
  retired: 'retired: it refuses every call',
  gone: 'it does not answer, and counts for nobody',
  unknown: 'not retired: no server known here is that node, or it did not take the call',
};

const ALREADY: Record<MembersChange['kind'], string> = {
  add: 'it is a member already',
  remove: 'it is no member: removed before, or never one',
  set: 'the nodes know it already',
};

export function changeText(change: MembersChange): string {
  if (change.kind === 'add') return `add ${change.id} at ${change.url}`;
  if (change.kind === 'remove') return `remove ${change.id}`;
  return `set ${settingsText(change.settings).join(', ')}`;
}

function settingsText({
  dedupMs,
  dedupItems,
  maxBlockBytes,
  producer,
}: Extract<MembersChange, { kind: 'set' }>['settings']): string[] {
  return [
    ...(dedupMs === undefined ? [] : [`de-duplication window ${duration(dedupMs)}`]),
    ...(dedupItems === undefined ? [] : [`${dedupItems} remembered keys`]),
    ...(maxBlockBytes === undefined ? [] : [`largest block ${maxBlockBytes} bytes`]),
    ...(producer === undefined ? [] : [`producer ${producerText(producer)}`]),
  ];
}

export function changeEffect({ change, before, after, leader }: ChangePlan): string[] {
  if (change.kind === 'set')
    return [
      `  ${leader} writes it to the nodes between two blocks`,
      '  a sequencer that runs takes it when it is started again',
      ...(change.settings.producer === undefined ? [] : ['  a sequencer with another producer ends by itself at once']),
    ];
  return [
    `  members ${before.members.join(', ')} → ${after.members.join(', ')}`,
    `  quorum ${before.quorum} of ${before.members.length} → ${after.quorum} of ${after.members.length}`,
    `  margin ${before.margin} → ${after.margin}${after.margin === 0 ? ': then no node may be missing' : ''}`,
    change.kind === 'add'
      ? `  ${leader} fills and admits ${change.id} first; ` +
        'it counts for nothing until a quorum of both sets has noted it'
      : `  ${change.id} counts for nothing once a quorum of both sets has noted it; then its server is retired`,
  ];
}

interface Around {
  command: string;
  context: string | null;
  /** The members after the change, as --node takes them. */
  nodes: readonly { id: string; url: string }[];
  target: string;
}

export function membersResult({ plan, made, warnings }: ChangeDone, around: Around): Result {
  const { change, before, after, leader, done } = plan;
  const facts: [string, string][] = [
    ['change', `${changeText(change)}${done ? ` (${ALREADY[change.kind]})` : ''}`],
    ...(change.kind === 'set'
      ? []
      : ([
          ['members', `${before.members.join(', ')} → ${after.members.join(', ')}`],
          ['quorum', `${before.quorum} of ${before.members.length} → ${after.quorum} of ${after.members.length}`],
        ] as [string, string][])),
    ['margin', made === null ? `${before.margin} → ${after.margin}` : `${before.margin} before, ${made.margin} now`],
    ...(made === null
      ? []
      : ([['noted', `configuration ${made.version}, after ${made.waitedMs} ms`]] as [string, string][])),
    ...(made === null || made.retired === 'none' || change.kind !== 'remove'
      ? []
      : ([['server', `${change.id}: ${RETIRED[made.retired]}`]] as [string, string][])),
  ];
  return {
    data: {
      change: change.kind,
      node: change.kind === 'set' ? null : change.id,
      settings: change.kind === 'set' ? { ...change.settings } : null,
      alreadyDone: done,
      leader,
      version: { before: before.version, after: made?.version ?? null },
      members: { before: before.members, after: after.members },
      quorum: { before: before.quorum, after: after.quorum },
      margin: { before: before.margin, after: made?.margin ?? after.margin },
      waitedMs: made?.waitedMs ?? null,
      retired: made?.retired ?? null,
      dryRun: made === null,
    },
    warnings,
    facts,
    next: made === null ? [`${around.command} --yes`] : nextAfter(plan, made.retired, around),
  };
}

function nextAfter({ change }: ChangePlan, retired: Retired, { context, nodes, target }: Around): string[] {
  const status = `seq status ${target}`.trim();
  if (change.kind === 'set' && change.settings.producer !== undefined)
    return ['start sequencers with that producer', status];
  if (change.kind === 'set') return ['start every sequencer again, one after the other', status];
  const list = nodes.map(({ id, url }) => `--node ${id}=${url}`).join(' ');
  return [
    context === null ? `seq status ${list}` : `seq context set ${context} ${list}`,
    ...(change.kind === 'remove'
      ? [
          retired === 'unknown'
            ? `find the server of ${change.id}, and stop it`
            : `stop the server of ${change.id}: nobody asks it`,
        ]
      : []),
    ...(context === null ? [] : [status]),
  ];
}
