// The shell contract, held on every command of the manifest: nobody can add one that escapes it. Samples:
// test/support/command-samples.ts.
import { spawn } from 'node:child_process';
import { createServer, type Server } from 'node:net';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { parse as parseYaml, parseAllDocuments } from 'yaml';
import { runBatch, type Answer, type Case } from '../support/batch-seq.js';
import { commands, lineProblem, type ManifestCommand } from '../support/command-lines.js';
import { SAMPLES, type Sample } from '../support/command-samples.js';
import { schemaProblems } from '../support/schemas.js';
import { bin, environment, newHome } from '../support/spawn-seq.js';

interface Envelope {
  kind: string;
  ok: boolean;
  data: unknown;
  error: { code: string; exit: number; changed: string; next: string[]; why: string } | null;
  warnings: string[];
}

// Each test runs many commands, so a busy machine needs this long.
vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 });
const home = newHome();
const ids = commands.map(({ id }) => id).sort();
const words = (id: string) => id.split(':');
const isCheck = (id: string) => id.startsWith('check:');
/** A check that cannot judge says 3 for whatever kept it from judging, so that a pager never takes it for an answer. */
const exitOf = (id: string, exit: number) => (isCheck(id) ? 3 : exit);
const command = (id: string) => commands.find((one) => one.id === id) as ManifestCommand;
const sampleArgs = (sample: Sample) => sample.args.map((arg) => (/\.(txt|bundle)$/.test(arg) ? join(home, arg) : arg));
const expected = (sample: Sample) => [sample.exit ?? 0].flat();
/** Of several flags, these commands need one. */
const ONE_OF: Record<string, string[]> = {
  'cluster:resize': ['--remove', 'r9'],
  'cluster:set': ['--dedup-window', '1d'],
  'lane:add': ['tile-1'],
  'lane:rm': ['tile-1'],
};
/** Values for what a command requires, so that only the flag under test is wrong. */
const needed = (id: string) => {
  const { args, flags } = command(id);
  const values: Record<string, string> = { for: id === 'wait' ? 'leader' : '1m', reason: 'a test' };
  return [
    ...Object.values(args)
      .filter((arg) => arg.required)
      .map((arg) => arg.options?.[0] ?? 'x'),
    ...Object.values(flags)
      .filter((flag) => flag.required)
      .flatMap((flag) => [`--${flag.name}`, values[flag.name] ?? '1']),
    ...(ONE_OF[id] ?? []),
  ];
};

/** Numbers that a JSON parser may round are strings, whatever their names. */
function wideNumbers(value: unknown, path = 'data'): string[] {
  if (Array.isArray(value)) return value.flatMap((entry, at) => wideNumbers(entry, `${path}[${at}]`));
  if (value === null || typeof value !== 'object') return [];
  return Object.entries(value).flatMap(([name, entry]) =>
    typeof entry === 'number' && /^(height|epoch|floor|head|from|to)$|(Height|Epoch|Floor|Head)$/.test(name)
      ? [`${path}.${name} is a number`]
      : wideNumbers(entry, `${path}.${name}`),
  );
}

/** What is wrong with a JSON answer, one line each. */
function problems(answer: Answer, kindOf?: string): string[] {
  let document: Envelope;
  try {
    document = JSON.parse(answer.stdout) as Envelope;
  } catch {
    return [`stdout is not one JSON document: ${answer.stdout.slice(0, 120)}`];
  }
  const wrong = schemaProblems(document);
  const { error } = document;
  if (document.ok !== (error === null)) wrong.push('ok and error contradict each other');
  if (error && error.exit !== answer.code)
    wrong.push(`error.exit is ${error.exit}, the process ended with ${answer.code}`);
  if (kindOf !== undefined && document.kind !== kindOf) wrong.push(`kind is ${document.kind}, not ${kindOf}`);
  if (error?.exit === 70) wrong.push(`a bug: ${JSON.stringify(error)}`);
  const data = document.data as { next?: unknown } | null;
  for (const line of [...(error?.next ?? []), ...(Array.isArray(data?.next) ? (data.next as string[]) : [])]) {
    const problem = line.startsWith('seq ') ? lineProblem(line) : null;
    if (problem !== null) wrong.push(`next: ${line}: ${problem}`);
  }
  return [...wrong, ...wideNumbers(document.data)];
}

