// The lanes of one process: which are started and stopped, and what happens when one fails. Only the clock is a double.
import { expect, test } from 'vitest';
import { EXIT, SeqError } from '../../src/core/errors.js';
import type { LaneEntry, LaneState } from '../../src/core/fleet/entries.js';
import { LaneSet, type RunningLane } from '../../src/core/fleet/lane-set.js';
import { lanePattern } from '../../src/core/fleet/pattern.js';
import type { ErrorCode } from '../../src/core/error-codes.js';
import { ManualClock } from '../support/manual-clock.js';

const registry = (lanes: Record<string, LaneState>) =>
  new Map(
    Object.entries(lanes).map(([name, state]): [string, LaneEntry] => [
      name,
      { name, state, version: 1, writer: 'aa', by: 'op', atMs: 0 },
    ]),
  );

function error(code: ErrorCode, cause?: unknown): SeqError {
  return new SeqError({ code, exit: EXIT.bug, message: code, why: '', changed: 'nothing', next: [], cause });
}

interface Lane extends RunningLane {
  fail(code: ErrorCode, cause?: unknown): void;
}

function laneSet(
  pattern: string,
  cannotStart: (lane: string) => ErrorCode | null = () => null,
  more: { fails?: ErrorCode; cannotStop?: ErrorCode } = {},
) {
  const clock = new ManualClock();
  const said: string[] = [];
  const set = new LaneSet<Lane>({
    clock,
    wanted: lanePattern(pattern),
    start: async (lane) => {
      const code = cannotStart(lane);
      if (code !== null) throw error(code);
      said.push(`start ${lane}`);
      let fail!: (one: SeqError) => void;
      const failure = more.fails
        ? Promise.resolve(error(more.fails))
        : new Promise<SeqError>((resolve) => (fail = resolve));
      return {
        failure,
        fail: (one, cause) => fail(error(one, cause)),
        stop: async (code_, reason) => {
          said.push(`stop ${lane} ${code_} ${reason}`);
          if (more.cannotStop) throw error(more.cannotStop);
        },
      };
    },
    failed: (lane, { message }, retryMs) => said.push(`failed ${lane} ${message} ${retryMs}`),
    changed: () => undefined,
  });
  const settled = () => new Promise((resolve) => setImmediate(resolve));
  const update = async (lanes: Record<string, LaneState>) => {
    set.update(registry(lanes));
    await settled();
    return said.splice(0);
  };
  return { clock, set, said, settled, update };
}

test('lane set: open lanes that fit are started, later ones too; closed, removed and unlisted ones are stopped', async () => {
  const { set, update } = laneSet('tile-*');
  expect(await update({ 'tile-1': 'open', 'tile-2': 'closed', other: 'open' })).toEqual(['start tile-1']);
  expect(await update({ 'tile-1': 'open', 'tile-2': 'open' })).toEqual(['start tile-2']);
  expect(await update({ 'tile-1': 'open', 'tile-2': 'open' })).toEqual([]);
  expect(set.size).toBe(2);
  expect(await update({ 'tile-1': 'closed' })).toEqual([
    'stop tile-1 STOPPED closed',
    'stop tile-2 STOPPED not listed any more',
  ]);
  expect(set.running()).toEqual([]);
  expect(await update({ 'tile-1': 'open' })).toEqual(['start tile-1']);
});

test('lane set: one fails → it ends alone, and is tried again after a pause that grows', async () => {
  const { clock, set, said, settled, update } = laneSet('*');
  await update({ a: 'open', b: 'open' });
  for (const pauseMs of [1000, 2000, 4000]) {
    set.get('a')!.fail('CHAIN_MISMATCH');
    await settled();
    expect(said.splice(0)).toEqual(['stop a CHAIN_MISMATCH CHAIN_MISMATCH', `failed a CHAIN_MISMATCH ${pauseMs}`]);
    await clock.advance(pauseMs - 1);
    expect(await update({ a: 'open', b: 'open' })).toEqual([]);
    await clock.advance(2);
    expect(await update({ a: 'open', b: 'open' })).toEqual(['start a']);
  }
  expect(set.running().map(({ name }) => name)).toEqual(['a', 'b']);
});

