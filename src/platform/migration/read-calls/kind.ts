import type { Language } from './source';

/** The kinds of input. */
export const KINDS = ['curl', 'url', 'har', 'log', 'source'] as const;
export type Kind = (typeof KINDS)[number];

export type LanguageName = 'javascript' | 'python' | 'php';

const EXTENSIONS: Readonly<Record<LanguageName, RegExp>> = {
  javascript: /\.(?:[cm]?[jt]s|[jt]sx|vue)$/i,
  python: /\.pyw?$/i,
  php: /\.(?:php\d?|phtml|inc)$/i,
};

/** The language of a program by the name of its file. */
export function languageOfFile(name: string): LanguageName | undefined {
  const names = Object.keys(EXTENSIONS) as LanguageName[];
  return names.find((language) => EXTENSIONS[language].test(name));
}

/** The language of a program that has no name. */
export function languageOfText(text: string): LanguageName {
  if (/<\?(?:php|=)/i.test(text)) return 'php';
  if (/^#!.*\bpython/.test(text) || /^(?:from \w[\w.]* import|import \w[\w.]*\s*$|def \w+\()/m.test(text)) {
    return 'python';
  }
  return 'javascript';
}

/** Its parser, which is loaded when it is needed. */
export async function loadLanguage(name: LanguageName): Promise<Language> {
  const { JAVASCRIPT, PYTHON, PHP } = await import('./languages');
  return { javascript: JAVASCRIPT, python: PYTHON, php: PHP }[name];
}

/** A word of the command line that is no file: a command or an address. */
export function kindOfWord(word: string): 'curl' | 'url' | undefined {
  if (/^\s*(?:\$\s*)?curl\s/.test(word)) return 'curl';
  // Also as people copy an address: without its scheme.
  return /^\s*(?:https?:\/\/|\/?v1\/|(?:[\w-]+\.)*[\w-]+(?::\d+)?\/v1\/)/i.test(word) ? 'url' : undefined;
}

/** The kind of a text, by its start. */
export function kindOfText(head: string): Kind {
  // Lines of JSON logs may have a field of this name, too.
  const isHar = /"log"\s*:\s*\{\s*"(?:version|creator|browser|pages|entries|comment)"/;
  if (/^\s*\{/.test(head) && isHar.test(head)) return 'har';
  if (/^(?:\s*\$)?\s*curl\s/m.test(head)) return 'curl';
  if (/^\s*(?:https?:\/\/|\/v1\/)\S+\s*$/m.test(head.split('\n', 1)[0] ?? '')) return 'url';
  const isProgram =
    /<\?php|^#!.*\b(?:python|node|php)|^(?:import|from|const|let|var|function|def|class|export) /m;
  return !/^\s*\{/.test(head) && isProgram.test(head) ? 'source' : 'log';
}