/** What is wrong with each answer; [] when nothing is. */
const faults = (answers: readonly Answer[], judge: (answer: Answer) => string[]) =>
  answers.flatMap((answer) =>
    judge(answer).map(
      (fault) =>
        `seq ${answer.argv.join(' ')} (${answer.code}): ${fault}\n  stdout: ` +
        `${answer.stdout.slice(0, 160)}\n  stderr: ${answer.stderr.slice(0, 240)}`,
    ),
  );
const fiveParts = /^[A-Z][A-Z0-9_]*: .+\n {2}why: .+\n {2}changed: nothing\n {2}next: .+/;
const runs = async (cases: readonly Case[], at = home) => runBatch(at, cases);

beforeAll(() => {
  writeFileSync(join(home, 'items.txt'), 'buy 3\nsell 1\n');
});

describe('usage', () => {
  const WRONG: [name: string, args: (id: string) => string[], tells: RegExp][] = [
    ['an unknown flag', (id) => [...needed(id), '--bogus'], /--bogus/],
    ['-o xml', (id) => [...needed(id), '-o', 'xml'], /xml/],
    ['-o JSON', (id) => [...needed(id), '-o', 'JSON'], /JSON/],
    ['an empty -o', (id) => [...needed(id), '--output='], /output/],
    ['-o without a value', (id) => [...needed(id), '-o'], /output/],
    ['--json with -o', (id) => [...needed(id), '-o', 'csv', '--json'], /--json|--output/],
    ['a bare duration', (id) => [...needed(id), '--timeout', '5'], /--timeout/],
    ['-q with -v', (id) => [...needed(id), '-q', '-v'], /quiet|verbose/],
    ['a bare --node-timeout', (id) => [...needed(id), '--node-timeout', '1e3'], /--node-timeout/],
    [
      'a word too much',
      (id) => [
        ...needed(id),
        ...Object.values(command(id).args)
          .filter((arg) => !arg.required)
          .map(() => 'x'),
        'surplus',
      ],
      /surplus/,
    ],
  ];
  const tried = (name: string) => ids.filter((id) => name !== 'a word too much' || command(id).strict !== false);
  let [text, json]: [Answer[][], Answer[][]] = [[], []];
  /** Two processes run them all, side by side, because starting a process is the expensive part. */
  beforeAll(async () => {
    const cases = (more: string[]) =>
      WRONG.map(([name, args]) => tried(name).map((id): Case => ({ argv: [...words(id), ...args(id), ...more] })));
    const sliced = async (rows: Case[][]) => {
      const answers = await runs(rows.flat());
      return rows.map((row) => answers.splice(0, row.length));
    };
    [text, json] = await Promise.all([sliced(cases([])), sliced(cases(['-o', 'json']))]);
  }, 300_000);

  test.each(WRONG.map(([name, , tells], at) => [name, tells, at] as const))(
    '%s → 64 everywhere (3 of a check), five parts, nothing on stdout; as JSON one envelope',
    (name, tells, at) => {
      const said = text[at] ?? [];
      expect(
        faults(said, (answer) => {
          const { argv, code, stdout, stderr } = answer;
          const asJson = argv.includes('--json');
          return [
            ...(code === exitOf(tried(name)[said.indexOf(answer)] as string, 64)
              ? []
              : ['64 (3 of a check) was expected']),
            ...(asJson || stdout === '' ? [] : ['stdout is not empty']),
            ...(asJson || fiveParts.test(stderr) ? [] : ['the error has not its five parts']),
            ...(tells.test(asJson ? stdout : stderr) ? [] : [`it does not say ${tells.source}`]),
          ];
        }),
      ).toEqual([]);
      if (name.includes('-o')) return;
      expect(
        faults(json[at] ?? [], (answer) => [
          ...problems(answer),
          ...(answer.stderr === '' ? [] : ['stderr is not empty']),
          ...(answer.stdout.includes('"changed": "nothing"') ? [] : ['changed is not nothing']),
        ]),
      ).toEqual([]);
    },
    300_000,
  );

  test('what is required is missing → 64, and named', async () => {
    const tried = commands.filter(
      ({ args, flags }) =>
        Object.values(args).some((arg) => arg.required) || Object.values(flags).some((flag) => flag.required),
    );
    const answers = await runs(tried.map(({ id }) => ({ argv: [...words(id), '-o', 'json'] })));
    expect(
      faults(answers, (answer) => [...problems(answer), ...(answer.code === 64 ? [] : ['64 was expected'])]),
    ).toEqual([]);
  }, 300_000);

  test('--help → 0, on stdout, with every flag', async () => {
    const answers = await runs(ids.map((id) => ({ argv: [...words(id), '--help'] })));
    expect(
      faults(answers, ({ argv, code, stdout, stderr }) => {
        const { flags } = command(argv.slice(0, -1).join(':'));
        const missing = Object.values(flags)
          .filter((flag) => !flag.hidden && !stdout.includes(flag.allowNo ? `--[no-]${flag.name}` : `--${flag.name}`))
          .map((flag) => `--${flag.name} is not in it`);
        return [
          ...(code === 0 ? [] : ['0 was expected']),
          ...(stderr === '' ? [] : ['stderr is not empty']),
          ...missing,
        ];
      }),
    ).toEqual([]);
  });
});

