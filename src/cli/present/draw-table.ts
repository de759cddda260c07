// The one place that loads the table package; a module of its own, so that an answer without a table can do without it.
export { table as drawTable } from 'table';
