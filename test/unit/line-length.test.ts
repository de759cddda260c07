// No line of src/ is longer than 120 characters. The formatter breaks code, but not texts and comments.
import { readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { expect, test } from 'vitest';

const src = resolve(import.meta.dirname, '../../src');

test('lines: src → at most 120 characters', () => {
  const long = readdirSync(src, { recursive: true })
    .map(String)
    .filter((file) => /\.tsx?$/.test(file))
    .flatMap((file) =>
      readFileSync(join(src, file), 'utf8')
        .split('\n')
        .flatMap((line, at) => ([...line].length > 120 ? [`src/${file}:${at + 1}`] : [])),
    );
  expect(long).toEqual([]);
});
