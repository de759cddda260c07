// SEQ_DISABLE: which shortcuts are off.
import { describe, expect, test } from 'vitest';
import { SeqError } from '../../src/core/errors.js';
import { disabledShortcuts, SHORTCUTS } from '../../src/core/shortcuts.js';

describe('shortcuts', () => {
  test.each([
    ['not set', undefined, ''],
    ['empty', '', ''],
    ['one', 'warm-up', 'warm-up'],
    ['several, with commas or spaces', 'warm-up, command-index', 'command-index warm-up'],
    ['the own RESP reader → the fast append with it, which builds on it', 'own-resp', 'fast-append own-resp'],
    ['all', SHORTCUTS.join(), 'command-index fast-append own-resp warm-up'],
  ])('shortcuts: SEQ_DISABLE %s → off: %s', (_, value, off) => {
    expect([...disabledShortcuts(value)].sort().join(' ')).toBe(off);
  });

  test('shortcuts: an unknown name → refused with 78, and the known names', () => {
    let thrown: unknown;
    try {
      disabledShortcuts('warm-up,fast');
    } catch (error) {
      thrown = error;
    }
    expect(thrown).toBeInstanceOf(SeqError);
    const { code, exit, message, why } = thrown as SeqError;
    expect({ code, exit }).toEqual({ code: 'BAD_CONFIG', exit: 78 });
    expect(`${message}; ${why}`).toBe(
      "SEQ_DISABLE: there is no shortcut 'fast'; the shortcuts are fast-append, own-resp, warm-up, command-index",
    );
  });
});
