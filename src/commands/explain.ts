import { Args } from '@oclif/core';
import { EXIT, SeqError } from '../core/errors.js';
import { masked } from '../core/log/redact.js';
import { SeqCommand } from '../cli/command/base-command.js';
import type { Result } from '../cli/present/result.js';
import { allCodes, explain } from '../cli/codes/codes.js';
import { suggest } from '../cli/support/suggest.js';

export default class Explain extends SeqCommand {
  static override summary = 'Explain an error code, a refusal word, a verdict or the text of a message';
  static override needsConfig = false;
  static override strict = false;
  static override usage = 'explain [CODE|TEXT]';
  static override args = { text: Args.string({ description: 'code or text; without it, all codes are listed' }) };
  static override examples = ['<%= config.bin %> explain FENCING_ERROR', '<%= config.bin %> explain no quorum'];
  protected readonly kind = 'explain';

  protected async perform(): Promise<Result> {
    const { argv } = await this.parse(Explain);
    const text = argv.join(' ');
    if (text === '') return this.list();
    const word = /^[A-Za-z0-9]+(?:_[A-Za-z0-9]+)*$/.test(text) ? text.toUpperCase() : '';
    const near = suggest(word || text.toUpperCase(), [...allCodes().keys()]);
    // A code with a slip of a finger in it is no text to search for.
    const found = word.includes('_') && near.length > 0 && !allCodes().has(word) ? [] : explain(text);
    if (found.length === 0) {
      throw new SeqError({
        code: 'UNKNOWN_CODE',
        exit: EXIT.notFound,
        message: `nothing is known of '${masked(text)}'${near[0] ? `; did you mean ${near[0]}?` : ''}`,
        why: 'it is neither a code nor like the text of a message',
        changed: 'nothing',
        next: [...near.map((code) => `seq explain ${code}`), 'seq explain'],
      });
    }
    return {
      data: { codes: found },
      items: found,
      text: found
        .map((entry) =>
          [
            `${entry.code} (${entry.kind})`,
            `  ${entry.meaning}`,
            ...(entry.causes.length > 0 ? ['  causes:', ...entry.causes.map((cause) => `    - ${cause}`)] : []),
            ...(entry.todo.length > 0 ? ['  what to do:', ...entry.todo.map((step) => `    - ${step}`)] : []),
          ].join('\n'),
        )
        .join('\n\n'),
    };
  }

  private list(): Result {
    const codes = [...allCodes().values()].sort((a, b) => a.code.localeCompare(b.code));
    return {
      data: { codes },
      items: codes,
      tables: [
        {
          columns: [{ key: 'code' }, { key: 'kind' }, { key: 'meaning' }],
          rows: codes.map(({ code, kind, meaning }) => ({ code, kind, meaning })),
        },
      ],
    };
  }
}
