// `seq submit` from outside, against sequencers in this process: input, resume, output, exit codes, signals.
import { readdirSync, rmSync, writeFileSync, appendFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { SubmitOutcome } from '../../src/core/ports.js';
import { startHttpServer, type HttpServer } from '../../src/core/serve/server.js';
import { FakeSequencer, until } from '../support/fake-sequencer.js';
import { schemaProblems } from '../support/schemas.js';
import { newHome, runSeq, type RunOptions } from '../support/spawn-seq.js';

let home = '';
let api: FakeSequencer;
let server: HttpServer;
const start = async (options: { token?: string; maxBlockBytes?: number } = {}) =>
  startHttpServer({
    api,
    listen: { host: '127.0.0.1', port: 0 },
    maxBlockBytes: 1 << 20,
    bounds: { closeMs: 100 },
    ...options,
  });
beforeEach(async () => {
  home = newHome();
  api = new FakeSequencer();
  server = await start();
});
afterEach(async () => {
  await server.close();
  rmSync(home, { recursive: true, force: true });
});

const submit = (args: string[], options: RunOptions = {}) =>
  runSeq(home, ['submit', '--http', server.url, ...args], options);
const file = (name: string, text: string) => {
  const path = join(home, name);
  writeFileSync(path, text);
  return path;
};
const texts = () => api.items.map((item) => item.text);
const data = (stdout: string) => {
  const document = JSON.parse(stdout);
  expect(schemaProblems(document)).toEqual([]);
  return document.data;
};

describe('seq submit', () => {
  test(
    'submit: a file → first and last place, count, rate; the same file again → known, nothing new; ' +
      'another prefix → again',
    async () => {
      const path = file('in.txt', 'a\n\nb');
      const first = await submit([path]);
      expect([first.code, first.stderr]).toEqual([0, '']);
      expect(first.stdout).toMatch(
        /^verdict\tOK\tSEQUENCED\t3 items are sequenced\n[\s\S]*first\t\(1, 0\) in epoch 7\nlast\t\([12], \d\) in epoch 7\nrate\t\d+ items\/s\n/,
      );
      expect(texts()).toEqual(['a', '', 'b']);
      expect(data((await submit([path, '-o', 'json'])).stdout)).toMatchObject({
        items: 3,
        sequenced: 0,
        duplicates: 3,
        reasonCode: 'KNOWN',
        first: { height: '1', index: 0, epoch: '7' },
      });
      expect(data((await submit([path, '-o', 'json', '--key-prefix', 'again'])).stdout)).toMatchObject({
        items: 3,
        sequenced: 3,
        keyPrefix: 'again',
      });
      expect(api.items.slice(3).map((item) => item.key)).toEqual(['again:1', 'again:2', 'again:3']);
    },
  );

  test('submit: UTF-16 and CR LF → sequenced as they are, told before the first item; --text → lines of UTF-8', async () => {
    const path = join(home, 'windows.txt');
    writeFileSync(path, Buffer.from('\ufeffeins\r\nzwei\r\n', 'utf16le'));
    const asIs = await submit([path]);
    expect([asIs.code, asIs.stderr]).toEqual([0, expect.stringMatching(/^warning: the input is UTF-16: .*--text/)]);
    expect(texts()[0]).toBe(Buffer.from('\ufeffeins\r', 'utf16le').toString('latin1'));
    const before = texts().length;
    const text = await submit([path, '--text', '-o', 'json']);
    expect(data(text.stdout)).toMatchObject({ items: 2, sequenced: 2, keyPrefix: expect.stringMatching(/^t-f-/) });
    expect([texts().slice(before), JSON.parse(text.stdout).warnings]).toEqual([['eins', 'zwei'], []]);
    expect(data((await submit([path, '--text', '--resume', '-o', 'json'])).stdout)).toMatchObject({ resumed: 2 });
    const crlf = await submit([file('dos.txt', 'a\r\nb\r\n'), '-o', 'json']);
    expect(JSON.parse(crlf.stdout).warnings).toEqual([expect.stringContaining('CR LF')]);
    expect(texts().slice(-2)).toEqual(['a\r', 'b\r']);
  });

  test('submit: stdin, with and without -, is new each time; empty input is no failure', async () => {
    for (const args of [[], ['-'], []]) expect((await submit(args, { input: 'x\ny\n' })).code).toBe(0);
    expect(texts()).toEqual(['x', 'y', 'x', 'y', 'x', 'y']);
    expect(data((await submit(['-o', 'json'])).stdout)).toMatchObject({
      items: 0,
      first: null,
      last: null,
      reasonCode: 'EMPTY',
    });
  });

  test('submit: --binary frames', async () => {
    const path = join(home, 'frames');
    writeFileSync(path, Buffer.from([0, 0, 0, 2, 0xff, 0x0a, 0, 0, 0, 0]));
    expect((await submit(['--binary', path])).code).toBe(0);
    expect(texts()).toEqual(['\xff\n', '']);
    appendFileSync(path, Buffer.from([0, 0]));
    expect((await submit(['--binary', path])).stderr).toContain('FRAME_TRUNCATED: frame 3');
    expect(JSON.parse((await submit(['--binary', path, '--resume', '-o', 'json'])).stdout).error).toMatchObject({
      code: 'FRAME_TRUNCATED',
      changed: 'nothing',
    });
  });

  test(
    'submit: Ctrl-C in the middle → 130 within 100 ms with what is known; --resume → the rest alone, ' +
      'no duplicates even after growth',
    async () => {
      const lines = Array.from({ length: 9000 }, (_, at) => `line ${at}`);
      const path = file('in.txt', `${lines.join('\n')}\n`);
      let stuck = false;
      api.intercept = () => {
        if (api.calls.length < 2) return undefined;
        stuck = true;
        return new Promise<SubmitOutcome[]>(() => {});
      };
      const cut = await submit([path], {
        during: async (child) => {
          await until(() => stuck, 'the second batch');
          child.kill('SIGINT');
        },
      });
      expect([cut.code, cut.stderr.includes('INTERRUPTED: interrupted after 4000 items')]).toEqual([130, true]);
      api.intercept = () => undefined;
      const before = api.calls.length;
      appendFileSync(path, 'one more\n');
      expect(data((await submit([path, '--resume', '-o', 'json'])).stdout)).toMatchObject({
        items: 9001,
        resumed: 4000,
        sequenced: 5001,
        duplicates: 0,
        first: { height: '1', index: 0 },
      });
      expect(api.calls.slice(before).flat()).toHaveLength(5001);
      expect(texts()).toEqual([...lines, 'one more']);
      expect(data((await submit([path, '--resume', '-o', 'json'])).stdout)).toMatchObject({
        items: 9001,
        resumed: 9001,
        sequenced: 0,
      });
      expect(readdirSync(join(home, 'state', 'seq', 'submit')).every((name) => name.endsWith('.json'))).toBe(true);
    },
  );

  test(
    'submit: killed before its first receipt, the file grows → --resume keeps to the keys of the ' +
      'first run; a file replaced meanwhile → 65, nothing sent',
    async () => {
      const path = file('in.txt', 'a\nb\n');
      let taken = false;
      api.intercept = (items) => {
        api.commit(items);
        taken = true;
        return new Promise<SubmitOutcome[]>(() => {});
      };
      await submit([path], {
        during: async (child) => {
          await until(() => taken, 'the batch');
          child.kill('SIGKILL');
        },
      });
      api.intercept = () => undefined;
      appendFileSync(path, 'c\n');
      expect(data((await submit([path, '--resume', '-o', 'json'])).stdout)).toMatchObject({
        items: 3,
        sequenced: 1,
        duplicates: 2,
      });
      expect(texts()).toEqual(['a', 'b', 'c']);

      const other = file('other.txt', 'd\n');
      api.intercept = () => new Promise<SubmitOutcome[]>(() => {});
      const calls = api.calls.length;
      await submit([other], {
        during: async (child) => {
          await until(() => api.calls.length > calls, 'the batch');
          child.kill('SIGKILL');
        },
      });
      api.intercept = () => undefined;
      file('other.txt', 'D\ne\n');
      const changed = await submit([other, '--resume']);
      expect([changed.code, changed.stderr.includes('INPUT_CHANGED'), api.calls.length]).toEqual([65, true, calls + 1]);
    },
  );

  test(
    'submit: --resume on another cluster → from the start; without state → a warning, the keys do ' +
      'the rest; a changed file → 65',
    async () => {
      const path = file('in.txt', 'a\nb\n');
      await submit([path]);
      api.state = { cluster: 'other.1' };
      api.keys.clear();
      const other = await submit([path, '--resume', '-o', 'json']);
      expect([data(other.stdout).sequenced, JSON.parse(other.stdout).warnings.length]).toEqual([2, 1]);
      api.state = {};
      writeFileSync(path, 'A\nb\nc\n');
      const changed = await submit([path, '--resume']);
      expect([changed.code, changed.stderr.includes('INPUT_CHANGED')]).toEqual([65, true]);
    },
  );

  test('submit: a named pipe of items resumes by its name', async () => {
    const named = ['--key-prefix', 'orders', '--resume', '-o', 'json'];
    await submit(named, { input: 'a\nb\n' });
    expect(data((await submit(named, { input: 'a\nb\nc\n' })).stdout)).toMatchObject({
      items: 3,
      resumed: 2,
      sequenced: 1,
    });
    expect(texts()).toEqual(['a', 'b', 'c']);
  });

  test('submit: a line too long → what is before it is sequenced, 65, its number', async () => {
    await server.close();
    server = await start({ maxBlockBytes: 1024 });
    const ran = await submit([file('in.txt', `a\n${'x'.repeat(2000)}\nb\n`)]);
    expect([ran.code, /ITEM_TOO_LARGE: line 2/.test(ran.stderr), texts()]).toEqual([65, true, ['a']]);
  });

  test('submit: a token is asked for → 77; given by file → 0', async () => {
    await server.close();
    server = await start({ token: 'secret-token' });
    const path = file('in.txt', 'a\n');
    const denied = await submit([path]);
    expect([denied.code, denied.stderr.includes('TOKEN_NEEDED')]).toEqual([77, true]);
    expect((await submit([path, '--http-token-file', file('token', 'secret-token\n')])).code).toBe(0);
  });

  test.each<[string, string[], number, string]>([
    ['no such file', ['none.txt'], 66, 'FILE_NOT_FOUND'],
    ['a directory', ['.'], 65, 'FILE_UNREADABLE'],
    ['--resume of a nameless pipe', ['--resume'], 64, '--resume needs'],
    ['a bad prefix', ['--key-prefix', 'a\nb'], 64, '--key-prefix'],
    ['an empty prefix', ['--key-prefix', ''], 64, '--key-prefix'],
    ['a bare number', ['--give-up', '5'], 64, '--give-up'],
    ['no URL', ['--http', 'nonsense'], 64, '--http'],
    ['no token file', ['--http-token-file', '/nonexistent'], 78, 'HTTP_TOKEN_FILE'],
    ['no CA file', ['--http-ca', '/nonexistent'], 78, 'CERTIFICATE_UNREADABLE'],
  ])('submit: %s → %j exits %i before anything is sent', async (_name, args, code, says) => {
    const ran = await submit(args, { input: 'a\n' });
    expect([ran.code, ran.stderr.includes(says), api.calls.length]).toEqual([code, true, 0]);
  });

  test('submit: nobody listens → 69 after --give-up, as one JSON document', async () => {
    const ran = await runSeq(home, ['submit', '--http', 'http://127.0.0.1:1', '--give-up', '200ms', '-o', 'json'], {
      input: 'a\n',
    });
    const document = JSON.parse(ran.stdout);
    expect([ran.code, document.ok, document.error.code, document.error.changed]).toEqual([
      69,
      false,
      'NO_SEQUENCER',
      'nothing',
    ]);
  });

  test('submit: a state folder that cannot be written → a warning, the work goes on', async () => {
    const ran = await submit([file('in.txt', 'a\n'), '-o', 'json'], {
      env: { XDG_STATE_HOME: file('not-a-folder', '') },
    });
    expect([ran.code, JSON.parse(ran.stdout).warnings]).toEqual([0, [expect.stringContaining('no state is kept')]]);
  });
});