describe('a cluster that cannot be asked', () => {
  let silent: Server;
  let urls: string[] = [];
  beforeAll(async () => {
    silent = createServer((socket) => {
      socket.on('error', () => undefined);
    });
    await new Promise<void>((resolve) => {
      silent.listen(0, '127.0.0.1', resolve);
    });
    const { port } = silent.address() as { port: number };
    urls = ['127.0.0.1', '127.0.0.2', '127.0.0.3'].map((host) => `redis://${host}:${port}`);
  });
  afterAll(() => {
    silent.close();
  });

  /** The commands that ask nodes, with the values that they require. */
  const ASKING = ids.filter(
    (id) => !/^(alerts|config|context|completion|dashboard|explain|lab|chaos|service)/.test(id) && id !== 'run',
  );
  const argsOf = (id: string) => [
    ...needed(id),
    ...(id === 'watch' ? ['--count', '1'] : id === 'stream:diff' ? ['--on', 'n1'] : []),
    ...(id === 'trace' ? ['a-key'] : []),
    ...(id === 'submit' ? [join(home, 'items.txt'), '--give-up', '300ms'] : []),
    ...('confirm' in command(id).flags || id === 'stepdown' ? ['--yes'] : []).filter(
      (flag) => flag.slice(2) in command(id).flags,
    ),
  ];

  test(
    'no context of that name → 66; no cluster named → 78; an address that is none → 64; one node ' + 'twice → 78',
    async () => {
      const kinds: [args: string[], exit: number, code: string][] = [
        [['-c', 'nope'], 66, 'CONTEXT_NOT_FOUND'],
        [[], 78, 'NO_CLUSTER'],
        [['--node', 'http://h'], 64, 'BAD_NODE_URL'],
        [['--node', 'redis://127.0.0.1:1', '--node', 'redis://127.0.0.1:1'], 78, 'DUPLICATE_NODE'],
      ];
      for (const [args, exit, code] of kinds) {
        const answers = await runs(
          ASKING.map((id) => ({ argv: [...words(id), ...argsOf(id), ...args, '-o', 'json'] })),
          newHome(),
        );
        expect(
          faults(answers, (answer) => [
            ...problems(answer),
            ...(answer.stdout.includes(`"code": "${code}"`) || answer.stdout.includes(`"code":"${code}"`)
              ? []
              : [`${code} was expected`]),
            ...([exit, 3].includes(answer.code) ? [] : [`exit ${exit} was expected`]),
            ...(answer.stderr === '' ? [] : ['stderr is not empty']),
          ]),
        ).toEqual([]);
      }
    },
  );

  test('every node is dead → said as a failure to ask, nothing changed, within the limit', async () => {
    const nodes = [1, 2, 3].flatMap((port) => ['--node', `redis://127.0.0.1:${port}`]);
    const answers = await runs(
      ASKING.map((id) => ({ argv: [...words(id), ...argsOf(id), ...nodes, '--timeout', '1s', '-o', 'json'] })),
    );
    expect(
      faults(answers, (answer) => {
        const id = ASKING[answers.indexOf(answer)] as string;
        const { error } = JSON.parse(answer.stdout) as Envelope;
        if (isCheck(id)) return [...problems(answer), ...([2, 3].includes(answer.code) ? [] : ['a check says 2 or 3'])];
        if (id === 'wait') return [...problems(answer), ...(answer.code === 1 ? [] : ['not yet is 1'])];
        if (id === 'doctor')
          return [...problems(answer), ...(answer.code === 0 ? [] : ['its findings are the answer'])];
        return [
          ...problems(answer),
          ...([69, 75].includes(answer.code) ? [] : ['69 was expected']),
          ...(error?.changed === 'nothing' ? [] : ['changed is not nothing']),
        ];
      }),
    ).toEqual([]);
  });

  test('every node accepts and says nothing, --timeout passes → 75, the step is named, nothing changed', async () => {
    const bounded = ASKING.filter((id) => !['wait', 'watch', 'submit'].includes(id));
    const answers = await Promise.all(
      [0, 1, 2].map((part) =>
        runs(
          bounded
            .filter((_, at) => at % 3 === part)
            .map((id) => ({
              argv: [
                ...words(id),
                ...argsOf(id),
                ...urls.flatMap((url) => ['--node', url]),
                '--node-timeout',
                '2s',
                '--timeout',
                '150ms',
                '-o',
                'json',
              ],
            })),
        ),
      ),
    );
    expect(
      faults(answers.flat(), (answer) => {
        const { error } = JSON.parse(answer.stdout) as Envelope;
        if (isCheck(answer.argv.slice(0, 2).join(':')))
          return [...problems(answer), ...(answer.code === 3 ? [] : ['3 was expected'])];
        return [
          ...problems(answer),
          ...([75, 69].includes(answer.code) && error?.changed === 'nothing'
            ? []
            : ['75 (69 of one that bounds itself) and nothing changed were expected']),
        ];
      }),
    ).toEqual([]);
  });
});

