// The plain way behind two shortcuts (src/core/shortcuts.ts): the same tests, with every block through its script and
// every command through ioredis. What they assert must hold with `SEQ_DISABLE=own-resp`, too.
import { afterAll, beforeAll, describe } from 'vitest';
import { withoutShortcuts } from './fixture.js';

const FILES = [
  'admission',
  'blocks',
  'connection',
  'failback',
  'leadership',
  'nonsense',
  'operators',
  'server-refusals',
];

describe.each(FILES)('without own-resp and fast-append: %s', async (file) => {
  let end = (): void => {};
  beforeAll(() => {
    end = withoutShortcuts();
  });
  afterAll(() => end());
  // The query makes this a second module, apart from the file that runs by itself.
  await import(`./${file}.test.ts?plain-way`);
});
