// Opens a bundle. It reads the file once, a line at a time, checks every line and the digest, and keeps only the file
// offset of each height. A height that is asked for is read again from its offset. Memory: 8 bytes a line, and one
// piece.
import { createHash } from 'node:crypto';
import { open, type FileHandle } from 'node:fs/promises';
import { EXIT, SeqError } from '../errors.js';
import type { Height } from '../protocol/types.js';
import {
  asEnd,
  asFacts,
  asHead,
  asLine,
  bundleError,
  FORMAT,
  LIMITS,
  VERSION,
  type BundleEnd,
  type BundleFacts,
  type BundleHead,
  type BundleLine,
} from './format.js';

const PIECE = 1024 * 1024;
const NEWLINE = 10;

/** Lines of ascending heights, as they stand in the file. `offsets` has one more element: the end. */
interface Pass {
  from: Height;
  offsets: number[];
}

export class BundleFile {
  private readonly cache = new Map<string, Promise<Map<Height, BundleLine[]>>>();

  private constructor(
    private readonly handle: FileHandle,
    readonly path: string,
    readonly head: BundleHead,
    readonly facts: BundleFacts['facts'],
    private readonly passes: readonly Pass[],
  ) {}

  static async open(path: string, signal?: AbortSignal): Promise<BundleFile> {
    const handle = await open(path, 'r').catch((error: NodeJS.ErrnoException) => {
      throw unreadable(path, error);
    });
    try {
      const stat = await handle.stat();
      // Reading a pipe or a device may never end.
      if (!stat.isFile())
        throw bundleError('NOT_A_BUNDLE', path, stat.isDirectory() ? 'it is a directory' : 'it is no regular file');
      if (stat.size > LIMITS.fileBytes)
        throw bundleError('BUNDLE_TOO_LARGE', path, `${stat.size} bytes, at most ${LIMITS.fileBytes} are read`);
      const { head, facts, passes } = await scan(handle, path, signal);
      return new BundleFile(handle, path, head, facts, passes);
    } catch (error) {
      await handle.close();
      if (error instanceof SeqError || signal?.aborted) throw error;
      throw unreadable(path, error as NodeJS.ErrnoException);
    }
  }

  /**
   * The lines at these heights, newest pass first. All nodes ask for the same heights at the same time, so one read
   * serves all of them.
   */
  lines(from: Height, to: Height): Promise<Map<Height, BundleLine[]>> {
    const key = `${from}-${to}`;
    const known = this.cache.get(key);
    if (known !== undefined) return known;
    if (this.cache.size >= 2) this.cache.delete(this.cache.keys().next().value as string);
    const reading = this.readLines(from, to);
    this.cache.set(key, reading);
    reading.catch(() => this.cache.delete(key));
    return reading;
  }

  /** The highest height that has a line. 0 when there is no line. */
  get highest(): Height {
    return Math.max(0, ...this.passes.map(({ from, offsets }) => from + offsets.length - 2));
  }

  async close(): Promise<void> {
    await this.handle.close();
  }

  private async readLines(from: Height, to: Height): Promise<Map<Height, BundleLine[]>> {
    const found = new Map<Height, BundleLine[]>();
    for (const { from: first, offsets } of [...this.passes].reverse()) {
      const [low, high] = [Math.max(from, first), Math.min(to, first + offsets.length - 2)];
      for (let height = low; height <= high; height += 1) {
        const [at, end] = [offsets[height - first] as number, offsets[height - first + 1] as number];
        const line = asLine(JSON.parse(await this.textAt(at, end)), this.head.nodes.length);
        if (line.height !== height) throw bundleError('BUNDLE_DAMAGED', this.path, 'it was changed while it was read');
        found.set(height, [...(found.get(height) ?? []), line]);
      }
    }
    return found;
  }

  private span: { at: number; bytes: Buffer } = { at: 0, bytes: Buffer.alloc(0) };

  /** Lines follow each other in the file, so a larger piece is read at once and kept. */
  private async textAt(at: number, end: number): Promise<string> {
    const { span } = this;
    if (at < span.at || end > span.at + span.bytes.length) {
      const bytes = Buffer.allocUnsafe(Math.max(PIECE, end - at));
      const { bytesRead } = await this.handle.read(bytes, 0, bytes.length, at);
      if (bytesRead < end - at) throw bundleError('BUNDLE_DAMAGED', this.path, 'it became shorter while it was read');
      this.span = { at, bytes: bytes.subarray(0, bytesRead) };
    }
    return this.span.bytes.toString('utf8', at - this.span.at, end - this.span.at);
  }
}

