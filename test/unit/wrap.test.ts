// Prose on a terminal: broken at words, in the column of its label; a command that is to be copied is never cut.
import { describe, expect, test } from 'vitest';
import { EXIT, SeqError } from '../../src/core/errors.js';
import { renderError } from '../../src/cli/present/error-text.js';
import { prose, renderText } from '../../src/cli/present/text.js';
import { wrapTo } from '../../src/cli/present/wrap.js';

const LONG = 'seq repair apply --confirm 1bdc04cf --on r1,r2';

describe('wrap', () => {
  test.each([
    ['it fits', 40, 'next: ', 'seq status', ['next: seq status']],
    [
      'prose → at words, in its column',
      30,
      '  why:     ',
      'the command line does not fit the command',
      ['  why:     the command line', '           does not fit the', '           command'],
    ],
    ['a word wider than the column → whole', 30, 'digest: ', 'a'.repeat(40), [`digest: ${'a'.repeat(40)}`]],
    [
      'a label that leaves no room → below it',
      30,
      'CANDIDATE_NOT_FOUND: ',
      'there is no sequencer of that name',
      ['CANDIDATE_NOT_FOUND:', '  there is no sequencer of', '  that name'],
    ],
    ['a command that fits a line of its own → there', 48, 'next: ', LONG, ['next:', LONG]],
    ['a command that fits nowhere → left to the terminal', 30, 'next: ', LONG, [`next: ${LONG}`]],
    [
      'colours count nothing',
      30,
      '\u001b[31mE\u001b[0m: ',
      'one two three four five six seven',
      ['\u001b[31mE\u001b[0m: one two three four five six', '   seven'],
    ],
    ['wide characters count two', 24, '', '高可用序列器 高可用序列器', ['高可用序列器', '高可用序列器']],
    ['no terminal to speak of → whole', 10, 'a: ', 'one two three four', ['a: one two three four']],
  ])('wrap: %s', (_, width, prefix, text, lines) => {
    expect(wrapTo(width)(prefix, text)).toEqual(lines);
  });

  test('wrap: a text with indentation and lists → each line keeps its own', () => {
    expect(prose('CODE (verdict)\n  causes:\n    - nodes that restarted and are not admitted', wrapTo(34))).toEqual([
      'CODE (verdict)',
      '  causes:',
      '    - nodes that restarted and are',
      '      not admitted',
    ]);
  });

  test('wrap: an answer and an error at 40 columns → no line is longer but what is copied', () => {
    const answer = renderText(
      {
        data: null,
        verdict: {
          verdict: 'WARN',
          reason: 'r3 needs repair, and nobody could say what became of height 1042',
          reasonCode: 'X',
        },
        facts: [['by', 'a term of this command, because nobody leads']],
        text: 'left as it is, however long it may be and whatever it says',
        asIs: true,
        next: [LONG],
      },
      { format: 'table', width: 40, colour: false, quiet: false, fields: [], wrap: wrapTo(40) },
    ).split('\n');
    expect(answer.filter((line) => line.length > 40)).toEqual([
      'left as it is, however long it may be and whatever it says',
      `next: ${LONG}`,
    ]);
    const error = renderError(
      new SeqError({
        code: 'NODE_UNREACHABLE',
        exit: EXIT.noQuorum,
        message: 'two of three nodes could not be asked within the limit',
        why: 'there is no answer at all from either of them',
        changed: 'nothing',
        next: ['check that the servers run and that the addresses are right'],
      }),
      false,
      wrapTo(40),
    );
    expect(error.split('\n').filter((line) => line.length > 40)).toEqual([]);
  });
});
