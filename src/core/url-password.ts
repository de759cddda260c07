/** A scheme has an end: without one, a long word without any `:` costs the square of its length. */
const URL_PASSWORD = /([a-z][a-z0-9+.-]{0,20}:\/\/[^\s/:@]*):[^\s/@]+@/gi;

/** The passwords of all addresses in a text as `***`. */
export function withoutPasswords(text: string): string {
  return text.replace(URL_PASSWORD, '$1:***@');
}
