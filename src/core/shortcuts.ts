// Shortcuts: code that makes seq faster and changes nothing else. The environment variable SEQ_DISABLE switches each
// one off. So its gain can be measured, and the plain code path can be tested (docs/ARCHITECTURE.md, "What cleverness
// buys").
import { EXIT, SeqError } from './errors.js';

export const SHORTCUTS = ['fast-append', 'own-resp', 'warm-up', 'command-index'] as const;
export type Shortcut = (typeof SHORTCUTS)[number];

/** Reads SEQ_DISABLE (names with commas between them) and returns the shortcuts that are off. Throws SeqError (78). */
export function disabledShortcuts(value: string | undefined): ReadonlySet<Shortcut> {
  const off = new Set<Shortcut>();
  for (const name of (value ?? '').split(/[\s,]+/).filter(Boolean)) {
    const known = SHORTCUTS.find((each) => each === name);
    if (known === undefined) {
      throw new SeqError({
        code: 'BAD_CONFIG',
        exit: EXIT.config,
        message: `SEQ_DISABLE: there is no shortcut '${name.slice(0, 40)}'`,
        why: `the shortcuts are ${SHORTCUTS.join(', ')}`,
        changed: 'nothing',
        next: ['unset SEQ_DISABLE: it is for measurements only'],
      });
    }
    off.add(known);
  }
  // The fast append compares the bytes of answers, which only the project's own RESP reader can do.
  if (off.has('own-resp')) off.add('fast-append');
  return off;
}
