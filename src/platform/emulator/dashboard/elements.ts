import { type Content, type Html, html } from '../../../http/html';
import { capital } from '../resources/fields';

type Tone = 'success' | 'danger' | 'warning' | 'neutral' | 'special';

export type Words<State extends string> = Readonly<Record<State, readonly [word: string, tone: Tone]>>;

export interface Choice {
  readonly value: string;
  readonly label: string;
}

export function choicesOf(words: Words<string>): Choice[] {
  return Object.entries(words).map(([value, [label]]) => ({ value, label }));
}

export function plainChoices(values: readonly string[]): Choice[] {
  return values.map((value) => ({ value, label: value }));
}

export function optionsOf(choices: readonly Choice[], chosen: string): Html[] {
  return choices.map(
    ({ value, label }) =>
      html`<option value="${value}"${value === chosen && html` selected`}>${label}</option>`,
  );
}

const LABELS: Readonly<Record<string, string>> = {
  webhook_url: 'URL',
  site_ids: 'Sites',
  dvr: 'DVR',
  sidecar: 'Address of the sidecar',
  url: 'Address of the manifest or playlist',
  api_key: 'API key',
  former: 'Former key file',
  call: 'A curl command, or an address with its parameters',
};
/** A map, as words of a path may be any. */
const SPELLED = new Map([
  ['params', 'parameters'],
  ['srclang', 'language code'],
  ['config', 'configuration'],
  ['url', 'address'],
  ['adschedule', 'advertising schedule'],
]);

/** The label of a field, by its name in the API: `publish_start_date` is Publish start date. */
export function labelOf(path: string): string {
  const words = path.split(/[._]/).map((word) => SPELLED.get(word) ?? word);
  return LABELS[path] ?? capital(words.join(' '));
}

/** A state in a word or two. The word carries the meaning; the colour only helps. */
export function pill(word: string, tone: Tone): Html {
  return html`<span class="badge" data-variant="${tone}">${word}</span>`;
}

/** Text for screen readers: the subject of a button that has the same label as others. */
export function unseen(text: string): Html {
  return html`<span class="unseen"> ${text}</span>`;
}

export const NOTHING = html`<span class="muted">–</span>`;

/** A time of the platform's clock, in UTC to the second. */
export function time(at: Date | undefined): Html {
  if (!at) return NOTHING;
  const iso = at.toISOString();
  return html`<time datetime="${iso}">${iso.slice(0, 10)} <span>${iso.slice(11, 19)} UTC</span></time>`;
}

/** A number of bytes in decimal units. */
export function bytes(count: number): string {
  if (count < 1000) return `${count} B`;
  const power = Math.min(Math.floor(Math.log10(count) / 3), 4);
  const value = count / 1000 ** power;
  return `${value < 10 ? value.toFixed(1) : Math.round(value)} ${['B', 'kB', 'MB', 'GB', 'TB'][power]}`;
}

/** Seconds as 1:02:03. */
export function duration(seconds: number): string {
  const whole = Math.round(seconds);
  const [hours, minutes, rest] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  const two = (part: number) => String(part).padStart(2, '0');
  return hours > 0 ? `${hours}:${two(minutes)}:${two(rest)}` : `${minutes}:${two(rest)}`;
}

export interface Noun {
  readonly one: string;
  readonly many: string;
}

