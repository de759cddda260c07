// Every command line of docs/RUNBOOKS.md, run against a lab in the state that its page is about. Page and test cannot
// part: test/support/runbooks.ts reads the lines from the Markdown.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { follow, healthy, labDown, labUp, pages, STATES } from '../support/runbooks.js';

beforeAll(labUp, 300_000);
afterAll(labDown, 300_000);

/**
 * Pages whose commands other suites drive on real servers too: run with `npm run test:long`, so that `npm test` stays
 * short.
 */
const ONLY_LONG = [
  'A slow or hanging node',
  'A conflict',
  'Moving a node',
  'Grow and shrink a cluster',
  'A quorum lost its memory',
  'A wrong epoch',
  'A pending block',
];
const chosen = process.env['SEQ_TEST_LONG'] === '1' ? pages : pages.filter(({ title }) => !ONLY_LONG.includes(title));

describe('runbooks', () => {
  test('pages: each has its state here, and all four parts', () => {
    expect(ONLY_LONG.filter((name) => !pages.some(({ title }) => title === name))).toEqual([]);
    expect(pages.map(({ title }) => title)).toEqual(Object.keys(STATES));
    for (const { title, text } of pages)
      expect(
        [...text.matchAll(/^\*\*(See|Confirm|Act|Verify)\./gm)].map((match) => match[1]),
        title,
      ).toEqual(['See', 'Confirm', 'Act', 'Verify']);
  });

  test.each(chosen)(
    '$title → seen, confirmed, mended and verified as the page says',
    async (page) => {
      await healthy();
      await STATES[page.title]?.();
      await follow(page);
    },
    300_000,
  );
});
