// Which settings of the context and the environment would `seq run` use? As text, by flag name, for a unit or manifest
// that must run with the same ones. Where it listens and what it is called belong to each place of its own.
import { SETTING_READERS, setting, asText, type Sources } from '../config/settings.js';

const RUN_FLAGS = [
  'ttl',
  'block-time',
  'eager',
  'max-block-bytes',
  'retain-blocks',
  'retain-bytes',
  'node-timeout',
  'priority',
  'log-level',
  'peer',
];

/** Throws SeqError 78 for a value that cannot be read. */
export function runFlagsOf(sources: Sources): Record<string, string> {
  return Object.fromEntries(
    RUN_FLAGS.flatMap((flag) => {
      const { value, origin, from } = setting(sources, flag, asText, '');
      if (origin === 'default' || origin === 'flag') return [];
      SETTING_READERS[flag.replace(/-([a-z])/g, (_, letter: string) => letter.toUpperCase())]?.(value, from);
      return [[flag, value]];
    }),
  );
}
