// Makes certificates of a private authority with openssl, for servers on 127.0.0.1.
import { execFileSync } from 'node:child_process';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/**
 * Makes a new authority: `ca.crt`, and NAME.crt with NAME.key for each name. Returns the directory of the files. The
 * caller removes it.
 */
export function makeCertificates(names: readonly string[]): string {
  const dir = mkdtempSync(join(tmpdir(), 'seq-tls-'));
  makeAuthority(dir, 'ca');
  for (const name of names) makeCertificate(dir, name, { authority: 'ca' });
  return dir;
}

/** Writes NAME.crt and NAME.key of a new authority. */
export function makeAuthority(directory: string, name: string): void {
  openssl(directory, `req -x509 -newkey rsa:2048 -nodes -keyout ${name}.key -out ${name}.crt -days 2`, [
    '-subj',
    `/CN=seq test ${name}`,
  ]);
}

export interface Certified {
  authority: string;
  /** subjectAltName: by default 127.0.0.1 and localhost. */
  names?: string;
  /** The openssl options for the time of validity. */
  valid?: string;
}

/** Writes NAME.crt and NAME.key, signed by that authority. */
export function makeCertificate(directory: string, name: string, { authority, names, valid }: Certified): void {
  openssl(directory, `req -newkey rsa:2048 -nodes -keyout ${name}.key -out ${name}.csr`, [
    '-subj',
    '/CN=localhost',
    '-addext',
    `subjectAltName=${names ?? 'IP:127.0.0.1,DNS:localhost'}`,
  ]);
  openssl(
    directory,
    `x509 -req -in ${name}.csr -CA ${authority}.crt -CAkey ${authority}.key -CAcreateserial -out ${name}.crt ` +
      `${valid ?? '-days 2'} -copy_extensions copy`,
  );
}

function openssl(cwd: string, words: string, more: string[] = []): void {
  execFileSync('openssl', [...words.split(' '), ...more], { cwd, stdio: 'pipe' });
}
