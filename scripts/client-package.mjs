// What a program imports from the package: dist/index.js, one file that loads built-in modules of Node alone, and its
// types in dist/types/. The types are made file by file, from src/index.ts along its imports. So only what the public
// interface names is in the package.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { build } from 'esbuild';
import ts from 'typescript';
import { root } from './paths.mjs';

const src = join(root, 'src');

/** Its own bundle: nothing of it is shared with the commands, so neither makes the other load more. */
export async function clientBundle(outdir) {
  await build({
    absWorkingDir: root,
    entryPoints: [join(src, 'index.ts')],
    outfile: join(outdir, 'index.js'),
    bundle: true,
    minifySyntax: true,
    minifyWhitespace: true,
    legalComments: 'none',
    format: 'esm',
    platform: 'node',
    target: 'node20',
    sourcemap: 'linked',
    sourcesContent: false,
    logLevel: 'warning',
  });
}

export function clientTypes(outdir) {
  const todo = [join(src, 'index.ts')];
  for (const file of todo) {
    const { outputText, diagnostics } = ts.transpileDeclaration(readFileSync(file, 'utf8'), {
      fileName: file,
      reportDiagnostics: true,
      compilerOptions: {
        target: ts.ScriptTarget.ES2022,
        module: ts.ModuleKind.NodeNext,
        isolatedDeclarations: true,
        declaration: true,
        verbatimModuleSyntax: true,
        strict: true,
      },
    });
    const [first] = diagnostics ?? [];
    if (first) throw new Error(`${relative(root, file)}: ${ts.flattenDiagnosticMessageText(first.messageText, '\n')}`);
    const target = join(outdir, 'types', relative(src, file).replace(/\.ts$/, '.d.ts'));
    mkdirSync(dirname(target), { recursive: true });
    writeFileSync(target, outputText);
    for (const [, name] of outputText.matchAll(/\b(?:from |import\()['"](\.[^'"]+)\.js['"]/g)) {
      const next = `${resolve(dirname(file), name)}.ts`;
      if (!todo.includes(next)) todo.push(next);
    }
  }
}