/** `1 webhook`, `2 webhooks`. */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`;
}

/** An address that breaks after signs, or within pieces longer than 16 characters, which are too wide for a phone. */
export function breakable(address: string): Content {
  const pieces = address.match(/[^/?&=_.:-]{1,16}[/?&=_.:-]*|[/?&=_.:-]+/gu) ?? [];
  return pieces.map((piece, place) => (place === 0 ? piece : html`<wbr>${piece}`));
}

export function address(text: string): Html {
  return html`<code class="address">${breakable(text)}</code>`;
}

export function copyable(name: string, text: string, shown = html`<code>${text}</code>`): Html {
  return html`<span class="copyable">${shown}${copyButton(name)}</span>`;
}

export function copyableAddress(name: string, text: string): Html {
  return copyable(name, text, address(text));
}

export function copyableLines(id: string, name: string, text: string): Html {
  return html`<div class="lines copyable-lines"><pre tabindex="0" role="region" aria-label="${name}"><code id="${id}">${text}</code></pre>${copyButton(name)}</div>`;
}

function copyButton(name: string): Html {
  return html`<button type="button" class="outline small copy" data-copy>Copy${unseen(name)}</button>`;
}

export function disclosure(id: string, label: string, content: Content): Html {
  return html`<details id="${id}">
    <summary class="link"><span class="closed">Show</span><span class="opened">Hide</span> ${label}</summary>
    ${content}
  </details>`;
}

export function secret(id: string, name: string, text: string, of = ''): Html {
  return html`<details class="secret" id="${id}">
    <summary><span class="dots closed" aria-hidden="true">•••••••• </span><span class="link closed">Show${of}</span><span class="link opened">Hide${of}</span>${unseen(name)}</summary>
    ${copyable(name, text)}
  </details>`;
}

/** Fields that a form sends without asking for them. */
export type Hidden = Readonly<Record<string, string | number>>;

export function hiddenFields(fields: Hidden): Html[] {
  return Object.entries(fields).map(
    ([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`,
  );
}

export function action(
  path: string,
  label: string,
  name: string,
  fields: Hidden = {},
  look = 'outline small',
): Html {
  return html`<form method="post" action="${path}">${hiddenFields(fields)}<button class="${look}">${label}${unseen(name)}</button></form>`;
}

/** A button for a change that can't be undone: it asks twice. @param id of the place, where several have one path. */
export function confirmedAction(
  path: string,
  label: string,
  name: string,
  consequence: string,
  { id = path, ...fields }: Hidden = {},
): Html {
  return html`<details class="opened-form confirm" id="confirm-${id}">
    <summary class="button outline small" data-variant="danger">${label}…${unseen(name)}</summary>
    <form method="post" action="${path}">${hiddenFields(fields)}<p>${consequence}</p>
    <button class="small" data-variant="danger">${label}${unseen(name)}</button></form>
  </details>`;
}

export type Column<T> = readonly [title: string, cell: (item: T) => Content];

/** A table, which narrow screens show as cards; the roles stay when the layout takes the table's away. */
export function table<T>(
  caption: string,
  columns: readonly Column<T>[],
  items: readonly T[],
  none: Content,
): Html {
  if (items.length === 0) return html`<div class="empty">${none}</div>`;
  return html`<table role="table">
    <caption class="unseen">${caption}</caption>
    <thead role="rowgroup"><tr role="row">${columns.map(([title]) => html`<th scope="col" role="columnheader">${title}</th>`)}</tr></thead>
    <tbody role="rowgroup">${items.map(
      (item) =>
        html`<tr role="row">${columns.map(([title, cell]) => html`<td role="cell" data-label="${title}"><div>${cell(item)}</div></td>`)}</tr>`,
    )}</tbody>
  </table>`;
}

/** A name with its value; `false` where it does not apply. */
export type Fact = readonly [name: string, value: Content] | false;

export function facts(pairs: readonly Fact[]): Html {
  return html`<dl class="facts">${pairs.map((pair) => pair && html`<div><dt>${pair[0]}</dt><dd>${pair[1]}</dd></div>`)}</dl>`;
}

export function section(id: string, title: string, content: Content, aside?: Content): Html {
  const heading = html`<h2 id="${id}-title">${title}</h2>`;
  const head = aside === undefined ? heading : html`<div class="title-2">${heading}${aside}</div>`;
  return html`<section aria-labelledby="${id}-title">${head}${content}</section>`;
}

export function card(id: string, title: string, content: Content, look = ''): Html {
  return html`<section class="card ${look}" id="${id}" aria-labelledby="${id}-title"><h2 id="${id}-title">${title}</h2>${content}</section>`;
}

/** A part of a page that the script keeps up to date. */
export function live(id: string, content: Content): Html {
  return html`<div id="${id}" data-live>${content}</div>`;
}
