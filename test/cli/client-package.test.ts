// Another project uses the package: the packed archive alone, with the types that are in it, on a real cluster. The
// program is the example of docs/CLIENT.md.
import { spawn, spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { endAllAfterEach, initialise, redis, start, until } from '../support/live-sequencers.js';
import { environment, newHome, root } from '../support/spawn-seq.js';

endAllAfterEach();

const project = newHome();
/** What the compiler said while it made out/. */
let node16 = 'not compiled';
const example = /```ts\n([\s\S]*?)```/.exec(readFileSync(join(root, 'docs', 'CLIENT.md'), 'utf8'))![1]!;

/** Every method, with the type that its caller sees. Whoever loosens a type to `any` is found by the last lines. */
const TYPES = `
import { SequencerClient, SeqError, isErrorCode, itemsOf } from 'seqctl';
import type { ChainItem, CommittedBlock, ConfirmedHead, ErrorCode, ItemReceipt, SequencerAnswer } from 'seqctl';
export async function uses(client: SequencerClient): Promise<void> {
  const receipts: ItemReceipt[] = await client.submit({ key: 'k', data: 'text' });
  const head: ConfirmedHead = await client.head({ signal: AbortSignal.timeout(1000) });
  const answers: SequencerAnswer[] = await client.status();
  for (const answer of answers) if (answer.answered) answer.status.role satisfies string;
  for await (const block of client.follow({ after: { height: head.height, hash: head.hash } })) {
    const same: CommittedBlock = block;
    const items: ChainItem[] = itemsOf(same);
    items[0]?.data?.length.toFixed();
  }
  const code: ErrorCode | undefined = isErrorCode('BUSY') ? 'BUSY' : undefined;
  void [receipts, code, new SeqError({ code: 'BUSY', exit: 75, message: '', why: '', changed: 'nothing', next: [] })];
  // @ts-expect-error an item has a key
  await client.submit({ data: 'text' });
  // @ts-expect-error a height is a number
  client.follow({ from: '1' });
  // @ts-expect-error there is no such code
  const none: ErrorCode = 'NO_SUCH_CODE';
  void none;
}
`;

beforeAll(() => {
  const packed = spawnSync('npm', ['pack', '--ignore-scripts', '--pack-destination', project], {
    cwd: root,
    encoding: 'utf8',
  });
  expect(packed.status, packed.stderr).toBe(0);
  const archive = readdirSync(project).find((name) => name.endsWith('.tgz'))!;
  // The package alone, without its dependencies: the client needs none.
  const own = join(project, 'node_modules', 'seqctl');
  mkdirSync(own, { recursive: true });
  const taken = spawnSync('tar', ['-xzf', join(project, archive), '--strip-components=1', '-C', own]);
  expect(taken.status, String(taken.stderr)).toBe(0);
  mkdirSync(join(project, 'node_modules', '@types'));
  symlinkSync(join(root, 'node_modules', '@types', 'node'), join(project, 'node_modules', '@types', 'node'));
  symlinkSync(join(root, 'node_modules', 'undici-types'), join(project, 'node_modules', 'undici-types'));
  writeFileSync(join(project, 'package.json'), '{"name":"consumer","type":"module","private":true}');
  writeFileSync(join(project, 'example.ts'), example);
  writeFileSync(join(project, 'types.ts'), TYPES);
  node16 = compile(['--module', 'node16', '--moduleResolution', 'node16', '--outDir', 'out']);
});

/** Compiles the project. What is wrong is what the compiler wrote. */
function compile(options: string[]): string {
  const tsc = join(root, 'node_modules', 'typescript', 'bin', 'tsc');
  const strict = ['--strict', '--exactOptionalPropertyTypes', '--noUncheckedIndexedAccess', '--types', 'node'];
  const files = ['example.ts', 'types.ts'];
  const ran = spawnSync(process.execPath, [tsc, ...strict, '--target', 'es2022', ...options, ...files], {
    cwd: project,
    encoding: 'utf8',
  });
  return ran.stdout + ran.stderr;
}

function run(args: string[], env: Record<string, string> = {}): Promise<{ out: string; code: number | null }> {
  return new Promise((resolve) => {
    const child = spawn(process.execPath, args, { cwd: project, env: environment(project, env) });
    let out = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => (out += String(chunk)));
    child.once('close', (code) => resolve({ out, code }));
  });
}

