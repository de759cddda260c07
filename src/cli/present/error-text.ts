// A failure for people: five parts (code and sentence, why, changed, next), on stderr. Pure.
import type { SeqError } from '../../core/errors.js';
import { paint, whole } from './text.js';
import type { Wrap } from './wrap.js';

export function renderError(error: SeqError, colour: boolean, wrap: Wrap = whole): string {
  const changed =
    error.changed === 'some'
      ? `some nodes: ${error.changedNodes.join(', ') || 'see the output'}`
      : error.changed === 'unknown'
        ? 'unknown: it may or may not have taken effect'
        : 'nothing';
  const next = error.next.length > 0 ? error.next : [`seq explain ${error.code}`];
  const lines = [
    ...wrap(`${paint(error.code, 31, colour)}: `, error.message),
    ...wrap('  why:     ', error.why),
    ...wrap('  changed: ', changed),
    ...next.flatMap((step, at) => wrap(at === 0 ? '  next:    ' : '           ', step)),
  ];
  return `${lines.join('\n')}\n`;
}
