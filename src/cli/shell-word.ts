/** A text as one word of a POSIX shell, whatever stands in it: commands of the checklist are pasted, often as root. */
export function shellWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
