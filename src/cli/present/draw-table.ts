// The only place that loads the table package. It is a separate module, so that an answer without a table does not load
// it.
export { table as drawTable } from 'table';
