// A TLS connection that waiting cannot fix: the cause names the setting. Real handshakes.
import { once } from 'node:events';
import { readFileSync, rmSync } from 'node:fs';
import { createServer as createPlain, type AddressInfo, type Server } from 'node:net';
import { createServer, type TlsOptions } from 'node:tls';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Connection, type TlsSettings } from '../../src/core/redis/connection.js';
import { parseNodeUrl } from '../../src/core/redis/url.js';
import { makeAuthority, makeCertificate, makeCertificates } from '../support/certificates.js';

let dir: string;
const pem = (name: string) => readFileSync(join(dir, name), 'utf8');

beforeAll(() => {
  dir = makeCertificates(['good']);
  makeAuthority(dir, 'other');
  makeCertificate(dir, 'elsewhere', { authority: 'ca', names: 'DNS:db.example' });
  makeCertificate(dir, 'expired', { authority: 'ca', valid: '-days -1' });
});
afterAll(() => rmSync(dir, { recursive: true }));

interface Scene {
  /** The certificate of the server. '' for one that speaks no TLS. */
  server: string;
  serves?: TlsOptions;
  authority?: string;
}

test.each<[string, Scene, RegExp]>([
  ['another authority', { server: 'good', authority: 'other' }, /not signed by an authority .* tls\.ca \(SEQ_TLS_CA\)/],
  ['an expired certificate', { server: 'expired' }, /has expired: renew it on that server/],
  ['the certificate of another name', { server: 'elsewhere' }, /is for another name: .*tls\.serverName/],
  [
    'a server that wants a client certificate',
    { server: 'good', serves: { requestCert: true, rejectUnauthorized: true } },
    /asks for a client certificate.*tls\.cert and tls\.key/,
  ],
  ['a port without TLS', { server: '' }, /does not speak TLS at this port/],
])('tls: %s → the setting that fixes it', async (_name, { server, serves, authority = 'ca' }, told) => {
  const listening: Server =
    server === ''
      ? createPlain((socket) =>
          socket.on('error', () => undefined).once('data', () => socket.write('-ERR unknown\r\n')),
        )
      : createServer(
          { cert: pem(`${server}.crt`), key: pem(`${server}.key`), ca: pem('ca.crt'), ...serves },
          (socket) => socket.on('error', () => undefined),
        );
  listening.listen(0, '127.0.0.1');
  await once(listening, 'listening');
  const { port } = listening.address() as AddressInfo;
  const tls: TlsSettings = { ca: pem(`${authority}.crt`) };
  const connection = new Connection({ address: parseNodeUrl(`rediss://127.0.0.1:${port}`), tls });
  try {
    const answer = await connection.run(20_000, (client) => client.send('ping', []));
    expect(answer).toMatchObject({
      answered: false,
      reply: { outcome: 'unknown', cause: expect.stringMatching(told) },
    });
  } finally {
    connection.close();
    listening.close();
  }
});
