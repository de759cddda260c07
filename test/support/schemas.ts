// Holds a command's JSON against the schemas that ship with the package: the envelope, and `data` by its kind.
import { existsSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';

const folder = resolve(import.meta.dirname, '../../schemas');
const ajv = new Ajv2020({ allErrors: true, strict: false });
(addFormats as unknown as (instance: Ajv2020) => void)(ajv);
const compiled = new Map<string, ValidateFunction>();

function validator(name: string): ValidateFunction {
  let found = compiled.get(name);
  if (!found) {
    const path = join(folder, `${name}.json`);
    if (!existsSync(path)) throw new Error(`there is no schema for kind ${name}: schemas/${name}.json`);
    found = ajv.compile(JSON.parse(readFileSync(path, 'utf8')) as object);
    compiled.set(name, found);
  }
  return found;
}

/** What does not fit, one line each; empty when everything does. */
export function schemaProblems(document: unknown): string[] {
  const problems = (name: string, value: unknown): string[] => {
    const validate = validator(name);
    return validate(value) ? [] : (validate.errors ?? []).map((error) => `${name}${error.instancePath}: ${error.message ?? ''} ${JSON.stringify(error.params)}`);
  };
  const own = problems('envelope', document);
  if (own.length > 0) return own;
  const { kind, data } = document as { kind: string; data: unknown };
  return problems(kind, data);
}
