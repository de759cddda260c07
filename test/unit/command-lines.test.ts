// Whatever command line the program or its documents tell somebody to run must be one that can be run: it exists and
// takes these flags.
import { readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import ts from 'typescript';
import { describe, expect, test } from 'vitest';
import { allCodes } from '../../src/cli/codes/codes.js';
import { commands, HOLE, lineProblem, mentionProblems } from '../support/command-lines.js';

const root = resolve(import.meta.dirname, '../..');

/**
 * Every string and template of a source file, with what is put in at run time as a hole; `next` ones are to be pasted
 * as they are.
 */
function strings(file: string): { text: string; next: boolean; line: number }[] {
  const source = ts.createSourceFile(
    file,
    readFileSync(join(root, file), 'utf8'),
    ts.ScriptTarget.Latest,
    true,
    file.endsWith('x') ? ts.ScriptKind.TSX : ts.ScriptKind.TS,
  );
  const found: { text: string; next: boolean; line: number }[] = [];
  const visit = (node: ts.Node, next: boolean): void => {
    const inside =
      next ||
      ((ts.isPropertyAssignment(node) || ts.isVariableDeclaration(node)) &&
        /^(next|fix|todo)$/.test(node.name.getText(source)));
    const { line } = source.getLineAndCharacterOfPosition(node.getStart(source));
    if (ts.isStringLiteral(node) || ts.isNoSubstitutionTemplateLiteral(node) || ts.isJsxText(node))
      found.push({ text: node.text, next: inside, line: line + 1 });
    else if (ts.isTemplateExpression(node))
      found.push({
        text: node.head.text + node.templateSpans.map((span) => HOLE + span.literal.text).join(''),
        next: inside,
        line: line + 1,
      });
    node.forEachChild((child) => visit(child, inside));
  };
  visit(source, false);
  return found;
}

const sources = readdirSync(join(root, 'src'), { recursive: true })
  .map((file) => join('src', String(file)))
  .filter((file) => /\.tsx?$/.test(file));
const said = sources.flatMap((file) => strings(file).map((one) => ({ ...one, at: `${file}:${one.line}` })));

describe('command lines', () => {
  test.each([
    ['seq status -c lab', null],
    ['seq status --context=lab -ojson', null],
    [`seq hold ${HOLE} --for 10m --reason TEXT`, null],
    ['seq run --id a -- cat -x', null],
    ['seq lab --help', null],
    ['seq COMMAND --help', null],
    ['seq stauts', "there is no command 'stauts'"],
    ['seq status --bogus', "'status' has no flag --bogus"],
    ['seq hold --for 10m', 'lacks --reason'],
    ['seq status x', "'x' is too much"],
    ['seq status -o xml', "-o: 'xml' is none of table, wide, plain, json, ndjson, yaml, csv"],
    ['seq lab start', 'lacks name'],
    ['seq status --interval 1s', 'lacks --interval'],
    ['seq status -c', '-c lacks its value'],
    ['seq lab bogus', "there is no command 'lab bogus'"],
  ])('checker: %s → %s', (line, problem) => {
    expect(lineProblem(line)).toBe(problem);
  });

  test('explain: every command and flag that an entry names exists', () => {
    const wrong = [...allCodes().values()].flatMap(({ code, meaning, causes, todo }) =>
      [meaning, ...causes, ...todo].flatMap((text) =>
        mentionProblems(text).map((problem) => `${code}: ${problem} (${text})`),
      ),
    );
    expect(wrong).toEqual([]);
  });

  test('explain: every flag that an entry names by itself is one of some command', () => {
    const known = new Set(commands.flatMap((command) => Object.keys(command.flags).map((flag) => `--${flag}`)));
    const wrong = [...allCodes().values()].flatMap(({ code, todo }) =>
      todo
        .filter((text) => !/^redis-cli/.test(text))
        .flatMap((text) =>
          (text.match(/(?<![\w-])--[a-z][a-z-]+/g) ?? [])
            .filter((flag) => !known.has(flag) && flag !== '--help')
            .map((flag) => `${code}: ${flag} (${text})`),
        ),
    );
    expect(wrong).toEqual([]);
  });

  test('sources: every text that names a command names one that exists, with flags that it has', () => {
    // A completion script is shell, not a command line of seq.
    expect(
      said
        .filter(({ at }) => !at.startsWith('src/cli/start/completion'))
        .flatMap(({ text, at }) =>
          mentionProblems(text).map((problem) => `${at}: ${problem} (${text.trim().slice(0, 100)})`),
        ),
    ).toEqual([]);
  });

  test('next: what begins with seq can be run as it is', () => {
    const lines = said.filter(({ text, next, at }) => next && !at.startsWith('src/cli/codes/') && /^seq \S/.test(text));
    expect(lines.length).toBeGreaterThan(50);
    expect(
      lines.flatMap(({ text, at }) => {
        const problem = lineProblem(text);
        return problem === null ? [] : [`${at}: ${text}: ${problem}`];
      }),
    ).toEqual([]);
  });

  test("examples: every one in a command's help can be run as it is", () => {
    const wrong = commands.flatMap(({ id, examples = [] }) =>
      examples.flatMap((example) => {
        const line = example.replaceAll('<%= config.bin %>', 'seq');
        const own = /(?:^|\| )(seq .*?)(?: \| | && | > |$)/.exec(line)?.[1] ?? '';
        const problem = lineProblem(own);
        return problem === null ? [] : [`${id}: ${line}: ${problem}`];
      }),
    );
    expect(wrong).toEqual([]);
  });

  test.each([
    'README.md',
    'CHANGELOG.md',
    'examples/README.md',
    ...readdirSync(join(root, 'docs'))
      .filter((name) => name.endsWith('.md'))
      .map((name) => `docs/${name}`),
  ])('documents: %s → commands and flags exist', (file) => {
    const text = readFileSync(join(root, file), 'utf8');
    const quoted = [...text.matchAll(/`([^`\n]+)`/g)].map((match) => match[1] as string);
    const blocks = [...text.matchAll(/```[a-z]*\n([\s\S]*?)```/g)].flatMap((match) => (match[1] as string).split('\n'));
    expect(
      [...quoted, ...blocks]
        .filter((line) => /(^|[$|] ?)seq [a-z]/.test(line))
        .flatMap((line) => mentionProblems(line).map((problem) => `${problem} (${line})`)),
    ).toEqual([]);
  });
});