async function scan(handle: FileHandle, path: string, signal: AbortSignal | undefined) {
  const digest = createHash('sha256');
  const passes: Pass[] = [];
  let head: BundleHead | null = null;
  let facts: BundleFacts['facts'] | null = null;
  let end: BundleEnd | null = null;
  let count = 0;

  const take = (bytes: Buffer, at: number): void => {
    count += 1;
    if (count > LIMITS.lines) throw bundleError('BUNDLE_TOO_LARGE', path, `more than ${LIMITS.lines} lines`);
    if (end !== null) throw bundleError('BUNDLE_DAMAGED', path, `line ${count}: something follows the last line`);
    const line = parsed(bytes, count, path);
    if (head === null) head = headOf(line, path);
    else if (isObject(line) && 'end' in line) end = formed(() => asEnd(line), count, path);
    else if (facts !== null)
      throw bundleError('BUNDLE_DAMAGED', path, `line ${count}: the end of the bundle is missing`);
    else if (isObject(line) && 'facts' in line) facts = formed(() => asFacts(line), count, path).facts;
    else {
      const { nodes, payloads } = head;
      const { height, blocks } = formed(() => asLine(line, nodes.length), count, path);
      if (blocks.some((block) => (block.data !== undefined) !== payloads))
        throw bundleError(
          'BUNDLE_DAMAGED',
          path,
          `line ${count}: payloads where none are announced, or none where they are`,
        );
      const pass = passes.at(-1);
      if (pass !== undefined && pass.from + pass.offsets.length - 1 === height)
        pass.offsets.push(at + bytes.length + 1);
      else if (passes.length < LIMITS.passes) passes.push({ from: height, offsets: [at, at + bytes.length + 1] });
      else throw bundleError('BUNDLE_DAMAGED', path, `line ${count}: heights out of order`);
    }
    if (end === null) digest.update(bytes).update('\n');
  };

  await eachLine(handle, path, signal, () => (head === null ? LIMITS.headBytes : LIMITS.lineBytes), take);
  const [start, found, last] = [
    head as BundleHead | null,
    facts as BundleFacts['facts'] | null,
    end as BundleEnd | null,
  ];
  if (start === null) throw bundleError('NOT_A_BUNDLE', path, 'it is empty');
  if (found === null || last === null)
    throw bundleError('BUNDLE_DAMAGED', path, `it ends after line ${count}, in the middle`);
  if (last.lines !== count - 1)
    throw bundleError('BUNDLE_DAMAGED', path, `it has ${count - 1} lines, its end says ${last.lines}`);
  if (last.sha256 !== digest.digest('hex'))
    throw bundleError('BUNDLE_DAMAGED', path, 'its content does not have the digest that it names');
  if (
    found.nodes.length !== start.nodes.length ||
    new Set(start.nodes.map((node) => node.id)).size !== start.nodes.length
  )
    throw bundleError('BUNDLE_DAMAGED', path, 'its lists of nodes do not agree');
  return { head: start, facts: found, passes };
}

/** A last line without a line end is not passed on: the file was cut, and the missing end is reported. */
async function eachLine(
  handle: FileHandle,
  path: string,
  signal: AbortSignal | undefined,
  most: () => number,
  take: (bytes: Buffer, at: number) => void,
): Promise<void> {
  let parts: Buffer[] = [];
  let held = 0;
  let lineAt = 0;
  let at = 0;
  for (;;) {
    signal?.throwIfAborted();
    const { bytesRead, buffer } = await handle.read(Buffer.allocUnsafe(PIECE), 0, PIECE, at);
    if (bytesRead === 0) break;
    const piece = buffer.subarray(0, bytesRead);
    at += bytesRead;
    let from = 0;
    for (let newline = piece.indexOf(NEWLINE, from); newline >= 0; newline = piece.indexOf(NEWLINE, from)) {
      const rest = piece.subarray(from, newline);
      const whole = parts.length === 0 ? rest : Buffer.concat([...parts, rest]);
      if (whole.length > most()) throw tooLong(path, most(), lineAt === 0);
      take(whole, lineAt);
      lineAt += whole.length + 1;
      from = newline + 1;
      parts = [];
      held = 0;
    }
    if (from < piece.length) {
      parts.push(piece.subarray(from));
      held += piece.length - from;
      if (held > most()) throw tooLong(path, most(), lineAt === 0);
    }
  }
  if (held > 0 && lineAt === 0) throw bundleError('NOT_A_BUNDLE', path, 'it is no file of lines');
}

function tooLong(path: string, most: number, first: boolean): SeqError {
  return first
    ? bundleError('NOT_A_BUNDLE', path, 'it does not begin as one')
    : bundleError('BUNDLE_TOO_LARGE', path, `a line of more than ${most} bytes`);
}

function parsed(bytes: Buffer, count: number, path: string): unknown {
  try {
    return JSON.parse(bytes.toString('utf8')) as unknown;
  } catch {
    throw count === 1
      ? bundleError('NOT_A_BUNDLE', path, 'it does not begin as one')
      : bundleError('BUNDLE_DAMAGED', path, `line ${count} cannot be read`);
  }
}

function headOf(line: unknown, path: string): BundleHead {
  if (!isObject(line) || line['format'] !== FORMAT) throw bundleError('NOT_A_BUNDLE', path, 'it does not begin as one');
  if (line['version'] !== VERSION)
    throw bundleError(
      'BUNDLE_VERSION',
      path,
      `it is of version ${String(JSON.stringify(line['version'])).slice(0, 20)}`,
    );
  return formed(() => asHead(line), 1, path);
}

function formed<T>(read: () => T, count: number, path: string): T {
  try {
    return read();
  } catch (error) {
    throw bundleError(
      'BUNDLE_DAMAGED',
      path,
      `line ${count}: ${error instanceof Error ? error.message : String(error)}`,
    );
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return value !== null && typeof value === 'object' && !Array.isArray(value);
}

function unreadable(path: string, error: NodeJS.ErrnoException): SeqError {
  const missing = error.code === 'ENOENT' || error.code === 'ENOTDIR';
  return new SeqError({
    code: missing ? 'FILE_NOT_FOUND' : 'FILE_UNREADABLE',
    exit: missing ? EXIT.notFound : EXIT.data,
    message: `the bundle ${path} cannot be read`,
    why: error.code ?? error.message,
    changed: 'nothing',
    next: [`ls -l ${path}`, 'seq stream export'],
  });
}
