// Who may call, and what for? A token file has a line for each token: the token, then what it is for. Without a word it
// is for everything. The file is read again when it changes, so tokens are replaced while the server runs: add the new
// one below on every sequencer, move it to the top, remove the old one.
import { readFileSync, statSync } from 'node:fs';
import { EXIT, SeqError } from '../errors.js';

const SCOPES = ['submit', 'read', 'metrics'] as const;
export type Scope = (typeof SCOPES)[number];

export interface HttpToken {
  token: string;
  scopes: readonly Scope[];
}

const MOST_BYTES = 64 * 1024;
const READ_EVERY_MS = 500;

/** The first line's token, for a caller. Throws SeqError 78. */
export function readTokenFile(path: string): string {
  return readTokens(path)[0]!.token;
}

/** The tokens of a file that may change. */
export class TokenFile {
  private tokens: readonly [HttpToken, ...HttpToken[]];
  private version: string;
  private readAt = performance.now();

  /** Throws SeqError 78. */
  constructor(private readonly path: string) {
    this.version = versionOf(path);
    this.tokens = this.read();
  }

  /** A file that cannot be read now, or holds no tokens, changes nothing. */
  current(): readonly [HttpToken, ...HttpToken[]] {
    if (performance.now() - this.readAt < READ_EVERY_MS) return this.tokens;
    this.readAt = performance.now();
    try {
      const version = versionOf(this.path);
      if (version !== this.version) this.reload();
    } catch {
      return this.tokens;
    }
    return this.tokens;
  }

  /** Reads the file now. Throws SeqError 78, and keeps what it had. */
  reload(): void {
    const version = versionOf(this.path);
    this.tokens = this.read();
    this.version = version;
  }

  private read(): [HttpToken, ...HttpToken[]] {
    const tokens = readTokens(this.path);
    if (tokens[0].scopes.length >= SCOPES.length) return tokens;
    throw refusal(
      this.path,
      `the first token of ${this.path} is not for everything`,
      'the sequencers use it with each other: to forward submissions, and to read blocks',
    );
  }
}

function versionOf(path: string): string {
  try {
    const { ino, size, mtimeMs } = statSync(path);
    return `${ino} ${size} ${mtimeMs}`;
  } catch {
    return '';
  }
}

function readTokens(path: string): [HttpToken, ...HttpToken[]] {
  const refuse = (message: string, why: string, cause?: unknown) => refusal(path, message, why, cause);
  let text: string;
  try {
    if (statSync(path).size > MOST_BYTES)
      throw refuse(`the token file ${path} is larger than ${MOST_BYTES} bytes`, 'a token is one short line');
    text = readFileSync(path, 'utf8');
  } catch (error) {
    if (error instanceof SeqError) throw error;
    throw refuse(`the token file ${path} cannot be read`, (error as Error).message, error);
  }
  const [first, ...others] = text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line): HttpToken => {
      const [token = '', words, ...rest] = line.split(/\s+/);
      const scopes = words === undefined ? [...SCOPES] : words.split(',');
      if (/^[\x21-\x7e]{8,4096}$/.test(token) && rest.length === 0 && scopes.every(isScope)) return { token, scopes };
      throw refuse(
        `the token file ${path} does not hold a token in each line`,
        `a line is at least 8 printable ASCII characters, and then, if wanted, some of ${SCOPES.join(',')}`,
      );
    });
  if (first === undefined) throw refuse(`the token file ${path} does not hold a token`, 'it has no line');
  return [first, ...others];
}

function refusal(path: string, message: string, why: string, cause?: unknown): SeqError {
  return new SeqError({
    code: 'HTTP_TOKEN_FILE',
    exit: EXIT.config,
    message,
    why,
    changed: 'nothing',
    next: [`head -c 32 /dev/urandom | base64 > ${path} && chmod 600 ${path}`],
    cause,
  });
}

function isScope(word: string): word is Scope {
  return (SCOPES as readonly string[]).includes(word);
}