describe('a lab', () => {
  const before = SAMPLES.slice(
    0,
    SAMPLES.findIndex(([, sample]) => !sample.probe && sample !== SAMPLES[0]?.[1]),
  );
  const after = SAMPLES.slice(before.length).filter(([, sample]) => !sample.elsewhere);
  const looks = before.slice(1);
  const row = ([id, sample]: [string, Sample], format: string): Case => ({
    argv: [...words(id), ...sampleArgs(sample), '-o', format],
  });
  let up: Answer[] = [];

  beforeAll(async () => {
    up = await runs([
      row(before[0] as [string, Sample], 'json'),
      row(['wait', { args: ['-c', 'lab', '--for', 'healthy', '--timeout', '60s'] }], 'json'),
    ]);
  }, 300_000);
  afterAll(async () => {
    await runs([{ argv: ['lab', 'down'] }]);
  }, 300_000);

  const judged = (
    answers: Answer[],
    rows: [string, Sample][],
    judge: (answer: Answer, sample: Sample, id: string) => string[],
  ) =>
    faults(answers, (answer) => {
      const [id, sample] = rows[answers.indexOf(answer) % rows.length] as [string, Sample];
      return [
        ...(expected(sample).includes(answer.code) ? [] : [`exit ${expected(sample).join(' or ')} was expected`]),
        ...judge(answer, sample, id),
      ];
    });

  test('lab up → one document that fits its schema', () => {
    expect(faults(up, (answer) => problems(answer))).toEqual([]);
  });

  test(
    'looks, as JSON → one document that fits its schema, nothing on stderr; -o yaml and --json say ' +
      'the same; ndjson is JSON line by line',
    async () => {
      const json = await runs(looks.map((one) => row(one, 'json')));
      expect(
        judged(json, looks, (answer, _, id) => [
          ...problems(
            answer,
            id === 'watch'
              ? 'status'
              : isCheck(id)
                ? 'check'
                : id.startsWith('completion') && id !== 'completion:ids'
                  ? 'completion'
                  : id.replaceAll(':', '.'),
          ),
          ...(answer.stderr === '' ? [] : ['stderr is not empty']),
        ]),
      ).toEqual([]);
      const short = await runs(
        looks.map(([id, sample]) => ({ argv: [...words(id), ...sampleArgs(sample), '--json'] })),
      );
      expect(
        judged(short, looks, (answer) => [
          ...problems(answer),
          ...((JSON.parse(answer.stdout) as Envelope).kind ===
          (JSON.parse(json[short.indexOf(answer)]?.stdout ?? '') as Envelope).kind
            ? []
            : ['another kind']),
        ]),
      ).toEqual([]);
      const yaml = await runs(looks.map((one) => row(one, 'yaml')));
      expect(
        judged(yaml, looks, (answer) =>
          parseAllDocuments(answer.stdout).length === 1
            ? schemaProblems(parseYaml(answer.stdout))
            : ['not one document'],
        ),
      ).toEqual([]);
      const ndjson = await runs(looks.map((one) => row(one, 'ndjson')));
      expect(
        judged(ndjson, looks, (answer) =>
          answer.stdout
            .split('\n')
            .filter((line) => line !== '')
            .flatMap((line) => {
              try {
                JSON.parse(line);
                return [];
              } catch {
                return [`not JSON: ${line.slice(0, 80)}`];
              }
            }),
        ),
      ).toEqual([]);
    },
  );

  test(
    'looks, as text → something is said, no escape sequence, NO_COLOR and 40 columns included; csv ' + 'has one width',
    async () => {
      const text = await runs(
        ['plain', 'table'].flatMap((format) =>
          looks.map((one) => ({ ...row(one, format), env: { NO_COLOR: '1', COLUMNS: '40', TERM: 'xterm' } })),
        ),
      );
      expect(
        judged(text, looks, (answer) => [
          ...(answer.stdout.trim() === '' ? ['nothing is said'] : []),
          ...(/\u001b/.test(answer.stdout + answer.stderr) ? ['an escape sequence'] : []),
          ...(answer.stderr === '' ? [] : ['stderr is not empty']),
        ]),
      ).toEqual([]);
      const csv = await runs(looks.map((one) => row(one, 'csv')));
      expect(judged(csv, looks, (answer) => (/\u001b|\t/.test(answer.stdout) ? ['not csv'] : []))).toEqual([]);
    },
  );

  test('looks: an unknown field → 64, and the fields that there are', async () => {
    const tried = looks.filter(([id]) => !/^(completion|lab:logs|stream:tail|watch)/.test(id));
    const answers = await runs(
      tried.map(([id, sample]) => ({ argv: [...words(id), ...sampleArgs(sample), '-o', 'json', '--fields', 'nope'] })),
    );
    expect(
      faults(answers, (answer) => [
        ...problems(answer),
        ...(answer.code === exitOf(answer.argv.slice(0, 2).join(':'), 64) ? [] : ['64 was expected']),
      ]),
    ).toEqual([]);
  }, 300_000);

  /** Runs in a process of its own, because the test closes or breaks its streams. */
  function shell(
    script: string,
    args: readonly string[],
    env: Record<string, string | undefined> = {},
  ): Promise<{ code: number | null; stdout: string; stderr: string }> {
    return new Promise((resolve) => {
      const child = spawn('/bin/bash', ['-c', script, 'bash', process.execPath, bin, ...args], {
        env: environment(home, env),
        stdio: ['ignore', 'pipe', 'pipe'],
      });
      let [stdout, stderr] = ['', ''];
      child.stdout.on('data', (chunk: Buffer) => {
        stdout += chunk.toString();
      });
      child.stderr.on('data', (chunk: Buffer) => {
        stderr += chunk.toString();
      });
      const timer = setTimeout(() => child.kill('SIGKILL'), 60_000);
      child.on('close', (code) => {
        clearTimeout(timer);
        resolve({ code, stdout, stderr });
      });
    });
  }
  /**
   * A command that only reads runs as it is. Any other gets an unknown flag, so that it reaches its streams and no
   * more.
   */
  const harmless = (id: string): [args: string[], exits: number[]] => {
    const sample = looks.find(([one]) => one === id)?.[1];
    return sample
      ? [[...words(id), ...sampleArgs(sample)], expected(sample)]
      : [[...words(id), ...needed(id), '--bogus'], [exitOf(id, 64)]];
  };
  async function everywhere(
    tried: string[],
    script: string,
    more: string[],
    env: Record<string, string | undefined>,
    judge: (ran: { code: number | null; stdout: string; stderr: string }, exits: number[], probed: boolean) => string[],
  ): Promise<string[]> {
    const wrong: string[] = [];
    const queue = [...tried];
    await Promise.all(
      [0, 1].map(async () => {
        for (let id = queue.shift(); id !== undefined; id = queue.shift()) {
          const [args, exits] = harmless(id);
          const ran = await shell(script, [...args, ...more], env);
          wrong.push(
            ...judge(
              ran,
              exits,
              looks.some(([one]) => one === id),
            ).map((fault) => `seq ${args.join(' ')}: ${fault}: ${ran.code} ${JSON.stringify(ran)}`),
          );
        }
      }),
    );
    return wrong;
  }

  test(
    'no HOME, stdin closed, and a reader that leaves after one line → quiet, the first line is JSON, ' +
      'the exit code holds',
    async () => {
      expect(
        await everywhere(
          ids,
          '"$@" <&- | head -1; exit "${PIPESTATUS[0]}"',
          ['-o', 'ndjson'],
          { HOME: undefined, TERM: 'dumb' },
          (ran, exits) => [
            ...(exits.includes(ran.code ?? -1) || ran.code === 0 ? [] : [`exit ${exits.join(' or ')} was expected`]),
            ...(ran.stderr === '' ? [] : ['stderr is not empty']),
            ...(/^["{[]/.test(ran.stdout) || (ran.stdout === '' && ran.code === 0) ? [] : ['no JSON']),
          ],
        ),
      ).toEqual([]);
    },
    300_000,
  );

  const oneOfEachTopic = ids.filter(
    (id, at) => ids.findIndex((other) => other.split(':')[0] === id.split(':')[0]) === at,
  );

  test('stdout closed → the exit code holds (74 when it could not write), and no trace of a crash', async () => {
    expect(
      await everywhere(oneOfEachTopic, 'exec "$@" >&-', ['-o', 'table'], { COLUMNS: '40' }, (ran, exits) => [
        ...([...exits, 74].includes(ran.code ?? -1) ? [] : [`exit ${exits.join(' or ')} was expected`]),
        ...(/\n\s+at |Unhandled|EBADF/.test(ran.stderr) ? ['a crash'] : []),
      ]),
    ).toEqual([]);
  }, 300_000);

  test('acts, as JSON → one document that fits its schema', async () => {
    const acts = await runs(after.map((one) => row(one, 'json')));
    expect(judged(acts, after, (answer) => problems(answer))).toEqual([]);
  }, 300_000);
});
