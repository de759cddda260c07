// The catalogue of `seq explain`: every error code, refusal word, reason code and verdict. The compiler compares it
// with the lists of codes: errors (core/error-codes.ts), alarms, ends of terms, verdicts. A test compares it with the
// codes that only the sources name.
import type { FindingCode } from '../../core/dialect-fuel/probe.js';
import type { ViolationCode } from '../../core/dialect-fuel/verify.js';
import type { ErrorCode } from '../../core/error-codes.js';
import type { AlarmCode } from '../../core/events.js';
import type { TermEndCode } from '../../core/protocol/term-codes.js';
import type { ReasonCode } from '../../core/view/cluster-view.js';
import type { Code } from './code.js';
import { DATA } from './data.js';
import { FUEL, FUEL_MESSAGES } from './fuel.js';
import { LAB } from './lab.js';
import { OPERATOR } from './operator.js';
import { REFUSALS } from './refusals.js';
import { SHELL } from './shell.js';
import { TERMS } from './terms.js';
import { CONNECTION } from './connection.js';
import { WORDS } from './words.js';
import { VERDICTS } from './verdicts.js';

export type CodeKind = 'refusal' | 'verdict' | 'term' | 'command line' | 'data' | 'lab' | 'operator' | 'fuel' | 'word';

const GROUPS: [CodeKind, Record<string, Code>][] = [
  ['refusal', REFUSALS],
  ['verdict', VERDICTS],
  ['term', TERMS],
  ['command line', SHELL],
  ['data', DATA],
  ['lab', LAB],
  ['operator', OPERATOR],
  ['fuel', FUEL],
  // Last: a code of the same name says more.
  ['word', WORDS],
  ['word', CONNECTION],
];

/** Does not compile while one of these codes has no entry. */
void ({ ...REFUSALS, ...VERDICTS, ...TERMS, ...SHELL, ...DATA, ...LAB, ...OPERATOR, ...FUEL } satisfies Record<
  ErrorCode | AlarmCode | TermEndCode | ReasonCode | FindingCode | ViolationCode,
  Code
>);

export interface Explained extends Code {
  code: string;
  kind: CodeKind;
}

/** All codes by name. */
export function allCodes(): Map<string, Explained> {
  const all = new Map<string, Explained>();
  for (const [kind, group] of GROUPS) {
    for (const [code, entry] of Object.entries(group)) if (!all.has(code)) all.set(code, { code, kind, ...entry });
  }
  return all;
}

/**
 * Finds the entries for a code or for the text of a message: the exact code first, then codes named in the text, then
 * entries that share most words with it.
 */
export function explain(text: string): Explained[] {
  const all = allCodes();
  const exact = all.get(
    text
      .trim()
      .toUpperCase()
      .replace(/[\s-]+/g, '_'),
  );
  if (exact) return [exact];
  const message = FUEL_MESSAGES.find(([says]) => says.test(text));
  if (message !== undefined) return [all.get(message[1]) as Explained];
  const named = [...new Set(text.match(/[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*/g) ?? [])].flatMap((word) => all.get(word) ?? []);
  if (named.length > 0) return named;
  const words = new Set(text.toLowerCase().match(/[a-z]{4,}/g) ?? []);
  if (words.size === 0) return [];
  const scored = [...all.values()].map((entry) => {
    const own = new Set(
      `${entry.code.replaceAll('_', ' ')} ${entry.meaning} ${entry.causes.join(' ')}`
        .toLowerCase()
        .match(/[a-z]{4,}/g) ?? [],
    );
    return { entry, score: [...words].filter((word) => own.has(word)).length };
  });
  const least = Math.max(1, Math.ceil(words.size / 3));
  return scored
    .filter(({ score }) => score >= least)
    .sort((a, b) => b.score - a.score)
    .slice(0, 3)
    .map(({ entry }) => entry);
}
