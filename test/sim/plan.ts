// Which scenario belongs to a seed? This file draws a cluster with mixed settings, and a few faults of every kind,
// alone and together.
import type { Mutant } from '../support/memory-node.js';
import type { Act } from './acts.js';
import { Prng } from './random.js';
import type { Fault, FaultKind, OtherServer, ProcessPlan, Scenario } from './scenario.js';

export interface PlanOptions {
  /** Nodes also lose memory (restarts, wipes). Then the cluster needs re-admission to recover. */
  memory: boolean;
  /** Entries may also be damaged. A leader leaves such a node out while it leads, so the run need not converge. */
  corrupt?: boolean;
  /**
   * Processes differ in who they take for the nodes, clocks are wrong by hours, and old memory comes back. These faults
   * are added to those that the seed has anyway.
   */
  members?: boolean;
  /** Only faults of these kinds, without plays and operators. */
  only?: readonly FaultKind['kind'][];
  mutant?: Mutant;
}

/** Lease, block time, node timeout, poll interval (ms). */
const TIMINGS = [
  [3000, 1000, 100, 500],
  [3000, 1000, 100, 500],
  [1500, 500, 50, 250],
  [600, 150, 30, 100],
] as const;

export function drawScenario(seed: number, options: PlanOptions): Scenario {
  const prng = new Prng(seed, 'plan');
  const nodes = prng.chance(0.7) ? 3 : prng.chance(0.8) ? 5 : 4;
  const mixed = prng.chance(0.3);
  const common = prng.pick(TIMINGS);
  const eager = prng.chance(0.4);
  const processes: ProcessPlan[] = [];
  for (let i = 0; i < (prng.chance(0.6) ? 3 : 2); i++) {
    const [ttlMs, blockTimeMs, nodeTimeoutMs, pollMs] = mixed ? prng.pick(TIMINGS) : common;
    processes.push({
      id: `seq-${'abc'[i]}`,
      ttlMs,
      blockTimeMs,
      nodeTimeoutMs,
      pollMs,
      eager: mixed ? prng.chance(0.5) : eager,
      priority: prng.chance(0.2) ? prng.int(0, 2) : 0,
      syncMs: prng.pick([0, 1, 4, 12]),
      wallOffsetMs: prng.chance(0.3) ? prng.int(-5000, 5000) : 0,
    });
  }
  const rests = new Prng(seed, 'rests'); // a stream of its own, so that the rest of the plan does not depend on it
  if (rests.chance(0.35)) for (const one of processes) one.rests = rests.chance(0.8);
  const ttl = Math.max(...processes.map((one) => one.ttlMs));
  const healAt = Math.round(3 * ttl + prng.unit() * 6 * ttl);
  const faults: Fault[] = [];
  const draw = faultDrawer(prng, nodes, processes, ttl, options);
  for (let count = prng.int(1, 9); count > 0; count--) {
    const at = Math.round(ttl / 3 + prng.unit() * (healAt - ttl / 3));
    for (const { after = 0, ...fault } of draw()) faults.push({ at: at + after, ...fault } as Fault);
  }
  const acts = new Prng(seed, 'acts'); // a stream of its own, as above
  if (acts.chance(0.3) && !options.only)
    faults.push({
      at: Math.round(ttl * acts.between(0.5, 2)),
      kind: 'acts',
      acts: drawActs(acts, nodes),
      longestMs: 5 * ttl,
    });
  const operators = new Prng(seed, 'operators'); // a stream of its own, as above
  if (!options.corrupt && !options.only && operators.chance(0.35)) {
    for (let count = operators.int(1, 2); count > 0; count--) {
      const at = Math.round(ttl / 3 + operators.unit() * (healAt - ttl / 3));
      for (const { after = 0, ...fault } of drawOperatorTask(operators, nodes, processes, ttl, options))
        faults.push({ at: at + after, ...fault } as Fault);
    }
  }
  const bootstrap = !options.only && operators.chance(0.05);
  if (bootstrap)
    faults.push({
      at: 0,
      kind: 'noise',
      drop: operators.pick([0, 0.1]),
      lost: operators.pick([0, 0.2]),
      twice: operators.pick([0, 0.5]),
      lateMs: 3 * ttl,
      delayMs: operators.pick([0, 100]),
      forMs: 2 * ttl,
    });
  let last = healAt;
  if (options.members) {
    const members = new Prng(seed, 'members'); // a stream of its own, as above
    for (let count = members.int(1, 3); count > 0; count--) {
      const at = Math.round(ttl / 3 + members.unit() * (healAt - ttl / 3));
      for (const { after = 0, ...fault } of drawMemberFault(members, nodes, processes, ttl, options)) {
        faults.push({ at: at + after, ...fault } as Fault);
        last = Math.max(last, at + after + ('forMs' in fault && fault.kind !== 'clock-lie' ? fault.forMs : ttl));
      }
    }
  }
  const resizes = new Prng(seed, 'resizes'); // a stream of its own, as above
  if (options.members && resizes.chance(0.4)) {
    const at = Math.round(ttl / 3 + resizes.unit() * (healAt - ttl / 3));
    for (const { after = 0, ...fault } of drawResizes(resizes, nodes, processes, ttl, options)) {
      faults.push({ at: at + after, ...fault } as Fault);
      last = Math.max(last, at + after + 2 * ttl);
    }
  }
  faults.sort((a, b) => a.at - b.at);
  return {
    seed,
    nodes,
    retainBlocks: prng.pick([6, 12, 40]),
    processes,
    clients: prng.int(1, 4),
    thinkMs: Math.round(ttl / prng.pick([3, 10, 30])),
    faults,
    healAt: last,
    ...(options.members ? { resend: true } : {}),
    ...(options.mutant ? { mutant: options.mutant } : {}),
    ...(bootstrap ? { bootstrap } : {}),
  };
}

