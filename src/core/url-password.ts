const URL_PASSWORD = /([a-z][a-z0-9+.-]*:\/\/[^\s/:@]*):[^\s/@]+@/gi;

/** The passwords of all addresses in a text as `***`. */
export function withoutPasswords(text: string): string {
  return text.replace(URL_PASSWORD, '$1:***@');
}
