// Checks an LMDB file before LMDB opens it: its first pages, then the trees (tree-pages.ts). LMDB trusts them. A file
// that is no database, or that was cut short, ends the process (segmentation fault, bus error). An operator needs an
// error message instead.
import {
  accessSync,
  closeSync,
  constants,
  existsSync,
  fstatSync,
  ftruncateSync,
  openSync,
  readSync,
  statfsSync,
  statSync,
  truncateSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { SeqError } from '../errors.js';
import { unreadable } from './store-errors.js';
import { damagedPage, NO_ROOT, type Snapshot } from './tree-pages.js';
import { takeWriterLock, type WriterLock } from './writer-lock.js';

/** Address space, not disk space. No limit: LMDB maps the file again when it grows beyond. */
const LEAST_MAP_BYTES = 64 * 1024 ** 3;
const MOST_MAP_BYTES = 32 * 1024 ** 4;

// MDB_meta behind a page header of 24 bytes: magic, version, address, map size, two trees of 48 bytes (free pages,
// main), last page.
const META_BYTES = 160;
const AT = { flags: 18, magic: 24, version: 28, pageSize: 48, free: 48, main: 96, lastPage: 144, txnid: 152 };
const TREE_AT = { depth: 6, root: 40 };
const IS_META = 0x08;
const MAGIC = 0xbeefc0de;
const VERSION = 2;
/** The most free pages that LMDB may leave off at the end. A reader repairs no more than that. */
const FREE_TAIL_BYTES = 1024 * 1024;
/** While another process writes, pages are given away and used again. So often the newest snapshot is tried. */
const ATTEMPTS = 5;

/**
 * How much address space to map: twice what the disk can hold, so that a store is hardly ever mapped again. A larger
 * file is mapped as it is.
 */
export function mapBytes(path: string): number {
  const size = existsSync(path) ? statSync(path).size : 0;
  return Math.max(LEAST_MAP_BYTES, 2 * size, Math.min(MOST_MAP_BYTES, 2 * (size + freeBeside(path))));
}

function freeBeside(path: string): number {
  try {
    const { bavail, bsize } = statfsSync(dirname(path));
    return bavail * bsize;
  } catch {
    return 0; // The map grows with the file.
  }
}

export interface PageCheck {
  readOnly: boolean;
  /** Pages of trees that are looked at. A writer whose predecessor crashed looks at all: a page may be the cause. */
  mostPages: number;
}

/** Throws STORE_UNREADABLE for a file that is not a database of `seq`. A writer accepts a missing or empty file. */
export function checkPages(dir: string, path: string, { readOnly, mostPages }: PageCheck): void {
  if (!existsSync(path)) return;
  // Readers write to this file too: their slot in it tells which pages may not be reused yet. Never open it here:
  // closing it would drop the locks that this process may hold on it.
  if (existsSync(`${path}-lock`)) mustBeWritable(`${path}-lock`, dir);
  const fd = openFor(path, readOnly ? 'r' : 'r+', dir);
  try {
    const size = fstatSync(fd).size;
    if (size === 0 && !readOnly) return;
    const metas = readMetas(fd, dir, path);
    const needed = Math.max(...metas.map(({ lastPage, pageSize }) => Number(lastPage + 1n) * pageSize));
    // A read beyond the end of a mapped file is a bus error. Zeros are harmless where the pages are free (LMDB itself
    // may leave free pages off). Where the pages are in use, LMDB reports an error.
    if (needed > size && !readOnly) ftruncateSync(fd, needed);
    if (needed > size + FREE_TAIL_BYTES && readOnly) throw unreadable(dir, `${path} has ${size} bytes of ${needed}`);
    if (needed > size && readOnly) lengthenForReader(dir, path, needed);
    checkTrees(fd, dir, path, mostPages);
  } finally {
    closeSync(fd);
  }
}

/** The two first pages, each the start of a snapshot. */
function readMetas(fd: number, dir: string, path: string): Snapshot[] {
  const size = fstatSync(fd).size;
  const meta = Buffer.alloc(META_BYTES);
  let pageSize = 4096;
  return [0, 1].map((page): Snapshot => {
    if (readSync(fd, meta, 0, META_BYTES, page * pageSize) < META_BYTES)
      throw unreadable(dir, `${path} is only ${size} bytes long`);
    if (meta.readUInt32LE(AT.magic) !== MAGIC || (meta.readUInt16LE(AT.flags) & IS_META) === 0)
      throw unreadable(dir, `${path} is not a database`);
    if ((meta.readUInt32LE(AT.version) & 0xffff) !== VERSION) throw unreadable(dir, `${path} has another LMDB version`);
    if (page === 0) pageSize = meta.readUInt32LE(AT.pageSize);
    const lastPage = meta.readBigUInt64LE(AT.lastPage);
    const trees = [AT.free, AT.main].map((at) => ({
      root: meta.readBigUInt64LE(at + TREE_AT.root),
      depth: meta.readUInt16LE(at + TREE_AT.depth),
    }));
    // A file is as long as its last page says, but for what was cut off. A length beyond reason is a changed bit.
    if (
      pageSize < 512 ||
      pageSize > 65536 ||
      (lastPage + 1n) * BigInt(pageSize) > BigInt(Math.max(LEAST_MAP_BYTES, 2 * size)) ||
      trees.some(({ root }) => root !== NO_ROOT && root > lastPage)
    ) {
      throw unreadable(dir, `the first pages of ${path} are damaged`);
    }
    return { pageSize, lastPage, txnid: meta.readBigUInt64LE(AT.txnid), trees };
  });
}

function checkTrees(fd: number, dir: string, path: string, mostPages: number): void {
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const newest = newestOf(readMetas(fd, dir, path));
    const wrong = damagedPage(fd, newest, mostPages);
    if (wrong === '') return;
    if (newestOf(readMetas(fd, dir, path)).txnid === newest.txnid)
      throw unreadable(dir, `${path} is damaged: ${wrong}`);
  }
}

const newestOf = (metas: readonly Snapshot[]): Snapshot => metas.reduce((a, b) => (b.txnid > a.txnid ? b : a));

/**
 * Extends the file as a writer does when it opens it. This must never happen beside a running writer, because it could
 * cut off what the writer adds. A running writer has extended the file already.
 */
function lengthenForReader(dir: string, path: string, needed: number): void {
  let lock: WriterLock;
  try {
    lock = takeWriterLock(dir);
  } catch (error) {
    if (error instanceof SeqError && error.code === 'STORE_LOCKED') return;
    throw error;
  }
  try {
    if (statSync(path).size < needed) truncateSync(path, needed);
  } catch (error) {
    throw unreadable(dir, (error as Error).message, error);
  } finally {
    lock.release(!lock.afterCrash);
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
