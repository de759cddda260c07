// Are the faults gone that the simulation once found? Each title names what was wrong. The scenarios are minimised.
import { describe, expect, it } from 'vitest';
import { check } from '../sim/checkers/index.js';
import type { ProcessPlan } from '../sim/scenario.js';
import { run } from '../sim/world.js';

/** For each lease (ms): block time, limit of a call to a node, and poll interval, all in ms. */
const TIMINGS = {
  600: { blockTimeMs: 150, nodeTimeoutMs: 30, pollMs: 100 },
  1500: { blockTimeMs: 500, nodeTimeoutMs: 50, pollMs: 250 },
  3000: { blockTimeMs: 1000, nodeTimeoutMs: 100, pollMs: 500 },
};

function sequencer(id: string, ttlMs: keyof typeof TIMINGS, more: Partial<ProcessPlan> = {}): ProcessPlan {
  return { id, ttlMs, ...TIMINGS[ttlMs], eager: false, priority: 0, syncMs: 1, wallOffsetMs: 0, ...more };
}

describe('found by simulation', () => {
  it(
    'a store ends below the retained range of the nodes that hold the head → it catches up; ' +
      'nothing is called damaged',
    async () => {
      const { history } = await run({
        seed: 84,
        nodes: 3,
        retainBlocks: 6,
        clients: 3,
        thinkMs: 1000,
        healAt: 10485,
        processes: [
          sequencer('seq-a', 3000, { syncMs: 4, wallOffsetMs: 362 }),
          sequencer('seq-b', 600, { eager: true }),
        ],
        faults: [
          { at: 2318, kind: 'crash', process: 'seq-b', afterCalls: 15, downMs: 3027, store: 'keep' },
          { at: 3764, kind: 'noise', drop: 0, lost: 0, twice: 0.5, lateMs: 3000, delayMs: 300, forMs: 5471 },
          { at: 4973, kind: 'crash', process: 'seq-a', afterCalls: 5, downMs: 3840, store: 'keep' },
          { at: 7313, kind: 'noise', drop: 0, lost: 0, twice: 0.5, lateMs: 3000, delayMs: 0, forMs: 6010 },
          {
            at: 9807,
            kind: 'cut',
            process: 'seq-b',
            node: 'r1',
            direction: 'replies',
            forMs: 5515,
            late: true,
            reset: false,
          },
          {
            at: 9807,
            kind: 'cut',
            process: 'seq-b',
            node: 'r2',
            direction: 'both',
            forMs: 5515,
            late: false,
            reset: false,
          },
        ],
      });
      expect(check(history)).toEqual([]);
    },
  );

  it(
    "a node restarts with an epoch far above the leader's → the term is renewed above it and re-admits " +
      'the node, with few calls',
    async () => {
      const { history } = await run({
        seed: 5259,
        nodes: 5,
        retainBlocks: 12,
        clients: 0,
        thinkMs: 1000,
        healAt: 12208,
        processes: [
          sequencer('seq-a', 3000, { eager: true, syncMs: 4, wallOffsetMs: -4154 }),
          sequencer('seq-b', 3000, { eager: true, syncMs: 12 }),
        ],
        faults: [
          { at: 3643, kind: 'raise', node: 'r4', by: 1000, ofHolder: false },
          {
            at: 3764,
            kind: 'cut',
            process: '@leader',
            node: 'r4',
            direction: 'both',
            forMs: 9253,
            late: true,
            reset: true,
          },
          { at: 11208, kind: 'restart', node: 'r4', keep: 'all', downMs: 329 },
        ],
      });
      expect(check(history)).toEqual([]);
      expect(
        history.entries.filter((entry) => entry.is === 'op' && entry.script === 'begin_admission').length,
      ).toBeLessThan(20);
    },
  );

  it(
    'a leader with a slow disk dies → the nodes still hold what its disk did not get, and the others go ' +
      'on from there',
    async () => {
      const { history } = await run({
        seed: 13006,
        nodes: 3,
        retainBlocks: 6,
        clients: 0,
        thinkMs: 300,
        healAt: 13807,
        processes: [
          sequencer('seq-a', 1500, { syncMs: 4, wallOffsetMs: -4340 }),
          sequencer('seq-b', 600, { syncMs: 4 }),
          sequencer('seq-c', 3000),
        ],
        faults: [
          { at: 1123, kind: 'stepdown', to: '' },
          { at: 2059, kind: 'crash', process: 'seq-b', afterCalls: 38, downMs: 2021, store: 'keep' },
          {
            at: 3836,
            kind: 'cut',
            process: '@leader',
            node: 'r2',
            direction: 'both',
            forMs: 6984,
            late: false,
            reset: false,
          },
          {
            at: 3836,
            kind: 'cut',
            process: '@leader',
            node: 'r3',
            direction: 'both',
            forMs: 6984,
            late: false,
            reset: true,
          },
          { at: 9258, kind: 'disk', process: 'seq-b', syncMs: 3000, forMs: 5375 },
          {
            at: 9896,
            kind: 'cut',
            process: '@leader',
            node: '*',
            direction: 'both',
            forMs: 4490,
            late: true,
            reset: false,
          },
          { at: 12251, kind: 'stop', process: 'seq-a', downMs: 966 },
          { at: 12807, kind: 'crash', process: '@leader', afterCalls: 39, downMs: 2488, store: 'keep' },
        ],
      });
      expect(check(history)).toEqual([]);
    },
  );

  it(
    'a follower with a slow disk gets blocks from a peer and from the nodes at once → it takes each ' +
      'block once, no fatal error',
    async () => {
      const { history } = await run({
        seed: 2100442,
        nodes: 3,
        retainBlocks: 6,
        clients: 3,
        thinkMs: 100,
        healAt: 17021,
        processes: [
          sequencer('seq-a', 1500, { eager: true, syncMs: 4, wallOffsetMs: -3677 }),
          sequencer('seq-b', 1500, { eager: true, priority: 1, syncMs: 12 }),
          sequencer('seq-c', 3000),
        ],
        faults: [
          {
            at: 1272,
            kind: 'cut',
            process: '@leader',
            node: 'r1',
            direction: 'both',
            forMs: 4630,
            late: true,
            reset: false,
          },
          {
            at: 1272,
            kind: 'cut',
            process: '@leader',
            node: 'r2',
            direction: 'both',
            forMs: 4630,
            late: false,
            reset: false,
          },
          {
            at: 1272,
            kind: 'cut',
            process: '@others',
            node: 'r3',
            direction: 'both',
            forMs: 9426,
            late: true,
            reset: true,
          },
          { at: 5777, kind: 'disk', process: 'seq-c', syncMs: 400, forMs: 12490 },
        ],
      });
      expect(check(history)).toEqual([]);
    },
  );

  it(
    'a leader dies while it admits a replacement whose address only it knew → the same command tells ' +
      'the next leader, which goes on',
    async () => {
      const { history } = await run({
        seed: 2118,
        nodes: 3,
        retainBlocks: 6,
        clients: 0,
        thinkMs: 1000,
        healAt: 16838,
        processes: [
          sequencer('seq-a', 3000),
          sequencer('seq-b', 3000, { syncMs: 12, wallOffsetMs: 3405 }),
          sequencer('seq-c', 3000, { syncMs: 0, wallOffsetMs: 2717 }),
        ],
        faults: [
          {
            at: 10128,
            kind: 'cut',
            process: '@leader',
            node: 'r1',
            direction: 'both',
            forMs: 6523,
            late: false,
            reset: true,
          },
          {
            at: 10128,
            kind: 'cut',
            process: '@leader',
            node: 'r2',
            direction: 'both',
            forMs: 6523,
            late: false,
            reset: true,
          },
          { at: 12937, kind: 'replace', node: 'r3', gone: true },
          { at: 15464, kind: 'crash', process: 'seq-a', afterCalls: 10, downMs: 4500, store: 'keep' },
          { at: 16014, kind: 'crash', process: 'seq-b', afterCalls: 9, downMs: 4500, store: 'keep' },
          { at: 16370, kind: 'crash', process: 'seq-c', afterCalls: 5, downMs: 4500, store: 'keep' },
        ],
      });
      expect(check(history)).toEqual([]);
    },
  );

  it('a node is replaced twice under one term → the second address counts, too', async () => {
    const { history } = await run({
      seed: 3070,
      nodes: 3,
      retainBlocks: 40,
      clients: 0,
      thinkMs: 500,
      healAt: 6656,
      processes: [
        sequencer('seq-a', 1500, { eager: true, priority: 1, syncMs: 0 }),
        sequencer('seq-b', 1500, { eager: true }),
      ],
      faults: [
        { at: 832, kind: 'replace', node: 'r2', gone: false },
        { at: 6457, kind: 'replace', node: 'r2', gone: false },
      ],
    });
    expect(check(history)).toEqual([]);
    expect(
      history.entries.filter(
        (entry) => entry.is === 'operator-task' && entry.verb === 'replace' && entry.code === 'DONE',
      ),
    ).toHaveLength(2);
  });

  it(
    'a sequencer that knows only the old address leads when the new server is admitted → the command ' +
      'waits until that leader writes to it',
    async () => {
      const { history } = await run({
        seed: 1547362699632649,
        nodes: 3,
        retainBlocks: 12,
        clients: 0,
        thinkMs: 20,
        healAt: 4197,
        processes: [
          sequencer('seq-a', 600, { syncMs: 0 }),
          sequencer('seq-b', 600, { syncMs: 0 }),
          sequencer('seq-c', 600, { syncMs: 12 }),
        ],
        faults: [
          { at: 1561, kind: 'replace', node: 'r2', gone: false },
          { at: 3039, kind: 'crash', process: 'seq-c', afterCalls: 17, downMs: 2390, store: 'keep' },
          { at: 3144, kind: 'crash', process: 'seq-b', afterCalls: 6, downMs: 2390, store: 'keep' },
          { at: 3205, kind: 'crash', process: 'seq-a', afterCalls: 17, downMs: 2390, store: 'keep' },
        ],
      });
      expect(check(history)).toEqual([]);
    },
  );

  it(
    'an init is killed after one node of five is admitted, whose epoch is then raised → the next init ' +
      'asks for a recovery, which succeeds',
    async () => {
      const { history } = await run({
        seed: 2587341164483679,
        nodes: 5,
        retainBlocks: 40,
        clients: 0,
        thinkMs: 500,
        healAt: 6229,
        bootstrap: true,
        processes: [
          sequencer('seq-a', 1500, { syncMs: 12 }),
          sequencer('seq-b', 1500, { priority: 1, syncMs: 4 }),
          sequencer('seq-c', 1500, { syncMs: 0 }),
        ],
        faults: [
          { at: 0, kind: 'noise', drop: 0.1, lost: 0, twice: 0.5, lateMs: 4500, delayMs: 0, forMs: 3000 },
          { at: 5229, kind: 'raise', node: 'r1', by: 1, ofHolder: true },
        ],
      });
      expect(check(history)).toEqual([]);
    },
  );

  it('a node is emptied, and both phases of its bootstrap arrive again → they do not admit it, no fork', async () => {
    const { history } = await run({
      seed: 230003923,
      nodes: 3,
      retainBlocks: 40,
      clients: 0,
      thinkMs: 100,
      healAt: 8528,
      bootstrap: true,
      processes: [sequencer('seq-a', 3000, { eager: true, syncMs: 12 }), sequencer('seq-b', 1500, { syncMs: 0 })],
      faults: [
        { at: 0, kind: 'noise', drop: 0.1, lost: 0, twice: 0.5, lateMs: 9000, delayMs: 0, forMs: 6000 },
        {
          at: 6338,
          kind: 'cut',
          process: '@leader',
          node: 'r1',
          direction: 'both',
          forMs: 5657,
          late: false,
          reset: true,
        },
        {
          at: 6338,
          kind: 'cut',
          process: '@others',
          node: 'r2',
          direction: 'both',
          forMs: 5657,
          late: false,
          reset: true,
        },
        { at: 7528, kind: 'crash', process: '@leader', afterCalls: 1, downMs: 2273, store: 'keep' },
        { at: 7528, kind: 'wipe', node: 'r3' },
      ],
    });
    expect(check(history)).toEqual([]);
  });
});
