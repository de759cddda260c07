// Which lanes are meant by `--lanes`? A pattern as in a shell: `*` is any text, `?` one character. Several patterns
// have commas between them. Pure.
import { EXIT, SeqError } from '../errors.js';

const PATTERN = /^[a-z0-9*?-]{1,64}$/;

/** Throws BAD_LANE for a pattern that no lane can fit. */
export function lanePattern(text: string): (lane: string) => boolean {
  const parts = text.split(',').map((part) => part.trim());
  const bad = parts.find((part) => !PATTERN.test(part));
  if (bad !== undefined)
    throw new SeqError({
      code: 'BAD_LANE',
      exit: EXIT.config,
      message: `'${bad.slice(0, 80)}' is no pattern of lanes`,
      why: 'a lane has 1 to 32 of a-z, 0-9 and -; in a pattern, * is any text and ? one character',
      changed: 'nothing',
      next: ["--lanes 'tile-*'"],
    });
  const expressions = parts.map((part) => new RegExp(`^${part.replaceAll('*', '.*').replaceAll('?', '.')}$`));
  return (lane) => expressions.some((one) => one.test(lane));
}
