// "There is no such context", said the same way everywhere.
import { EXIT, SeqError } from '../../core/errors.js';
import type { ConfigFile } from './file.js';
import { suggest } from '../support/suggest.js';

export function contextNotFound(name: string, config: ConfigFile | null, path: string): SeqError {
  const known = Object.keys(config?.contexts ?? {});
  return new SeqError({
    code: 'CONTEXT_NOT_FOUND',
    exit: EXIT.notFound,
    message: `there is no context '${name}'`,
    why: config ? `${path} has: ${known.join(', ') || 'no context'}` : `there is no config file at ${path}`,
    changed: 'nothing',
    next: [
      ...suggest(name, known).map((near) => `did you mean ${near}?`),
      'seq context ls',
      `seq context set ${name} --node URL --node URL --node URL`,
    ],
  });
}