const HOUR_MS = 3_600_000;

/** A fault in which single processes or machines are wrong about who the nodes are, or what time it is. */
function drawMemberFault(
  prng: Prng,
  nodes: number,
  processes: readonly ProcessPlan[],
  ttl: number,
  options: PlanOptions,
): Drawn[] {
  const node = (): string => `r${prng.int(1, nodes)}`;
  const process = (): string => prng.pick(processes).id;
  const span = (): number => Math.round(ttl * prng.between(0.5, 5));
  const to = (): OtherServer => prng.pick(['empty', 'replica'] as const);
  const kinds = ['two-servers', 'two-servers', 'two-servers', 'redirect', 'edit-context', 'edit-context', 'clock-lie'];
  if (options.memory) kinds.push('rewind', 'rewind');
  switch (prng.pick(kinds)) {
    case 'redirect':
      return [
        {
          kind: 'redirect',
          process: prng.pick(['*', '@leader', '@others', process()]),
          node: node(),
          to: to(),
          kept: prng.chance(0.3),
          forMs: span(),
        },
      ];
    case 'edit-context':
      return [
        {
          kind: 'edit-context',
          process: prng.chance(0.3) ? '@leader' : process(),
          list: prng.pick(['elsewhere', 'elsewhere', 'part', 'more'] as const),
          node: node(),
          to: to(),
          raced: prng.chance(0.7),
          forMs: span() + ttl,
        },
      ];
    // For a few seconds or for ever, a clock is hours or a day off.
    case 'clock-lie':
      return [
        {
          kind: 'clock-lie',
          // one node at most, so that a majority of the nodes has the right time
          whose: prng.chance(0.7) ? process() : 'r1',
          ms: prng.pick([25, 25, -25, 2, -2, 0.2]) * HOUR_MS,
          forMs: prng.pick([2500, 2500, span(), Infinity]),
        },
      ];
    case 'rewind':
      return drawRewind(prng, nodes, ttl);
    default:
      return drawTwoServers(prng, nodes, processes, ttl, to());
  }
}

/**
 * Members join and leave, one after the other or at once. The leader may be cut off at the worst moment, and another
 * fault may hit a node that joins, leaves or stays.
 */