describe('a project that uses the package', () => {
  test('client: the shipped types check with node16 and bundler resolution, library included', () => {
    expect(node16).toBe('');
    expect(compile(['--module', 'esnext', '--moduleResolution', 'bundler', '--noEmit'])).toBe('');
  });

  test('client: importing it loads no package and no other file of the package', async () => {
    const script =
      "import { register } from 'node:module';" +
      'const code = `export const resolve = async (name, context, next) => { const found = await next(name, context);' +
      'process._rawDebug(found.url); return found; }`;' +
      "register('data:text/javascript,' + encodeURIComponent(code));" +
      "await import('seqctl');";
    const { out, code } = await run(['--input-type=module', '-e', script]);
    expect(code, out).toBe(0);
    const loaded = out.split('\n').filter((line) => /^(file|node):/.test(line));
    const files = loaded.filter((url) => url.startsWith('file:') && !url.includes('[eval'));
    expect(files.map((url) => url.slice(url.indexOf('node_modules')))).toEqual(['node_modules/seqctl/dist/index.js']);
  });

  test('client: the example on a real cluster, twice → the same receipts, each item once; then a leader dies', async () => {
    const [r1, r2, r3] = [await redis(), await redis(), await redis()];
    const nodes = { r1, r2, r3 };
    await initialise(nodes);
    const sequencers = [await start('seq-a', nodes), await start('seq-b', nodes)];
    await until('a leader', async () => {
      const leads = await Promise.all(sequencers.map((sequencer) => sequencer.leads()));
      return leads.includes(true) ? true : undefined;
    });
    const env = { SEQ_URLS: sequencers.map(({ url }) => url).join(',') };
    const of = (text: string, first: string) => text.split('\n').filter((line) => line.startsWith(first));

    const once = await run(['out/example.js'], env);
    expect([once.code, once.out.includes('seq-a is')], once.out).toEqual([0, true]);
    expect(of(once.out, 'item')).toEqual(['item order-1: three apples', 'item order-2: five pears']);
    const receipts = of(once.out, 'receipt');
    expect(receipts).toHaveLength(2);

    const led = await Promise.all(sequencers.map((sequencer) => sequencer.leads()));
    sequencers[led.indexOf(true)]!.child.kill('SIGKILL');
    const again = await run(['out/example.js'], env);
    expect(again.code, again.out).toBe(0);
    expect(of(again.out, 'receipt')).toEqual(receipts);
    expect(of(again.out, 'item')).toEqual(of(once.out, 'item'));
  });
});

describe('manual pages', () => {
  const groff = spawnSync('groff', ['--version']).status === 0;
  const folder = join(root, 'man');
  test.each(readdirSync(folder))('man: %s → has its sections, and no request that its text made', (name) => {
    const text = readFileSync(join(folder, name), 'utf8');
    expect(text.match(/^\.SH .*/gm)).toEqual(expect.arrayContaining(['.SH NAME', '.SH SYNOPSIS', '.SH DESCRIPTION']));
    expect(text).toMatch(/^[\x0a\x20-\x7e]*$/);
    expect(text.match(/^[.'](?!\\"|(TH|SH|TP|PP|BR|nf|fi|sp)\b).*/gm)).toBeNull();
    // The first line of a page that `apropos` reads: name, hyphen, what it is.
    expect(text).toMatch(/^\.SH NAME\n[a-z\\-]+ \\- \S.*$/m);
    if (!groff) return;
    const drawn = spawnSync('groff', ['-man', '-Tutf8', '-ww', '-z', join(folder, name)], { encoding: 'utf8' });
    // -ww also tells of lines that can hardly be filled; a warning of the text itself names a macro or a character.
    expect(drawn.stderr.split('\n').filter((line) => line !== '' && !/can't break line|adjust/.test(line))).toEqual([]);
  });
});
