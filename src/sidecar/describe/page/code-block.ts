import { type Content, type Html, html } from '../../../http/html';

export type Language = 'json' | 'shell' | 'lines' | 'diff' | 'plain';

/** A block of code with its caption; it can be scrolled by keyboard. */
export function codeBlock(caption: string, text: string, language: Language): Html {
  return html`<figure class="code">
<figcaption>${caption}</figcaption>
<pre tabindex="0" role="region" aria-label="${caption}"><code>${highlight(text, language)}</code></pre>
</figure>`;
}

/** What a kind of text looks like: each named group is a class of the style sheet. */
const RULES: Readonly<Record<Language, RegExp>> = {
  json: /(?<key>"(?:[^"\\]|\\.)*"(?=\s*:))|(?<string>"(?:[^"\\]|\\.)*")|(?<number>-?\b\d[\d.eE+-]*)|(?<word>\b(?:true|false|null)\b)/g,
  shell: /(?<string>'(?:[^']|'\\'')*'|"[^"]*")|(?<word>(?<=^| )-{1,2}[A-Za-z-]+)|(?<key>^curl\b)/gm,
  lines: /^(?<key>[^:\n]+)(?=:)/gm,
  diff: /^(?<added>\+.*)$|^(?<removed>-.*)$/gm,
  plain: /(?!)/g,
};

function highlight(text: string, language: Language): Content[] {
  const pieces: Content[] = [];
  let end = 0;
  for (const match of text.matchAll(RULES[language])) {
    const [kind, found] = Object.entries(match.groups ?? {}).find(([, group]) => group !== undefined) ?? [];
    if (kind === undefined || found === undefined) continue;
    pieces.push(text.slice(end, match.index), markUp(kind, found, language));
    end = match.index + found.length;
  }
  return [...pieces, text.slice(end)];
}

function markUp(kind: string, text: string, language: Language): Content {
  // The body of a curl command: JSON in single quotes.
  if (language === 'shell' && /^'[{[]/.test(text)) return ["'", ...highlight(text.slice(1, -1), 'json'), "'"];
  return html`<span class="t-${kind}">${text}</span>`;
}
