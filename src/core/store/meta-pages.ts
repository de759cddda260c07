// Checks the first pages of an LMDB file before LMDB opens it. LMDB trusts them. A file that is no database, or that
// was cut short, ends the process (segmentation fault, bus error). An operator needs an error message instead.
import {
  accessSync,
  closeSync,
  constants,
  existsSync,
  fstatSync,
  ftruncateSync,
  openSync,
  readSync,
  statSync,
  truncateSync,
} from 'node:fs';
import { SeqError } from '../errors.js';
import { unreadable } from './store-errors.js';
import { takeWriterLock } from './writer-lock.js';

/** Address space, not disk space: large enough that a running reader never has to map the file again. */
export const MAP_BYTES = 64 * 1024 ** 3;

// MDB_meta behind a page header of 24 bytes: magic, version, address, map size, two trees of 48 bytes (free pages,
// main), last page.
const META_BYTES = 160;
const AT = { flags: 18, magic: 24, version: 28, pageSize: 48, freeRoot: 88, mainRoot: 136, lastPage: 144 };
const IS_META = 0x08;
const MAGIC = 0xbeefc0de;
const VERSION = 2;
/** The most free pages that LMDB may leave off at the end. A reader repairs no more than that. */
const FREE_TAIL_BYTES = 1024 * 1024;
const NO_ROOT = 0xffff_ffff_ffff_ffffn;

/** Throws STORE_UNREADABLE for a file that is not a database of `seq`. A writer accepts a missing or empty file. */
export function checkMetaPages(dir: string, path: string, readOnly: boolean): void {
  if (!existsSync(path)) return;
  // Readers write to this file too: their slot in it tells which pages may not be reused yet. Never open it here:
  // closing it would drop the locks that this process may hold on it.
  if (existsSync(`${path}-lock`)) mustBeWritable(`${path}-lock`, dir);
  const fd = openFor(path, readOnly ? 'r' : 'r+', dir);
  try {
    const size = fstatSync(fd).size;
    if (size === 0 && !readOnly) return;
    let needed = 0;
    let pageSize = 4096;
    const meta = Buffer.alloc(META_BYTES);
    for (const page of [0, 1]) {
      if (readSync(fd, meta, 0, META_BYTES, page * pageSize) < META_BYTES)
        throw unreadable(dir, `${path} is only ${size} bytes long`);
      if (meta.readUInt32LE(AT.magic) !== MAGIC || (meta.readUInt16LE(AT.flags) & IS_META) === 0)
        throw unreadable(dir, `${path} is not a database`);
      if ((meta.readUInt32LE(AT.version) & 0xffff) !== VERSION)
        throw unreadable(dir, `${path} has another LMDB version`);
      if (page === 0) pageSize = meta.readUInt32LE(AT.pageSize);
      const lastPage = meta.readBigUInt64LE(AT.lastPage);
      const bytes = (lastPage + 1n) * BigInt(pageSize);
      const roots = [meta.readBigUInt64LE(AT.freeRoot), meta.readBigUInt64LE(AT.mainRoot)];
      if (
        pageSize < 512 ||
        pageSize > 65536 ||
        bytes > BigInt(MAP_BYTES) ||
        roots.some((root) => root !== NO_ROOT && root > lastPage)
      ) {
        throw unreadable(dir, `the first pages of ${path} are damaged`);
      }
      needed = Math.max(needed, Number(bytes));
    }
    // A read beyond the end of a mapped file is a bus error. Zeros are harmless where the pages are free (LMDB itself
    // may leave free pages off). Where the pages are in use, LMDB reports an error.
    if (needed > size && !readOnly) ftruncateSync(fd, needed);
    if (needed > size + FREE_TAIL_BYTES && readOnly) throw unreadable(dir, `${path} has ${size} bytes of ${needed}`);
    if (needed > size && readOnly) lengthenForReader(dir, path, needed);
  } finally {
    closeSync(fd);
  }
}

/**
 * Extends the file as a writer does when it opens it. This must never happen beside a running writer, because it could
 * cut off what the writer adds. A running writer has extended the file already.
 */
function lengthenForReader(dir: string, path: string, needed: number): void {
  let unlock: () => void;
  try {
    unlock = takeWriterLock(dir);
  } catch (error) {
    if (error instanceof SeqError && error.code === 'STORE_LOCKED') return;
    throw error;
  }
  try {
    if (statSync(path).size < needed) truncateSync(path, needed);
  } catch (error) {
    throw unreadable(dir, (error as Error).message, error);
  } finally {
    unlock();
  }
}

function mustBeWritable(path: string, dir: string): void {
  try {
    accessSync(path, constants.R_OK | constants.W_OK);
  } catch (error) {
    throw unreadable(dir, (error as Error).message, error);
  }
}

function openFor(path: string, flags: 'r' | 'r+', dir: string): number {
  try {
    return openSync(path, flags);
  } catch (error) {
    throw unreadable(dir, (error as Error).message, error);
  }
}
