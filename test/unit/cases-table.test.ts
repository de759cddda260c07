// test/CASES.md says which test holds which case from the field: every case has one, and every test it names is there.
import { existsSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { expect, test } from 'vitest';

const root = resolve(import.meta.dirname, '../..');
const CASES = 44;
const rows = readFileSync(join(root, 'test', 'CASES.md'), 'utf8')
  .split('\n')
  .flatMap((line) => {
    const cells = /^\| (\d+) \| (.+?) \| (.+?) \|(?: (.+?) \|)?$/.exec(line);
    return cells ? [{ number: Number(cells[1]), file: cells[3]!, name: cells[4] ?? '' }] : [];
  });
const sources = new Map<string, string>();
function sourceOf(file: string): string {
  if (!sources.has(file))
    sources.set(
      file,
      existsSync(join(root, file))
        ? readFileSync(join(root, file), 'utf8')
            .replace(/\\(['"`])/g, '$1')
            .replace(/['`"] \+\s+['`"]/g, '')
        : '',
    );
  return sources.get(file)!;
}

test('cases: every case from the field has a row with a test', () => {
  const numbers = new Set(rows.filter(({ file }) => !file.startsWith('not yet: ')).map(({ number }) => number));
  expect(Array.from({ length: CASES }, (_, at) => at + 1).filter((number) => !numbers.has(number))).toEqual([]);
  expect([...numbers].filter((number) => number < 1 || number > CASES)).toEqual([]);
});

test('cases: every test that is named exists in that file', () => {
  const missing = rows.filter(
    ({ file, name }) =>
      !(file.startsWith('not yet: ')
        ? file.length > 12
        : name !== '' && ["'", '"', '`'].some((quote) => sourceOf(file).includes(`${quote}${name}`))),
  );
  expect(missing).toEqual([]);
});
