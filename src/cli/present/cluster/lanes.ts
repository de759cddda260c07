// `seq lane add|ls|rm` → lines before the question, and Result. Pure. The names in `data` are a contract
// (schemas/lane.add.json, schemas/lane.ls.json, schemas/lane.rm.json).
import { namesText, type Added, type AddLanesDone } from '../../../core/fleet/add-lanes.js';
import type { LaneRow, LanesListed } from '../../../core/fleet/list-lanes.js';
import type { RemoveLanesDone, RemovePlan } from '../../../core/fleet/remove-lanes.js';
import type { Result, Verdict } from '../result.js';

const HOW: Record<Added, string> = {
  made: 'made and listed',
  found: 'was made before, and is listed now',
  listed: 'was listed before',
};

export function addedResult({ lanes, warnings }: AddLanesDone, dryRun: boolean, around: Around): Result {
  const count = (how: Added): number => lanes.filter((lane) => lane.how === how).length;
  const would = dryRun ? 'would be ' : '';
  return {
    data: { lanes: lanes.map(({ name, how }) => ({ name, how })), dryRun },
    warnings,
    facts: [
      ['made', `${would}${count('made')} of ${lanes.length} lanes`],
      ...(count('found') > 0
        ? ([['found', `${would}${count('found')}: they were made before`]] as [string, string][])
        : []),
      ...(count('listed') > 0 ? ([['listed', `${count('listed')} were listed before`]] as [string, string][]) : []),
    ],
    tables: [
      {
        columns: [{ key: 'lane' }, { key: 'how' }],
        rows: lanes.map(({ name, how }) => ({ lane: name, how: HOW[how] })),
      },
    ],
    items: lanes,
    next: [dryRun ? around.command : `seq lane ls ${around.target}`.trim()],
  };
}

interface Around {
  /** As it was given, without --dry-run. */
  command: string;
  target: string;
}

const WORST: readonly Verdict[] = ['CRIT', 'UNKNOWN', 'WARN', 'OK'];

export type LaneOrder = 'name' | 'trouble';

export function lanesResult({ lanes, silent }: LanesListed, order: LaneOrder, target: string): Result {
  const rows = order === 'name' ? lanes : [...lanes].sort(worstFirst);
  const [worst] = [...lanes].sort(worstFirst);
  const open = lanes.filter(({ state }) => state === 'open');
  const well = open.filter(({ verdict }) => verdict === 'OK').length;
  return {
    data: { lanes: rows.map((row) => ({ ...row })) },
    verdict:
      worst === undefined
        ? { verdict: 'OK', reason: 'the cluster has no lanes besides the default one', reasonCode: 'OK' }
        : {
            verdict: worst.verdict,
            reason:
              worst.verdict === 'OK'
                ? `${well} of ${open.length} open lanes are well`
                : `${well} of ${open.length} open lanes are well; ${worst.name}: ${worst.reason}`,
            reasonCode: worst.reasonCode,
          },
    tables: [
      {
        columns: [
          { key: 'lane' },
          { key: 'state' },
          { key: 'leader' },
          { key: 'epoch', align: 'right' },
          { key: 'height', align: 'right' },
          { key: 'sequencers', align: 'right' },
          { key: 'verdict' },
          { key: 'code' },
          { key: 'by', wide: true },
        ],
        rows: rows.map((row) => ({
          lane: row.name,
          state: row.state,
          leader: row.leader ?? '-',
          epoch: row.epoch,
          height: row.height,
          sequencers: row.sequencers,
          verdict: row.verdict,
          code: row.reasonCode,
          by: row.by,
        })),
      },
    ],
    items: rows,
    warnings: silent.map(({ node, why }) => `${node} did not show its lanes: ${why}`),
    next:
      worst === undefined
        ? [`seq lane add tile-1 tile-2 ${target}`.trim()]
        : worst.verdict === 'OK'
          ? []
          : [`seq status --lane ${worst.name} ${target}`.trim()],
  };
}

function worstFirst(a: LaneRow, b: LaneRow): number {
  return WORST.indexOf(a.verdict) - WORST.indexOf(b.verdict) || (a.name < b.name ? -1 : 1);
}

export function removeText({ lanes }: RemovePlan): string {
  return `remove ${lanes.length === 1 ? 'lane' : `${lanes.length} lanes:`} ${namesText(lanes.map(({ name }) => name))}`;
}

export function removeEffect({ lanes }: RemovePlan): string[] {
  const blocks = lanes.reduce((sum, { height }) => sum + height, 0);
  const led = lanes.flatMap(({ name, leader }) => (leader === null ? [] : [`${name} by ${leader}`]));
  return [
    `  ${blocks} blocks on the nodes are deleted; the stores of sequencers keep theirs`,
    `  their names cannot be used again`,
    ...(led.length === 0
      ? []
      : [`  led now: ${namesText(led)}; a sequencer that was started for one lane must be stopped`]),
  ];
}

export function removedResult({ plan, removed, warnings }: RemoveLanesDone, around: Around): Result {
  const { lanes, digest } = plan;
  return {
    data: {
      lanes: lanes.map(({ name, state, height, leader }) => ({ name, state, height, leader })),
      digest,
      removed: removed?.length ?? 0,
      dryRun: removed === null,
    },
    warnings,
    facts: [
      removed === null
        ? ['would remove', `${lanes.length} lanes (digest ${digest.slice(0, 8)})`]
        : ['removed', `${removed.length} lanes`],
    ],
    tables: [
      {
        columns: [{ key: 'lane' }, { key: 'state' }, { key: 'height', align: 'right' }, { key: 'leader' }],
        rows: lanes.map(({ name, state, height, leader }) => ({
          lane: name,
          state: removed === null ? state : 'removed',
          height,
          leader: leader ?? '-',
        })),
      },
    ],
    next: [
      removed === null ? `${around.command} --confirm ${digest.slice(0, 8)}` : `seq lane ls ${around.target}`.trim(),
    ],
  };
}
