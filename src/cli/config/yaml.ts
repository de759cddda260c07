// The YAML package behind a module of our own, so that it can be loaded late. (It is CommonJS: once bundled, only a
// static import gives its names.)
export { parseDocument, stringify } from 'yaml';