function drawResizes(
  prng: Prng,
  nodes: number,
  processes: readonly ProcessPlan[],
  ttl: number,
  options: PlanOptions,
): Drawn[] {
  const old = (): string => `r${prng.int(1, nodes)}`;
  const joins = (node: string): Drawn => ({ kind: 'resize', change: 'add', node });
  const leaves = (node: string): Drawn => ({ kind: 'resize', change: 'remove', node });
  const [r6, r7, gone] = ['r6', 'r7', old()];
  const steps = prng.pick([
    [joins(r6)],
    [joins(r6), joins(r7)],
    [joins(r6), leaves(gone)],
    [joins(r6), leaves(gone), joins(r7), leaves(old())],
    [joins(r6), leaves(r6)],
    [joins(r6), leaves(gone), joins(gone)],
    ...(nodes > 3 ? [[leaves(gone)], [leaves(gone), joins(r6)], [leaves(gone), joins(gone)]] : []),
  ]);
  const paceMs = prng.pick([0, 0.3, 1, 2]) * ttl;
  const drawn = steps.map((step, i): Drawn => ({ ...step, after: Math.round(i * paceMs * prng.between(0.5, 1.5)) }));
  const all = [...Array.from({ length: nodes }, (_, i) => `r${i + 1}`), r6];
  if (prng.chance(0.5))
    for (let count = prng.int(1, 2); count > 0; count--)
      drawn.push({
        kind: 'cut-on-note',
        others: all.filter(() => prng.chance(0.6)),
        dies: prng.chance(0.3),
        withinMs: 20 * ttl,
        forMs: Math.round(ttl * prng.between(0.3, 4)),
      });
  const struck = prng.pick([r6, r6, gone, old()]);
  const after = Math.round(ttl * prng.between(0, 1.5));
  const forMs = Math.round(ttl * prng.between(0.1, 2));
  const strike = prng.pick(['none', 'silent', 'cut', 'crash', ...(options.memory ? ['wipe', 'restart'] : [])]);
  if (strike === 'silent') drawn.push({ after, kind: 'silent', node: struck, forMs });
  if (strike === 'cut')
    drawn.push({
      after,
      kind: 'cut',
      process: prng.pick(['@leader', '@others', '*']),
      node: struck,
      direction: prng.pick(['both', 'requests', 'replies'] as const),
      forMs,
      late: prng.chance(0.5),
      reset: prng.chance(0.5),
    });
  if (strike === 'crash')
    drawn.push({
      after,
      kind: 'crash',
      process: prng.chance(0.6) ? '@leader' : prng.pick(processes).id,
      afterCalls: prng.int(1, 60),
      downMs: forMs,
      store: 'keep',
    });
  if (strike === 'wipe') drawn.push({ after, kind: 'wipe', node: struck });
  if (strike === 'restart')
    drawn.push({ after, kind: 'restart', node: struck, keep: prng.pick(['all', 'none', 1] as const), downMs: forMs });
  return drawn;
}

/**
 * Another server answers for a node. One sequencer stays with the old server and is out of reach for a while, so that
 * the others may lead and admit the new server. Afterwards each side reaches its own server and a different half of the
 * other nodes.
 */
