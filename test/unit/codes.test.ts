// `seq explain` must know every code that the sources can show; no error shows a password. The compiler holds the
// catalogue against the typed codes (errors, refusals, alarms, ends of terms, reasons); this file against all others.
import { readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { TLS_CAUSES } from '../../src/core/tls-causes.js';
import { describe, expect, test } from 'vitest';
import { allCodes, explain } from '../../src/cli/codes/codes.js';
import { EXIT, SeqError } from '../../src/core/errors.js';
import { stepdownCode } from '../../src/core/protocol/term-codes.js';

const src = resolve(import.meta.dirname, '../../src');
const sources = readdirSync(src, { recursive: true })
  .map(String)
  .filter((file) => /\.tsx?$/.test(file) && !file.startsWith('cli/codes'))
  .map((file) => ({ file, text: readFileSync(join(src, file), 'utf8') }));

/**
 * `code: 'X'`, both arms of a choice, `end(state, 'X'`, `unavailable('X'`, usageError's third argument, and reason
 * codes.
 */
const PLACES = [
  /\b(?:code|reasonCode|exitReason): '([A-Z][A-Z0-9_]+)'/g,
  /\bcode: [^,'\n]+\? '([A-Z][A-Z0-9_]+)'/g,
  /\bcode: [^,'\n]+\? '[A-Z0-9_]+' : '([A-Z][A-Z0-9_]+)'/g,
  /\b(?:end|stepdown|unavailable|quarantine|crit|warn)\((?:[a-z]\w*, )*'([A-Z][A-Z0-9_]+)'/g,
];

describe('explain', () => {
  test('codes: every code in the sources → has an entry', () => {
    const known = allCodes();
    const missing = sources.flatMap(({ file, text }) =>
      PLACES.flatMap((place) => [...text.matchAll(place)].map((match) => match[1] as string))
        .filter((code) => !known.has(code) && !/^E[A-Z]{3,}$/.test(code))
        .map((code) => `${code} (${file})`),
    );
    expect([...new Set(missing)], 'codes without an entry in src/cli/codes/').toEqual([]);
  });

  test('codes: every entry says what it means and what to do', () => {
    for (const { code, meaning, todo } of allCodes().values()) {
      expect(meaning.length, code).toBeGreaterThan(10);
      expect(todo.length + (code === 'DECLINED' ? 1 : 0), code).toBeGreaterThan(0);
    }
  });

  test.each([
    ['FENCING_ERROR', 'FENCING_ERROR'],
    ['fencing-error', 'FENCING_ERROR'],
    ['r2 refuses: NOT_ADMITTED: wiped', 'NOT_ADMITTED'],
    ['the lease ran out', 'FENCING_ERROR'],
  ])('explain: %s → %s', (text, code) => {
    expect(explain(text).map((entry) => entry.code)).toContain(code);
  });

  test('explain: what nobody knows → nothing', () => {
    expect(explain('zzzz')).toEqual([]);
    expect(explain('')).toEqual([]);
  });
});

test.each([
  ['SIGTERM', 'SIGTERM'],
  ['STORE_WRITE_FAILED', 'STORE_WRITE_FAILED'],
  ['NO_PEER', 'BUG'],
  ['', 'BUG'],
])('stepdown: the process ends with %j → its term ends with %s', (code, end) => {
  expect(stepdownCode(code, 'BUG')).toBe(end);
});

test('errors: an address with a password stands in the wrong place and is quoted → the password is not shown', () => {
  const typed = 'redis://u:sesame42@h:1';
  const error = new SeqError({
    code: 'CONTEXT_NOT_FOUND',
    exit: EXIT.notFound,
    message: `there is no context '${typed}'`,
    why: `${typed} is none`,
    changed: 'nothing',
    next: [`seq context set ${typed}`],
  });
  expect([error.message, error.why, ...error.next]).toEqual([
    "there is no context 'redis://u:***@h:1'",
    'redis://u:***@h:1 is none',
    'seq context set redis://u:***@h:1',
  ]);
});

describe('words: explain knows those of its own tables', () => {
  const source = readFileSync(join(import.meta.dirname, '../../src/core/view/cluster-view.ts'), 'utf8');
  const states = [...(/export type NodeState =([\s\S]*?);/.exec(source)?.[1] ?? '').matchAll(/'([A-Z]+)'/g)].map(
    ([, state]) => state as string,
  );

  test('words: every state of a node has an entry', () => {
    expect(states.length).toBeGreaterThan(5);
    expect(states.filter((state) => explain(state)[0]?.code !== state)).toEqual([]);
  });

  test.each(['settle', 'OUT', 'DOWN', 'holder', 'WRITER', 'lag', 'lane', 'leader', 'gone', 'committed', 'ttl'])(
    'words: %s → one entry, that of the word',
    (word) => {
      expect(explain(word).map(({ code }) => code)).toEqual([word.toUpperCase()]);
    },
  );

  test.each(['ECONNREFUSED', 'ETIMEDOUT', 'ENOTFOUND', ...Object.keys(TLS_CAUSES)])(
    'words: %s, as the note of a node shows it → what it means and what to do',
    (code) => {
      const [found] = explain(code);
      expect([found?.code, found?.todo.length]).toEqual([code, 1]);
    },
  );
});
