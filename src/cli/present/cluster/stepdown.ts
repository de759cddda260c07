// A hand-over → Result, and what is shown before it is confirmed. Pure. The names in `data` are a contract
// (schemas/stepdown.json).
import type { StepdownDone } from '../../../core/operate/stepdown.js';
import type { StepdownPlan } from '../../../core/operate/stepdown-plan.js';
import type { Result, Table } from '../result.js';
import type { FreedLocks, FreeLocksPlan } from '../../../core/operate/free-locks.js';

export function stepdownEffect(plan: StepdownPlan): string[] {
  const ready = plan.candidates.filter((one) => one.ready);
  return [
    `${plan.leader.id} leads under epoch ${plan.leader.epoch}, height ${plan.height} is committed`,
    ...plan.candidates.map(
      (one) =>
        `  ${one.id}: ` +
        `${one.ready ? 'ready' : `not ready, ${one.why}`}${one.lag ? `, ${one.lag} blocks behind` : ''}`,
    ),
    `the nodes' margin stays ${plan.margin}; ` +
      `${ready.length === 1 ? 'one sequencer' : `${ready.length} sequencers`} can take over, and no ` +
      'block is made until one has',
  ];
}

export function stepdownResult({ plan, done, warnings }: StepdownDone, command: string): Result {
  const { leader, candidates } = plan;
  const data = {
    from: leader.id,
    to: done?.to ?? plan.to,
    epochFrom: leader.epoch,
    epochTo: done?.epoch ?? null,
    height: done?.height ?? null,
    gapMs: done?.gapMs ?? null,
    gapBy: done?.gapBy ?? null,
    gapBlocks: done?.gapBlocks ?? null,
    blockTimeMs: plan.blockTimeMs,
    candidates,
    dryRun: done === null,
  };
  if (done === null) {
    return {
      data,
      warnings,
      tables: [candidateTable(candidates)],
      next: [command],
      facts: [
        ['would ask', `${leader.id}, epoch ${leader.epoch}`],
        ['to hand over to', plan.to],
      ],
    };
  }
  return {
    data,
    warnings,
    facts: [
      ['leader', `${done.to} (was ${leader.id})`],
      ['epoch', `${done.epoch} (was ${leader.epoch})`],
      ['committed', done.height],
      [
        'gap',
        `${done.gapMs} ms` +
          (done.gapBy === 'timestamps' ? " by the blocks' timestamps" : '') +
          (plan.blockTimeMs === null ? '' : ` between two blocks (block time ${plan.blockTimeMs} ms)`) +
          (done.gapBlocks === null ? '' : `, ${done.gapBlocks} ${done.gapBlocks === 1 ? 'block' : 'blocks'} missed`),
      ],
    ],
  };
}

function candidateTable(candidates: StepdownPlan['candidates']): Table {
  return {
    columns: [
      { key: 'candidate' },
      { key: 'ready' },
      { key: 'height', align: 'right' },
      { key: 'lag', align: 'right' },
      { key: 'config' },
      { key: 'host', wide: true },
      { key: 'why' },
    ],
    rows: candidates.map((one) => ({
      candidate: one.id,
      ready: one.ready ? 'yes' : 'no',
      height: one.height,
      lag: one.lag,
      config: one.configDrift ? 'differs' : 'same',
      host: one.host,
      why: one.why,
    })),
  };
}

export function freeLocksEffect({ locks, candidates }: FreeLocksPlan): string[] {
  return [
    ...locks.map((lock) => `  ${lock.node}: ${lock.why}`),
    'a holder that comes back is refused by these nodes and follows; nothing that is committed changes',
    candidates.length === 0
      ? 'no sequencer announces itself: start one afterwards'
      : `${candidates.join(', ')} can lead afterwards`,
  ];
}

export function freedLocksResult(
  { plan, nodes, warnings, next }: FreedLocks,
  dryRun: boolean,
  command: string,
): Result {
  return {
    data: { ...plan, nodes, dryRun },
    warnings,
    facts: [
      [
        dryRun ? 'would free' : 'freed',
        plan.locks.map((lock) => `the lock of ${lock.holder} on ${lock.node}`).join(', '),
      ],
    ],
    tables: [
      {
        columns: [{ key: 'node' }, { key: 'holder' }, { key: 'why' }],
        rows: plan.locks.map(({ node, holder, why }) => ({ node, holder, why })),
      },
    ],
    next: dryRun ? [command] : next,
  };
}
