// redlock 4 ships no types; what is used of it is typed where it is used.
declare module 'redlock';
