// The YAML package behind a file of our own, so that it can be loaded late (it is CommonJS: only a static import
// gives its names once bundled).
export { parseDocument, stringify } from 'yaml';
