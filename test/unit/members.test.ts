// Who may change the configuration: docs/PROTOCOL.md section 8, I13.
import { describe, expect, test } from 'vitest';
import { configurationText, parseConfiguration } from '../../src/core/protocol/configuration.js';
import { nextConfiguration } from '../../src/core/protocol/members.js';
import type { TermState } from '../../src/core/protocol/term-state.js';

const BASE = '3.1 dedup-ms=1000 dedup-items=10 max-block=1024 | r1=a@redis://h:1 r2=b@redis://h:2 r3=c@redis://h:3';

function term(epoch: number, nextTurn: number): TermState {
  return {
    configuration: parseConfiguration(BASE),
    settings: { ids: ['r1', 'r2', 'r3'] },
    epoch,
    nextTurn,
  } as unknown as TermState;
}

describe('members: the next configuration', () => {
  test.each([
    // epoch  turn       version that it makes
    [4, 0, '4.0'],
    [4, 999_999, '4.999999'],
    [4, 1_000_000, null], // six digits: a term that has made so many is renewed first
    [3, 2, '3.2'],
    [3, 1, null], // the version that is there
    [2, 9, null], // an earlier epoch than the one that it would follow
  ])('epoch %i, turn %i → %s', (epoch, turn, version) => {
    const next = nextConfiguration(term(epoch, turn), 1, 'new');
    expect(next === null ? null : configurationText(next).split(' ')[0]).toBe(version);
    if (next !== null) expect(parseConfiguration(configurationText(next))).not.toBeNull();
  });
});
