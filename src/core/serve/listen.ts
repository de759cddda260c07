// Where may the HTTP server listen? Loopback is open to every program on the machine. A wider address needs a bearer
// token or TLS, because everybody who reaches the port can put items into the chain. Refused before anything is bound
// (exit 78).
import { readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { EXIT, SeqError } from '../errors.js';

export interface Listen {
  host: string;
  port: number;
}

/**
 * `HOST:PORT`, `[::1]:PORT`, `:PORT` or `PORT` (the last two mean 127.0.0.1). Port 0 asks for any free one. Throws
 * SeqError 78.
 */
export function parseListen(text: string, flag = '--http'): Listen {
  const match =
    /^(?:\[([0-9a-fA-F:.]+)\]|([^\s:\[\]]*)):(\d{1,5})$/.exec(text) ??
    (/^\d{1,5}$/.test(text) ? [text, undefined, '', text] : null);
  const port = match ? Number(match[3]) : NaN;
  const host = match ? (match[1] ?? (match[2] === '' ? '127.0.0.1' : match[2])) : undefined;
  if (host === undefined || !(port <= 65535)) {
    throw new SeqError({
      code: 'HTTP_ADDRESS',
      exit: EXIT.config,
      message: `${flag} ${JSON.stringify(text)} is not HOST:PORT`,
      why:
        'a host (or nothing, for loopback), a colon and a port from 0 to 65535 are needed; IPv6 ' +
        'addresses stand in brackets',
      changed: 'nothing',
      next: [`${flag} 127.0.0.1:7070`],
    });
  }
  return { host, port };
}

export function isLoopback(host: string): boolean {
  if (host === 'localhost') return true;
  const version = isIP(host);
  if (version === 4) return host.startsWith('127.');
  return version === 6 && (/^(0{0,4}:){2,7}0{0,3}1$/.test(host) || /^::ffff:127\./i.test(host));
}

/** Throws SeqError 78 HTTP_NOT_LOOPBACK when a wider address has neither token nor TLS. */
export function checkListen(listen: Listen, protection: { token: boolean; tls: boolean }, flag = '--http'): void {
  if (isLoopback(listen.host) || protection.token || protection.tls) return;
  throw new SeqError({
    code: 'HTTP_NOT_LOOPBACK',
    exit: EXIT.config,
    message: `${flag} ${listen.host}:${listen.port} is not a loopback address, and there is neither a token nor TLS`,
    why: 'whoever reaches this port could put items into the chain and read it',
    changed: 'nothing',
    next: [`--http 127.0.0.1:${listen.port}`, '--http-token-file FILE (a secret that callers send as a bearer token)'],
  });
}

/** Throws SeqError 78. */
export function readCaFile(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw new SeqError({
      code: 'CERTIFICATE_UNREADABLE',
      exit: EXIT.config,
      message: `the certificate file ${path} cannot be read`,
      why: (error as Error).message,
      changed: 'nothing',
      next: [`ls -l ${path}`],
      cause: error,
    });
  }
}

/** Turns an error of listening into an error for the operator. */
export function listenError(listen: Listen, error: unknown, flag = '--http'): SeqError {
  const code = (error as { code?: string }).code ?? '';
  const at = `${listen.host}:${listen.port}`;
  if (code === 'EADDRINUSE') {
    return new SeqError({
      code: 'PORT_IN_USE',
      exit: EXIT.config,
      message: `${flag} ${at}: the port is in use`,
      why: 'another process listens there',
      changed: 'nothing',
      next: [`ss -ltnp 'sport = :${listen.port}'`, `${flag} ${listen.host}:0 (any free port)`],
      cause: error,
    });
  }
  return new SeqError({
    code: 'HTTP_ADDRESS',
    exit: EXIT.config,
    message: `${flag} ${at}: cannot listen there`,
    why: (error as Error).message,
    changed: 'nothing',
    next: ['name an address of this machine and a port that this user may bind (above 1023)'],
    cause: error,
  });
}
