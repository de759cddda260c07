import { describe, expect, test } from 'vitest';
import { parseNodeUrl } from '../../src/core/redis/url.js';

describe('node url', () => {
  test.each([
    ['redis://h:7000', { transport: 'tcp', host: 'h', port: 7000, db: 0, redacted: 'redis://h:7000' }],
    ['r1=redis://h:7000/2', { id: 'r1', transport: 'tcp', db: 2, redacted: 'redis://h:7000/2' }],
    ['redis://h', { port: 6379 }],
    ['10.0.0.1:7001', { transport: 'tcp', host: '10.0.0.1', port: 7001, redacted: 'redis://10.0.0.1:7001' }],
    ['n=h:1', { id: 'n', host: 'h', port: 1 }],
    ['rediss://u:p%40w@h:7', { transport: 'tls', username: 'u', password: 'p@w', redacted: 'rediss://h:7' }],
    ['redis://:only@h:7', { password: 'only', redacted: 'redis://h:7' }],
    ['redis://[::1]:7', { host: '::1', redacted: 'redis://[::1]:7' }],
    ['unix:/run/r.sock', { transport: 'unix', path: '/run/r.sock', db: 0, redacted: 'unix:/run/r.sock' }],
    [
      'r9=unix:///run/r.sock?db=4',
      { id: 'r9', transport: 'unix', path: '/run/r.sock', db: 4, redacted: 'unix:/run/r.sock?db=4' },
    ],
  ])('%s', (text, expected) => {
    expect(parseNodeUrl(text)).toMatchObject(expected);
  });

  test.each([
    ['', 'host:port'],
    ['h', 'host:port'],
    ['h:', 'host:port'],
    ['h:0x10', 'host:port'],
    ['redis://h:0', 'port 0'],
    ['redis://h:99999', 'port'],
    ['redis://', 'host'],
    ['http://h:1', "scheme 'http'"],
    ['redis://h:1/one', 'database'],
    ['redis://h:1?x=1', 'nothing may follow'],
    ['unix:r.sock', 'starts with /'],
    ['unix:/r?x=1', 'db=N'],
    ['a b=redis://h:1', 'id'],
    ['redis://u:s3cret@h:1/x', 'database'],
    ['redis://u:s3cret%zz@h:1', '%-escape'],
    ['redis://u:s3cret@h:1:2', 'port'],
    ['u:s3cret@h:1', 'host:port'],
    ['x=http://u:s3cret@h', 'scheme'],
    ['redis://u:s3c/ret@h:1', 'port'],
  ])('%s → 78, says what is wrong, keeps secrets', (text, why) => {
    let caught: unknown;
    try {
      parseNodeUrl(text);
    } catch (error) {
      caught = error;
    }
    expect(caught).toMatchObject({ code: 'BAD_NODE_URL', exit: 78 });
    const { message, why: said } = caught as { message: string; why: string };
    expect(`${message} ${said}`).toContain(why);
    expect(`${message} ${said}`).not.toMatch(/s3c/);
  });
});
