// A reporter for vitest: one line of JSON for each file and test that starts or ends, as it happens, into the file
// SEQ_TEST_LINES. scripts/test.mjs reads it: what does not grow stands still, and its last lines say where.
import { appendFileSync } from 'node:fs';
import { relative } from 'node:path';
import { root } from './paths.mjs';

const path = process.env.SEQ_TEST_LINES ?? '/dev/null';
const write = (line) => appendFileSync(path, `${JSON.stringify(line)}\n`);
const fileOf = (module) => relative(root, module.moduleId);
/** As `vitest -t` compares it: the names of the groups and of the test, a space between them. */
const nameOf = (test) =>
  test.parent && test.parent.type === 'suite' ? `${nameOf(test.parent)} ${test.name}` : test.name;
const messagesOf = (errors) => errors.map((error) => error.stack || error.message || String(error)).join('\n');

/** The assertion with its difference, then the places in our own files. */
function describe(error) {
  const places = (error.stacks ?? []).map((at) => `    at ${relative(root, at.file)}:${at.line}:${at.column}`);
  const message = error.message ?? String(error);
  return [message, ...(error.diff ? [error.diff] : []), ...places.slice(0, 4)].join('\n');
}

export default class HeartbeatReporter {
  onTestModuleStart(module) {
    write({ is: 'file', file: fileOf(module) });
  }
  onTestCaseReady(test) {
    write({ is: 'start', file: fileOf(test.module), name: nameOf(test) });
  }
  onTestCaseResult(test) {
    const { state, errors = [] } = test.result();
    write({ is: state, file: fileOf(test.module), name: nameOf(test), why: errors.map(describe).join('\n') });
  }
  onTestModuleEnd(module) {
    const errors = module.errors();
    const suites = [...module.children.allSuites()].flatMap((suite) => suite.errors());
    write({ is: 'end', file: fileOf(module), why: messagesOf([...errors, ...suites]) });
  }
  onTestRunEnd(_, errors) {
    write({ is: 'done', why: messagesOf(errors) });
  }
}
