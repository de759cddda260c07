// redlock 4 ships no types. The code that uses it declares the types that it needs.
declare module 'redlock';
