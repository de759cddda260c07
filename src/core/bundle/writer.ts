// Writes a bundle under a temporary name, and gives it its final name only when it is complete. It never replaces an
// existing file, and only the owner can read it. It removes secrets from every text: configured passwords by value,
// passwords in addresses and sentences by their form.
import { createHash } from 'node:crypto';
import { access, link, open, rename, rm, type FileHandle } from 'node:fs/promises';
import { dirname } from 'node:path';
import { EXIT, SeqError } from '../errors.js';
import { cleaner } from '../log/redact.js';
import type { BundleEnd, BundleFacts, BundleHead, BundleLine } from './format.js';

const PIECE = 256 * 1024;

export class BundleWriter {
  private readonly digest = createHash('sha256');
  private readonly clean: <T>(value: T) => T;
  private lines = 0;
  private pending = '';
  bytes = 0;

  private constructor(
    private readonly handle: FileHandle,
    readonly path: string,
    private readonly part: string,
    secrets: readonly string[],
  ) {
    this.clean = cleaner(secrets);
  }

  static async create(path: string, head: BundleHead, secrets: readonly string[]): Promise<BundleWriter> {
    const part = `${path}.${process.pid}.part`;
    if (
      await access(path).then(
        () => true,
        () => false,
      )
    )
      throw exists(path);
    const handle = await open(part, 'wx', 0o600).catch((error: unknown) => {
      throw failed(path, error);
    });
    const writer = new BundleWriter(handle, path, part, secrets);
    await writer.put(writer.clean(head));
    return writer;
  }

  async write(line: BundleLine | BundleFacts): Promise<void> {
    if ('facts' in line) return this.put(this.clean(line));
    // Hashes and payloads are not texts. A changed payload would no longer match its hash.
    const { copies, damaged } = line;
    return this.put({
      ...line,
      copies: copies.map(([node, block, epoch, owner]) => [node, block, epoch, this.clean(owner)]),
      damaged: damaged.map(([node, id, why]) => [node, id, this.clean(why)]),
    });
  }

  /** Writes the end of the file, then gives it its final name. */
  async finish(): Promise<{ bytes: number; sha256: string }> {
    const end: BundleEnd = { end: true, lines: this.lines, sha256: this.digest.digest('hex') };
    this.pending += `${JSON.stringify(end)}\n`;
    try {
      await this.flush();
      await this.handle.sync();
      await this.handle.close();
      // Unlike a rename, a link fails when the name is taken already. Not every file system has links.
      await link(this.part, this.path).then(
        () => rm(this.part),
        (error: NodeJS.ErrnoException) => {
          if (error.code === 'EPERM' || error.code === 'ENOTSUP' || error.code === 'ENOSYS')
            return rename(this.part, this.path);
          throw error;
        },
      );
    } catch (error) {
      await this.abandon();
      throw (error as NodeJS.ErrnoException).code === 'EEXIST' ? exists(this.path) : failed(this.path, error);
    }
    return { bytes: this.bytes, sha256: end.sha256 };
  }

  /** After a failure or Ctrl-C: removes the unfinished file. */
  async abandon(): Promise<void> {
    await this.handle.close().catch(() => undefined);
    await rm(this.part, { force: true }).catch(() => undefined);
  }

  private async put(line: unknown): Promise<void> {
    const text = `${JSON.stringify(line)}\n`;
    this.digest.update(text);
    this.lines += 1;
    this.pending += text;
    if (this.pending.length < PIECE) return;
    await this.flush().catch((error: unknown) => {
      throw failed(this.path, error);
    });
  }

  private async flush(): Promise<void> {
    const bytes = Buffer.from(this.pending);
    this.pending = '';
    this.bytes += bytes.length;
    for (let at = 0; at < bytes.length;) at += (await this.handle.write(bytes, at)).bytesWritten;
  }
}

function exists(path: string): SeqError {
  return new SeqError({
    code: 'FILE_EXISTS',
    exit: EXIT.output,
    message: `${path} is there already`,
    why: 'a bundle is evidence: it is never written over',
    changed: 'nothing',
    next: ['name another file with --file', `rm ${path}`],
  });
}

function failed(path: string, error: unknown): SeqError {
  const { code, message } = error as NodeJS.ErrnoException;
  return new SeqError({
    code: 'OUTPUT_FAILED',
    exit: EXIT.output,
    message: `the bundle ${path} could not be written`,
    why: code ?? message,
    changed: 'nothing',
    next: [code === 'ENOENT' ? `mkdir -p ${dirname(path)}` : 'name a file on another disk with --file'],
    cause: error,
  });
}
