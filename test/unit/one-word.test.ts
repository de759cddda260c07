// One word for one thing, in the JSON of every command (schemas/), in the headings of every table, and in its legend.
import { readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, expect, test } from 'vitest';

const root = resolve(import.meta.dirname, '../..');

/** The thing, its word, and words of the same meaning that nobody may use for it. */
const WORDS: [thing: string, word: string, others: RegExp][] = [
  ['the sequencer that leads', 'leader', /^(leads|master|primary|leaderId|leaderName|leading)$/],
  ['the sequencer whose lease a lock holds', 'holder', /^(heldBy|lockHolder|lockOwner|lockedBy)$/],
  ['the owner token of a term', 'owner', /^(ownerToken|token|termOwner)$/],
  ['the sequencer under whose term an entry was written', 'writer', /^(author|writtenBy|producer|producedBy)$/],
  ['who raised the epoch of a node', 'claimant', /^(claimer|claimedBy|epochOwner|epochHolder)$/],
  ['blocks behind the committed head', 'lag', /^(lagBlocks|behind|blocksBehind|delay|lagging)$/],
  [
    'a range of heights',
    'heightFrom, heightTo',
    /^((from|to|first|last|start|end|min|max)Heights?|heights?(First|Last))$/,
  ],
  ['bytes that do not fit', 'damaged', /^(corrupt|corrupted|broken|bad|invalidEntries)$/i],
  ['a height that a node should have', 'hole', /^(gapAt|missingHeights)$/],
];

/** Words that belong to one thing only, and the kinds of answers that speak of it. */
const ONLY_IN: Record<string, RegExp> = {
  // A lock of a node. Who led a term is a leader, also when the lock was its.
  holder: /^(status|node\.list|epoch\.show|fuel\.status|stepdown\.revoke)$/,
  claimant: /^epoch\.show$/,
};

function namesOf(schema: unknown, found = new Set<string>()): Set<string> {
  if (schema === null || typeof schema !== 'object') return found;
  for (const [name, each] of Object.entries(schema)) {
    if (name === 'properties') for (const property of Object.keys(each as object)) found.add(property);
    if (name === 'enum') for (const value of each as unknown[]) if (typeof value === 'string') found.add(value);
    namesOf(each, found);
  }
  return found;
}

const KINDS = readdirSync(join(root, 'schemas')).map((file): [string, string[]] => [
  file.slice(0, -'.json'.length),
  [...namesOf(JSON.parse(readFileSync(join(root, 'schemas', file), 'utf8')))],
]);

/** Headings as the sources of the tables write them: `key: 'writer'`, `label: 'RETENTION FULL'`, `head: 'LAG'`. */
const HEADINGS = ['src/commands', 'src/cli/present', 'src/tui'].flatMap((folder) =>
  readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((file) => /\.tsx?$/.test(file))
    .flatMap((file): [string, string[]][] => {
      const text = readFileSync(join(root, folder, file), 'utf8');
      const found = [...text.matchAll(/\b(?:key|label|head): '([^']+)'/g)].map(([, word]) => word as string);
      return found.length === 0 ? [] : [[`${folder}/${file}`, found]];
    }),
);

/** As a name or as a heading: `leaderId`, `LAG`. */
const same = (word: string): string => (/^[A-Z ]+$/.test(word) ? word.toLowerCase() : word);

describe('words: one for one thing', () => {
  test('there is something to read', () => {
    expect(KINDS.length).toBeGreaterThan(50);
    expect(HEADINGS.flatMap(([, words]) => words)).toEqual(expect.arrayContaining(['holder', 'LAG', 'writer', 'lag']));
  });

  test.each(WORDS)('%s is %s', (_, word, others) => {
    const wrong = [...KINDS, ...HEADINGS].flatMap(([where, names]) =>
      names.filter((name) => others.test(same(name))).map((name) => `${where}: ${name}`),
    );
    expect(wrong, `say ${word}`).toEqual([]);
  });

  test.each(Object.entries(ONLY_IN))('%s means one thing: only %s has it', (word, kinds) => {
    const having = KINDS.filter(([, names]) => names.includes(word)).map(([kind]) => kind);
    expect(having.filter((kind) => !kinds.test(kind))).toEqual([]);
    expect(having.length).toBeGreaterThan(0);
  });

  test('the marks of a matrix are the same in `stream inspect` and in `watch`', () => {
    const read = (file: string): string => readFileSync(join(root, file), 'utf8');
    const legend = /not there[\s,]+- trimmed[\s,]+_ hole[\s,]+! damaged[\s,]+\? no answer/;
    for (const file of ['src/cli/present/stream/stream-matrix.ts', 'src/tui/panels/detail.ts'])
      expect(legend.test(read(file)), file).toBe(true);
    expect(read('docs/WATCH.md')).toMatch(/\| `_` \| a hole \|[\s\S]*\| `!` \| a damaged entry \|/);
  });
});