function drawTwoServers(
  prng: Prng,
  nodes: number,
  processes: readonly ProcessPlan[],
  ttl: number,
  to: OtherServer,
): Drawn[] {
  const [contested, ...rest] = Array.from({ length: nodes }, (_, i) => `r${i + 1}`).sort(() => prng.unit() - 0.5);
  const half = Math.floor(rest.length / 2);
  const stays = prng.pick(processes).id;
  const awayAt = Math.round(ttl * prng.between(0.1, 1));
  const awayMs = Math.round(ttl * prng.between(1.2, 3));
  const apartAt = awayAt + Math.round(awayMs * prng.between(0.8, 1.3));
  const apartMs = Math.round(ttl * prng.between(1.5, 4));
  const forMs = apartAt + Math.round(apartMs * prng.between(0.5, 1.2));
  const cut = (process: string, node: string, after: number, forMs: number): Drawn => ({
    after,
    kind: 'cut',
    process,
    node,
    direction: 'both',
    forMs,
    late: prng.chance(0.4),
    reset: false,
  });
  const atOnce = prng.chance(0.4);
  const everybody = prng.chance(0.5); // a Sentinel tells everybody; the one that stays still has an open connection
  const moved = processes.filter(({ id }) => id !== stays || everybody);
  return [
    ...moved.map(({ id }): Drawn => ({
      kind: 'redirect',
      process: id,
      node: contested!,
      to,
      kept: id === stays,
      forMs,
    })),
    prng.chance(0.7)
      ? cut(stays, '*', awayAt, awayMs)
      : { after: awayAt, kind: 'pause', process: stays, forMs: awayMs },
    ...rest.slice(0, half).map((node) => cut(stays, node, apartAt, apartMs)),
    ...(atOnce
      ? [
          {
            kind: 'cut-on-begin' as const,
            node: contested!,
            others: rest.slice(half),
            withinMs: apartAt,
            forMs: apartAt + apartMs - awayAt,
          },
        ]
      : []),
    ...processes
      .filter(({ id }) => id !== stays)
      .flatMap(({ id }) => rest.slice(half).map((node) => cut(id, node, apartAt, apartMs))),
  ];
}

/**
 * A node returns to a state from before a block that needs its copy to be committed. The other copies are out of reach.
 */
function drawRewind(prng: Prng, nodes: number, ttl: number): Drawn[] {
  const order = Array.from({ length: nodes }, (_, i) => `r${i + 1}`).sort(() => prng.unit() - 0.5);
  const minority = Math.floor((nodes - 1) / 2);
  const forMs = Math.round(ttl * prng.between(1.5, 4));
  const ageMs = Math.round(ttl * prng.between(0.3, 1.5));
  const cut = (process: string, node: string, reset: boolean): Drawn => ({
    kind: 'cut',
    process,
    node,
    direction: 'both',
    forMs,
    late: prng.chance(0.3),
    reset,
  });
  return [
    ...order.slice(0, minority).map((node) => cut('@leader', node, true)),
    ...order.slice(minority, 2 * minority).map((node) => cut('@others', node, true)),
    { kind: 'rewind', node: order[2 * minority]!, ageMs },
    prng.chance(0.5)
      ? { after: ageMs, kind: 'pause', process: '@leader', forMs: Math.round(ttl * prng.between(1.2, 3)) }
      : {
          after: ageMs,
          kind: 'crash',
          process: '@leader',
          afterCalls: 1,
          downMs: prng.int(0, 3 * ttl),
          store: 'keep',
        },
  ];
}

/** An operator's command in the middle of the faults, with a fault that gives it something to do. */
function drawOperatorTask(
  prng: Prng,
  nodes: number,
  processes: readonly ProcessPlan[],
  ttl: number,
  options: PlanOptions,
): Drawn[] {
  const node = (): string => `r${prng.int(1, nodes)}`;
  const cut = (after: number): Drawn => ({
    after,
    kind: 'cut',
    process: '*',
    node: node(),
    direction: 'both',
    forMs: Math.round(ttl * prng.between(0.5, 2)),
    late: prng.chance(0.5),
    reset: true,
  });
  switch (prng.pick(['leader', 'own', 'own', 'replace', 'power', 'power'] as const)) {
    // The command asks the leader to fix a node that fell behind a moment ago.
    case 'leader':
      return [cut(0), { after: Math.round(ttl * prng.between(0.3, 3)), kind: 'repair' }];
    // Nobody leads for a while, so the command takes a term of its own, while the others are about to return. Sometimes
    // two commands run at once.
    case 'own': {
      const downMs = Math.round(ttl * prng.between(1.5, 4));
      const begin = Math.round(ttl * prng.between(0.9, 2));
      return [
        cut(0),
        ...processes.map((one): Drawn => ({
          after: Math.round(ttl * prng.between(0, 0.4)),
          kind: 'crash',
          process: one.id,
          afterCalls: prng.int(1, 20),
          downMs,
          store: 'keep',
        })),
        ...Array.from({ length: prng.chance(0.3) ? 2 : 1 }, (): Drawn => ({
          after: begin + prng.int(0, 300),
          kind: 'repair',
        })),
      ];
    }
    case 'replace':
      return [{ kind: 'replace', node: node(), gone: prng.chance(0.3) }];
    case 'power':
      return [
        {
          kind: 'power',
          downMs: prng.int(50, 2 * ttl),
          lose: options.memory && prng.chance(0.5) ? 1 : 0,
          recoverAfterMs: prng.int(0, 2 * ttl),
        },
      ];
  }
}

