import { type Content, type Html, html } from '../../../http/html';

type Tone = 'good' | 'bad' | 'wait' | 'calm' | 'special';

/** What the states of a kind are called, and how they look. */
export type Words<State extends string> = Readonly<Record<State, readonly [word: string, tone: Tone]>>;

export interface Choice {
  readonly value: string;
  readonly label: string;
}

/** States to choose from, by their words. */
export function choicesOf(words: Words<string>): Choice[] {
  return Object.entries(words).map(([value, [label]]) => ({ value, label }));
}

/** A state in a word or two. The word carries the meaning; the colour only helps. */
export function pill(word: string, tone: Tone): Html {
  return html`<span class="pill pill-${tone}">${word}</span>`;
}

const HIDDEN_NAME = (name: string) => html`<span class="unseen"> ${name}</span>`;

/** A time of the platform's clock, in UTC to the second. */
export function time(at: Date | undefined): Html {
  if (!at) return html`<span class="muted">–</span>`;
  const iso = at.toISOString();
  return html`<time datetime="${iso}">${iso.slice(0, 10)} <span>${iso.slice(11, 19)} UTC</span></time>`;
}

/** A number of bytes, as people say it. */
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

/** An address, whose lines end where its parts end. */
export function address(text: string): Html {
  return html`<code class="address">${breakable(text)}</code>`;
}

/** A text to take away, with a button that copies it where there is script. */
export function copyable(id: string, name: string, text: string): Html {
  return html`<span class="copyable"><code id="${id}">${text}</code>${copyButton(id, name)}</span>`;
}

export function copyableAddress(id: string, name: string, text: string): Html {
  return html`<span class="copyable"><code class="address" id="${id}">${breakable(text)}</code>${copyButton(id, name)}</span>`;
}

/** Several lines to take away, such as a command. */
export function copyableLines(id: string, name: string, text: string): Html {
  return html`<div class="lines"><pre tabindex="0" role="region" aria-label="${name}"><code id="${id}">${text}</code></pre>${copyButton(id, name)}</div>`;
}

function copyButton(id: string, name: string): Html {
  return html`<button type="button" class="button button-small copy" data-copy="${id}">Copy${HIDDEN_NAME(name)}</button>`;
}

/** What is shown only when it is asked for. */
export function disclosure(id: string, what: string, content: Content): Html {
  return html`<details id="${id}">
    <summary class="link"><span class="closed">Show</span><span class="opened">Hide</span> ${what}</summary>
    ${content}
  </details>`;
}

/** A secret behind dots until it is asked for. `name` says whose it is. */
export function secret(id: string, name: string, text: string, show = 'Show', hide = 'Hide'): Html {
  return html`<details class="secret" id="${id}-details">
    <summary><span class="dots closed" aria-hidden="true">•••••••• </span><span class="link closed">${show}</span><span class="link opened">${hide}</span>${HIDDEN_NAME(name)}</summary>
    ${copyable(id, name, text)}
  </details>`;
}

interface ActionOptions {
  readonly look?: 'plain' | 'main';
  /** What it sends beside its path. */
  readonly fields?: Content;
}

/** A button that changes something. */
export function action(
  path: string,
  label: string,
  name: string,
  { look, fields }: ActionOptions = {},
): Html {
  return html`<form method="post" action="${path}">${fields}<button class="button button-small${look === 'main' && ' button-main'}">${label}${HIDDEN_NAME(name)}</button></form>`;
}

interface ConfirmOptions extends Pick<ActionOptions, 'fields'> {
  /** Of the place on the page, where several have the same path. */
  readonly id?: string;
}

/** A button for what can't be undone: it is asked for twice. */
export function confirmedAction(
  path: string,
  label: string,
  name: string,
  consequence: string,
  { id = path, fields }: ConfirmOptions = {},
): Html {
  return html`<details class="confirm" id="confirm-${id}">
    <summary class="button button-small button-bad">${label}…${HIDDEN_NAME(name)}</summary>
    <form method="post" action="${path}" class="confirm-form">${fields}<p>${consequence}</p>
    <button class="button button-small button-bad-main">${label}${HIDDEN_NAME(name)}</button></form>
  </details>`;
}

/** A button that opens a form. */
export function openedForm(id: string, label: string, name: string, form: Content, isOpen = false): Html {
  return html`<details class="opened-form" id="${id}"${isOpen && html` open`}>
    <summary class="button button-small">${label}…${HIDDEN_NAME(name)}</summary>
    ${form}
  </details>`;
}

/** Fields that a form sends without asking for them. */
export function hiddenFields(fields: Readonly<Record<string, string | number>>): Html[] {
  return Object.entries(fields).map(
    ([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`,
  );
}

interface Table {
  /** What the rows are, for who does not see the page. */
  readonly caption: string;
  readonly columns: readonly string[];
  readonly rows: readonly (readonly Content[])[];
  /** What to say when there are no rows. */
  readonly empty: Content;
}

/** A table, which narrow screens show as cards; the roles stay when the layout takes the table's away. */
export function table({ caption, columns, rows, empty }: Table): Html {
  if (rows.length === 0) return html`<div class="empty">${empty}</div>`;
  return html`<table role="table">
    <caption class="unseen">${caption}</caption>
    <thead role="rowgroup"><tr role="row">${columns.map((column) => html`<th scope="col" role="columnheader">${column}</th>`)}</tr></thead>
    <tbody role="rowgroup">${rows.map(
      (cells) =>
        html`<tr role="row">${cells.map((cell, place) => html`<td role="cell" data-label="${columns[place]}"><div>${cell}</div></td>`)}</tr>`,
    )}</tbody>
  </table>`;
}

/** Names with their values. */
export function facts(pairs: readonly (readonly [name: string, value: Content])[]): Html {
  return html`<dl class="facts">${pairs.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`;
}

/** A part of a page that the script keeps up to date. */
export function live(id: string, content: Content): Html {
  return html`<div id="${id}" data-live>${content}</div>`;
}

/** A piece longer than this may be broken within: on a phone it would be wider than its column. */
const MAX_PIECE_LENGTH = 20;

/**
 * An address with the places where a line may end: after slashes and before the query's parts. A piece between them is
 * broken only when it is long, after a sign if there is one.
 */
export function breakable(address: string): Content {
  const pieces = address.split(/(?<=\/)(?!\/)|(?=[?&])/).flatMap(shortened);
  return pieces.map((piece, place) => (place === 0 ? piece : html`<wbr>${piece}`));
}

function shortened(piece: string): string[] {
  if (piece.length <= MAX_PIECE_LENGTH) return [piece];
  return piece.split(/(?<=[-_.=:])/).flatMap((part) => part.match(/.{1,20}/gsu) ?? []);
}
