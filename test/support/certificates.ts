// An authority of its own for one test: `ca.crt`, and NAME.crt with NAME.key for each name, good for 127.0.0.1.
import { execFileSync } from 'node:child_process';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** The directory of the files. The caller removes it. */
export function makeCertificates(names: readonly string[]): string {
  const dir = mkdtempSync(join(tmpdir(), 'seq-tls-'));
  const openssl = (line: string, ...more: string[]): void =>
    void execFileSync('openssl', [...line.split(' '), ...more], { cwd: dir, stdio: 'pipe' });
  openssl('req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.crt -days 2 -subj', '/CN=seq test CA');
  for (const name of names) {
    openssl(
      `req -newkey rsa:2048 -nodes -keyout ${name}.key -out ${name}.csr -subj /CN=localhost ` +
        '-addext subjectAltName=IP:127.0.0.1,DNS:localhost',
    );
    openssl(
      `x509 -req -in ${name}.csr -CA ca.crt -CAkey ca.key -CAcreateserial -out ${name}.crt -days 2 ` +
        '-copy_extensions copy',
    );
  }
  return dir;
}
