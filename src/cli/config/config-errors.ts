// The errors of the config file: a file that cannot be used, and a context that is not in it.
import { EXIT, SeqError } from '../../core/errors.js';
import type { ConfigFile } from './config-types.js';
import { suggest } from '../support/suggest.js';

export function badConfig(
  path: string,
  message: string,
  {
    why = 'the config file does not have the form it must have',
    next = [`edit ${path}`, 'seq config validate'],
  }: { why?: string; next?: string[] } = {},
): SeqError {
  return new SeqError({
    code: 'BAD_CONFIG',
    exit: EXIT.config,
    message: `${path}: ${message}`,
    why,
    changed: 'nothing',
    next,
  });
}

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
      // The context of a lab is made by the lab itself.
      ...(name === 'lab' ? ['seq lab up'] : []),
      'seq context ls',
      `seq context set ${name} --node URL --node URL --node URL`,
    ],
  });
}
