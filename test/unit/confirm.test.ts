// What lets a change go on: nothing, --yes, the plan's digest, and a flag named after the rule. Every other way ends
// before anything is done.
import { describe, expect, test } from 'vitest';
import { commandLine, confirmChange, type Asking, type Change } from '../../src/cli/support/confirm.js';
import { SeqError } from '../../src/core/errors.js';

const DIGEST = 'ab12cd34ef56ab12';
const UNDOABLE: Change = { level: 'undoable', what: 'hold promotion', effect: [] };
const DISRUPTIVE: Change = { level: 'disruptive', what: 'hand over', effect: ['the margin stays 1'] };
const DECIDES: Change = { level: 'decides-data', what: 'apply the plan', effect: ['3 steps'], digest: DIGEST };
const AGAINST: Change = {
  ...DECIDES,
  against: { rule: 'two blocks claim height 7', flag: 'choose-between-conflicting-blocks', given: false },
};
const KNOWN: Change = { ...AGAINST, against: { ...AGAINST.against!, given: true } };

async function outcome(
  change: Change,
  given: { yes?: boolean; confirm?: string; answer?: string | null },
): Promise<string> {
  const said: string[] = [];
  const asking: Asking = {
    yes: given.yes ?? false,
    confirm: given.confirm,
    mayAsk: given.answer !== undefined,
    command: 'seq x',
    signal: new AbortController().signal,
    say: (text) => said.push(text),
    ask: async (question) => {
      said.push(question);
      return given.answer ?? null;
    },
  };
  try {
    await confirmChange(change, asking);
    return said.length > 0 ? 'goes on, asked' : 'goes on';
  } catch (error) {
    const { code, exit, changed, next } = error as SeqError;
    return `${exit} ${code} ${changed}: ${next[0]}`;
  }
}

describe('confirm', () => {
  test.each<[string, Change, Parameters<typeof outcome>[1], string]>([
    ['undoable, script', UNDOABLE, {}, 'goes on'],
    ['disruptive, script', DISRUPTIVE, {}, '81 CONFIRMATION_NEEDED nothing: seq x --yes'],
    ['disruptive, --yes', DISRUPTIVE, { yes: true }, 'goes on'],
    ['disruptive, terminal, y', DISRUPTIVE, { answer: 'y' }, 'goes on, asked'],
    ['disruptive, terminal, YES', DISRUPTIVE, { answer: 'YES ' }, 'goes on, asked'],
    ['disruptive, terminal, Enter', DISRUPTIVE, { answer: '' }, '81 DECLINED nothing: seq x --yes'],
    ['disruptive, terminal, yeah', DISRUPTIVE, { answer: 'yeah' }, '81 DECLINED nothing: seq x --yes'],
    ['disruptive, terminal, end of input', DISRUPTIVE, { answer: null }, '81 DECLINED nothing: seq x --yes'],
    ['decides data, script', DECIDES, {}, '81 CONFIRMATION_NEEDED nothing: seq x --confirm ab12cd34'],
    [
      'decides data, --yes is not enough',
      DECIDES,
      { yes: true },
      '81 CONFIRMATION_NEEDED nothing: seq x --confirm ab12cd34',
    ],
    ['decides data, digest', DECIDES, { confirm: DIGEST }, 'goes on'],
    ['decides data, its first 8', DECIDES, { confirm: 'ab12cd34' }, 'goes on'],
    ['decides data, its first 7', DECIDES, { confirm: 'ab12cd3' }, '76 PLAN_STALE nothing: seq x --dry-run'],
    ['decides data, another digest', DECIDES, { confirm: 'ffffffff' }, '76 PLAN_STALE nothing: seq x --dry-run'],
    [
      'decides data, another digest beats the terminal',
      DECIDES,
      { confirm: 'ffffffff', answer: 'ab12cd34' },
      '76 PLAN_STALE nothing: seq x --dry-run',
    ],
    ['decides data, terminal, digest typed', DECIDES, { answer: 'AB12CD34' }, 'goes on, asked'],
    ['decides data, terminal, y', DECIDES, { answer: 'y' }, '81 DECLINED nothing: seq x --confirm ab12cd34'],
    [
      'against a rule, digest alone',
      AGAINST,
      { confirm: DIGEST },
      '81 CONFIRMATION_NEEDED nothing: seq x --choose-between-conflicting-blocks',
    ],
    ['against a rule, flag alone', KNOWN, {}, '81 CONFIRMATION_NEEDED nothing: seq x --confirm ab12cd34'],
    ['against a rule, both', KNOWN, { confirm: DIGEST }, 'goes on'],
  ])('confirm: %s → %#', async (_, change, given, expected) => {
    expect(await outcome(change, given)).toBe(expected);
  });

  test('confirm: what is shown for repetition → quoted for a shell, without --dry-run and secrets', () => {
    expect(commandLine('epoch:heal', ['--node', 'redis://u:pw@h:1', '--reason', "it's late", '--dry-run'])).toBe(
      "seq epoch heal --node 'redis://u:***@h:1' --reason 'it'\\''s late'",
    );
  });
});
