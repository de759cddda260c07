// The files of the HTTP server that are replaced while it runs: tokens, its certificate and key, the authority that
// signed the other sequencers' certificates, and the authority of callers' certificates. A file that cannot be used
// changes nothing: what was read last goes on.
import { readFileSync } from 'node:fs';
import { createSecureContext } from 'node:tls';
import { EXIT, SeqError } from '../errors.js';
import type { ClientTls } from '../http-call.js';
import { readCaFile } from './listen.js';
import { TokenFile } from './tokens.js';

/** '' for a file that is not in use. */
export interface HttpFilePaths {
  tokens: string;
  certificate: string;
  key: string;
  authority: string;
  clientAuthority: string;
}

interface Certificate {
  cert: Buffer;
  key: Buffer;
  clientCa?: string;
}

export class HttpFiles {
  readonly tokens: TokenFile | undefined;
  private certified: Certificate | undefined;
  private trusted: string | undefined;

  /** Throws SeqError 78. */
  constructor(private readonly paths: HttpFilePaths) {
    this.tokens = paths.tokens === '' ? undefined : new TokenFile(paths.tokens);
    this.certified = this.readCertificate();
    this.trusted = this.readAuthority();
  }

  get certificate(): Certificate | undefined {
    return this.certified;
  }

  /** For calls to other sequencers. One that asks for a certificate is shown the one of this server. */
  get outgoing(): ClientTls {
    const pair = this.certified && { cert: this.certified.cert, key: this.certified.key };
    return { ...pair, ...(this.trusted === undefined ? {} : { ca: this.trusted }) };
  }

  /** The token for calls to other sequencers. */
  get token(): string | undefined {
    return this.tokens?.current()[0].token;
  }

  /** Reads every file again. Returns what is wrong with those that could not be used. */
  reload(): SeqError[] {
    const problems: SeqError[] = [];
    const attempt = (read: () => void): void => {
      try {
        read();
      } catch (error) {
        if (!(error instanceof SeqError)) throw error;
        problems.push(error);
      }
    };
    attempt(() => this.tokens?.reload());
    attempt(() => (this.certified = this.readCertificate()));
    attempt(() => (this.trusted = this.readAuthority()));
    return problems;
  }

  private readCertificate(): Certificate | undefined {
    const { certificate, key, clientAuthority } = this.paths;
    if (certificate === '') return undefined;
    const pair = pemPair(certificate, key);
    return clientAuthority === '' ? pair : { ...pair, clientCa: readCaFile(clientAuthority) };
  }

  private readAuthority(): string | undefined {
    const { authority } = this.paths;
    return authority === '' ? undefined : readCaFile(authority);
  }
}

/** Throws SeqError 78. */
export function pemPair(certificate: string, key: string): { cert: Buffer; key: Buffer } {
  const pair = { cert: pem(certificate, '--http-cert'), key: pem(key, '--http-key') };
  try {
    createSecureContext(pair);
  } catch (error) {
    throw unusable(`--http-cert ${certificate} and --http-key ${key} are no pair that can be used`, error);
  }
  return pair;
}

function pem(path: string, flag: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    throw unusable(`${flag}: ${path} cannot be read`, error);
  }
}

function unusable(message: string, cause: unknown): SeqError {
  return new SeqError({
    code: 'CERTIFICATE_UNREADABLE',
    exit: EXIT.config,
    message,
    why: (cause as Error).message,
    changed: 'nothing',
    next: ['check that both are PEM files, and that the key is the key of that certificate'],
    cause,
  });
}