test('lane set: one has failed before its start is over → it ends, and is tried again', async () => {
  const { set, update } = laneSet('*', undefined, { fails: 'CHAIN_MISMATCH' });
  expect(await update({ a: 'open' })).toEqual([
    'start a',
    'stop a CHAIN_MISMATCH CHAIN_MISMATCH',
    'failed a CHAIN_MISMATCH 1000',
  ]);
  expect(set.running()).toEqual([]);
});

test('lane set: one cannot be stopped → that concerns the process, and is no unhandled rejection', async () => {
  const { set, update } = laneSet('*', undefined, { cannotStop: 'STORE_FAILED' });
  await update({ a: 'open' });
  expect(await update({ a: 'closed' })).toEqual(['stop a STOPPED closed']);
  expect(await set.failure).toMatchObject({ code: 'STORE_FAILED' });
});

test('lane set: one cannot be started → the others are, and it is tried again', async () => {
  let broken = true;
  const { clock, update } = laneSet('*', (lane) => (lane === 'a' && broken ? 'LANE_OTHER_CLUSTER' : null));
  expect(await update({ a: 'open', b: 'open' })).toEqual(['start b', 'failed a LANE_OTHER_CLUSTER 1000']);
  broken = false;
  await clock.advance(1001);
  expect(await update({ a: 'open', b: 'open' })).toEqual(['start a']);
});

test.each([
  ['STORE_FAILED', undefined],
  ['DUPLICATE_ID', { extra: { lanes: 'many' } }],
] as const)('lane set: %s concerns all lanes', async (code, cause) => {
  const { set, update } = laneSet('*');
  await update({ a: 'open', b: 'open' });
  set.get('b')!.fail(code, cause);
  expect((await set.failure).code).toBe(code);
});

test('lane set: a process of this id that runs one lane alone → that lane ends, and is tried again', async () => {
  const { clock, set, said, settled, update } = laneSet('*');
  await update({ a: 'open', b: 'open' });
  set.get('b')!.fail('DUPLICATE_ID', { extra: {} });
  await settled();
  expect(said.splice(0)).toEqual(['stop b DUPLICATE_ID DUPLICATE_ID', 'failed b DUPLICATE_ID 1000']);
  expect(set.running().map(({ name }) => name)).toEqual(['a']);
  await clock.advance(1001);
  expect(await update({ a: 'open', b: 'open' })).toEqual(['start b']);
});

test('lane set: the default lane is held while it is asked for → it is no lane of the list', async () => {
  const { set, said, settled } = laneSet('a*');
  set.update(registry({ a: 'open' }), true);
  await settled();
  expect([said.splice(0), set.size]).toEqual([['start ', 'start a'], 1]);
  set.update(registry({ a: 'open' }), false);
  await settled();
  expect(said).toEqual(['stop  STOPPED another process runs it']);
});

test('lane set: a thousand lanes → all are started, each once', async () => {
  const { set, update, settled } = laneSet('*');
  const lanes = Object.fromEntries(Array.from({ length: 1000 }, (_, i) => [`t${i}`, 'open' as const]));
  const started = await update(lanes);
  for (let round = 0; set.running().length < 1000 && round < 1000; round++) await settled();
  expect(new Set([...started, ...(await update(lanes))]).size).toBe(1000);
});

test('lane set: stopped → every lane is, with the reason, and none is started any more', async () => {
  const { set, said, update } = laneSet('*');
  await update({ a: 'open', b: 'open' });
  await set.stop('SIGTERM', 'asked');
  expect(said).toEqual(['stop a SIGTERM asked', 'stop b SIGTERM asked']);
  said.splice(0);
  expect(await update({ a: 'open', c: 'open' })).toEqual([]);
});
