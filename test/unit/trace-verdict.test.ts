// What `seq trace` says of an item that was not found: "no" only when somebody answered who must have it.
import { expect, test } from 'vitest';
import { traceResult } from '../../src/cli/present/trace.js';
import type { ItemTrace } from '../../src/core/report/trace.js';

const witness = { id: 'seq-a', url: '', clockAheadMs: 0, clockErrorMs: 1, rememberedSinceMs: null };
const none: ItemTrace = {
  ...{ key: 'k', item: null, waits: false, leads: true, damaged: [], steps: [], witnesses: [witness], silent: [] },
};

test.each<[string, Partial<ItemTrace>, number, string]>([
  ['a leader and everybody else answer', {}, 1, 'ITEM_NOT_SEEN'],
  ['… and one has it, without an answer yet', { waits: true }, 1, 'ITEM_WAITS'],
  ['no leader answers: a follower may be behind', { leads: false }, 3, 'ITEM_UNKNOWN'],
  ['one does not answer', { silent: [{ url: 'http://b', why: 'silent' }] }, 3, 'ITEM_UNKNOWN'],
  ['a store is damaged there', { damaged: ['seq-a'] }, 3, 'ITEM_UNKNOWN'],
  ['nobody answers', { witnesses: [], leads: false }, 3, 'ITEM_UNKNOWN'],
])('%s → %i', (_what, given, exit, code) => {
  const { exit: said, verdict } = traceResult({ ...none, ...given }, { key: 'k' });
  expect([said, verdict?.reasonCode]).toEqual([exit, code]);
});
