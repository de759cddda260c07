// What the store's library says is told in words for an operator; its own words stay in the cause.
import { expect, test } from 'vitest';
import { cannotBeMade, readFailed, writeFailed } from '../../src/core/store/store-errors.js';

test.each([
  ['buffer sizes 40960 4096 -570702000', 'no space is left on its disk'],
  ['MDB_MAP_FULL: Environment mapsize limit reached', 'no space is left on its disk'],
  ['No space left on device', 'no space is left on its disk'],
  ['Read-only file system', 'its file system is read-only'],
  ['Input/output error', 'its disk reports errors'],
  ['EACCES: permission denied', 'this user may not read and write it'],
  ['MDB_CORRUPTED: Located page was wrong type', 'its file is damaged'],
  ['something new 17', '--trace shows what the library says'],
])('store: the library says "%s" → "%s"', (says, means) => {
  const cause = new Error(says);
  for (const error of [writeFailed('/store', cause), readFailed('/store', cause)]) {
    expect(error.why).toContain(means);
    expect(`${error.message} ${error.why} ${error.next.join(' ')}`).not.toContain(says);
    expect(error.cause).toBe(cause);
  }
});

test.each([
  ['ENOSPC: no space left on device, write', /^make room on the disk of \/store/],
  ['EDQUOT: disk quota exceeded, write', /^make room on the disk of \/store/],
  ['EROFS: read-only file system, open', /^make the file system of \/store writable/],
  ['EIO: i/o error, read', /^check the disk of \/store/],
  ['EACCES: permission denied, open', /^let this user read and write \/store/],
])('store: "%s" at the start → the advice fits the cause, and the store is not moved aside', (says, advice) => {
  for (const error of [readFailed('/store', new Error(says)), cannotBeMade('/store', new Error(says))]) {
    expect(error.next[0]).toMatch(advice);
    expect(error.next.join(' ')).not.toMatch(/mv |mkdir/);
  }
});

test('store: a damaged file → it is moved aside', () => {
  const { next } = readFailed('/store', new Error('MDB_CORRUPTED: Located page was wrong type'));
  expect(next.join(' ')).toContain('mv /store /store.damaged');
});
