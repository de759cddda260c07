// The two lines of SQL that docs/HTTP.md gives a consumer, tried: an old write changes no row.
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { expect, test } from 'vitest';

const page = readFileSync(resolve(import.meta.dirname, '../../docs/HTTP.md'), 'utf8');
const [position, epoch] = (/```sql\n([\s\S]*?)```/.exec(page)?.[1] ?? '').trim().split('\n') as [string, string];

/** Changed rows, one number for each statement. */
function changes(setup: string, statements: string[]): string[] {
  const script = [setup, ...statements.map((line) => `${line}\nSELECT changes();`)].join('\n');
  const { stdout, stderr, error } = spawnSync('sqlite3', [':memory:'], { input: script, encoding: 'utf8' });
  if (error !== undefined) throw error;
  expect(stderr).toBe('');
  return stdout.trim().split('\n');
}
const filled = (line: string, values: Record<string, number>) =>
  line.replace(/:(\w+)/g, (_, name: string) => String(values[name]));

const sqlite = spawnSync('sqlite3', ['-version']).error === undefined;

test('fencing: a position that was done, and a later one → 1, 0, 1, 1, 0', (context) => {
  if (!sqlite) return context.skip('sqlite3 is not installed: apt-get install sqlite3');
  const at = (height: number, index: number) => filled(position, { height, index });
  expect(
    changes('CREATE TABLE done (height INTEGER, item INTEGER, PRIMARY KEY (height, item));', [
      at(7, 0),
      at(7, 0),
      at(7, 1),
      at(8, 0),
      at(7, 1),
    ]),
  ).toEqual(['1', '0', '1', '1', '0']);
});

test('fencing: an epoch, the same again, a later one, the old one → 1, 1, 1, 0', (context) => {
  if (!sqlite) return context.skip('sqlite3 is not installed: apt-get install sqlite3');
  expect(
    changes(
      'CREATE TABLE fence (epoch INTEGER NOT NULL); INSERT INTO fence VALUES (0);',
      [3, 3, 5, 3].map((value) => filled(epoch, { epoch: value })),
    ),
  ).toEqual(['1', '1', '1', '0']);
});