/** Terms one after the other. Each has its own quorum and writes to fewer nodes. */
function drawActs(prng: Prng, nodes: number): Act[] {
  const all = Array.from({ length: nodes }, (_, i) => `r${i + 1}`);
  return Array.from({ length: prng.int(2, 5) }, (_, i): Act => {
    const reach = [...all].sort(() => prng.unit() - 0.5).slice(0, prng.chance(0.3) ? nodes : Math.floor(nodes / 2) + 1);
    const until = prng.pick(['written', 'written', 'committed', 'led'] as const);
    return {
      reach,
      writes: until === 'committed' ? reach : reach.slice(0, prng.int(1, Math.max(1, Math.floor(nodes / 2)))),
      until,
      ...(prng.chance(i === 0 ? 0.2 : 0.05) ? { raise: { node: prng.pick(all), by: prng.pick([1, 5, 1000]) } } : {}),
      ...(prng.chance(0.3) ? { restMs: prng.int(50, 500) } : {}),
    };
  });
}

/** A play without other faults: three sequencers, three nodes, short leases. */
export function playScenario(acts: Act[], seed: number): Scenario {
  const processes = ['seq-a', 'seq-b', 'seq-c'].map((id) => ({
    id,
    ttlMs: 600,
    blockTimeMs: 150,
    nodeTimeoutMs: 30,
    pollMs: 100,
    eager: false,
    priority: 0,
    syncMs: 1,
    wallOffsetMs: 0,
  }));
  return {
    seed,
    nodes: 3,
    retainBlocks: 40,
    processes,
    clients: 2,
    thinkMs: 200,
    faults: [{ at: 2000, kind: 'acts', acts, longestMs: 5000 }],
    healAt: 12_000,
  };
}

/** A fault. `after`: how long after the start of its group it begins (ms). */
type Drawn = FaultKind & { after?: number };

function faultDrawer(
  prng: Prng,
  nodes: number,
  processes: readonly ProcessPlan[],
  ttl: number,
  options: PlanOptions,
): () => Drawn[] {
  const node = (): string => `r${prng.int(1, nodes)}`;
  const process = (): string => (prng.chance(0.4) ? '@leader' : prng.pick(processes).id);
  const span = (): number => Math.round(prng.pick([0.05, 0.3, 1, 1.3, 3]) * ttl * prng.between(0.5, 1.5));
  const kinds: [number, () => Drawn[]][] = [
    [
      6,
      () => [
        {
          kind: 'cut',
          process: prng.chance(0.3) ? '*' : process(),
          node: prng.chance(0.25) ? '*' : node(),
          direction: prng.pick(['both', 'requests', 'replies'] as const),
          forMs: span(),
          late: prng.chance(0.5),
          reset: prng.chance(0.5),
        },
      ],
    ],
    // A partition: one sequencer cannot reach some of the nodes.
    [
      3,
      () => {
        const who = process();
        const forMs = span();
        return Array.from({ length: nodes }, (_, i) => i + 1)
          .filter(() => prng.chance(0.5))
          .map((i) => ({
            kind: 'cut' as const,
            process: who,
            node: `r${i}`,
            direction: prng.pick(['both', 'requests', 'replies'] as const),
            forMs,
            late: prng.chance(0.5),
            reset: prng.chance(0.5),
          }));
      },
    ],
    // A block on one node only: the leader reaches only this node, and the others reach all nodes but this one. The two
    // cuts end in either order.
    [
      6,
      () => {
        const alone = prng.int(1, nodes);
        const direction = prng.pick(['both', 'replies', 'requests'] as const);
        const leaderMs = Math.round(ttl * prng.between(0.8, 2.5));
        const othersMs = Math.round(ttl * prng.between(0.8, 3.5));
        return Array.from({ length: nodes }, (_, i) => i + 1).map((i) =>
          i === alone
            ? {
                kind: 'cut' as const,
                process: '@others',
                node: `r${i}`,
                direction: 'both' as const,
                forMs: othersMs,
                late: prng.chance(0.3),
                reset: true,
              }
            : {
                kind: 'cut' as const,
                process: '@leader',
                node: `r${i}`,
                direction: direction === 'replies' && prng.chance(0.5) ? ('both' as const) : direction,
                forMs: leaderMs,
                late: prng.chance(0.4),
                reset: prng.chance(0.5),
              },
        );
      },
    ],
    // No quorum for a while.
    [
      2,
      () => {
        const forMs = span();
        return Array.from({ length: Math.floor(nodes / 2) + 1 }, (_, i) => ({
          kind: 'silent' as const,
          node: `r${i + 1}`,
          forMs,
        }));
      },
    ],
    [3, () => [{ kind: 'silent', node: node(), forMs: span() }]],
    [
      2,
      () => [
        {
          kind: 'slow',
          process: prng.chance(0.5) ? '*' : process(),
          node: node(),
          ms: prng.pick([2, 10, 30, 60]),
          forMs: span(),
        },
      ],
    ],
    [
      5,
      () => [
        {
          kind: 'noise',
          drop: prng.pick([0, 0.05, 0.2]),
          lost: prng.pick([0, 0.05, 0.2]),
          twice: prng.pick([0, 0.1, 0.5]),
          lateMs: prng.pick([50, ttl, 3 * ttl]),
          delayMs: prng.pick([0, 10, 80, 300]),
          forMs: span() + ttl,
        },
      ],
    ],
    [
      5,
      () => [
        {
          kind: 'pause',
          process: process(),
          forMs: Math.round(prng.pick([0.2, 0.9, 1.1, 2]) * ttl * prng.between(0.7, 1.3)),
        },
      ],
    ],
    [
      6,
      () => [
        {
          kind: 'crash',
          process: process(),
          afterCalls: prng.int(1, 60),
          downMs: prng.int(0, 2 * ttl),
          store: prng.chance(0.15) ? 'empty' : 'keep',
        },
      ],
    ],
    [2, () => [{ kind: 'stop', process: process(), downMs: prng.int(100, 2 * ttl) }]],
    [2, () => [{ kind: 'disk', process: process(), syncMs: prng.pick([50, 400, 3000]), forMs: span() }]],
    [3, () => [{ kind: 'jump', node: node(), ms: prng.pick([-2 * ttl, -ttl, -100, 100, ttl, 10 * ttl]) }]],
    [1, () => [{ kind: 'wall', process: process(), ms: prng.pick([-60_000, -1000, 1000, 90_000_000]) }]],
    [1, () => [{ kind: 'hold', ttlMs: span() + 100, clearMs: span() }]],
    [
      3,
      () => [{ kind: 'stepdown', to: prng.chance(0.5) ? '' : prng.chance(0.8) ? prng.pick(processes).id : 'nobody' }],
    ],
    [2, () => [{ kind: 'raise', node: node(), by: prng.pick([1, 3, 1000]), ofHolder: prng.chance(0.3) }]],
    [2, () => [{ kind: 'revoke', node: prng.chance(0.5) ? '*' : node() }]],
  ];
  if (options.memory) {
    kinds.push([
      6,
      () => [
        {
          kind: 'restart',
          node: node(),
          keep: prng.pick(['all', 'all', 'none', prng.int(1, 5)] as const),
          downMs: prng.int(0, ttl),
        },
      ],
    ]);
    kinds.push([2, () => [{ kind: 'wipe', node: node() }]]);
    // A node whose copy is needed for a committed block loses its memory. The only other copy is out of reach of those
    // who go on.
    kinds.push([
      8,
      () => {
        const order = Array.from({ length: nodes }, (_, i) => `r${i + 1}`).sort(() => prng.unit() - 0.5);
        const minority = Math.floor((nodes - 1) / 2);
        const [lacking, hidden, forgetful] = [
          order.slice(0, minority),
          order.slice(minority, 2 * minority),
          order[2 * minority]!,
        ];
        const forMs = Math.round(ttl * prng.between(1.5, 4));
        const wipeAt = Math.round(ttl * prng.between(0.3, 1));
        const wiped: Drawn = prng.chance(0.5)
          ? { after: wipeAt, kind: 'wipe', node: forgetful }
          : {
              after: wipeAt,
              kind: 'restart',
              node: forgetful,
              keep: prng.pick(['all', 'none', 1, 2] as const),
              downMs: prng.int(0, Math.round(ttl / 4)),
            };
        return [
          ...lacking.map((node) => ({
            kind: 'cut' as const,
            process: '@leader',
            node,
            direction: 'both' as const,
            forMs,
            late: prng.chance(0.5),
            reset: true,
          })),
          ...hidden.map((node) => ({
            kind: 'cut' as const,
            process: '@others',
            node,
            direction: 'both' as const,
            forMs,
            late: false,
            reset: true,
          })),
          prng.chance(0.5)
            ? {
                after: wipeAt,
                kind: 'pause' as const,
                process: '@leader',
                forMs: Math.round(ttl * prng.between(1.2, 3)),
              }
            : {
                after: wipeAt,
                kind: 'crash' as const,
                process: '@leader',
                afterCalls: 1,
                downMs: prng.int(0, 3 * ttl),
                store: 'keep' as const,
              },
          wiped,
        ];
      },
    ]);
    if (options.corrupt) kinds.push([2, () => [{ kind: 'corrupt', node: node(), below: prng.int(0, 3) }]]);
  }
  const total = kinds.reduce((sum, [weight]) => sum + weight, 0);
  const any = (): Drawn[] => {
    let at = prng.unit() * total;
    for (const [weight, make] of kinds) if ((at -= weight) < 0) return make();
    return kinds[0]![1]();
  };
  const { only } = options;
  return !only
    ? any
    : () => {
        for (let tries = 0; tries < 10_000; tries++) {
          const drawn = any();
          if (drawn.every(({ kind }) => only.includes(kind))) return drawn;
        }
        throw new RangeError(`no fault is ever drawn that is only ${only.join(', ')}`);
      };
}

/** Names of fault groups for people, with their kinds. */
const GROUPS: Record<string, readonly FaultKind['kind'][]> = {
  partition: ['cut'],
  kill: ['crash', 'restart'],
  wipe: ['wipe', 'restart'],
};
const DRAWN: readonly FaultKind['kind'][] = [
  'cut',
  'silent',
  'slow',
  'noise',
  'pause',
  'crash',
  'stop',
  'disk',
  'jump',
  'wall',
  'hold',
  'stepdown',
  'raise',
  'revoke',
  'restart',
  'wipe',
  'corrupt',
];
export const FAULT_NAMES: readonly string[] = [...Object.keys(GROUPS), ...DRAWN.filter((kind) => !(kind in GROUPS))];

/** `wipe,partition,pause,kill` → kinds. null if a name is unknown. */
export function kindsNamed(text: string): FaultKind['kind'][] | null {
  const kinds = text.split(',').flatMap((name) => GROUPS[name] ?? DRAWN.filter((kind) => kind === name));
  return text.split(',').every((name) => FAULT_NAMES.includes(name)) ? [...new Set(kinds)] : null;
}
